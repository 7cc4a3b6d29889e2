/*
 * main.js: begins when the page has loaded: unpacks what the file holds, shows the first screen as soon as the report is
 * there, then the timeline and the rest. `window.cudaspy` is what tests look at, and choose items by.
 */
import {Details} from './details.js';
import {clipboard, el} from './dom.js';
import {unpack} from './decode.js';
import {chainOf} from './chain.js';
import {Durations} from './histogram.js';
import {Matrices} from './matrix.js';
import {Model} from './model.js';
import {findingCards, gpuTime, rankTime, runSummary} from './overview.js';
import {Search} from './search.js';
import {Tables} from './tables.js';
import {Timeline} from './timeline.js';
import {View} from './view.js';

function payload(id) {
	const element = document.getElementById(id);
	const text = element.textContent.trim();
	element.remove();
	return unpack(text);
}

/* Lets the browser draw what there is. */
function pause() {
	return new Promise((done) => {
		requestAnimationFrame(() => setTimeout(done));
	});
}

/* auto, light, dark: a button that goes through them. */
function themeSwitch(changed) {
	const names = ['auto', 'light', 'dark'];
	let at = 0;
	const button = el('button', {type: 'button', title: 'Light or dark', onclick: () => {
		at = (at + 1) % names.length;
		button.textContent = `Theme: ${names[at]}`;
		document.documentElement.dataset.theme = names[at];
		changed();
	}}, 'Theme: auto');
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
	return button;
}

function toTimeline() {
	document.getElementById('timeline-section').scrollIntoView({block: 'start'});
	document.querySelector('#timeline-section canvas').focus({preventScroll: true});
}

/* Which lanes tell of an item: its own, and those of whom it waited for; of a collective, all ranks', and the last one's threads. */
function lanesOf(model, item, middle) {
	if (item?.kind === 'collectives') {
		const last = model.items(item.lane, 'collectives').last[item.i];
		const rank = last >= 0 ? model.lanes[last].rank : null;
		return [item.lane, last, ...model.lanes.flatMap((of, lane) => of.kind === 'rank' || (rank !== null && of.rank === rank) ? [lane] : [])];
	}
	const wait = item && ['calls', 'waits'].includes(item.kind) && model.has(item.lane, 'waits') ? model.itemAt(item.lane, 'waits', middle) : null;
	return [...(item ? [item.lane] : []), ...(wait ? chainOf(model, wait).map((step) => step.holder) : [])];
}

/* Goes to the worst moment of a finding, and chooses the call that it is about. */
function showMoment(view, moment) {
	const {model} = view;
	const middle = (moment.begin_ns + moment.end_ns) / 2;
	const item = ['calls', 'gaps', 'collectives', 'idle', 'ops'].map((kind) => model.itemAt(moment.lane, kind, middle)).find((found) => found) || null;
	if (view.filter.lanes || view.filter.function !== null)
		view.setFilter({lanes: null, function: null, text: ''});
	view.select(item);
	view.focus(item ? lanesOf(model, item, middle) : [moment.lane]);
	/* All of the call, unless the moment would be lost in it. */
	const short = item && model.end(item) - model.begin(item) < (moment.end_ns - moment.begin_ns) * 40;
	const [begin, end] = short ? [Math.min(moment.begin_ns, model.begin(item)), Math.max(moment.end_ns, model.end(item))] : [moment.begin_ns, moment.end_ns];
	const length = Math.max(1, end - begin);
	view.move(begin - length * 0.35, end + length * 0.35);
	toTimeline();
}

function showRank(view, rank) {
	const lanes = view.model.lanes.flatMap((of, lane) => of.rank === rank ? [lane] : []);
	if (lanes.length)
		view.setFilter({lanes: new Set(lanes), function: null, text: `only rank ${rank}`});
	toTimeline();
}

/* The longest wait of one thread for another, by their names. */
function showWait(view, waiter, holder) {
	const {model} = view;
	let best = null;
	let most = 0;
	model.lanes.forEach((of, lane) => {
		const waits = of.name === waiter ? model.items(lane, 'waits') : {n: 0};
		for (let i = 0; i < waits.n; i++) {
			const chain = waits.duration[i] > most ? chainOf(model, {lane, kind: 'waits', i}) : [];
			if (chain.some((step) => model.laneName(step.holder) === holder))
				[best, most] = [{lane, kind: 'waits', i}, waits.duration[i]];
		}
	});
	if (!best)
		return;
	view.select(best, true);
	view.focus(lanesOf(model, best, model.begin(best) + most / 2));
	toTimeline();
}

function navigation(main) {
	const names = {run: 'Run', gpus: 'GPUs', ranks: 'Ranks', findings: 'Findings', 'timeline-section': 'Timeline', waits: 'Who waited', tables: 'Tables', durations: 'Durations'};
	document.getElementById('nav').append(...Object.entries(names).filter(([id]) => main.querySelector(`#${id}`)).map(([id, name]) => el('a', {href: `#${id}`}, name)));
}

function printing(timeline) {
	let before = '';
	const root = document.documentElement;
	addEventListener('beforeprint', () => {
		before = root.dataset.theme || 'auto';
		timeline.printing = true;
		root.dataset.theme = 'light';
		timeline.retheme();
		timeline.frame();
	});
	addEventListener('afterprint', () => {
		root.dataset.theme = before;
		timeline.printing = false;
		timeline.retheme();
		timeline.fit();
	});
}

async function begin() {
	const main = document.getElementById('main');
	const loading = document.getElementById('loading');
	const marks = {begun: performance.now()};
	const text = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
	const [report, tables] = (await Promise.all([payload('report'), payload('timeline')])).map(text);
	/* What has no card has no pin. */
	const minor = new Set((report.findings || []).map((finding, i) => finding.severity === 'minor' && (finding.rank ?? i + 1)));
	tables.moments = tables.moments.filter((moment) => !minor.has(moment.finding));
	document.title = `${report.summary?.program || 'recording'}: cudaspy report`;
	let view = null;
	main.append(...[runSummary(report), gpuTime(report), rankTime(report, (rank) => view && showRank(view, rank)), findingCards(report, tables, (moment) => view && showMoment(view, moment))].filter((part) => part));
	loading.textContent = 'Unpacking the timeline …';
	await pause();
	marks.first = performance.now();
	const model = new Model(tables, await payload('items'));
	view = new View(model);
	const search = new Search(view);
	const timeline = new Timeline(view, search, (moment) => showMoment(view, moment));
	main.append(timeline.element(new Details(view, report).element));
	document.getElementById('theme').append(themeSwitch(() => timeline.retheme()));
	timeline.start();
	loading.remove();
	await timeline.builder.whenSeen;
	marks.timeline = performance.now();
	await pause();
	const find = (row, name) => {
		if (row)
			return showMoment(view, {lane: Math.max(0, model.threadLane(row.thread, row.process)), begin_ns: row.at_ns, end_ns: row.at_ns + row.duration_ns});
		search.input.value = name;
		search.step(1);
		document.getElementById('timeline-section').scrollIntoView({block: 'start'});
	};
	const durations = new Durations(view, report);
	main.append(...[new Matrices(view, report, (waiter, holder) => showWait(view, waiter, holder)).element(), new Tables(view, report, find).element(), durations.element()].filter((part) => part),
		el('footer', {}, 'Written by cudaspy. All of it is in this file; nothing is loaded.'));
	navigation(main);
	printing(timeline);
	marks.ready = performance.now();
	window.cudaspy = Object.freeze({
		view: () => ({from: view.from, to: view.to, scroll: view.scroll, selected: view.selected && {...view.selected, title: model.title(view.selected)},
			measure: view.measure && {...view.measure}, filter: view.filter.text, moving: view.moving !== 0, lanes: view.layout.rows.map((row) => row.lane)}),
		arrows: () => timeline.arrows.drawn.map((one) => ({from: one.fromLane, to: one.toLane, at: one.at, kind: one.kind, root: one.root?.text ?? null})),
		box: (item) => ({...view.box(item)}),
		plotWidth: () => view.plotWidth,
		choose: (item) => view.select(item, true),
		model,
		frames: () => timeline.frames.slice(),
		marks: () => ({...marks}),
		copied: () => clipboard.text,
	});
	await timeline.builder.whenDone;
	durations.fill();
	marks.all = performance.now();
}

begin().catch((error) => {
	document.getElementById('loading')?.remove();
	document.getElementById('main').append(el('p', {class: 'failed', role: 'alert'}, `This report cannot be read: ${error.message}`));
	throw error;
});
