/*
 * input.js: keys, wheel, mouse and touch on the timeline's canvas: what moves the view. Everything that the pointer can do,
 * keys can, too.
 */
import {firstAbove} from './series.js';

const KEY_PAN = 0.12; /* of the width */
const KEY_ZOOM = 1.35;
const CLICK_PIXELS = 4;

/* The item of the same kind before (-1) or after (+1) the chosen one; of calls, if nothing is chosen: the first seen. */
function neighbour(view, direction) {
	const {model, selected} = view;
	if (selected) {
		const i = selected.i + direction;
		return i >= 0 && i < model.items(selected.lane, selected.kind).n ? {...selected, i} : selected;
	}
	for (const row of view.layout.rows)
		if (row.tracks.length) {
			const {kind} = row.tracks.find((track) => track.kind === 'calls') || row.tracks[0];
			const {begin, n} = model.items(row.lane, kind);
			let i = 0;
			while (i < n - 1 && begin[i] < view.from)
				i++;
			return n ? {lane: row.lane, kind, i} : null;
		}
	return null;
}

/* Of the lane above (-1) or below (+1) the chosen one's: what was there at the same time, or next. */
function inLane(view, direction) {
	const {model, selected, layout: {rows, ofLane}} = view;
	if (!selected)
		return neighbour(view, 1);
	const middle = (model.begin(selected) + model.end(selected)) / 2;
	for (let at = rows.indexOf(ofLane.get(selected.lane)) + direction; at >= 0 && at < rows.length; at += direction) {
		const {lane, tracks} = rows[at];
		const track = tracks.find(({kind}) => kind === 'calls') || tracks[0];
		const series = track && model.seriesOf(lane, track.kind, track.depth);
		if (series?.n)
			return {lane, kind: track.kind, i: series.index[Math.min(series.n - 1, firstAbove(series.end, middle, 0, series.n))]};
	}
	return selected;
}

/* The chosen lane alone, or all of them again. */
function onlyLane(view) {
	const {selected, filter} = view;
	if (filter.lanes)
		view.setFilter({...filter, lanes: null, text: ''});
	else if (selected)
		view.setFilter({...filter, lanes: new Set([selected.lane]), text: `only ${view.model.laneLongName(selected.lane)}`});
}

function choose(view, item) {
	if (!item)
		return;
	const [begin, end] = [view.model.begin(item), view.model.end(item)];
	view.select(item);
	view.reveal(item.lane);
	if (begin < view.from || end > view.to)
		view.show(begin - (view.to - view.from) * 0.3, begin + (view.to - view.from) * 0.7);
}

/* {key: action}; letters as they are without Shift. */
function keys(view, search) {
	const pan = (part) => () => view.pan(part * view.plotWidth);
	return {
		a: pan(-KEY_PAN), d: pan(KEY_PAN), arrowleft: pan(-KEY_PAN), arrowright: pan(KEY_PAN),
		w: () => view.zoom(1 / KEY_ZOOM), s: () => view.zoom(KEY_ZOOM), '+': () => view.zoom(1 / KEY_ZOOM), '=': () => view.zoom(1 / KEY_ZOOM),
		'-': () => view.zoom(KEY_ZOOM), arrowup: () => view.scrollTo(view.scroll - 40), arrowdown: () => view.scrollTo(view.scroll + 40),
		pageup: () => view.scrollTo(view.scroll - view.plotHeight), pagedown: () => view.scrollTo(view.scroll + view.plotHeight),
		home: () => view.scrollTo(0), end: () => view.scrollTo(Infinity), 0: () => view.all(),
		',': () => choose(view, neighbour(view, -1)), '.': () => choose(view, neighbour(view, 1)),
		j: () => choose(view, inLane(view, 1)), k: () => choose(view, inLane(view, -1)), l: () => onlyLane(view),
		f: () => view.selected && view.select(view.selected, true), n: () => search.step(1), p: () => search.step(-1),
		'/': () => search.input.focus(),
		m: () => {
			const length = view.to - view.from;
			view.measure = view.measure ? null : view.selected ? {a: view.model.begin(view.selected), b: view.model.end(view.selected)} :
				{a: view.from + length / 3, b: view.to - length / 3};
			view.changed('view');
		},
		escape: () => {
			view.measure = null;
			view.select(null);
		},
	};
}

function wheel(event, view) {
	const unit = event.deltaMode === 1 ? 20 : event.deltaMode === 2 ? view.plotHeight : 1;
	const [x, y] = [event.deltaX * unit, event.deltaY * unit];
	if (event.ctrlKey || event.metaKey)
		view.zoom(Math.exp(Math.max(-1, Math.min(1, y * 0.004))), event.offsetX);
	else if (event.shiftKey || Math.abs(x) > Math.abs(y))
		view.pan(Math.abs(x) > Math.abs(y) ? x : y);
	else if (!view.scrollTo(view.scroll + y))
		return; /* the page's turn */
	event.preventDefault();
}

/* Fingers and the mouse: one moves, two zoom about what is between them, none moving is a click. */
class Pointers {
	constructor(canvas, view, hover, pinned) {
		Object.assign(this, {canvas, view, hover, pinned, down: new Map(), moved: 0, measuring: false});
		canvas.addEventListener('pointerdown', (event) => this.press(event));
		canvas.addEventListener('pointermove', (event) => this.drag(event));
		canvas.addEventListener('pointerup', (event) => this.release(event));
		canvas.addEventListener('pointercancel', (event) => this.down.delete(event.pointerId));
		canvas.addEventListener('pointerleave', () => hover(null));
	}

	press(event) {
		this.canvas.setPointerCapture(event.pointerId);
		this.down.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
		if (this.down.size > 1)
			return;
		this.moved = 0;
		this.measuring = event.shiftKey;
		if (this.measuring)
			this.view.measure = {a: this.view.ns(event.offsetX), b: this.view.ns(event.offsetX)};
	}

	drag(event) {
		const before = this.down.get(event.pointerId);
		if (!before)
			return this.hover(event.offsetX, event.offsetY);
		const now = {x: event.offsetX, y: event.offsetY};
		this.moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
		const {view} = this;
		if (this.down.size === 2)
			this.pinch(event.pointerId, before, now);
		else if (this.measuring) {
			view.measure.b = view.ns(now.x);
			view.changed('view');
		} else if (this.moved > CLICK_PIXELS) {
			view.pan(before.x - now.x);
			view.scrollTo(view.scroll + before.y - now.y);
		}
		this.down.set(event.pointerId, now);
	}

	pinch(id, before, now) {
		const other = [...this.down].find(([key]) => key !== id)[1];
		const [a, b] = [Math.max(20, Math.abs(before.x - other.x)), Math.max(20, Math.abs(now.x - other.x))];
		this.view.zoom(a / b, (now.x + other.x) / 2);
		this.view.pan((before.x - now.x) / 2);
	}

	release(event) {
		const clicked = this.down.size === 1 && this.moved <= CLICK_PIXELS && !this.measuring;
		this.down.delete(event.pointerId);
		if (clicked)
			this.click(event.offsetX, event.offsetY);
	}

	click(x, y) {
		const {view} = this;
		if (this.pinned(x, y))
			return;
		const lane = x < view.gutter ? view.laneAt(y) : null;
		if (lane !== null)
			view.setFilter(view.filter.lanes ? {...view.filter, lanes: null, text: ''} :
				{...view.filter, lanes: new Set([lane]), text: `only ${view.model.laneLongName(lane)}`});
		else
			view.select(view.itemAt(x, y));
	}
}

/* hover(x, y): the pointer is there; pinned(x, y): a click may be for something that is no item, then true. */
export function listenTo(canvas, view, search, hover, pinned) {
	const actions = keys(view, search);
	canvas.addEventListener('keydown', (event) => {
		const action = actions[event.key.toLowerCase()];
		if (!action || event.ctrlKey || event.metaKey || event.altKey)
			return;
		event.preventDefault();
		action();
	});
	canvas.addEventListener('wheel', (event) => wheel(event, view), {passive: false});
	return new Pointers(canvas, view, hover, pinned);
}
