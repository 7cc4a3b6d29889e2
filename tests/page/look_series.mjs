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
		for (let x = 0; x < width; x++) {
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
console.log(howMany());
process.exit(howMany().endsWith(' 0 wrong') ? 0 : 1);
