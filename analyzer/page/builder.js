/*
 * builder.js: unpacks the timeline's tracks a few at a time, between frames, so that no frame has to: those that a frame lacked
 * first, the others while nothing else is to be done. Asked by paint.js for what is there, run by timeline.js.
 */

const SLICE_MS = 5;

export class Builder {
	constructor(model) {
		this.model = model;
		this.wanted = []; /* by the last frame: [lane, kind, depth, only] */
		this.lane = 0; /* the next one that nobody asked for */
		this.timer = null;
		this.built = () => {}; /* called when something was built that a frame lacked */
		this.whenDone = new Promise((done) => this.done = done);
		this.whenSeen = new Promise((done) => this.seen = done);
	}

	/* The series of a track, as in Model.seriesOf; null: not yet, it will be built. */
	series(lane, kind, depth = 0, only = null) {
		if (this.model.hasSeries(lane, kind, depth, only))
			return this.model.seriesOf(lane, kind, depth, only);
		this.wanted.push([lane, kind, depth, only]);
		return null;
	}

	/* A frame begins: what the one before lacked is forgotten. */
	frame() {
		this.wanted = [];
	}

	/* Goes on building, if there is anything left. */
	go() {
		if (!this.wanted.length)
			this.seen();
		if (this.timer === null)
			this.timer = setTimeout(() => this.slice());
	}

	slice() {
		const until = performance.now() + SLICE_MS;
		const lacked = this.wanted.length > 0;
		this.timer = null;
		do {
			const next = this.wanted.shift();
			if (next)
				this.model.seriesOf(...next);
			else if (this.lane < this.model.lanes.length)
				this.model.prepare(this.lane++);
			else
				return this.done();
		} while (performance.now() < until && (this.wanted.length > 0 || !lacked));
		if (lacked)
			this.built();
		else
			this.go();
	}
}
