/*
 * view.js: which part of the timeline is seen, and what is chosen in it. Changed by keys, wheel, touch, search, findings
 * and tables; whoever wants to know listens. Positions are CSS pixels from the canvas's corner.
 */
import {layOut, rowAt, trackOf} from './rows.js';

const CLOSEST_NS = 50;
const MOVE_MS = 260;
export const AXIS_HEIGHT = 36;

export class View {
	constructor(model) {
		this.model = model;
		this.from = model.begin_ns;
		this.to = model.begin_ns + model.span;
		this.scroll = 0;
		this.width = 800;
		this.height = 400;
		this.gutter = 0;
		this.selected = null;
		this.hover = null;
		this.measure = null; /* {a, b}: two times */
		this.filter = {lanes: null, function: null, text: ''};
		this.listeners = [];
		this.moving = 0;
		this.resize(800, 400);
	}

	listen(what, listener) {
		this.listeners.push([what, listener]);
	}

	changed(what) {
		for (const [wanted, listener] of this.listeners)
			if (wanted === what || wanted === 'any')
				listener();
	}

	resize(width, height) {
		const narrow = width < 560;
		this.width = width;
		this.height = height;
		this.gutter = narrow ? 0 : Math.min(220, Math.round(width * 0.18));
		if (this.narrow !== narrow || !this.layout)
			this.layOut(narrow);
		this.scrollTo(this.scroll);
		this.changed('view');
	}

	layOut(narrow = this.narrow) {
		this.narrow = narrow;
		this.layout = layOut(this.model, this.filter.lanes, narrow);
	}

	/* Pixels of the part with the items, and what is below the axis. */
	get plotWidth() {
		return Math.max(1, this.width - this.gutter);
	}

	get plotHeight() {
		return this.height - AXIS_HEIGHT;
	}

	get step() {
		return (this.to - this.from) / this.plotWidth;
	}

	x(ns) {
		return this.gutter + (ns - this.from) / this.step;
	}

	ns(x) {
		return this.from + (x - this.gutter) * this.step;
	}

	/* The top of a lane's row; null: the filter hides it. */
	rowTop(row) {
		return AXIS_HEIGHT + row.y - this.scroll;
	}

	show(from, to) {
		const {begin_ns: begin, span} = this.model;
		const margin = span * 0.02;
		const wanted = Math.min(span + 2 * margin, Math.max(CLOSEST_NS, to - from));
		const middle = (from + to) / 2;
		this.from = Math.max(begin - margin, Math.min(begin + span + margin - wanted, middle - wanted / 2));
		this.to = this.from + wanted;
		this.changed('view');
	}

	stop() {
		cancelAnimationFrame(this.moving);
		this.moving = 0;
	}

	/* Shows a window; on the way there, so that one sees where it lies. */
	move(from, to) {
		this.stop();
		if (matchMedia('(prefers-reduced-motion: reduce)').matches)
			return this.show(from, to);
		const begun = performance.now();
		const a = {from: this.from, to: this.to};
		const frame = (now) => {
			const part = Math.min(1, Math.max(0, (now - begun) / MOVE_MS));
			const eased = 1 - (1 - part) ** 3;
			/* Lengths grow by factors, not by differences. */
			const length = (a.to - a.from) * ((to - from) / (a.to - a.from)) ** eased;
			const middle = (a.from + a.to) / 2 + ((from + to) / 2 - (a.from + a.to) / 2) * this.along(a, from, to, length, eased);
			this.moving = part < 1 ? requestAnimationFrame(frame) : 0;
			if (part < 1)
				this.show(middle - length / 2, middle + length / 2);
			else
				this.show(from, to);
		};
		this.moving = requestAnimationFrame(frame);
	}

	/* How far the middle is, so that the goal stays in sight while the length changes. */
	along(a, from, to, length, eased) {
		const change = (a.to - a.from) - (to - from);
		return Math.abs(change) < 1 ? eased : ((a.to - a.from) - length) / change;
	}

	pan(pixels) {
		this.stop();
		this.show(this.from + pixels * this.step, this.to + pixels * this.step);
	}

	/* Makes what is seen `factor` times as long; the time at x stays where it is. */
	zoom(factor, x = this.gutter + this.plotWidth / 2) {
		this.stop();
		const at = this.ns(x);
		const length = Math.max(CLOSEST_NS, (this.to - this.from) * factor);
		const part = (at - this.from) / (this.to - this.from);
		this.show(at - part * length, at + (1 - part) * length);
	}

	all() {
		this.move(this.model.begin_ns, this.model.begin_ns + this.model.span);
	}

	/* False if there is nothing more to scroll to. */
	scrollTo(y) {
		const wanted = Math.max(0, Math.min(this.layout.height - this.plotHeight, y));
		if (wanted === this.scroll)
			return false;
		this.scroll = wanted;
		this.changed('view');
		return true;
	}

	/* Scrolls so that the rows of these lanes are seen; of the first one, if all of them do not fit. */
	reveal(...lanes) {
		const rows = lanes.map((lane) => this.layout.ofLane.get(lane)).filter((row) => row);
		if (!rows.length)
			return;
		const top = Math.min(...rows.map((row) => row.y));
		const bottom = Math.max(...rows.map((row) => row.y + row.height));
		const [y, end] = bottom - top <= this.plotHeight ? [top, bottom] : [rows[0].y, rows[0].y + rows[0].height];
		if (y < this.scroll || end > this.scroll + this.plotHeight)
			this.scrollTo(y - (this.plotHeight - (end - y)) / 2);
	}

	/*
	 * Shows these lanes together: scrolled to, where they fit; else all others are filtered out, so that an arrow's two ends
	 * are seen. The first one is seen in any case.
	 */
	focus(lanes) {
		const wanted = new Set(lanes.filter((lane) => lane >= 0));
		const rows = [...wanted].map((lane) => this.layout.ofLane.get(lane)).filter((row) => row);
		const span = Math.max(0, ...rows.map((row) => row.y + row.height)) - Math.min(Infinity, ...rows.map((row) => row.y));
		if (wanted.size > 1 && span > this.plotHeight && wanted.size < this.model.lanes.length)
			this.setFilter({...this.filter, lanes: wanted, text: `only the ${wanted.size} lanes that this is about`});
		this.reveal(...lanes);
	}

	/* Chooses an item (null: none), and goes there, so that it and its surroundings are seen, if that is wanted. */
	select(item, go = false) {
		this.selected = item;
		if (item && this.filter.lanes && !this.filter.lanes.has(item.lane))
			this.setFilter({...this.filter, lanes: null, text: ''});
		if (item && go) {
			const begin = this.model.begin(item);
			const length = Math.max(CLOSEST_NS / 2, this.model.end(item) - begin);
			this.reveal(item.lane);
			this.move(begin - length * 0.75, begin + length * 1.75);
		}
		this.changed('selected');
		this.changed('view');
	}

	setFilter(filter) {
		this.filter = filter;
		this.layOut();
		this.scrollTo(this.scroll);
		this.changed('filter');
		this.changed('view');
	}

	/* The item at a point, or the one within three pixels of it; null: none. */
	itemAt(x, y) {
		const below = y - AXIS_HEIGHT + this.scroll;
		const row = this.layout.rows[rowAt(this.layout, below)];
		if (y < AXIS_HEIGHT || x < this.gutter || !row)
			return null;
		const inside = below - row.y;
		const track = row.tracks.find((of) => inside >= of.y - 1 && inside <= of.y + of.height);
		if (!track)
			return null;
		for (const beside of [0, 1, -1, 2, -2, 3, -3])
			for (const kind of track.kind === 'calls' ? ['calls', 'gaps'] : [track.kind]) {
				const item = this.model.itemAt(row.lane, kind, this.ns(x + beside), track.depth);
				if (item)
					return item;
			}
		return null;
	}

	/* The row at a height, for names at the left. */
	laneAt(y) {
		return y < AXIS_HEIGHT ? null : this.layout.rows[rowAt(this.layout, y - AXIS_HEIGHT + this.scroll)]?.lane ?? null;
	}

	/* Where an item is drawn: {left, right, top, bottom}; null: in no row. */
	box(item) {
		const row = this.layout.ofLane.get(item.lane);
		const depth = item.kind === 'ranges' ? this.model.items(item.lane, 'ranges').depth[item.i] : 0;
		const track = row && trackOf(row, item.kind, depth);
		if (!track)
			return null;
		const top = this.rowTop(row) + track.y;
		return {left: this.x(this.model.begin(item)), right: this.x(this.model.end(item)), top, bottom: top + track.height};
	}
}
