/*
 * tests/page/look_series.mjs MODULES: series.js (in a folder where modules are ES modules) against sums made the slow way: what
 * each column of a drawn window of drawn intervals consists of, where there is anything, and which intervals are wide. Needs
 * no browser. Called by tests/e2e/test_page.sh.
 */
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {howMany, that} from './claims.mjs';

const {Series} = await import(pathToFileURL(resolve(join(process.argv[2], 'series.js'))));
const CATEGORIES = 3;
const WIDE = 5;
let random = 1;
const below = (n) => Math.floor((random = (random * 48271) % 2147483647) / 2147483647 * n);

function draw() {
	const items = {n: 1 + below(400), begin: [], duration: []};
	let at = below(1000);
	for (let i = 0; i < items.n; i++) {
		items.begin.push(at);
		items.duration.push(below(10) ? below(30) : below(5000));
		at += items.duration[i] + below(2) * below(200);
	}
	return {items, window: {from: below(at + 1) - 100, step: 0.1 + below(3000) / 100, width: 50 + below(100)}};
}

/* Three quarters of an interval are of one category, the rest of the next one. */
const parts = (i) => [[i % CATEGORIES, 0.75], [(i + 1) % CATEGORIES, 0.25]];

function slowly({n, begin, duration}, {from, step, width}) {
	const sums = Array.from({length: width}, () => new Array(CATEGORIES).fill(0));
	for (let i = 0; i < n; i++)
		for (let x = Math.max(0, Math.floor((begin[i] - from) / step) - 1); x < Math.min(width, (begin[i] + duration[i] - from) / step + 1); x++) {
			const ns = Math.min(begin[i] + duration[i], from + (x + 1) * step) - Math.max(begin[i], from + x * step);
			parts(i).forEach(([category, share]) => sums[x][category] += Math.max(0, ns) * share);
		}
	return sums;
}

for (let round = 0; round < 300; round++) {
	const {items, window: {from, step, width}} = draw();
	const series = new Series(items, CATEGORIES, (i, add) => items.duration[i] && parts(i).forEach(([category, share]) => add(category, share * items.duration[i])));
	const out = new Float64Array(width * CATEGORIES);
	const found = [];
	const [first, last] = series.columns(from, step, width, out, WIDE, found);
	const sums = slowly(items, {from, step, width});
	const wrong = sums.findIndex((column, x) => column.some((ns, category) => {
		const place = series.present.indexOf(category);
		return Math.abs(ns - (place < 0 ? 0 : out[x * series.categories + place])) > step * 1e-4 + 1e-6;
	}));
	that(`round ${round}: column ${wrong}`, wrong < 0);
	that(`round ${round}: nothing outside of ${first} to ${last}`, sums.every((column, x) => first <= x && x < last || column.every((ns) => ns < 1e-9)));
	/* Of what sticks out at the left by less than a column nobody sees that it is wide. */
	const wide = items.begin.map((begin, i) => i).filter((i) => items.duration[i] >= WIDE * step && items.begin[i] < from + width * step && items.begin[i] + items.duration[i] >= from + step);
	that(`round ${round}: wide ones`, JSON.stringify(wide) === JSON.stringify(found), [wide, found]);
}
/* From afar, edges are where they are to a bin: compared are the sums of all columns, and each with a bin's slack. */
for (let round = 0; round < 20; round++) {
	const items = {n: 30000, begin: [], duration: []};
	for (let i = 0, at = below(1000); i < items.n; i++) {
		items.begin.push(at);
		items.duration.push(below(10) ? below(30) : below(5000));
		at += items.duration[i] + below(2) * below(200);
	}
	const series = new Series(items, CATEGORIES, (i, add) => items.duration[i] && parts(i).forEach(([category, share]) => add(category, share * items.duration[i])));
	const span = series.end[items.n - 1] - series.begin[0];
	const window = {from: series.begin[0] - below(span / 4), step: span / (500 + below(2000)), width: 1000 + below(500)};
	const bin = span / 8192;
	that(`from afar ${round}: it is`, window.step >= 2 * bin);
	const out = new Float64Array(window.width * CATEGORIES);
	const found = [];
	series.columns(window.from, window.step, window.width, out, WIDE, found);
	const sums = slowly(items, window);
	const worst = Math.max(...sums.flatMap((column, x) => column.map((ns, category) => Math.abs(ns - out[x * series.categories + series.present.indexOf(category)]))));
	that(`from afar ${round}: columns to a bin`, worst <= bin * 1.01 + span * 1e-6, [worst, bin]);
	const total = (of) => of.reduce((sum, ns) => sum + ns, 0);
	that(`from afar ${round}: all of it`, Math.abs(total(out) - total(sums.flat())) < 2 * bin, [total(out), total(sums.flat())]);
	const wide = items.begin.map((begin, i) => i).filter((i) => items.duration[i] >= WIDE * window.step && items.begin[i] < window.from + window.width * window.step && items.begin[i] + items.duration[i] > window.from);
	that(`from afar ${round}: wide ones`, JSON.stringify(wide) === JSON.stringify(found), [wide.length, found.length]);
}
console.log(howMany());
process.exit(howMany().endsWith(' 0 wrong') ? 0 : 1);
