/*
 * model.js: the timeline's data: lanes, and their items, unpacked when somebody first asks for them. All views read it;
 * nothing changes it. Items are {lane, kind, i}: lane's number, kind of the item, its place among them. Pure.
 */
import {decodeItems} from './decode.js';
import {percent} from './format.js';
import {Series} from './series.js';

const NOTHING = {n: 0, begin: new Float64Array(0), duration: new Float64Array(0)};

/* Of one function alone there is one series, that of the last one asked for. */
function seriesKey(kind, depth, only) {
	return only === null ? `${kind}.${depth}` : `${kind}.${depth}.only`;
}

export class Model {
	constructor(timeline, bytes) {
		Object.assign(this, timeline);
		this.bytes = bytes;
		this.own = Math.max(0, this.buckets.findIndex((bucket) => bucket.key === 'own'));
		this.unpacked = this.lanes.map(() => ({}));
		this.series = this.lanes.map(() => ({}));
		this.span = Math.max(1, this.end_ns - this.begin_ns);
	}

	/* Columns of the items of a lane and kind (decode.js); {n: 0} if there are none. */
	items(lane, kind) {
		const unpacked = this.unpacked[lane];
		const where = this.lanes[lane].items[kind];
		if (!unpacked[kind])
			unpacked[kind] = where && where[2] > 0 ? decodeItems(kind, this.bytes, where) : NOTHING;
		return unpacked[kind];
	}

	has(lane, kind) {
		return this.lanes[lane].items[kind]?.[2] > 0;
	}

	hasSeries(lane, kind, depth = 0, only = null) {
		const made = this.series[lane][seriesKey(kind, depth, only)];
		return made !== undefined && made.only === only;
	}

	/* Unpacks all that a lane's row shows. */
	prepare(lane) {
		for (const kind of Object.keys(this.lanes[lane].items))
			for (let depth = 0; depth < this.depths(lane, kind); depth++)
				this.seriesOf(lane, kind, depth);
	}

	/* How many depths of ranges a lane has. */
	rangeDepths(lane) {
		return this.has(lane, 'ranges') ? 1 + this.items(lane, 'ranges').depth.reduce((most, depth) => Math.max(most, depth), 0) : 0;
	}

	/* What NVML says of a GPU: its utilisation, and below that its clock, if that is known. */
	lookDepths(lane) {
		return this.has(lane, 'looks') ? this.items(lane, 'looks').most.some((most) => most > 0) ? 2 : 1 : 0;
	}

	depths(lane, kind) {
		return {ranges: () => this.rangeDepths(lane), looks: () => this.lookDepths(lane)}[kind]?.() ?? 1;
	}

	/* The series of a lane and kind; of ranges, of one depth; of calls, of one function alone, if that is given. */
	seriesOf(lane, kind, depth = 0, only = null) {
		const key = seriesKey(kind, depth, only);
		const made = this.series[lane];
		if (!made[key] || made[key].only !== only) {
			const items = this.items(lane, kind);
			const wanted = [];
			for (let i = 0; i < items.n; i++)
				if ((kind !== 'ranges' || items.depth[i] === depth) && (only === null || items.name[i] === only))
					wanted.push(i);
			made[key] = this.makeSeries(kind, items, wanted, depth);
			made[key].only = only;
		}
		return made[key];
	}

	makeSeries(kind, items, wanted, depth) {
		const picked = {n: wanted.length, begin: new Float64Array(wanted.length), duration: new Float64Array(wanted.length)};
		wanted.forEach((from, i) => {
			picked.begin[i] = items.begin[from];
			picked.duration[i] = items.duration[from];
		});
		const divide = {
			calls: (i, add) => this.partsOf(items, wanted[i], add),
			waits: (i, add) => add(items.kind[wanted[i]], picked.duration[i]),
			gaps: (i, add) => add(items.cause[wanted[i]], picked.duration[i]),
			ranges: (i, add) => add(items.name[wanted[i]] % 6, picked.duration[i]),
			ops: (i, add) => add(items.kind[wanted[i]], picked.duration[i]),
			idle: (i, add) => add(items.cause[wanted[i]], Math.min(items.ns[wanted[i]], picked.duration[i])),
			collectives: (i, add) => {
				const wait = Math.min(items.wait[wanted[i]], picked.duration[i]);
				add(0, wait);
				add(1, picked.duration[i] - wait);
			},
			looks: (i, add) => this.partsOfLook(items, wanted[i], depth, add),
		}[kind];
		const series = new Series(picked, this.categories(kind), divide);
		series.index = Int32Array.from(wanted);
		return series;
	}

	categories(kind) {
		return {calls: this.buckets.length, waits: this.wait_kinds.length, gaps: this.causes.length, ranges: 6, ops: 4,
			idle: this.causes.length, collectives: 2, looks: 4}[kind];
	}

	/* add(bucket, ns) for each part of a call, its own work included. */
	partsOf(calls, i, add) {
		let own = calls.duration[i];
		for (let part = calls.partStart[i]; part < calls.partStart[i + 1]; part++) {
			add(calls.partKind[part], calls.partNs[part]);
			own -= calls.partNs[part];
		}
		if (own > 0)
			add(this.own, own);
	}

	/* As high as a share of the time, or of the largest clock: that, and what is left. Nothing of what is unknown. */
	partsOfLook(looks, i, depth, add) {
		const share = depth > 0 ? looks.clock[i] / looks.most[i] : looks.busy[i] / 1000;
		if (!(share >= 0) || (depth > 0 && !(looks.clock[i] > 0)))
			return;
		const ns = Math.min(1, share) * looks.duration[i];
		add(depth === 0 ? 0 : looks.slowed[i] ? 2 : 1, ns);
		add(3, looks.duration[i] - ns);
	}

	/* The item of a lane and kind at a time, the innermost; null: none. */
	itemAt(lane, kind, ns, depth = 0) {
		if (!this.has(lane, kind))
			return null;
		const series = this.seriesOf(lane, kind, depth);
		const at = series.at(ns);
		return at < 0 ? null : {lane, kind, i: series.index[at]};
	}

	begin(item) {
		return this.items(item.lane, item.kind).begin[item.i];
	}

	end(item) {
		const items = this.items(item.lane, item.kind);
		return items.begin[item.i] + items.duration[item.i];
	}

	/* Of an item in words: its function, its lock, its cause … */
	title(item) {
		const items = this.items(item.lane, item.kind);
		switch (item.kind) {
		case 'waits':
			return `wait for ${this.names[items.lock[item.i]] || this.wait_kinds[items.kind[item.i]]?.name || 'something'}`;
		case 'gaps':
		case 'idle':
			return this.causes[items.cause[item.i]]?.name ?? 'unknown';
		case 'ops':
			return this.names[items.name[item.i]] || 'several operations';
		case 'looks':
			return this.lookTitle(items, item.i);
		default:
			return this.names[items.name[item.i]] || '(no name)';
		}
	}

	/* "NVML: a kernel ran for 87 % of the time, clock 990 of 1980 MHz, slowed by its power limit". */
	lookTitle({busy, clock, most, slowed}, i) {
		const said = [busy[i] < 0 ? null : `a kernel ran for ${percent(busy[i], 1000)} of the time`, clock[i] > 0 ? `clock ${clock[i]}${most[i] > 0 ? ` of ${most[i]}` : ''} MHz` : null,
			slowed[i] > 0 ? `slowed by ${this.names[slowed[i]]}` : null].filter((text) => text);
		return `NVML: ${said.join(', ') || 'nothing known'}`;
	}

	laneName(lane) {
		return lane < 0 ? 'unknown' : this.lanes[lane].name;
	}

	/* "main of app.4711": where two lanes have one name. */
	laneLongName(lane) {
		const of = this.lanes[lane];
		return of && of.process && !of.name.includes(of.process) ? `${of.name} of ${of.process}` : this.laneName(lane);
	}

	/* Lanes of a thread by the report's names. */
	threadLane(tid, process) {
		return this.lanes.findIndex((lane) => lane.kind === 'thread' && lane.tid === tid && (!process || lane.process === process));
	}
}
