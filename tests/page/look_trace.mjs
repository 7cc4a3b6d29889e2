/*
 * tests/page/look_trace.mjs CHROMIUM PAGE TRUTH [LEAST]: the page of a recorded program whose truth the simulator wrote
 * (tests/sim/README.md): each of the worst calls is clicked in its table, and the timeline's arrows are held against who
 * had the lock, and whom that one waited for, to the root. LEAST: so many calls must have had a chain (1). Called by
 * tests/e2e/test_page.sh. Prints how many calls, arrows and roots were compared.
 */
import {readdirSync, readFileSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {Chromium} from './chromium.mjs';
import {press, quiet, still, that, withBrowser} from './claims.mjs';

const [program, page, folder, least = '1'] = process.argv.slice(2);
const WORTH_NS = 500000;

/* Rows of all of the truth's files of a kind, as objects; pid: the file's. */
function truth(kind) {
	return readdirSync(folder).filter((name) => name.startsWith(`${kind}.`)).flatMap((name) => {
		const [head, ...lines] = readFileSync(join(folder, name), 'utf8').trim().split('\n');
		const keys = head.slice(1).split('\t');
		return lines.map((line) => Object.fromEntries([['pid', Number(name.split('.')[1])], ...line.split('\t').map((value, i) =>
			[keys[i], /^[0-9]+$/.test(value) ? Number(value) : value])]));
	});
}

const calls = truth('truth').filter((row) => row.depth === 0);
const locks = truth('waits').filter((row) => row.kind === 'lock');
const overlap = (a, b, from, to) => Math.min(b, to) - Math.max(a, from);

/*
 * Who had the lock of a wait while it lasted, whoever had it longest first: {tid, ns, until, function}. Its release
 * begins when nobody has it any more, however long that then takes.
 */
function holders(wait) {
	const found = new Map();
	for (const row of locks) {
		const ns = row.pid === wait.pid && row.tid !== wait.tid && row.lock === wait.lock && row.address === wait.address ?
			overlap(row.end_ns, row.release_ns, wait.begin_ns, wait.end_ns) : 0;
		if (ns <= 0)
			continue;
		const before = found.get(row.tid) || {tid: row.tid, ns: 0, until: 0};
		found.set(row.tid, {...before, ns: before.ns + ns, until: Math.max(before.until, row.release_ns), function: row.outer_function});
	}
	return [...found.values()].sort((a, b) => b.ns - a.ns);
}

/* [waiter, holder] of each step, from a wait to the root; the function that the root was in; is it certain who they are? */
function chain(wait) {
	const steps = [];
	let certain = true;
	let from = wait.begin_ns;
	for (;;) {
		const [holder, next] = holders(wait);
		if (!holder || steps.length === 16)
			return {steps, root: null, certain};
		certain &&= !next || next.ns * 2 < holder.ns;
		steps.push([wait.tid, holder.tid]);
		const {pid} = wait;
		const own = locks.filter((row) => row.pid === pid && row.tid === holder.tid && row.lock !== wait.lock &&
			overlap(row.begin_ns, row.end_ns, from, holder.until) > WORTH_NS / 2).sort((a, b) => b.end_ns - a.end_ns)[0];
		if (!own)
			return {steps, root: holder.function, certain};
		from = Math.max(from, own.begin_ns);
		wait = own;
	}
}

/* The truth's row of the call that is chosen in the page: of that function the thread's so many-th. */
async function chosen(chromium) {
	const {pid, tid, name, before} = await chromium.eval(`(() => {
		const {selected} = cudaspy.view();
		const {model} = cudaspy;
		const calls = model.items(selected.lane, 'calls');
		const before = calls.name.slice(0, selected.i).filter((name) => name === calls.name[selected.i]).length;
		return {...model.lanes[selected.lane], items: null, name: model.names[calls.name[selected.i]], before};
	})()`);
	return calls.filter((row) => row.pid === pid && row.tid === tid && row.function === name).sort((a, b) => a.begin_ns - b.begin_ns)[before];
}

const seen = {calls: 0, chains: 0, arrows: 0, roots: 0};

async function compare(chromium) {
	const call = await chosen(chromium);
	that('the chosen call is one of the truth', call);
	if (!call)
		return;
	seen.calls++;
	const waits = locks.filter((row) => row.pid === call.pid && row.tid === call.tid && row.begin_ns >= call.begin_ns && row.end_ns <= call.end_ns && row.end_ns - row.begin_ns > WORTH_NS);
	const worst = waits.sort((a, b) => b.end_ns - b.begin_ns - a.end_ns + a.begin_ns)[0];
	const arrows = await chromium.eval(`cudaspy.arrows().filter((one) => one.kind === 'holder').map((one) => [cudaspy.model.lanes[one.from].tid, cudaspy.model.lanes[one.to].tid, one.root])`);
	const what = `${call.function} of ${call.tid} at ${call.begin_ns}`;
	if (!worst) {
		that(`${what}: it waited for nobody`, arrows.length === 0 || waits.length === 0, arrows);
		return;
	}
	const {steps, root, certain} = chain(worst);
	if (!certain)
		return;
	seen.chains++;
	for (const [waiter, holder] of steps) {
		that(`${what}: an arrow from ${waiter} to ${holder}`, arrows.some(([from, to]) => from === waiter && to === holder), arrows);
		seen.arrows++;
	}
	if (root && waits.length === 1) {
		that(`${what}: the root is in ${root}`, arrows.some(([, to, text]) => to === steps.at(-1)[1] && text?.includes(root)), arrows);
		seen.roots++;
	}
}

await withBrowser(new Chromium(program), async (chromium) => {
	await chromium.open(page, {still: true});
	/* The finding that costs most leads to a call that lost time. */
	if (await chromium.eval(`document.querySelector('.show-me') !== null`)) {
		await chromium.click('.show-me');
		await still(chromium);
		that('a finding leads to something', await chromium.eval('cudaspy.view().selected !== null'));
	}
	await press(chromium, '#tables', 'Worst calls');
	const rows = await chromium.eval(`document.querySelectorAll('#tables tbody tr').length`);
	for (let row = 0; row < Math.min(rows, 12); row++) {
		await chromium.eval(`(() => {
			const index = [...document.querySelectorAll('#tables th button')].findIndex((one) => one.dataset.column === 'at_ns');
			document.querySelectorAll('#tables tbody tr')[${row}].children[index].querySelector('button').click();
		})()`);
		await still(chromium);
		await compare(chromium);
	}
	that('calls with a chain', seen.chains >= Number(least), seen);
	quiet('the page', chromium, resolve(page));
	console.log(Object.entries(seen).map(([name, n]) => `${n} ${name}`).join(', '));
});
