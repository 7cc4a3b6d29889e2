/*
 * series.js: what a row of the timeline shows: intervals behind each other, each divided into categories. For any
 * window it says what each pixel's column consists of, at a cost that does not depend on the number of intervals:
 * the intervals of a column are found by a search from its left edge, and their sums are the difference of two sums
 * from the beginning, of which every 16th is stored. Pure.
 */

const BLOCK = 16;

/* The first i of from..n-1 with sorted[i] > value; n: none. */
export function firstAbove(sorted, value, from, n) {
	let low = from;
	let high = n;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (sorted[middle] > value)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The same where the result is probably close to `from`. */
function gallop(sorted, value, from, n) {
	let step = 1;
	let at = from;
	while (at + step < n && sorted[at + step - 1] <= value) {
		at += step;
		step *= 2;
	}
	return firstAbove(sorted, value, at, Math.min(n, at + step));
}

export class Series {
	/*
	 * items: {n, begin, duration}. divide(i, add) calls add(category, ns) for each part of interval i; the parts' sum is
	 * its duration at most. Where intervals overlap, the later one begins where the earlier ended.
	 */
	constructor(items, categories, divide) {
		const n = items.n;
		this.n = n;
		this.categories = categories;
		this.begin = new Float64Array(n);
		this.end = new Float64Array(n);
		this.start = new Uint32Array(n + 1);
		const kinds = [];
		const shares = [];
		let until = 0;
		for (let i = 0; i < n; i++) {
			const begin = Math.max(items.begin[i], until);
			const end = Math.max(begin, items.begin[i] + items.duration[i]);
			const whole = items.duration[i] || 1;
			this.begin[i] = begin;
			this.end[i] = until = end;
			divide(i, (category, ns) => {
				kinds.push(category);
				shares.push(ns / whole);
			});
			this.start[i + 1] = kinds.length;
		}
		this.kinds = Uint8Array.from(kinds);
		this.shares = Float32Array.from(shares);
		this.sumUp();
	}

	sumUp() {
		const blocks = Math.floor(this.n / BLOCK) + 1;
		this.sums = new Float64Array(blocks * this.categories);
		const sum = new Float64Array(this.categories);
		for (let i = 0; i < this.n; i++) {
			if (i % BLOCK === 0)
				this.sums.set(sum, i / BLOCK * this.categories);
			this.add(i, this.end[i] - this.begin[i], sum, 0);
		}
		if (this.n % BLOCK === 0)
			this.sums.set(sum, this.n / BLOCK * this.categories);
	}

	/* Adds `ns` of interval i to sums[at…], divided as the interval is. */
	add(i, ns, sums, at) {
		for (let part = this.start[i]; part < this.start[i + 1]; part++)
			sums[at + this.kinds[part]] += ns * this.shares[part];
	}

	/* sums[at…] += factor * (all intervals before i). */
	addBefore(i, factor, sums, at) {
		const block = Math.floor(i / BLOCK);
		for (let c = 0; c < this.categories; c++)
			sums[at + c] += factor * this.sums[block * this.categories + c];
		for (let k = block * BLOCK; k < i; k++)
			this.add(k, factor * (this.end[k] - this.begin[k]), sums, at);
	}

	/*
	 * Columns of `step` ns each from `from` on: out[x * categories + c] is which share of column x category c has.
	 * Intervals at least `wide` columns long are appended to `found`, for who labels them.
	 */
	columns(from, step, width, out, wide, found) {
		const {n, begin, end, categories} = this;
		const until = from + width * step;
		const used = width * categories;
		out.fill(0, 0, used);
		let i = firstAbove(end, from, 0, n);
		while (i < n && begin[i] < until) {
			const x = Math.max(0, Math.floor((begin[i] - from) / step));
			const edge = from + (x + 1) * step;
			if (end[i] > edge || begin[i] < from) {
				this.spread(i, from, step, width, out);
				if (end[i] - begin[i] >= wide * step)
					found.push(i);
				i++;
				continue;
			}
			const next = Math.max(i + 1, gallop(end, edge, i, n));
			if (x >= width)
				break;
			if (next - i < 2 * BLOCK) {
				for (let k = i; k < next; k++)
					this.add(k, end[k] - begin[k], out, x * categories);
			} else {
				this.addBefore(next, 1, out, x * categories);
				this.addBefore(i, -1, out, x * categories);
			}
			i = next;
		}
		for (let k = 0; k < used; k++)
			out[k] /= step;
	}

	/* An interval over several columns: all of those within are alike. */
	spread(i, from, step, width, out) {
		const first = Math.max(0, (this.begin[i] - from) / step);
		const last = Math.min(width, (this.end[i] - from) / step);
		for (let part = this.start[i]; part < this.start[i + 1]; part++) {
			const share = this.shares[part] * step;
			const kind = this.kinds[part];
			let x = Math.floor(first);
			if (x >= last)
				continue;
			out[x * this.categories + kind] += share * (Math.min(x + 1, last) - first);
			for (x++; x + 1 <= last; x++)
				out[x * this.categories + kind] += share;
			if (x < last)
				out[x * this.categories + kind] += share * (last - x);
		}
	}

	/* The interval at a time, or -1. */
	at(ns) {
		const i = firstAbove(this.end, ns, 0, this.n);
		return i < this.n && this.begin[i] <= ns ? i : -1;
	}
}
