/*
 * tests/page/look_gpu.mjs CHROMIUM PAGE TRUTH: the page of a program recorded with --gpu against the simulator's truth: each
 * operation is on a stream's lane, as long as it was and as far from its submission, and its arrow leads to the thread that
 * submitted it. Called by tests/e2e/test_page.sh. Prints how many were compared.
 */
import {readdirSync, readFileSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {Chromium} from './chromium.mjs';
import {quiet, same, still, that, withBrowser} from './claims.mjs';

const [program, page, folder] = process.argv.slice(2);
const SLACK_NS = 3000; /* clocks are aligned to a few hundred nanoseconds */

const truth = readdirSync(folder).filter((name) => name.startsWith('gpu.')).flatMap((name) => {
	const [head, ...lines] = readFileSync(join(folder, name), 'utf8').trim().split('\n');
	const keys = head.slice(1).split('\t');
	return lines.map((line) => Object.fromEntries(line.split('\t').map((value, i) => [keys[i], /^[0-9]+$/.test(value) ? Number(value) : value])));
}).sort((a, b) => a.begin_ns - b.begin_ns);

await withBrowser(new Chromium(program), async (chromium) => {
	await chromium.open(page, {still: true});
	const shown = await chromium.eval(`(() => {
		const {model} = cudaspy;
		const rows = [];
		model.lanes.forEach((lane, number) => {
			const ops = lane.kind === 'stream' ? model.items(number, 'ops') : {n: 0};
			for (let i = 0; i < ops.n; i++)
				rows.push({lane: number, i, begin: ops.begin[i], took: ops.duration[i], from: ops.from[i] < 0 ? null : model.lanes[ops.from[i]].tid, queued: ops.queued[i]});
		});
		return rows.sort((a, b) => a.begin - b.begin);
	})()`);
	/* The last ones may still have been running when the process ended. */
	that('operations of the truth are shown', truth.length >= shown.length && truth.length - shown.length <= 3, [shown.length, truth.length]);
	const apart = truth[0].begin_ns - shown[0].begin;
	const wrong = shown.filter((op, i) => Math.abs(truth[i].begin_ns - op.begin - apart) > SLACK_NS || op.took !== truth[i].end_ns - truth[i].begin_ns ||
		op.from !== truth[i].tid);
	same('operations that were otherwise', wrong.slice(0, 3), []);
	/* A thread may lose its processor between the truth's look at the clock and CUPTI's. */
	const late = shown.filter((op, i) => Math.abs(truth[i].begin_ns - truth[i].call_begin_ns - op.queued) > SLACK_NS);
	that('submitted when they were', late.length * 10 <= shown.length, late.slice(0, 3));
	for (const op of [shown[0], shown[shown.length >> 1], shown.at(-1)]) {
		await chromium.eval(`cudaspy.choose({lane: ${op.lane}, kind: 'ops', i: ${op.i}})`);
		await still(chromium);
		const arrows = await chromium.eval(`cudaspy.arrows().filter((one) => one.kind === 'submitted').map((one) => [one.from, cudaspy.model.lanes[one.to].tid, one.at])`);
		same('an arrow to who submitted it', arrows, [[op.lane, op.from, op.begin - op.queued]]);
	}
	that('the GPU has a lane', await chromium.eval(`cudaspy.model.lanes.some((lane) => lane.kind === 'gpu' && lane.items.ops)`));
	quiet('the page', chromium, resolve(page));
	console.log(`${shown.length} operations`);
});
