/*
 * chain.js: who held whom up: from a wait to the holder of its lock, and on, if the holder waited itself meanwhile, to
 * the one that did not: the root. And the other way: who waited for what an item's thread did. Pure.
 */
import {firstAbove} from './series.js';

const LONGEST_CHAIN = 32;
/* A holder's own wait explains the waiter's, if it is at least this share of it. */
const WORTH_FOLLOWING = 0.05;

/*
 * The steps of a wait's chain: [{wait, from, to, release, holder, next}], the waiter's first: wait is an item; from to
 * `to` is the time that this step is about; release is when the holder let go, in its lane `holder`; next is the holder's
 * own wait meanwhile, or null at the root. Empty: the holder is not known.
 */
export function chainOf(model, wait) {
	const steps = [];
	const seen = new Set();
	let from = model.begin(wait);
	let to = model.end(wait);
	while (wait && steps.length < LONGEST_CHAIN) {
		const waits = model.items(wait.lane, 'waits');
		const holder = waits.holder[wait.i];
		const key = `${wait.lane}.${wait.i}`;
		if (holder < 0 || holder >= model.lanes.length || seen.has(key))
			break;
		seen.add(key);
		const end = model.end(wait);
		const release = Math.min(end, Math.max(model.begin(wait), end - waits.release[wait.i]));
		const next = holderWait(model, holder, from, Math.min(to, release), release);
		steps.push({wait, from, to, release, holder, function: waits.holderCall[wait.i], next});
		if (!next)
			break;
		from = Math.max(from, model.begin(next));
		to = Math.min(to, model.end(next));
		wait = next;
	}
	return steps;
}

/*
 * The wait of lane `holder` that kept it from releasing: that at the release, else the longest between from and to. Only
 * waits for another one with a known holder lead on.
 */
function holderWait(model, holder, from, to, release) {
	const waits = model.items(holder, 'waits');
	let best = null;
	let most = Math.max(1, (to - from) * WORTH_FOLLOWING);
	for (let i = waits.n && firstEnding(model, holder, from); i < waits.n && waits.begin[i] < to; i++) {
		const end = waits.begin[i] + waits.duration[i];
		if (waits.begin[i] <= release && release < end)
			return {lane: holder, kind: 'waits', i};
		const share = Math.min(end, to) - Math.max(waits.begin[i], from);
		if (share > most) {
			most = share;
			best = {lane: holder, kind: 'waits', i};
		}
	}
	return best;
}

/* The first wait of a lane that ends after a time. Waits of a thread follow each other. */
function firstEnding(model, lane, ns) {
	const series = model.seriesOf(lane, 'waits');
	const at = firstAbove(series.end, ns, 0, series.n);
	return at < series.n ? series.index[at] : model.items(lane, 'waits').n;
}

/* What the root did meanwhile, in words: its call and where most of its time went. `{item, text}`; item null: no call. */
export function rootOf(model, steps) {
	const last = steps[steps.length - 1];
	const middle = (Math.max(last.from, Math.min(last.to, model.begin(last.wait))) + last.release) / 2;
	const call = model.itemAt(last.holder, 'calls', middle) || model.itemAt(last.holder, 'calls', last.release - 1);
	if (!call)
		return {item: null, text: last.function > 0 ? model.names[last.function] : 'outside of CUDA calls'};
	let most = -1;
	let bucket = model.own;
	model.partsOf(model.items(call.lane, 'calls'), call.i, (kind, ns) => {
		if (ns > most)
			[most, bucket] = [ns, kind];
	});
	return {item: call, text: `${model.title(call)}: ${model.buckets[bucket]?.name ?? 'unknown'}`};
}

/* All waits with a known holder, by the holder's lane and the time of the release: made once, from all lanes. */
export class HeldUp {
	constructor(model) {
		const rows = model.lanes.map(() => []);
		model.lanes.forEach((lane, number) => {
			const waits = model.items(number, 'waits');
			for (let i = 0; i < waits.n; i++)
				rows[waits.holder[i]]?.push({wait: {lane: number, kind: 'waits', i}, release: waits.begin[i] + waits.duration[i] - waits.release[i]});
		});
		this.rows = rows.map((list) => list.sort((a, b) => a.release - b.release));
		this.releases = this.rows.map((list) => Float64Array.from(list, (row) => row.release));
	}

	/* Waits of others that ended by what `lane` did between two times, the longest first. */
	during(model, lane, from, to) {
		const found = [];
		const releases = this.releases[lane];
		for (let i = firstAbove(releases, from - 1, 0, releases.length); i < releases.length && releases[i] <= to; i++)
			found.push(this.rows[lane][i].wait);
		return found.sort((a, b) => model.items(b.lane, 'waits').duration[b.i] - model.items(a.lane, 'waits').duration[a.i]);
	}
}
