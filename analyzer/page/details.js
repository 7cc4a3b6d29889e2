/*
 * details.js: the panel about what is chosen in the timeline: times, where its time went against what it should have cost,
 * whom it waited for down to the root, who waited for it, and the stack if the report has one.
 */
import {waitsOfCall} from './arrows.js';
import {chainOf, HeldUp, rootOf} from './chain.js';
import {announce, copy, el, empty, swatch} from './dom.js';
import {bytes, clock, count, duration, percent, plural} from './format.js';
import {inkOf} from './palette.js';

const MOST_LINES = 8;

export class Details {
	constructor(view, report) {
		this.view = view;
		this.report = report;
		this.held = null;
		this.element = el('aside', {class: 'details', 'aria-label': 'What is chosen'});
		view.listen('selected', () => this.show());
		this.show();
	}

	show() {
		const {view: {model, selected}} = this;
		empty(this.element);
		if (!selected) {
			this.element.append(el('p', {class: 'hint'}, 'Click a call, a wait or a gap to see what it waited for. ',
				'An arrow leads from a wait to the thread that held it up, and on to the root.'));
			return;
		}
		const items = model.items(selected.lane, selected.kind);
		this.element.append(el('h3', {}, model.title(selected)), this.facts(selected, items),
			...[this.parts(selected, items), this.chains(selected), this.waiters(selected), this.stack(selected)].filter((part) => part),
			el('p', {class: 'actions'}, el('button', {type: 'button', onclick: (event) => copy(this.text(), event.target)}, 'Copy'),
				el('button', {type: 'button', onclick: () => this.view.select(selected, true)}, 'Zoom to it'), this.only(selected, items)));
		announce(`${model.title(selected)}, ${duration(items.duration[selected.i])}, ${model.laneName(selected.lane)}`);
	}

	only(item, items) {
		const {view} = this;
		return item.kind !== 'calls' ? null : el('button', {type: 'button', onclick: () =>
			view.setFilter({...view.filter, function: items.name[item.i], text: `only ${view.model.names[items.name[item.i]]}`})}, 'Only this function');
	}

	/* Rows of a list of terms; those whose value is null or empty are left out. */
	facts(item, items) {
		const {model} = this.view;
		const {i} = item;
		const name = (number) => number > 0 ? model.names[number] : null;
		const rows = [
			['in', model.laneLongName(item.lane)], ['at', clock(items.begin[i] - model.begin_ns, 1000)], [item.kind === 'looks' ? 'mean of' : 'took', duration(items.duration[i])],
		];
		const more = {
			calls: () => [['expected', items.expected[i] >= 0 ? `${duration(items.expected[i])} with nothing in its way` : null],
				['called from', name(items.where[i])], ['about', name(items.about[i])],
				['merged', items.count[i] > 1 ? `${plural(items.count[i], 'call')}, mostly this function` : null]],
			waits: () => [['for', model.wait_kinds[items.kind[i]]?.name], ['lock', name(items.lock[i])], ['held by', items.holder[i] >= 0 ? model.laneLongName(items.holder[i]) : 'unknown'],
				['which was in', name(items.holderCall[i])], ['released', items.release[i] > 0 ? `${duration(items.release[i])} before the wait's end` : null]],
			gaps: () => [['where', name(items.where[i])], ['held by', items.holder[i] >= 0 ? model.laneLongName(items.holder[i]) : null]],
			ranges: () => [],
			ops: () => [['kind', ['kernel', 'copy', 'memset', 'other'][items.kind[i]]], ['submitted by', items.from[i] >= 0 ? model.laneLongName(items.from[i]) : null],
				['submitted', `${duration(items.queued[i])} before`], [items.kind[i] === 0 ? 'blocks' : 'size', items.kind[i] === 0 ? count(items.size[i]) : bytes(items.size[i])]],
			idle: () => [['certainly idle', duration(items.ns[i])]],
			looks: () => [['power', items.power[i] > 0 ? `${items.power[i]} W` : null], ['temperature', items.temperature[i] > 0 ? `${items.temperature[i]} °C` : null]],
			collectives: () => [['number', count(items.number[i])], ['waited', duration(items.wait[i])], ['last to come', items.last[i] >= 0 ? model.laneLongName(items.last[i]) : null],
				['size', bytes(items.bytes[i])], ['submitted', `${duration(items.queued[i])} before`]],
		}[item.kind]();
		return el('dl', {}, rows.concat(more).filter(([, value]) => value).flatMap(([term, value]) => [el('dt', {}, term), el('dd', {}, value)]));
	}

	/* Actual against expected, as two bars; and the parts of the actual one. */
	parts(item, items) {
		if (item.kind !== 'calls')
			return null;
		const {model} = this.view;
		const whole = items.duration[item.i];
		const expected = items.expected[item.i];
		const longest = Math.max(whole, expected, 1);
		const bar = el('div', {class: 'bar', role: 'img', 'aria-label': `took ${duration(whole)}`});
		const rows = [];
		model.partsOf(items, item.i, (kind, ns) => {
			const ink = inkOf(model.buckets[kind]?.key);
			const piece = el('span', {class: `ink-${ink}`});
			piece.style.width = `${100 * ns / longest}%`;
			bar.append(piece);
			rows.push([ns, el('li', {}, swatch(ink), `${model.buckets[kind]?.name ?? 'unknown'} `, el('b', {}, duration(ns)), ` ${percent(ns, whole)}`)]);
		});
		const expectedBar = el('div', {class: 'bar expected', role: 'img', 'aria-label': `expected ${duration(expected)}`}, el('span', {}));
		expectedBar.firstChild.style.width = `${Math.max(0.5, 100 * Math.max(0, expected) / longest)}%`;
		return el('div', {}, el('div', {class: 'bar-row'}, el('span', {}, 'took'), bar), expected >= 0 ? el('div', {class: 'bar-row'}, el('span', {}, 'expected'), expectedBar) : null,
			el('ul', {class: 'parts'}, rows.sort((a, b) => b[0] - a[0]).map(([, row]) => row)));
	}

	link(item, text) {
		return el('button', {type: 'button', class: 'link', onclick: () => this.view.select(item, true)}, text);
	}

	chains(item) {
		const {model} = this.view;
		const waits = item.kind === 'waits' ? [item] : item.kind === 'calls' ? waitsOfCall(model, item) : [];
		const lists = waits.slice(0, MOST_LINES).map((wait) => this.chain(wait)).filter((list) => list);
		const more = waits.length - MOST_LINES;
		return lists.length ? el('div', {}, el('h4', {}, 'Waited for'), lists, more > 0 ? el('p', {class: 'hint'}, `and ${plural(more, 'more wait')}`) : null) : null;
	}

	chain(wait) {
		const {model} = this.view;
		const steps = chainOf(model, wait);
		const lockOf = (one) => model.names[model.items(one.lane, 'waits').lock[one.i]] || 'no lock';
		const list = el('ol', {class: 'chain'}, el('li', {}, this.link(wait, `${model.laneName(wait.lane)}: ${lockOf(wait)}, ${duration(model.end(wait) - model.begin(wait))}`)));
		for (const step of steps)
			list.append(el('li', {}, '↳ held by ', step.next ? this.link(step.next, model.laneLongName(step.holder)) : el('b', {}, model.laneLongName(step.holder)),
				step.function > 0 ? ` in ${model.names[step.function]}` : '', step.next ? `, which waited for ${lockOf(step.next)}` : ''));
		if (!steps.length)
			return list;
		const root = rootOf(model, steps);
		list.append(el('li', {class: 'root'}, 'root: ', root.item ? this.link(root.item, root.text) : root.text));
		return list;
	}

	/* Whose waits ended by what this thread did meanwhile. */
	waiters(item) {
		const {model} = this.view;
		if (!['calls', 'waits', 'gaps'].includes(item.kind))
			return null;
		this.held ??= new HeldUp(model);
		const found = this.held.during(model, item.lane, model.begin(item), model.end(item));
		return !found.length ? null : el('div', {}, el('h4', {}, 'Who waited for it'), el('ul', {class: 'chain'}, found.slice(0, MOST_LINES).map((wait) =>
			el('li', {}, this.link(wait, `${model.laneLongName(wait.lane)}: ${duration(model.end(wait) - model.begin(wait))}`)))),
		found.length > MOST_LINES ? el('p', {class: 'hint'}, `and ${plural(found.length - MOST_LINES, 'more')}`) : null);
	}

	/* The report has stacks of the findings' places: shown for a call of one of them. */
	stack(item) {
		if (item.kind !== 'calls')
			return null;
		const {model} = this.view;
		const items = model.items(item.lane, 'calls');
		const where = items.where[item.i] > 0 ? model.names[items.where[item.i]] : null;
		const finding = (this.report.findings || []).find((one) => one.stack?.length && one.function === model.names[items.name[item.i]] && (!where || one.where === where || one.where?.includes(where)));
		return !finding ? null : el('div', {}, el('h4', {}, 'Stack at this place'), el('ol', {class: 'stack'}, finding.stack.map((frame) =>
			el('li', {}, frame.function || `${frame.module || '?'}+0x${Number(frame.offset).toString(16)}`, frame.file ? el('span', {class: 'hint'}, ` ${frame.file}${frame.line ? `:${frame.line}` : ''}`) : null))));
	}

	text() {
		return this.element.innerText.replace(/\n(Copy|Zoom to it|Only this function|Copied)(?=\n|$)/g, '').replace(/\n{2,}/g, '\n').trim() + '\n';
	}
}
