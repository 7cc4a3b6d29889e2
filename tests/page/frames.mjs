/*
 * tests/page/frames.mjs CHROMIUM FILE...: what a page costs: until it is ready, and of each frame while somebody zooms, moves and
 * scrolls, the script's time on the processor, so that a busy machine does not count. Prints a line for each; status 1 if a
 * median is above MOST_MS (default 100: a bound for any machine, not the goal, which is 8). With --most=MS, --ready=MS and --steps=N of
 * each way (60).
 */
import {resolve} from 'node:path';
import {Chromium} from './chromium.mjs';
import {quiet, that, withBrowser} from './claims.mjs';

const options = Object.fromEntries(process.argv.slice(2).filter((one) => one.startsWith('--')).map((one) => one.slice(2).split('=')));
const [program, ...files] = process.argv.slice(2).filter((one) => !one.startsWith('--'));
const most = Number(options.most || 100);
const ready = Number(options.ready || 30000);
const STEPS = Number(options.steps || 60);
const ZOOM = 2400 / STEPS; /* of one step: all ways go as far, in however many */

const figures = (values) => {
	const sorted = [...values].sort((a, b) => a - b);
	const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))].toFixed(1);
	return {median: at(0.5), p95: at(0.95), most: at(1)};
};

/* Milliseconds of script of each step, its frame included. */
async function steps(chromium, step) {
	const spent = async () => (await chromium.send('Performance.getMetrics')).metrics.find(({name}) => name === 'ScriptDuration').value * 1000;
	const values = [];
	for (let i = 0; i < STEPS; i++) {
		const before = await spent();
		await step(i);
		await chromium.eval('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
		values.push(await spent() - before);
	}
	return figures(values);
}

async function measure(chromium, file) {
	await chromium.open(file, {width: 1400, height: 900});
	await chromium.until('cudaspy.marks().all !== undefined', 120);
	const marks = await chromium.eval('cudaspy.marks()');
	const items = await chromium.eval(`cudaspy.model.lanes.reduce((sum, lane) => sum + Object.values(lane.items).reduce((n, part) => n + part[2], 0), 0)`);
	await chromium.send('Performance.enable', {timeDomain: 'threadTicks'});
	await chromium.eval(`document.getElementById('timeline-section').scrollIntoView()`);
	const {x, y, width, height} = await chromium.eval(`(({x, y, width, height}) => ({x, y, width, height}))(document.querySelector('canvas').getBoundingClientRect())`);
	const wheel = (part, deltaX, deltaY, modifiers = 0) => chromium.mouse('mouseWheel', x + width * part, y + height / 2, {deltaX, deltaY, modifiers});
	const from = (i) => 0.3 + 0.3 * i / STEPS;
	const ways = {
		'zoom in': (i) => wheel(from(i), 0, -ZOOM, 2),
		move: () => wheel(0.5, 37, 0),
		'zoom out': (i) => wheel(from(i), 0, ZOOM, 2),
		scroll: (i) => wheel(0.5, 0, i % 10 < 5 ? 40 : -40),
	};
	console.log(`${file.replace(/.*\//, '')}: ${items.toLocaleString('en-US')} items in ${await chromium.eval('cudaspy.model.lanes.length')} lanes, first screen ${Math.round(marks.first)} ms, ready ${Math.round(marks.ready)} ms, all unpacked ${Math.round(marks.all)} ms`);
	that(`${file}: ready within ${ready} ms`, marks.ready <= ready, marks);
	for (const [name, step] of Object.entries(ways)) {
		const {median, p95, most: worst} = await steps(chromium, step);
		console.log(`  ${name}: script of a frame ${median} ms median, ${p95} p95, ${worst} at most`);
		that(`${file}: ${name}: script of a frame`, Number(median) <= most, median);
	}
	quiet(file, chromium, resolve(file));
}

await withBrowser(new Chromium(program), async (chromium) => {
	for (const file of files)
		await measure(chromium, file);
});
