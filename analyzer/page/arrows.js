/*
 * arrows.js: who waited for whom, as arrows over the timeline: from a wait to the lane of the holder, at the moment of the
 * release, and on to the root. All waits that are wide enough on the screen have a thin one; what is chosen has its
 * whole chain, strong and named. Called once a frame, after paint.js.
 */
import {chainOf, rootOf} from './chain.js';
import {shortDuration} from './format.js';
import {AXIS_HEIGHT} from './view.js';

const MOST_THIN = 48;
const MOST_OF_A_CALL = 6;

/* One step as an arrow: {item, fromLane, toLane, at, kind, text, root}; at: the time at which it arrives. */
function arrow(item, toLane, at, kind, text, root = null) {
	return {item, fromLane: item.lane, toLane, at, kind, text, root};
}

function ofWait(model, wait) {
	const steps = chainOf(model, wait);
	const waits = model.items(wait.lane, 'waits');
	const root = steps.length ? rootOf(model, steps) : null;
	return steps.map((step, n) => arrow(step.wait, step.holder, step.release, 'holder',
		n === 0 ? `${(model.names[waits.lock[wait.i]] || 'wait').replace(/ \(.*/, '')} · ${shortDuration(waits.duration[wait.i])}` : '',
		n === steps.length - 1 ? root : null));
}

/* Waits inside a call, the longest first. */
export function waitsOfCall(model, call) {
	const waits = model.items(call.lane, 'waits');
	const found = [];
	const series = waits.n ? model.seriesOf(call.lane, 'waits') : null;
	const [begin, end] = [model.begin(call), model.end(call)];
	for (let i = 0; series && i < series.n; i++) {
		if (series.begin[i] >= end)
			break;
		if (series.end[i] > begin)
			found.push({lane: call.lane, kind: 'waits', i: series.index[i]});
	}
	return found.sort((a, b) => waits.duration[b.i] - waits.duration[a.i]);
}

/* The arrows of one item: a wait's or a call's chains, a gap's holder, who submitted an operation, who came last. */
export function arrowsOf(model, item) {
	if (!item)
		return [];
	const items = model.items(item.lane, item.kind);
	switch (item.kind) {
	case 'waits':
		return ofWait(model, item);
	case 'calls':
		return waitsOfCall(model, item).slice(0, MOST_OF_A_CALL).flatMap((wait) => ofWait(model, wait));
	case 'gaps':
		return items.holder[item.i] < 0 ? [] : [arrow(item, items.holder[item.i], model.end(item), 'holder', shortDuration(items.duration[item.i]))];
	case 'ops':
		return items.from[item.i] < 0 ? [] : [arrow(item, items.from[item.i], items.begin[item.i] - items.queued[item.i], 'submitted', 'submitted')];
	case 'collectives':
		return items.last[item.i] < 0 || items.last[item.i] === item.lane || !items.wait[item.i] ? [] :
			[arrow(item, items.last[item.i], items.begin[item.i] + items.wait[item.i], 'last', `waited ${shortDuration(items.wait[item.i])}`)];
	default:
		return [];
	}
}

export class Arrows {
	constructor(view) {
		this.view = view;
		this.drawn = []; /* what a frame showed, for tests */
		this.chosen = {item: undefined, arrows: []};
	}

	frame(context, palette, waitsSeen) {
		const {view} = this;
		const {model} = view;
		if (this.chosen.item !== view.selected)
			this.chosen = {item: view.selected, arrows: arrowsOf(model, view.selected)};
		const strong = this.chosen.arrows;
		const mine = new Set(strong.map((one) => `${one.item.lane}.${one.item.i}`));
		this.drawn = [];
		context.save();
		context.beginPath();
		context.rect(view.gutter, AXIS_HEIGHT, view.plotWidth, view.plotHeight);
		context.clip();
		const thin = waitsSeen.filter((wait) => !mine.has(`${wait.lane}.${wait.i}`))
			.sort((a, b) => model.items(b.lane, 'waits').duration[b.i] - model.items(a.lane, 'waits').duration[a.i]).slice(0, MOST_THIN);
		for (const wait of thin)
			this.thin(context, palette, wait, strong.length > 0);
		for (const one of strong)
			this.outline(context, palette, one);
		strong.forEach((one) => this.strong(context, palette, one));
		const taken = [];
		/* Of the first chain, which is the longest wait's: more names would hide what they tell of. */
		const last = strong.findIndex((one) => one.root);
		strong.slice(0, last < 0 ? 1 : last + 1).forEach((one) => this.names(context, palette, one, taken));
		context.restore();
	}

	/* Where an arrow begins and ends; null: one of its lanes is hidden. Into the nearest edge of the holder's tracks. */
	ends(one) {
		const {view} = this;
		const box = view.box(one.item);
		const row = view.layout.ofLane.get(one.toLane);
		if (!box || !row || !row.tracks.length)
			return null;
		const x = view.x(one.at);
		const track = row.tracks.find((of) => of.kind === 'calls') || row.tracks[0];
		const top = view.rowTop(row) + track.y;
		const down = top > box.top;
		const begin = Math.max(box.left, Math.min(x, box.right) - Math.max(10, Math.min(70, (box.right - box.left) * 0.4)));
		return {x0: one.kind === 'submitted' ? box.left : Math.max(begin, Math.min(view.gutter + 4, box.right)), y0: (box.top + box.bottom) / 2, x1: x,
			y1: down ? top + 1 : top + track.height - 1, down, top, height: track.height};
	}

	path(context, ends) {
		const bend = Math.max(14, Math.abs(ends.y1 - ends.y0) * 0.55);
		const sign = ends.down ? 1 : -1;
		context.beginPath();
		context.moveTo(ends.x0, ends.y0);
		context.bezierCurveTo(ends.x0, ends.y0 + sign * bend * 0.6, ends.x1, ends.y1 - sign * bend, ends.x1, ends.y1 - sign * 5);
	}

	head(context, ends, size) {
		const sign = ends.down ? 1 : -1;
		context.beginPath();
		context.moveTo(ends.x1, ends.y1);
		context.lineTo(ends.x1 - size * 0.62, ends.y1 - sign * size * 1.35);
		context.lineTo(ends.x1 + size * 0.62, ends.y1 - sign * size * 1.35);
		context.closePath();
		context.fill();
	}

	thin(context, palette, wait, faint) {
		const {model} = this.view;
		const waits = model.items(wait.lane, 'waits');
		const holder = waits.holder[wait.i];
		if (holder < 0)
			return;
		const one = arrow(wait, holder, model.end(wait) - waits.release[wait.i], 'thin', '');
		const ends = this.ends(one);
		if (!ends)
			return;
		context.globalAlpha = faint ? 0.28 : 0.8;
		context.strokeStyle = context.fillStyle = palette.css('arrow');
		context.lineWidth = 1.1;
		this.path(context, ends);
		context.stroke();
		this.head(context, ends, 4);
		context.globalAlpha = 1;
		this.drawn.push(one);
	}

	/* The wait itself, so that one sees what the arrow explains. */
	outline(context, palette, one) {
		const box = this.view.box(one.item);
		if (!box)
			return;
		context.strokeStyle = palette.css('arrow');
		context.lineWidth = 1.5;
		context.strokeRect(box.left, box.top - 1, Math.max(2, box.right - box.left), box.bottom - box.top + 2);
	}

	strong(context, palette, one) {
		const ends = this.ends(one);
		if (!ends)
			return;
		this.drawn.push(one);
		context.setLineDash(one.kind === 'submitted' ? [5, 4] : []);
		for (const [width, colour] of [[6, 'halo'], [2.4, 'arrow']]) {
			context.lineWidth = width;
			context.lineCap = 'round';
			context.strokeStyle = palette.css(colour);
			this.path(context, ends);
			context.stroke();
		}
		context.setLineDash([]);
		context.fillStyle = palette.css('arrow');
		this.head(context, ends, 8);
		context.beginPath();
		context.arc(ends.x0, ends.y0, 3.6, 0, 7);
		context.fill();
		context.fillStyle = palette.css('halo');
		context.beginPath();
		context.arc(ends.x0, ends.y0, 1.5, 0, 7);
		context.fill();
	}

	/* Where a name would lie on another one, it is left out. */
	names(context, palette, one, taken) {
		const ends = this.ends(one);
		if (!ends)
			return;
		if (one.root)
			this.pill(context, palette, `root: ${one.root.text}`, ends.x1 + 8, ends.top + ends.height / 2, true, taken);
		if (one.text)
			this.pill(context, palette, one.text, ends.x0 + 8, (ends.y0 * 2 + ends.y1) / 3, false, taken);
	}

	pill(context, palette, text, x, y, filled, taken) {
		const {view} = this;
		context.font = `600 11px ${palette.css('font')}`;
		const width = context.measureText(text).width + 14;
		const left = Math.max(view.gutter + 4, Math.min(x, view.width - width - 6));
		if (taken.some((other) => Math.abs(other.y - y) < 19 && left < other.right + 3 && left + width > other.left - 3))
			return;
		taken.push({left, right: left + width, y});
		context.fillStyle = palette.css(filled ? 'arrow' : 'halo');
		context.strokeStyle = palette.css('arrow');
		context.lineWidth = 1.2;
		context.beginPath();
		context.roundRect(left, y - 9, width, 18, 9);
		context.fill();
		context.stroke();
		context.fillStyle = palette.css(filled ? 'halo' : 'arrow');
		context.textAlign = 'left';
		context.fillText(text, left + 7, y + 0.5);
	}
}
