/*
 * rows.js: where each lane lies in the timeline: a row for each lane that the filter lets through, with a track for each
 * kind of items. Heights are CSS pixels. Used by the view; made anew when the filter or the width class changes. Pure.
 */

const TRACK_HEIGHT = {ranges: 13, calls: 20, waits: 7, ops: 16, idle: 8, collectives: 16};
const MOST_RANGES = 4; /* depths of them */
const PADDING = 5;
const EMPTY_ROW = 14;
/* Above the tracks, where there is no room for names at their left. */
const NAME_LINE = 14;

/* The tracks of a lane: {kind, depth, y, height}, y from the row's top. Gaps share the track of calls: they lie between them. */
function tracksOf(model, lane, top) {
	const tracks = [];
	let y = top;
	const put = (kind, depth = 0) => {
		tracks.push({kind, depth, y, height: TRACK_HEIGHT[kind]});
		y += TRACK_HEIGHT[kind] + 1;
	};
	for (let depth = 0; depth < Math.min(MOST_RANGES, model.rangeDepths(lane)); depth++)
		put('ranges', depth);
	if (model.has(lane, 'calls') || model.has(lane, 'gaps'))
		put('calls');
	for (const kind of ['waits', 'ops', 'idle', 'collectives'])
		if (model.has(lane, kind))
			put(kind);
	return {tracks, height: Math.max(EMPTY_ROW, y - top)};
}

/* {rows: [{lane, y, height, tracks}], height, ofLane: rows by lane}; `shown` is a Set of lanes, or null: all. */
export function layOut(model, shown, narrow) {
	const rows = [];
	const ofLane = new Map();
	let y = 0;
	model.lanes.forEach((of, lane) => {
		if (shown && !shown.has(lane))
			return;
		const {tracks, height} = tracksOf(model, lane, PADDING + (narrow ? NAME_LINE : 0));
		const row = {lane, y, height: height + 2 * PADDING + (narrow ? NAME_LINE : 0), tracks};
		rows.push(row);
		ofLane.set(lane, row);
		y += row.height;
	});
	return {rows, ofLane, height: y};
}

/* The first row that ends below y. */
export function rowAt(layout, y) {
	let low = 0;
	let high = layout.rows.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (layout.rows[middle].y + layout.rows[middle].height > y)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

export function trackOf(row, kind, depth = 0) {
	return row.tracks.find((track) => track.kind === (kind === 'gaps' ? 'calls' : kind) && track.depth === depth) || null;
}
