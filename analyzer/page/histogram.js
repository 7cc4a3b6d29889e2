/*
 * histogram.js: how long a function's calls took, against what they should have cost: two histograms over the same
 * logarithmic scale, from the timeline's items that are calls of their own. Drawn as SVG.
 */
import {el, empty} from './dom.js';
import {count, duration, plural, shortDuration} from './format.js';

const PER_DECADE = 8;
const [WIDTH, HEIGHT, BOTTOM] = [640, 190, 22];

/* {from, actual, expected: counts by bin, n, merged, sums and medians' bins}; null: no such call. Pure. */
export function durationsOf(model, name, lanes) {
	const bin = (ns) => Math.floor(Math.log10(Math.max(1, ns)) * PER_DECADE);
	const [actual, expected] = [new Map(), new Map()];
	const sum = {n: 0, merged: 0, known: 0, took: 0, cost: 0};
	const add = (bins, ns) => bins.set(bin(ns), (bins.get(bin(ns)) || 0) + 1);
	model.lanes.forEach((lane, number) => {
		if (lanes && !lanes.has(number) || !model.has(number, 'calls'))
			return;
		const calls = model.items(number, 'calls');
		for (let i = 0; i < calls.n; i++) {
			if (calls.name[i] !== name)
				continue;
			if (calls.count[i] > 1) {
				sum.merged += calls.count[i];
				continue;
			}
			sum.n++;
			add(actual, calls.duration[i]);
			if (calls.expected[i] < 0)
				continue;
			sum.known++;
			sum.took += calls.duration[i];
			sum.cost += calls.expected[i];
			add(expected, calls.expected[i]);
		}
	});
	if (!sum.n)
		return null;
	const bins = [...actual.keys(), ...expected.keys()];
	const from = Math.min(...bins);
	const length = Math.max(...bins) - from + 1;
	const list = (of) => Array.from({length}, (unused, i) => of.get(from + i) || 0);
	return {...sum, from, actual: list(actual), expected: list(expected)};
}

function svg(tag, properties, ...children) {
	const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
	for (const [key, value] of Object.entries(properties))
		element.setAttribute(key, value);
	element.append(...children);
	return element;
}

export class Durations {
	constructor(view, report) {
		this.view = view;
		this.names = (report.calls || []).slice().sort((a, b) => b.total_ns - a.total_ns).map((row) => view.model.names.indexOf(row.function)).filter((name) => name > 0);
		this.select = el('select', {'aria-label': 'Function', onchange: () => this.fill()},
			this.names.slice(0, 100).map((name) => el('option', {value: String(name)}, view.model.names[name])));
		this.body = el('div', {class: 'histogram'});
		view.listen('filter', () => {
			if (view.filter.function !== null && this.names.includes(view.filter.function))
				this.select.value = String(view.filter.function);
			this.fill();
		});
	}

	element() {
		return this.names.length ? el('section', {id: 'durations', 'aria-label': 'Durations'}, el('h2', {}, 'How long calls took, and should have'),
			el('div', {class: 'toolbar'}, this.select), this.body) : null;
	}

	fill() {
		const {model, filter} = this.view;
		const of = durationsOf(model, Number(this.select.value), filter.lanes);
		empty(this.body);
		if (!of) {
			this.body.append(el('p', {class: 'hint'}, 'The timeline has no call of this function on its own.'));
			return;
		}
		const known = of.known ? ` The ${count(of.known)} with an expectation took ${duration(of.took)} and should have taken ${duration(of.cost)}.` : ' What they should cost is not known.';
		const merged = of.merged ? ` ${plural(of.merged, 'merged call')} not in it.` : '';
		this.body.append(this.draw(of), el('p', {}, el('span', {class: 'swatch ink-lock'}), 'took  ', el('span', {class: 'swatch outline'}), `expected. ${plural(of.n, 'call')}.${known}${merged}`));
	}

	draw(of) {
		const bins = Math.max(of.actual.length, PER_DECADE);
		const most = Math.max(...of.actual, ...of.expected);
		const x = (bin) => 8 + (WIDTH - 16) * bin / bins;
		/* Square roots: one call in a thousand is still seen. */
		const y = (n) => (HEIGHT - BOTTOM - 8) * Math.sqrt(n / most);
		const picture = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `Durations of ${plural(of.n, 'call')}`});
		of.actual.forEach((n, bin) => n && picture.append(svg('rect', {class: 'took', x: x(bin), width: x(1) - x(0) - 1, y: HEIGHT - BOTTOM - y(n), height: y(n)},
			svg('title', {}, `${plural(n, 'call')} of about ${shortDuration(10 ** ((of.from + bin + 0.5) / PER_DECADE))}`))));
		of.expected.forEach((n, bin) => n && picture.append(svg('rect', {class: 'expected', x: x(bin) + 1.5, width: x(1) - x(0) - 4, y: HEIGHT - BOTTOM - y(n), height: y(n)})));
		for (let decade = Math.ceil(of.from / PER_DECADE); decade * PER_DECADE <= of.from + bins; decade++) {
			const at = x(decade * PER_DECADE - of.from);
			const label = svg('text', {x: at, y: HEIGHT - 6, 'text-anchor': at > WIDTH - 40 ? 'end' : at < 40 ? 'start' : 'middle'});
			label.textContent = shortDuration(10 ** decade) === '0' ? '1 ns' : shortDuration(10 ** decade);
			picture.append(svg('line', {x1: x(decade * PER_DECADE - of.from), x2: x(decade * PER_DECADE - of.from), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 5}), label);
		}
		picture.append(svg('line', {x1: 8, x2: WIDTH - 8, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM}));
		return picture;
	}
}
