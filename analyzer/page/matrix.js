/*
 * matrix.js: who waited for whom: threads, GPUs, ranks and calls, against each other; direct, and followed to the root.
 * Sums are those of the report, not of the timeline.
 */
import {copy, el, empty, tsvLine} from './dom.js';
import {duration, plural, shortDuration} from './format.js';

const MOST_NAMES = 64; /* rows and columns that are shown */
const NUMBERS_UP_TO = 14; /* with more columns, cells are shades alone */

/* [waiter, holder, ns] of each row. */
const SOURCES = {
	Threads: {direct: ['blame', (row) => [row.waiter, row.holder, row.waited_ns]], root: ['root_blame', (row) => [row.waiter, row.root, row.waited_ns]]},
	GPUs: {direct: ['device_blame', (row) => [`GPU ${row.waiter_device}`, `GPU ${row.holder_device}`, row.waited_ns]],
		root: ['root_blame', (row) => [`GPU ${row.waiter_device}`, `GPU ${row.root_device}`, row.waited_ns]]},
	Ranks: {direct: ['ranks', (row) => (row.waited_for || []).map((part) => [`rank ${row.rank}`, `rank ${part.rank}`, part.ns])]},
	'Own locks': {direct: ['own_lock_blame', (row) => [row.waiter, row.holder, row.waited_ns]]},
	Calls: {direct: ['call_blame', (row) => [row.waiter_function, row.holder_function, row.waited_ns]],
		root: ['root_blame', (row) => [row.waiter_function, row.root_function, row.waited_ns]]},
};

/* {names of waiters and holders, cells: Map "waiter\nholder" to ns, most, left: pairs that do not fit}. Pure. */
export function sumUp(rows, triple, nameOf) {
	const cells = new Map();
	const sums = [new Map(), new Map()];
	for (const row of rows) {
		const made = triple(row);
		for (const [waiter, holder, ns] of Array.isArray(made[0]) ? made : made.length ? [made] : []) {
			if (!(ns > 0))
				continue;
			const pair = [nameOf(waiter, row), nameOf(holder, row)];
			cells.set(pair.join('\n'), (cells.get(pair.join('\n')) || 0) + ns);
			pair.forEach((name, i) => sums[i].set(name, (sums[i].get(name) || 0) + ns));
		}
	}
	const [waiters, holders] = sums.map((of) => [...of].sort((a, b) => b[1] - a[1]).map(([name]) => name));
	const natural = (names) => names.slice(0, MOST_NAMES).sort((a, b) => a.localeCompare(b, 'en', {numeric: true}));
	return {waiters: natural(waiters), holders: natural(holders), cells, most: Math.max(0, ...cells.values()),
		left: Math.max(0, waiters.length - MOST_NAMES) + Math.max(0, holders.length - MOST_NAMES)};
}

export class Matrices {
	constructor(view, report, findWait) {
		Object.assign(this, {view, report, findWait});
		this.subjects = Object.keys(SOURCES).filter((subject) => this.sum(subject, 'direct')?.cells.size || this.sum(subject, 'root')?.cells.size);
		this.subject = this.subjects[0];
		this.how = 'direct';
		this.tabs = el('div', {class: 'tabs', role: 'tablist', 'aria-label': 'Who waited for whom'});
		this.body = el('div', {class: 'table-box', tabindex: '0', role: 'tabpanel', 'aria-label': 'Matrix'});
	}

	sum(subject, how) {
		const source = SOURCES[subject][how];
		return source && sumUp(this.report[source[0]] || [], source[1], (name, row) => this.nameOf(subject, name, row));
	}

	/* Threads by their names in the timeline; the others are what they are. */
	nameOf(subject, name, row) {
		if (subject !== 'Threads' && subject !== 'Own locks')
			return name || 'outside of CUDA';
		const {model} = this.view;
		const lane = model.threadLane(name, row.process);
		return lane >= 0 ? model.laneName(lane) : name ? `thread ${name}` : 'unknown';
	}

	element() {
		if (!this.subjects.length)
			return el('section', {id: 'waits', 'aria-label': 'Who waited for whom'}, el('h2', {}, 'Who waited for whom'), el('p', {class: 'hint'}, 'Nobody waited for anybody, as far as was recorded.'));
		this.fill();
		return el('section', {id: 'waits', 'aria-label': 'Who waited for whom'}, el('h2', {}, 'Who waited for whom'),
			el('div', {class: 'toolbar'}, this.tabs, el('button', {type: 'button', onclick: (event) => copy(this.tsv(), event.target)}, 'Copy as TSV')), this.body);
	}

	fill() {
		const tab = (text, chosen, action) => el('button', {type: 'button', role: 'tab', 'aria-selected': String(chosen), onclick: () => {
			action();
			this.fill();
		}}, text);
		const ways = ['direct', 'root'].filter((how) => SOURCES[this.subject][how]);
		if (!ways.includes(this.how))
			[this.how] = ways;
		empty(this.tabs).append(...this.subjects.map((subject) => tab(subject, subject === this.subject, () => this.subject = subject)), el('span', {class: 'grow'}),
			...ways.map((how) => tab(how === 'direct' ? 'Direct' : 'At the root', how === this.how, () => this.how = how)));
		const sum = this.sum(this.subject, this.how);
		const small = sum.holders.length <= NUMBERS_UP_TO;
		empty(this.body).append(el('p', {class: 'hint'}, `Rows waited for columns${this.how === 'root' ? ', followed to the thread that did not wait itself' : ''}. The darkest cell is ${duration(sum.most)}.`),
			el('table', {class: small ? 'matrix' : 'matrix dense'},
			el('thead', {}, el('tr', {}, el('td', {}), sum.holders.map((name) => el('th', {scope: 'col'}, el('span', {}, name))))),
			el('tbody', {}, sum.waiters.map((waiter) => el('tr', {}, el('th', {scope: 'row'}, waiter), sum.holders.map((holder) => this.cell(sum, waiter, holder, small)))))));
		if (sum.left)
			this.body.append(el('p', {class: 'hint'}, `${plural(sum.left, 'row or column')} that waited least left out; copied are all.`));
	}

	cell(sum, waiter, holder, small) {
		const ns = sum.cells.get(`${waiter}\n${holder}`);
		if (!ns)
			return el('td', {});
		const text = `${waiter} waited ${duration(ns)} for ${holder}`;
		const part = Math.sqrt(ns / sum.most);
		const cell = el('td', {title: text}, this.subject === 'Threads' ? el('button', {type: 'button', class: 'link', 'aria-label': text, onclick: () => this.findWait(waiter, holder)}, small ? shortDuration(ns) : '■') :
			el('span', {'aria-label': text}, small ? shortDuration(ns) : '■'));
		cell.style.setProperty('--part', `${Math.round(8 + 92 * part)}%`);
		cell.classList.add('heat');
		if (part > 0.6)
			cell.classList.add('hot');
		return cell;
	}

	tsv() {
		const sum = this.sum(this.subject, this.how);
		const rows = [...sum.cells].map(([pair, ns]) => [...pair.split('\n'), ns]).sort((a, b) => b[2] - a[2]);
		return tsvLine(['waiter', this.how === 'root' ? 'root' : 'holder', 'waited_ns']) + rows.map(tsvLine).join('');
	}
}
