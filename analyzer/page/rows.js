/*
 * rows.js: where each lane lies in the timeline: a row for each lane that the filter lets through, with a track for each
 * kind of items. Heights are CSS pixels. Used by the view; made anew when the filter or the width class changes. Pure.
 */

/* Heights of tracks, and how many depths of ranges are shown; dense: where rows would be several screens. */
const ROOMY = {ranges: 13, calls: 20, waits: 7, ops: 16, idle: 8, collectives: 16, looks: 11, depths: 4, padding: 5, empty: 14, between: 1};
const DENSE = {ranges: 7, calls: 9, waits: 3, ops: 7, idle: 4, collectives: 8, looks: 5, depths: 1, padding: 1, empty: 9, between: 0};
const TOO_HIGH = 1300;
/* Above the tracks, where there is no room for names at their left. */
const NAME_LINE = 14;

/* The tracks of a lane: {kind, depth, y, height}, y from the row's top. Gaps share the track of calls: they lie between them. */
function tracksOf(model, lane, top, sizes) {
	const tracks = [];
	let y = top;
	const put = (kind, depth = 0) => {
		tracks.push({kind, depth, y, height: sizes[kind]});
		y += sizes[kind] + sizes.between;
	};
	for (let depth = 0; depth < Math.min(sizes.depths, model.rangeDepths(lane)); depth++)
		put('ranges', depth);
	if (model.has(lane, 'calls') || model.has(lane, 'gaps'))
		put('calls');
	for (const kind of ['waits', 'ops', 'idle', 'collectives'])
		if (model.has(lane, kind))
			put(kind);
	for (let depth = 0; depth < model.lookDepths(lane); depth++)
		put('looks', depth);
	return {tracks, height: Math.max(sizes.empty, y - top)};
}

function layOutWith(model, shown, narrow, sizes) {
	const rows = [];
	const ofLane = new Map();
	const top = sizes.padding + (narrow ? NAME_LINE : 0);
	let y = 0;
	model.lanes.forEach((of, lane) => {
		if (shown && !shown.has(lane))
			return;
		const {tracks, height} = tracksOf(model, lane, top, sizes);
		const row = {lane, y, height: height + top + sizes.padding, tracks};
		rows.push(row);
		ofLane.set(lane, row);
		y += row.height;
	});
	return {rows, ofLane, height: y, dense: sizes === DENSE};
}

/* {rows: [{lane, y, height, tracks}], height, ofLane: rows by lane}; `shown` is a Set of lanes, or null: all. */
export function layOut(model, shown, narrow) {
	const roomy = layOutWith(model, shown, narrow, ROOMY);
	return roomy.height > TOO_HIGH ? layOutWith(model, shown, narrow, DENSE) : roomy;
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
