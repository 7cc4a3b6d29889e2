/*
 * series.js: what a row of the timeline shows: intervals behind each other, each divided into categories. For any
 * window it says what each pixel's column consists of, at a cost that does not depend on the number of intervals:
 * the intervals of a column are found by a search from its left edge, and their sums are the difference of two sums
 * from the beginning. Seen from afar, sums at fixed times take the intervals' place. Pure.
 */

const BINS = 8192; /* of the view from afar: more than twice the columns of a screen */
const MANY = 2048; /* intervals that have such a view */

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
	if (from >= n || sorted[from] > value)
		return from;
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
	 * its duration at most. Where intervals overlap, the later one begins where the earlier ended. Categories that
	 * there are get places of their own, `present` says of which each is: kinds and columns are by place.
	 */
	constructor(items, categories, divide) {
		const n = items.n;
		this.n = n;
		this.present = [];
		const places = new Int16Array(categories).fill(-1);
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
			divide(i, (given, ns) => {
				const category = Math.min(given, categories - 1);
				if (places[category] < 0)
					places[category] = this.present.push(category) - 1;
				kinds.push(places[category]);
				shares.push(ns / whole);
			});
			this.start[i + 1] = kinds.length;
		}
		this.categories = this.present.length;
		this.kinds = Uint8Array.from(kinds);
		this.shares = Float32Array.from(shares);
		this.sumUp();
		if (n > MANY)
			this.lookFromAfar();
	}

	/*
	 * far: what categories have of all time before the begin of bin b, from begin[0] on, at far[b * categories]; and the
	 * intervals that are longer than two bins, in `long`.
	 */
	lookFromAfar() {
		const {n, begin, end, categories} = this;
		this.bin = Math.max(1e-6, (end[n - 1] - begin[0]) / BINS);
		this.far = new Float32Array((BINS + 1) * categories);
		const sums = new Float64Array(categories);
		for (let b = 0, i = 0; b <= BINS; b++) {
			const at = begin[0] + b * this.bin;
			while (i < n && end[i] <= at)
				i++;
			sums.set(this.sums.subarray(i * categories, (i + 1) * categories));
			if (i < n && begin[i] < at)
				this.add(i, at - begin[i], sums, 0);
			this.far.set(sums, b * categories);
		}
		this.long = [];
		for (let i = 0; i < n; i++)
			if (end[i] - begin[i] >= 2 * this.bin)
				this.long.push(i);
	}

	/* out[at…] = what categories have of all time before `ns`, from afar. */
	before(ns, out, at) {
		const {far, categories} = this;
		const place = Math.max(0, Math.min(BINS, (ns - this.begin[0]) / this.bin));
		const bin = Math.min(BINS - 1, Math.floor(place));
		for (let c = 0; c < categories; c++) {
			const low = far[bin * categories + c];
			out[at + c] = low + (far[(bin + 1) * categories + c] - low) * (place - bin);
		}
	}

	/* As columns, for steps of two bins or more. */
	columnsFromAfar(from, step, width, out, wide, found) {
		const {categories, n} = this;
		const first = Math.max(0, Math.floor((this.begin[0] - from) / step));
		const last = Math.min(width, Math.ceil((this.end[n - 1] - from) / step));
		for (let x = first, at = first * categories; x <= last && x < width; x++, at += categories)
			this.before(from + x * step, out, at);
		const rest = new Float64Array(categories);
		this.before(from + last * step, rest, 0);
		for (let x = first; x < last; x++)
			for (let c = 0; c < categories; c++) {
				const next = x + 1 < last ? out[(x + 1) * categories + c] : rest[c];
				out[x * categories + c] = Math.max(0, next - out[x * categories + c]);
			}
		if (last < width && last >= first)
			out.fill(0, last * categories, (last + 1) * categories);
		for (const i of this.long)
			if (this.end[i] - this.begin[i] >= wide * step && this.end[i] > from && this.begin[i] < from + width * step)
				found.push(i);
		return first < last ? [first, last] : [width, 0];
	}

	/* sums[i * categories + c]: what category c has of all intervals before i. */
	sumUp() {
		const {n, categories} = this;
		this.sums = new Float64Array((n + 1) * categories);
		for (let i = 0; i < n; i++) {
			const at = (i + 1) * categories;
			this.sums.copyWithin(at, at - categories, at);
			this.add(i, this.end[i] - this.begin[i], this.sums, at);
		}
	}

	/* Adds `ns` of interval i to sums[at…], divided as the interval is. */
	add(i, ns, sums, at) {
		for (let part = this.start[i]; part < this.start[i + 1]; part++)
			sums[at + this.kinds[part]] += ns * this.shares[part];
	}

	/*
	 * Columns of `step` ns each from `from` on: out[x * categories + c] is how many ns of column x the category at place c
	 * has. Intervals at least `wide` columns long are appended to `found`, for who labels them. Returns [first, last):
	 * the columns that there is anything in.
	 */
	columns(from, step, width, out, wide, found) {
		const {n, begin, end, categories, sums} = this;
		out.fill(0, 0, width * categories);
		if (this.far && step >= 2 * this.bin)
			return this.columnsFromAfar(from, step, width, out, wide, found);
		let i = firstAbove(end, from, 0, n);
		let x = i < n ? Math.max(0, Math.floor((begin[i] - from) / step)) : width;
		const first = Math.min(x, width);
		let last = first;
		while (i < n && x < width) {
			const right = from + (x + 1) * step;
			if (begin[i] >= right) {
				x = Math.max(x + 1, Math.floor((begin[i] - from) / step));
				continue;
			}
			last = x + 1;
			const left = Math.max(from + x * step, begin[i]);
			if (end[i] >= right) {
				this.add(i, right - left, out, x * categories);
				if (end[i] - begin[i] >= wide * step)
					found.push(i);
				const full = Math.max(x + 1, Math.min(width, Math.floor((end[i] - from) / step)));
				for (x++; x < full; x++)
					this.add(i, step, out, x * categories);
				last = x;
				if (end[i] <= from + x * step)
					i++;
				continue;
			}
			this.add(i, end[i] - left, out, x * categories);
			const next = gallop(end, right, i + 1, n);
			for (let c = 0; c < categories && next > i + 1; c++)
				out[x * categories + c] += sums[next * categories + c] - sums[(i + 1) * categories + c];
			i = next;
		}
		return [first, last];
	}

	/* The interval at a time, or -1. */
	at(ns) {
		const i = firstAbove(this.end, ns, 0, this.n);
		return i < this.n && this.begin[i] <= ns ? i : -1;
	}
}
