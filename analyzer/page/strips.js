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
		this.kinds = {};
	}

	/* The categories of a kind from the bottom up, what is lost first, own work last; and their inks. */
	kind(kind) {
		if (!this.kinds[kind]) {
			const {model} = this.view;
			const inks = inksOf(model, kind);
			const weight = (i) => kind !== 'calls' ? 0 : i === model.own ? 2 : model.buckets[i].lost ? 0 : 1;
			this.kinds[kind] = {inks, order: inks.map((ink, i) => i).sort((a, b) => weight(a) - weight(b) || a - b)};
		}
		return this.kinds[kind];
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
		image.pixels.fill(palette.ground());
		return {image, pixels: image.pixels, width, rows, top, scale, palette};
	}

	close(strip) {
		this.context.putImageData(strip.image, Math.round(this.view.gutter * strip.scale), strip.top);
	}

	/* A series over what the strip has; `share` of its height, from the bottom. Returns the items that are wide. */
	layer(strip, series, kind, share = 1, dim = false) {
		const {view} = this;
		const used = strip.width * series.categories;
		const wide = [];
		if (this.columns.length < used)
			this.columns = new Float64Array(used);
		series.columns(view.from, (view.to - view.from) / strip.width, strip.width, this.columns, WIDE * strip.scale, wide);
		this.fill(strip, series.categories, kind, Math.max(1, Math.round(strip.rows * share)), dim);
		return wide;
	}

	/* Anything at all is a pixel at least. */
	fill(strip, categories, kind, height, dim) {
		const {pixels, width, rows, top, palette} = strip;
		const {columns} = this;
		const {order, inks: names} = this.kind(kind);
		const inks = names.map((name) => palette.ink(name, dim));
		for (let x = 0; x < width; x++) {
			let high = 0;
			let filled = 0;
			for (let o = 0; o < categories; o++) {
				const share = columns[x * categories + order[o]];
				if (share <= 1e-9)
					continue;
				high += share;
				const until = Math.min(height, Math.max(Math.round(high * height), filled === 0 ? 1 : 0));
				const {plain, mark, pattern} = inks[order[o]];
				for (; filled < until; filled++) {
					const row = rows - 1 - filled;
					pixels[row * width + x] = pattern !== null && pattern[(top + row) & 7] >> (x & 7) & 1 ? mark : plain;
				}
			}
		}
	}
}
