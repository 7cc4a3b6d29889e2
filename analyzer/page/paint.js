/*
 * paint.js: draws the timeline's canvas: the axis, and of each row that is seen its name and its tracks. A track is a strip
 * of pixels made from its series' columns (series.js), so a frame costs the same with ten items and with a million. What
 * is chosen, and the arrows, are drawn over it by arrows.js. Tracks
 * that are not unpacked yet stay empty (builder.js). Called once a frame by timeline.js.
 */
import {clock, duration, niceStep} from './format.js';
import {inksOf} from './palette.js';
import {rowAt} from './rows.js';
import {Strips} from './strips.js';
import {AXIS_HEIGHT} from './view.js';

const LABEL_FROM = 44; /* pixels an item must have for its name */
const MANY_TRACKS = 60;
const GAP_SHARE = 0.35; /* of the track's height: calls have all of it */
const MOST_WIDTHS = 4096; /* of labels, remembered */

export class Painter {
	constructor(canvas, view, builder) {
		this.builder = builder;
		this.canvas = canvas;
		this.context = canvas.getContext('2d', {alpha: false});
		this.view = view;
		this.strips = new Strips(this.context, view);
		this.widthsOf = {}; /* by font: Maps of texts to widths */
		this.measured = null; /* the font that `widths` is of */
		this.widths = null;
	}

	frame(palette) {
		const {context, view, canvas} = this;
		const scale = Math.min(2, window.devicePixelRatio || 1);
		const [width, height] = [Math.round(view.width * scale), Math.round(view.height * scale)];
		if (canvas.width !== width || canvas.height !== height)
			[canvas.width, canvas.height] = [width, height];
		this.palette = palette;
		this.scale = scale;
		context.setTransform(scale, 0, 0, scale, 0, 0);
		context.fillStyle = palette.css('lane');
		context.fillRect(0, 0, view.width, view.height);
		context.textBaseline = 'middle';
		this.waitsSeen = [];
		this.builder.frame();
		const {rows} = view.layout;
		const first = rowAt(view.layout, view.scroll);
		let last = first;
		let tracks = 0;
		for (; last < rows.length && view.rowTop(rows[last]) < view.height; last++)
			tracks += rows[last].tracks.length;
		/* A frame's cost grows with columns: with many tracks they are coarser. */
		this.strips.unit = Math.min(4, Math.max(1, Math.round(scale * (tracks > MANY_TRACKS ? 2 : 1))));
		for (let i = first; i < last; i++)
			this.row(rows[i]);
		this.axis();
	}

	row(row) {
		const {context, view, palette} = this;
		const top = view.rowTop(row);
		for (const track of row.tracks)
			this.track(row, track, top + track.y);
		context.fillStyle = palette.css('line');
		if (!view.layout.dense)
			context.fillRect(0, Math.round(top + row.height) - 1, view.width, 1);
		this.name(row, top);
	}

	name(row, top) {
		const {context, view, palette} = this;
		const lane = view.model.lanes[row.lane];
		if (view.gutter) {
			context.fillStyle = palette.css('gutter');
			context.fillRect(0, top, view.gutter - 1, row.height - (view.layout.dense ? 0 : 1));
		}
		const room = (view.gutter || view.width) - 16;
		const second = [lane.process, lane.rank !== null && lane.rank !== undefined && lane.kind !== 'rank' ? `rank ${lane.rank}` : null, lane.host]
			.filter((text) => text).join(' · ');
		const twoLines = view.gutter > 0 && row.height >= 36 && second;
		context.textAlign = 'left';
		const size = row.height < 16 ? 9.5 : 12;
		context.font = `600 ${size}px ${palette.css('font')}`;
		context.fillStyle = palette.css('text');
		const middle = view.gutter ? top + (twoLines ? 14 : row.height / 2) : top + 10;
		context.fillText(this.fit(lane.name, room) || lane.short || '', 8, middle);
		if (!twoLines)
			return;
		context.font = `11px ${palette.css('font')}`;
		context.fillStyle = palette.css('faint');
		context.fillText(this.fit(second, room), 8, middle + 15);
	}

	track(row, track, y) {
		const {view, strips, palette, scale} = this;
		const {model, filter} = view;
		const {lane} = row;
		const calls = track.kind === 'calls';
		const {builder} = this;
		const only = calls ? filter.function : null;
		const series = builder.series(lane, track.kind, track.depth, only);
		const gaps = calls && model.has(lane, 'gaps') ? builder.series(lane, 'gaps') : null;
		const dimmed = only !== null ? builder.series(lane, 'calls') : null;
		if (!series)
			return;
		const strip = strips.open(y, track.height, palette, scale);
		if (gaps)
			strips.layer(strip, gaps, 'gaps', GAP_SHARE);
		if (dimmed)
			strips.layer(strip, dimmed, 'calls', 1, true);
		const wide = strips.layer(strip, series, track.kind);
		strips.close(strip);
		this.labels(lane, track, y, series, wide);
		if (track.kind === 'waits')
			for (const i of wide)
				this.waitsSeen.push({lane, kind: 'waits', i: series.index[i]});
	}

	/* Edges and names of the items that are wide enough. */
	labels(lane, track, y, series, wide) {
		const {context, view, palette} = this;
		const items = view.model.items(lane, track.kind);
		const inks = inksOf(view.model, track.kind);
		const small = track.height < 12;
		context.font = `${small ? 9 : 11}px ${palette.css('font')}`;
		context.textAlign = 'left';
		for (const i of wide) {
			const left = Math.max(view.gutter, view.x(series.begin[i]));
			const right = Math.min(view.width, view.x(series.end[i]));
			context.fillStyle = palette.css('lane');
			if (view.x(series.begin[i]) >= view.gutter)
				context.fillRect(left, y, 1, track.height);
			if (right - left < LABEL_FROM || small)
				continue;
			const item = {lane, kind: track.kind, i: series.index[i]};
			let text = view.model.title(item);
			if (track.kind === 'calls' && items.count[item.i] > 1)
				text = `${items.count[item.i]} calls, mostly ${text}`;
			this.label(text, left + 5, y + track.height / 2 + 0.5, right - left - 8, Math.min(track.height, 15), this.mainInk(series, i, inks));
		}
	}

	/* What most of an item went into: its label lies on that. */
	mainInk(series, i, inks) {
		let best = series.start[i];
		for (let part = best; part < series.start[i + 1]; part++)
			if (series.shares[part] > series.shares[best])
				best = part;
		return inks[series.present[series.kinds[best]]] || 'unknown';
	}

	/* On a piece of the plain colour, for patterns make letters hard to read. */
	label(text, x, y, room, height, ink) {
		const {context, palette} = this;
		const shown = this.fit(text, room);
		if (!shown)
			return;
		context.fillStyle = palette.css(ink);
		context.fillRect(x - 2, y - height / 2 + 1, this.widthOf(shown) + 4, height - 2);
		context.fillStyle = palette.css(palette.ink(ink).dark ? 'label-light' : 'label-dark');
		context.fillText(shown, x, y);
	}

	/* As much of a text as there is room for, in the context's font; '': nothing worth reading. */
	fit(text, room) {
		const width = this.widthOf(text);
		if (width <= room)
			return text;
		let letters = Math.floor(text.length * room / width);
		while (letters > 3 && this.widthOf(`${text.slice(0, letters - 1)}…`) > room)
			letters--;
		return letters > 3 ? `${text.slice(0, letters - 1)}…` : '';
	}

	widthOf(text) {
		if (this.measured !== this.context.font) {
			this.measured = this.context.font;
			this.widths = this.widthsOf[this.measured] ??= new Map();
		}
		let width = this.widths.get(text);
		if (width === undefined) {
			if (this.widths.size > MOST_WIDTHS)
				this.widths.clear();
			width = this.context.measureText(text).width;
			this.widths.set(text, width);
		}
		return width;
	}

	axis() {
		const {context, view, palette} = this;
		context.fillStyle = palette.css('panel');
		context.fillRect(0, 0, view.width, AXIS_HEIGHT - 1);
		context.fillStyle = palette.css('line');
		context.fillRect(0, AXIS_HEIGHT - 1, view.width, 1);
		const step = niceStep(view.to - view.from, view.plotWidth / 110);
		context.font = `11px ${palette.css('font')}`;
		context.textAlign = 'left';
		for (let at = Math.ceil(view.from / step) * step; at < view.to; at += step) {
			const x = Math.round(view.x(at));
			context.fillStyle = palette.css('line');
			context.fillRect(x, 0, 1, AXIS_HEIGHT);
			context.fillStyle = palette.css('faint');
			const text = clock(at, step);
			if (x + 6 + this.widthOf(text) < view.width)
				context.fillText(text, x + 4, 12);
		}
		this.corner();
	}

	corner() {
		const {context, view, palette} = this;
		if (!view.gutter)
			return;
		context.fillStyle = palette.css('panel');
		context.fillRect(0, 0, view.gutter - 1, AXIS_HEIGHT - 1);
		context.fillStyle = palette.css('faint');
		context.fillText(`${duration(view.to - view.from)} shown`, 8, 13);
	}
}
