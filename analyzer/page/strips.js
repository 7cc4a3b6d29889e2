/*
 * strips.js: a track of the timeline as pixels: of each column a stack of inks, as high as the shares of time that its
 * series' categories have. All layers of a track go into one buffer, which is put on the canvas once. Used by paint.js.
 */
import {inksOf} from './palette.js';

/* Items of so many columns get an edge and perhaps a name. */
const WIDE = 5;

export class Strips {
	constructor(context, view) {
		this.context = context;
		this.view = view;
		this.images = new Map();
		this.columns = new Float64Array(0);
		this.palette = null;
		this.unit = 1; /* pixels of a column */
	}

	/* The places of a series' categories from the bottom up, what is lost first, own work last; and their inks. */
	stack(series, kind, dim) {
		const {view: {model}} = this;
		const names = inksOf(model, kind);
		const weight = (category) => kind !== 'calls' ? 0 : category === model.own ? 2 : model.buckets[category].lost ? 0 : 1;
		const order = series.present.map((category, place) => ({category, place})).sort((a, b) => weight(a.category) - weight(b.category) || a.category - b.category);
		return order.map(({category, place}) => ({place, ink: this.palette.ink(names[category], dim)}));
	}

	/* An empty strip for a track at y. */
	open(y, height, palette, scale) {
		const top = Math.round(y * scale);
		const rows = Math.round((y + height) * scale) - top;
		const width = Math.round(this.view.plotWidth * scale);
		let image = this.images.get(rows);
		if (!image || image.width !== width) {
			image = new ImageData(width, rows);
			image.pixels = new Uint32Array(image.data.buffer);
			this.images.set(rows, image);
		}
		this.palette = palette;
		image.pixels.fill(palette.ground());
		return {image, pixels: image.pixels, width, rows, top, scale, first: width, last: 0};
	}

	/* Onto the canvas, which has the ground's colour where nothing is. */
	close(strip) {
		if (strip.first < strip.last)
			this.context.putImageData(strip.image, Math.round(this.view.gutter * strip.scale), strip.top, strip.first, 0, strip.last - strip.first, strip.rows);
	}

	/* A series over what the strip has; `share` of its height, from the bottom. Returns the items that are wide. */
	layer(strip, series, kind, share = 1, dim = false) {
		const {view} = this;
		const used = strip.width * series.categories;
		const wide = [];
		if (this.columns.length < used)
			this.columns = new Float64Array(used);
		const {unit} = this;
		const step = (view.to - view.from) / strip.width * unit;
		const [first, last] = series.columns(view.from, step, Math.ceil(strip.width / unit), this.columns, WIDE * strip.scale / unit, wide);
		if (first < last) {
			strip.first = Math.min(strip.first, first * unit);
			strip.last = Math.max(strip.last, Math.min(strip.width, last * unit));
			this.fill(strip, first, last, series.categories, this.stack(series, kind, dim), Math.max(1, Math.round(strip.rows * share)), step);
		}
		return wide;
	}

	/* Columns next to each other that are the same, as those of a long call, are filled together. */
	fill(strip, first, last, n, stack, height, step) {
		const {columns, unit} = this;
		let begin = first;
		for (let x = first + 1; x <= last; x++) {
			let same = x < last;
			for (let c = 0; same && c < n; c++)
				same = columns[x * n + c] === columns[begin * n + c];
			if (same)
				continue;
			this.run(strip, begin * unit, Math.min(x * unit, strip.width), begin * n, stack, height, step);
			begin = x;
		}
	}

	/* The pixels from begin to end, all of which the columns at `at` tell of. Anything at all is a pixel at least. */
	run(strip, begin, end, at, stack, height, step) {
		const {columns} = this;
		const {pixels, width, rows, top} = strip;
		const scale = height / step;
		let high = 0;
		let row = rows;
		for (let i = 0; i < stack.length; i++) {
			const {place, ink} = stack[i];
			const ns = columns[at + place];
			if (ns <= step * 1e-9)
				continue;
			high += ns;
			const until = rows - Math.min(height, Math.max(Math.round(high * scale), row === rows ? 1 : 0));
			while (row > until) {
				row--;
				line(pixels, row * width, begin, end, ink, ink.pattern === null ? 0 : ink.pattern[(top + row) & 7]);
			}
		}
	}
}

function line(pixels, at, begin, end, {plain, mark}, dots) {
	if (!dots && end - begin > 8)
		pixels.fill(plain, at + begin, at + end);
	else
		for (let x = begin; x < end; x++)
			pixels[at + x] = dots >> (x & 7) & 1 ? mark : plain;
}
