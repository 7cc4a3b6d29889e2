/*
 * timeline.js: the timeline's section: its canvas and buttons, one frame at a time when something changed, and what lies
 * under the pointer. Keys, wheel and touch are in input.js.
 */
import {Arrows} from './arrows.js';
import {Builder} from './builder.js';
import {el, swatch} from './dom.js';
import {clock, duration, plural, shortDuration} from './format.js';
import {listenTo} from './input.js';
import {inkOf, Palette} from './palette.js';
import {Painter} from './paint.js';
import {Pins} from './pins.js';
import {AXIS_HEIGHT} from './view.js';

const MOST_FRAMES_KEPT = 4096;

export class Timeline {
	/* showMoment(moment): what a pin does. */
	constructor(view, search, showMoment) {
		this.showMoment = showMoment;
		this.view = view;
		this.search = search;
		this.frames = []; /* milliseconds of script of each frame */
		this.asked = false;
		this.printing = false;
		this.palette = null;
		this.canvas = el('canvas', {tabindex: '0', role: 'application', 'aria-label':
			'Timeline. Arrows or W A S D move and zoom, 0 shows all, comma and full stop choose calls, J and K lanes, M measures, Escape lets go.'});
		this.tip = el('div', {class: 'tip', 'aria-hidden': 'true'});
		this.frameBox = el('div', {class: 'canvas-box'}, this.canvas, this.tip);
		this.said = el('span', {class: 'said', role: 'status'});
		this.builder = new Builder(view.model);
		this.builder.built = () => this.ask();
		this.painter = new Painter(this.canvas, view, this.builder);
		this.arrows = new Arrows(view);
		this.pins = new Pins(view);
	}

	element(details) {
		const button = (text, label, action) => el('button', {type: 'button', 'aria-label': label, title: label, onclick: action}, text);
		const {view} = this;
		return el('section', {id: 'timeline-section', 'aria-label': 'Timeline'},
			el('h2', {}, 'Timeline'),
			el('div', {class: 'toolbar', role: 'toolbar', 'aria-label': 'Timeline'},
				button('+', 'Zoom in (W, +)', () => view.zoom(0.5)), button('−', 'Zoom out (S, −)', () => view.zoom(2)),
				button('◀', 'Move left (A)', () => view.pan(-view.plotWidth / 4)), button('▶', 'Move right (D)', () => view.pan(view.plotWidth / 4)),
				button('All', 'Show all (0)', () => view.all()), this.measureButton(), this.search.element, this.filterChip(), this.said),
			el('div', {class: 'timeline-box'}, this.frameBox, details),
			this.legend(),
			el('p', {class: 'hint'}, 'Wheel scrolls, Ctrl+wheel or pinch zooms, drag moves, Shift+drag measures, a click chooses. Keys: W A S D or arrows, + − 0, ',
				'comma and full stop for the call before and after, J and K for the lane below and above, L for its lane alone, N and P for the next and previous match, F fits what is chosen, M measures, Escape lets go.'),
			this.leftOut());
	}

	measureButton() {
		const {view} = this;
		return el('button', {type: 'button', title: 'Measure what is seen (M); Shift+drag measures between two points', onclick: () => {
			view.measure = view.measure ? null : {a: view.from + (view.to - view.from) / 3, b: view.to - (view.to - view.from) / 3};
			view.changed('view');
		}}, 'Measure');
	}

	filterChip() {
		const {view} = this;
		const chip = el('button', {type: 'button', class: 'chip', hidden: true, title: 'Show everything again',
			onclick: () => view.setFilter({lanes: null, function: null, text: ''})});
		view.listen('filter', () => {
			chip.hidden = view.filter.lanes === null && view.filter.function === null;
			chip.textContent = `${view.filter.text}  ✕`;
		});
		return chip;
	}

	/* What the inks of calls mean; and, when all is unpacked, those of idle GPUs and gaps that there are. */
	legend() {
		const {model} = this.view;
		const entry = (ink, text) => el('li', {}, swatch(ink), text);
		const box = el('div', {class: 'legends'}, el('ul', {class: 'legend', 'aria-label': 'What calls went into'}, el('li', {class: 'legend-head'}, 'Calls'),
			model.buckets.map((bucket) => entry(inkOf(bucket.key), bucket.name))));
		const has = (kind) => model.lanes.some((lane) => lane.items[kind]?.[2] > 0);
		const more = (name, ...entries) => box.append(el('ul', {class: 'legend', 'aria-label': name}, el('li', {class: 'legend-head'}, name), entries.map(([ink, text]) => entry(ink, text))));
		if (has('collectives'))
			more('Ranks', ['rank', 'in a collective, until the last rank came'], ['work', 'the collective itself']);
		if (has('ops'))
			more('Streams', ['work', 'kernel'], ['copy', 'copy'], ['set', 'memset'], ['unknown', 'other']);
		if (has('looks'))
			more('GPUs, by NVML', ['work', 'a kernel ran: as high as the share of the time'], ['gpu', 'clock: as high as the share of its maximum'], ['kernel', 'clock, slowed by power or heat']);
		this.builder.whenDone.then(() => {
			const extra = [...this.causesSeen()].map(([ink, names]) => entry(ink, [...names].join(', ')));
			if (extra.length)
				box.append(el('ul', {class: 'legend', 'aria-label': 'Gaps and idle GPUs'}, el('li', {class: 'legend-head'}, 'Between calls, idle GPUs'), extra));
		});
		return box;
	}

	/* The causes of gaps and idle times that there are: Map of inks to Sets of names. */
	causesSeen() {
		const {model} = this.view;
		const causes = new Set();
		model.lanes.forEach((unused, lane) => ['gaps', 'idle'].forEach((kind) => model.has(lane, kind) && model.items(lane, kind).cause.forEach((cause) => causes.add(cause))));
		const seen = new Map();
		for (const cause of [...causes].sort((a, b) => a - b)) {
			const {key, name} = model.causes[cause] || {key: '', name: 'unknown'};
			const ink = inkOf(key);
			seen.set(ink, (seen.get(ink) || new Set()).add(name));
		}
		return seen;
	}

	leftOut() {
		const {model} = this.view;
		const sentences = [...(model.left_out || [])];
		if (model.merged_ns > 0 && model.shown < model.calls)
			sentences.push(`${plural(model.calls - model.shown, 'call')} of ${model.calls.toLocaleString('en-US')} are drawn merged with their neighbours, ` +
				`where they are shorter than ${duration(model.merged_ns)}` + (model.whole?.length ? '; nothing is merged around the findings.' : '.'));
		return el('div', {class: 'left-out'}, sentences.length ? el('h3', {}, 'Left out of the timeline') : null,
			sentences.length ? el('ul', {}, sentences.map((text) => el('li', {}, text))) : el('p', {class: 'hint'}, 'Nothing is left out of the timeline.'));
	}

	/* When it is in the document. */
	start() {
		const {view, canvas} = this;
		new ResizeObserver(() => this.fit()).observe(this.frameBox);
		view.listen('any', () => this.ask());
		view.listen('filter', () => this.fit());
		listenTo(canvas, view, this.search, (x, y) => this.point(x, y), (x, y) => this.pinned(x, y));
		this.retheme();
		this.fit();
	}

	/* As high as its rows are, within bounds; as wide as there is room. */
	fit() {
		if (this.printing)
			return; /* paper shows what the screen did, scaled */
		const most = Math.max(220, Math.min(innerHeight * (this.view.layout.dense ? 0.86 : 0.72), 1000));
		const height = Math.round(Math.max(150, Math.min(most, this.view.layout.height + AXIS_HEIGHT + 2)));
		this.canvas.style.height = `${height}px`;
		this.view.resize(Math.max(200, this.frameBox.clientWidth), height);
		this.ask();
	}

	retheme() {
		this.palette = new Palette();
		this.ask();
	}

	ask() {
		if (this.asked)
			return;
		this.asked = true;
		requestAnimationFrame(() => this.frame());
	}

	frame() {
		this.asked = false;
		const begun = performance.now();
		this.painter.frame(this.palette);
		this.arrows.frame(this.painter.context, this.palette, this.painter.waitsSeen);
		this.pins.frame(this.painter.context, this.palette);
		this.overlays();
		if (this.frames.push(performance.now() - begun) > MOST_FRAMES_KEPT)
			this.frames.shift();
		this.builder.go();
	}

	/* What is chosen, and the measured stretch. */
	overlays() {
		const {view, palette, painter: {context}} = this;
		const box = view.selected && view.box(view.selected);
		context.save();
		context.beginPath();
		context.rect(view.gutter, 0, view.plotWidth, view.height);
		context.clip();
		if (box) {
			context.lineWidth = 2;
			context.strokeStyle = palette.css('text');
			context.strokeRect(box.left - 1, box.top - 1, Math.max(3, box.right - box.left + 2), box.bottom - box.top + 2);
		}
		if (view.measure)
			this.measured(context, palette);
		else
			this.said.textContent = '';
		context.restore();
	}

	measured(context, palette) {
		const {view} = this;
		const [a, b] = [Math.min(view.measure.a, view.measure.b), Math.max(view.measure.a, view.measure.b)];
		const [left, right] = [view.x(a), view.x(b)];
		context.fillStyle = palette.css('measure');
		context.globalAlpha = 0.16;
		context.fillRect(left, 0, right - left, view.height);
		context.globalAlpha = 1;
		context.fillRect(left, 0, 1.5, view.height);
		context.fillRect(right, 0, 1.5, view.height);
		const text = duration(b - a);
		context.font = `600 12px ${palette.css('font')}`;
		context.textAlign = 'center';
		const width = context.measureText(text).width + 14;
		const middle = Math.max(view.gutter + width / 2, Math.min(view.width - width / 2, (left + right) / 2));
		context.fillRect(middle - width / 2, 3, width, 19);
		context.fillStyle = palette.css('panel');
		context.fillText(text, middle, 13);
		context.textAlign = 'left';
		this.said.textContent = `${text} from ${clock(a, (b - a) / 100)}`;
	}

	/* A click on a pin: true. */
	pinned(x, y) {
		const moment = this.pins.at(x, y);
		if (moment)
			this.showMoment(moment);
		return moment !== null;
	}

	/* What lies there, in words; null: nothing. */
	textAt(x, y) {
		const {view, view: {model}} = this;
		const moment = this.pins.at(x, y);
		const item = moment ? null : view.itemAt(x, y);
		if (moment)
			return `Finding ${moment.finding}: ${moment.text}`;
		return item && `${model.title(item)} · ${shortDuration(model.items(item.lane, item.kind).duration[item.i])}`;
	}

	/* The pointer is here; x null: it left. */
	point(x, y) {
		const {view, tip} = this;
		const text = x === null ? null : this.textAt(x, y);
		tip.hidden = !text;
		this.canvas.style.cursor = text ? 'pointer' : '';
		if (!text)
			return;
		tip.textContent = text;
		tip.style.transform = `translate(${Math.min(x + 12, view.width - tip.offsetWidth - 4)}px, ${y + 16}px)`;
	}
}
