/*
 * search.js: the timeline's search: functions, sites, locks, threads and ranges whose names contain a text. The names are
 * looked through first, then items by the names' numbers, from what is chosen on.
 */
import {announce, el} from './dom.js';
import {count} from './format.js';

/* Which columns of a kind hold names that are looked for. */
const NAMED = {calls: ['name', 'where', 'about'], waits: ['lock'], gaps: ['where'], ranges: ['name'], ops: ['name'], collectives: ['name'], looks: ['slowed']};
const MOST_FOUND = 200000;

function addNamed(model, names, {lane, kind}, found) {
	const items = model.items(lane, kind);
	for (let i = 0; i < items.n && found.length < MOST_FOUND; i++)
		if (NAMED[kind].some((column) => names[items[column][i]]))
			found.push({lane, kind, i});
}

/* All items whose names contain `text`, in time: [{lane, kind, i}]. A lane's own name stands for its first item. */
export function findItems(model, text, lanes = null) {
	const wanted = text.toLowerCase();
	const names = new Uint8Array(model.names.length);
	model.names.forEach((name, i) => names[i] = name.toLowerCase().includes(wanted) ? 1 : 0);
	const found = [];
	model.lanes.forEach((of, lane) => {
		if (lanes && !lanes.has(lane))
			return;
		const kinds = Object.keys(NAMED).filter((kind) => model.has(lane, kind));
		if (kinds.length && of.name.toLowerCase().includes(wanted))
			found.push({lane, kind: kinds[0], i: 0});
		else
			kinds.forEach((kind) => addNamed(model, names, {lane, kind}, found));
	});
	const begins = new Map(found.map((item) => [item, model.begin(item)]));
	return found.sort((a, b) => begins.get(a) - begins.get(b));
}

export class Search {
	constructor(view) {
		this.view = view;
		this.found = [];
		this.at = -1;
		this.text = '';
		this.input = el('input', {type: 'search', placeholder: 'Function, site, lock, thread, range', 'aria-label': 'Search the timeline',
			spellcheck: 'false', autocomplete: 'off', onkeydown: (event) => this.key(event), oninput: () => this.count()});
		this.number = el('span', {class: 'matches', role: 'status'});
		this.element = el('span', {class: 'search'}, this.input,
			el('button', {type: 'button', 'aria-label': 'Previous match (Shift+Enter)', title: 'Previous match (Shift+Enter)', onclick: () => this.step(-1)}, '‹'),
			el('button', {type: 'button', 'aria-label': 'Next match (Enter)', title: 'Next match (Enter)', onclick: () => this.step(1)}, '›'), this.number);
	}

	key(event) {
		if (event.key === 'Enter') {
			event.preventDefault();
			this.step(event.shiftKey ? -1 : 1);
		} else if (event.key === 'Escape') {
			this.input.value = '';
			this.count();
		}
	}

	/* Looks for what is typed, if that has changed. */
	look() {
		const text = this.input.value.trim();
		const key = `${text}\n${this.view.filter.text}`;
		if (key === this.text)
			return;
		this.text = key;
		this.found = text ? findItems(this.view.model, text, this.view.filter.lanes) : [];
		this.at = -1;
	}

	count() {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => {
			this.look();
			this.say();
		}, 150);
	}

	say() {
		const n = this.found.length;
		this.number.textContent = !this.input.value.trim() ? '' : !n ? 'nothing' : this.at < 0 ? `${count(n)} found` : `${count(this.at + 1)} of ${count(n)}`;
	}

	step(direction) {
		clearTimeout(this.timer);
		this.look();
		if (this.found.length) {
			this.at = this.at < 0 ? direction > 0 ? 0 : this.found.length - 1 : (this.at + direction + this.found.length) % this.found.length;
			this.view.select(this.found[this.at], true);
			announce(this.view.model.title(this.found[this.at]));
		}
		this.say();
	}
}
