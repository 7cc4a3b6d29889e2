/*
 * pins.js: the findings' worst moments, as numbered pins on the timeline's axis: where in the run they lie, and a way there. Drawn
 * after paint.js, once a frame.
 */
import {AXIS_HEIGHT} from './view.js';

const RADIUS = 7.5;
const MIDDLE = AXIS_HEIGHT - RADIUS - 2;

export class Pins {
	constructor(view) {
		this.view = view;
		this.drawn = []; /* {x, moment} */
	}

	/* Where pins would lie on one another, the first finding has the place. */
	frame(context, palette) {
		const {view} = this;
		this.drawn = [];
		context.font = `700 10px ${palette.css('font')}`;
		context.textAlign = 'center';
		for (const moment of [...view.model.moments].sort((a, b) => a.finding - b.finding)) {
			const x = view.x((moment.begin_ns + moment.end_ns) / 2);
			if (x < view.gutter || x > view.width || this.drawn.some((other) => Math.abs(other.x - x) < 2 * RADIUS + 1))
				continue;
			this.drawn.push({x, moment});
			context.fillStyle = palette.css('text');
			context.beginPath();
			context.arc(x, MIDDLE, RADIUS, 0, 7);
			context.fill();
			context.fillStyle = palette.css('panel');
			context.fillText(String(moment.finding), x, MIDDLE + 0.5);
		}
		context.textAlign = 'left';
	}

	/* The moment whose pin lies there; null: none. */
	at(x, y) {
		return y > AXIS_HEIGHT ? null : this.drawn.find((pin) => Math.hypot(pin.x - x, MIDDLE - y) <= RADIUS + 2)?.moment ?? null;
	}
}
