/*
 * tests/page/look_page.mjs CHROMIUM PAGE FOLDER: the page with made-up data whose truth is known (fake.mjs), used as people do:
 * findings, timeline, arrows, keys, search, measuring, details, tables, matrices, themes, print, a narrow screen, and names that
 * try to break out. FOLDER is for files. Called by tests/e2e/test_page.sh.
 */
import {readFileSync, writeFileSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {Chromium} from './chromium.mjs';
import {canvasAt, clickItem, howMany, press, quiet, same, still, textOf, that, withBrowser} from './claims.mjs';
import {write} from './fake.mjs';

const MS = 1e6;
const [MAIN, LOADER, SAVER, GPU, STREAM] = [0, 1, 2, 3, 4];
const [program, page, folder] = process.argv.slice(2);

function made(name) {
	const file = resolve(join(folder, `${name}.html`));
	write(page, name, file);
	return file;
}

const view = (chromium) => chromium.eval('cudaspy.view()');
const arrows = (chromium) => chromium.eval('cudaspy.arrows()');
const visible = (from, to, {from: left, to: right}) => left <= from && to <= right;

/* ---- the first screen ------------------------------------------------------------------------------ */

async function firstScreen(chromium) {
	const cards = await chromium.eval(`[...document.querySelectorAll('.card')].map((card) => card.textContent)`);
	same('cards', cards.length, 2);
	for (const text of ['the host memory is not pinned', 'pageable-copy', '5 calls copied', 'train.cu:212', '150.0 ms', '140.0 ms', 'Pin the buffer'])
		that(`the first card has "${text}"`, cards[0].toLowerCase().includes(text.toLowerCase()), cards[0]);
	const run = await textOf(chromium, '#run');
	for (const text of ['train', '400.0 ms', 'node7'])
		that(`what was run has "${text}"`, run.includes(text), run);
	const widths = await chromium.eval(`[...document.querySelectorAll('#gpus .bar')].map((bar) => [...bar.children].map((part) => parseFloat(part.style.width)))`);
	same('GPU 0: worked, and its causes', widths[0], [62.5, 17.5, 15, 5]);
	that('GPU 1: all of its time', Math.abs(widths[1].reduce((sum, part) => sum + part) - 100) < 0.01, widths[1]);
	same('what NVML says of GPU 0, and nothing of GPU 1', await chromium.eval(`[...document.querySelectorAll('#gpus .gpu')].map((gpu) => gpu.querySelector('.nvml')?.textContent.split('; ')[1] ?? null)`),
		['clock 1485 of 1980 MHz, slowed by its power limit for 50 % of the time', null]);
	const seen = await chromium.eval(`[...document.querySelectorAll('.show-me')].map((button) => button.getBoundingClientRect().bottom <= innerHeight)`);
	that('findings are on the first screen', seen[0], seen);
}

/* ---- show me, arrows, details ------------------------------------------------------------------------ */

async function showMe(chromium) {
	await chromium.eval(`document.querySelectorAll('.show-me')[1].click()`);
	await still(chromium);
	const now = await view(chromium);
	that('the moment is seen', visible(140 * MS, 204 * MS, now), now);
	that('and not all', now.to - now.from < 300 * MS, now);
	same('the call is chosen', [now.selected.lane, now.selected.kind, now.selected.title], [SAVER, 'calls', 'cudaMalloc']);
	const drawn = (await arrows(chromium)).filter((one) => one.kind === 'holder');
	same('the chain: saver, loader, main', drawn.map((one) => [one.from, one.to, one.at]), [[SAVER, LOADER, 202 * MS], [LOADER, MAIN, 200 * MS]]);
	that('the root is named', drawn[1].root?.includes('cudaMemcpyAsync: hidden GPU waits'), drawn[1].root);
	const details = await textOf(chromium, '.details');
	for (const text of ['saver', '64.00 ms', '2.000 ms', 'L2', 'L1', 'root: cudaMemcpyAsync: hidden GPU waits', 'main'])
		that(`details have "${text}"`, details.includes(text), details);
	that('the timeline is on the screen', await chromium.eval(`document.querySelector('#timeline-section canvas').getBoundingClientRect().top < innerHeight`));
}

async function details(chromium) {
	await chromium.key('0', '0');
	await still(chromium);
	await clickItem(chromium, {lane: MAIN, kind: 'calls', i: 1});
	same('a click chooses', (await view(chromium)).selected?.title, 'cudaMemcpyAsync');
	const text = await textOf(chromium, '.details');
	for (const part of ['100.0 ms', '40.00 us', 'train.cu:212', 'hidden GPU waits 99.00 ms', 'Who waited for it', 'loader', 'load_batch'])
		that(`details of main's copy have "${part}"`, text.includes(part), text);
	await clickItem(chromium, {lane: STREAM, kind: 'ops', i: 0});
	const submitted = await arrows(chromium);
	same('an operation leads to who submitted it', submitted.filter((one) => one.kind === 'submitted').map((one) => [one.from, one.to, one.at]), [[STREAM, MAIN, 11 * MS]]);
	await clickItem(chromium, {lane: GPU, kind: 'looks', i: 0});
	const look = await textOf(chromium, '.details');
	for (const part of ['a kernel ran for 30 % of the time, clock 990 of 1980 MHz, slowed by its power limit', 'mean of', '200.0 ms', '312 W', '64 °C'])
		that(`details of what NVML says have "${part}"`, look.includes(part), look);
	await clickItem(chromium, {lane: MAIN, kind: 'gaps', i: 0});
	that('a gap says what it was', (await textOf(chromium, '.details')).includes('computing on a CPU'));
	await clickItem(chromium, {lane: MAIN, kind: 'ranges', i: 1});
	same('a range is chosen', (await view(chromium)).selected.title, 'load');
	await press(chromium, '.details', 'Copy');
	that('details are copied', (await chromium.eval('cudaspy.copied()')).startsWith('load\n'));
}

/* What a track shows of GPU 0 in 100 ms each: ns by category, as docs/HTML_REPORT.md numbers them; then how many pixels are of the ink. */
async function nvmlTracks(chromium) {
	const shares = (depth) => chromium.eval(`(() => {
		const series = cudaspy.model.seriesOf(${GPU}, 'looks', ${depth});
		const out = new Float64Array(4 * series.categories);
		series.columns(0, ${100 * MS}, 4, out, 1e9, []);
		return [0, 1, 2, 3].map((x) => Object.fromEntries(series.present.map((category, place) => [category, Math.round(out[x * series.categories + place] / ${MS})])));
	})()`);
	same('utilisation', await shares(0), [{0: 30, 3: 70}, {0: 30, 3: 70}, {0: 90, 3: 10}, {0: 45, 3: 5}]);
	same('clock, and where it was slowed', await shares(1), [{2: 50, 3: 50, 1: 0}, {2: 50, 3: 50, 1: 0}, {2: 0, 3: 0, 1: 100}, {2: 0, 3: 0, 1: 50}]);
	await chromium.key('0', '0');
	await still(chromium);
	const green = await chromium.eval(`(() => {
		const canvas = document.querySelector('#timeline-section canvas');
		const scale = canvas.width / canvas.clientWidth;
		const {top, bottom} = cudaspy.box({lane: ${GPU}, kind: 'looks', i: 0});
		const copy = new OffscreenCanvas(1, Math.round((bottom - top) * scale)).getContext('2d', {willReadFrequently: true});
		const ink = getComputedStyle(document.querySelector('.ink-work')).backgroundColor.match(/[0-9]+/g).slice(0, 3).map(Number);
		return [0, 1].map((i) => {
			const {left, right} = cudaspy.box({lane: ${GPU}, kind: 'looks', i});
			copy.drawImage(canvas, Math.round((left + right) / 2 * scale), Math.round(top * scale), 1, copy.canvas.height, 0, 0, 1, copy.canvas.height);
			const {data} = copy.getImageData(0, 0, 1, copy.canvas.height);
			let n = 0;
			for (let at = 0; at < data.length; at += 4)
				n += ink.every((part, c) => Math.abs(part - data[at + c]) < 3) ? 1 : 0;
			return n / copy.canvas.height;
		});
	})()`);
	that('as high as the utilisation', Math.abs(green[0] - 0.3) < 0.1 && Math.abs(green[1] - 0.9) < 0.1, green);
}

/* ---- keys, search, measuring ------------------------------------------------------------------------- */

async function keys(chromium) {
	await chromium.eval(`document.querySelector('#timeline-section canvas').focus()`);
	await chromium.key('Escape');
	await chromium.key('0', '0');
	await still(chromium);
	same('Escape lets go', (await view(chromium)).selected, null);
	const walk = [];
	for (let step = 0; step < 4; step++) {
		await chromium.key('.');
		walk.push((await view(chromium)).selected);
	}
	same('full stop walks through calls', walk.map((one) => [one.lane, one.i]), [[MAIN, 0], [MAIN, 1], [MAIN, 2], [MAIN, 2]]);
	await chromium.key(',');
	same('comma goes back', (await view(chromium)).selected.i, 1);
	await chromium.key('j');
	same('J goes to the lane below', [(await view(chromium)).selected.lane, (await view(chromium)).selected.i], [LOADER, 1]);
	await chromium.key('l');
	same('L shows that lane alone', (await view(chromium)).lanes, [LOADER]);
	await chromium.key('l');
	same('and all of them', (await view(chromium)).lanes.length, 5);
	await chromium.key('k');
	same('K goes to the lane above', [(await view(chromium)).selected.lane, (await view(chromium)).selected.i], [MAIN, 1]);
	const before = await view(chromium);
	await chromium.key('w');
	const near = await view(chromium);
	that('W zooms in', near.to - near.from < before.to - before.from, [before, near]);
	await chromium.key('d');
	that('D moves on', (await view(chromium)).from > near.from);
	await chromium.key('f');
	await still(chromium);
	that('F fits what is chosen', visible(100 * MS, 200 * MS, await view(chromium)));
	await chromium.key('m');
	same('M measures what is chosen', (await view(chromium)).measure, {a: 100 * MS, b: 200 * MS});
	await still(chromium);
	that('the length is said', (await textOf(chromium, '.said')).includes('100.0 ms'));
	await chromium.key('Escape');
	await still(chromium);
	same('and no more', await textOf(chromium, '.said'), '');
	/* Everything that can be used can be reached by Tab, and shows that it has the focus. */
	const reached = await chromium.eval(`(() => {
		const able = [...document.querySelectorAll('a[href], button, input, select, canvas, summary, [tabindex="0"]')].filter((one) => one.getClientRects().length);
		return able.filter((one) => one.tabIndex < 0 || !(one.getAttribute('aria-label') || one.title || one.textContent.trim() || one.labels?.length)).map((one) => one.outerHTML.slice(0, 120));
	})()`);
	same('elements without a name, or out of reach', reached, []);
	await chromium.eval('document.activeElement.blur()');
	await chromium.key('Tab');
	that('the focus is seen', await chromium.eval(`getComputedStyle(document.activeElement).outlineStyle === 'solid'`));
}

async function search(chromium) {
	const found = async (text) => {
		await chromium.eval(`(() => { const input = document.querySelector('.search input'); input.focus(); input.value = ${JSON.stringify(text)}; })()`);
		await chromium.key('Enter');
		await still(chromium);
		return [(await view(chromium)).selected?.title, await textOf(chromium, '.matches')];
	};
	same('a function', await found('cudafree'), ['cudaFree', '1 of 1']);
	same('a lock', await found('L2'), ['wait for L2', '1 of 1']);
	same('a range', await found('epoch 2'), ['epoch 2', '1 of 1']);
	same('a site', await found('train.cu:212'), ['cudaMemcpyAsync', '1 of 1']);
	same('a kernel', await found('gemm'), ['gemm_kernel<float>', '1 of 1']);
	same('a thread', (await found('saver'))[1], '1 of 1');
	const all = (await found('cudaMalloc'))[1];
	same('several', all, '1 of 2');
	await chromium.key('Enter');
	await still(chromium);
	same('the next one', [(await view(chromium)).selected.lane, await textOf(chromium, '.matches')], [SAVER, '2 of 2']);
	await found('nothing of that name');
	same('nothing', await textOf(chromium, '.matches'), 'nothing');
	await chromium.key('Escape');
}

async function mouse(chromium) {
	await press(chromium, '#timeline-section', 'All');
	await still(chromium);
	const corner = await canvasAt(chromium);
	const [left, right, y] = [corner.x + corner.width - 600, corner.x + corner.width - 400, corner.y + 12];
	await chromium.mouse('mousePressed', left, y, {modifiers: 8});
	await chromium.mouse('mouseMoved', right, y, {modifiers: 8, buttons: 1});
	await chromium.mouse('mouseReleased', right, y, {modifiers: 8});
	const {measure, from, to} = await view(chromium);
	const step = (to - from) / (await chromium.eval('cudaspy.plotWidth()'));
	that('Shift and a drag measure', measure && Math.abs(measure.b - measure.a - 200 * step) < 2 * step, [measure, step]);
	await chromium.mouse('mouseWheel', left, y + 40, {deltaX: 0, deltaY: -200, modifiers: 2});
	const zoomed = await view(chromium);
	that('Ctrl and the wheel zoom', zoomed.to - zoomed.from < to - from);
	await chromium.mouse('mousePressed', right, y + 40);
	await chromium.mouse('mouseMoved', right - 50, y + 40, {buttons: 1});
	await chromium.mouse('mouseReleased', right - 50, y + 40);
	that('a drag moves', (await view(chromium)).from > zoomed.from);
	/* Two fingers. */
	const before = await view(chromium);
	const touch = (type, points) => chromium.send('Input.dispatchTouchEvent', {type, touchPoints: points.map(([x, id]) => ({x, y: y + 60, id}))});
	await touch('touchStart', [[left, 0], [right, 1]]);
	await touch('touchMove', [[left - 60, 0], [right + 60, 1]]);
	await touch('touchEnd', []);
	const pinched = await view(chromium);
	that('two fingers zoom', pinched.to - pinched.from < before.to - before.from, [before, pinched]);
}

/* ---- tables, matrices, distribution -------------------------------------------------------------------- */

const rows = (chromium) => chromium.eval(`[...document.querySelectorAll('#tables tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))`);
const copied = (chromium) => chromium.eval('cudaspy.copied()');

async function tables(chromium) {
	await press(chromium, '#tables', 'Calls');
	same('calls', (await rows(chromium)).map((row) => row[0]), ['cudaMemcpyAsync', 'cudaMalloc', 'cudaLaunchKernel']);
	const head = `document.querySelector('#tables th button[data-column="count"]')`;
	await chromium.eval(`${head}.click()`);
	same('sorted, the largest first', (await rows(chromium)).map((row) => row[1]), ['5', '3', '1']);
	await chromium.eval(`${head}.click()`);
	same('sorted, the smallest first', (await rows(chromium)).map((row) => row[1]), ['1', '3', '5']);
	same('said so', await chromium.eval(`${head}.closest('th').ariaSort`), 'ascending');
	await press(chromium, '#tables', 'Copy as TSV');
	const tsv = (await copied(chromium)).split('\n');
	same('copied as it is sorted', tsv.slice(0, 2), ['function\tcount\tfailed\ttotal_ns\tmedian_ns\tp99_ns\tmax_ns', `cudaLaunchKernel\t1\t0\t${MS}\t${MS}\t${MS}\t${MS}`]);
	await press(chromium, '#tables', 'cudaMalloc');
	same('a function is a filter', [(await view(chromium)).filter, (await rows(chromium)).map((row) => row[0])], ['only cudaMalloc', ['cudaMalloc']]);
	await chromium.click('#timeline-section .chip');
	same('and is none again', [(await view(chromium)).filter, (await rows(chromium)).length], ['', 3]);
	await press(chromium, '#tables', 'Threads');
	await press(chromium, '#tables', '102');
	same('a thread is a filter of the timeline', (await view(chromium)).lanes, [LOADER]);
	same('and of the table', (await rows(chromium)).map((row) => row[1]), ['102']);
	await chromium.click('#timeline-section .chip');
	same('all lanes again', (await view(chromium)).lanes.length, 5);
	await press(chromium, '#tables', 'Locks');
	same('locks', (await rows(chromium)).map((row) => row[0]), ['L1']);
}

async function matrices(chromium) {
	const cells = () => chromium.eval(`(() => {
		const columns = [...document.querySelectorAll('#waits thead th')].map((one) => one.textContent);
		return [...document.querySelectorAll('#waits tbody tr')].flatMap((row) => [...row.querySelectorAll('td')].map((cell, i) => [row.querySelector('th').textContent, columns[i], cell.textContent]).filter(([,, text]) => text));
	})()`);
	same('threads, direct', await cells(), [['loader (tid 102)', 'main (tid 101)', '90 ms'], ['saver (tid 103)', 'loader (tid 102)', '60 ms']]);
	await press(chromium, '#waits', 'At the root');
	same('threads, at the root', await cells(), [['loader (tid 102)', 'main (tid 101)', '90 ms'], ['saver (tid 103)', 'main (tid 101)', '55 ms']]);
	await press(chromium, '#waits', 'Copy as TSV');
	same('a matrix is copied', (await copied(chromium)).split('\n').slice(0, 2), ['waiter\troot\twaited_ns', `loader (tid 102)\tmain (tid 101)\t${90 * MS}`]);
	await press(chromium, '#waits', 'GPUs');
	await press(chromium, '#waits', 'Direct');
	same('GPUs', await cells(), [['GPU 0', 'GPU 0', '90 ms'], ['GPU 1', 'GPU 0', '60 ms']]);
	await press(chromium, '#waits', 'Calls');
	same('calls', await cells(), [['cudaMalloc', 'cudaMalloc', '60 ms'], ['cudaMalloc', 'cudaMemcpyAsync', '90 ms']]);
	await press(chromium, '#waits', 'Threads');
	await chromium.eval(`document.querySelector('#waits td.heat button').click()`);
	await still(chromium);
	same('a cell leads to the longest wait', (await view(chromium)).selected.title, 'wait for L1');
}

async function durations(chromium) {
	const text = await textOf(chromium, '#durations');
	that('a distribution', text.includes('expected'), text);
	const names = await chromium.eval(`[...document.querySelectorAll('#durations option')].map((one) => one.textContent)`);
	that('of each function', ['cudaMemcpyAsync', 'cudaMalloc'].every((name) => names.some((one) => one.startsWith(name))), names);
	await chromium.eval(`(() => {
		const select = document.querySelector('#durations select');
		select.value = [...select.options].find((one) => one.textContent.startsWith('cudaMalloc')).value;
		select.dispatchEvent(new Event('change'));
	})()`);
	const malloc = await textOf(chromium, '#durations');
	that('what it took and should have taken', malloc.includes('156.0 ms') && malloc.includes('4.000 ms'), malloc);
}

/* ---- how it looks --------------------------------------------------------------------------------------- */

const overflow = (chromium) => chromium.eval(`document.documentElement.scrollWidth - innerWidth`);
const lightness = (chromium) => chromium.eval(`(() => {
	const canvas = document.querySelector('#timeline-section canvas');
	const pixel = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
	pixel.drawImage(canvas, canvas.width - 2, 2, 1, 1, 0, 0, 1, 1);
	const [red, green, blue] = pixel.getImageData(0, 0, 1, 1).data;
	return [getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0), red + green + blue];
})()`);

async function looks(chromium, file) {
	await chromium.open(file, {dark: true});
	await still(chromium);
	that('dark: ground and timeline', (await lightness(chromium)).every((sum) => sum < 200), await lightness(chromium));
	quiet('dark', chromium, file);
	await press(chromium, '#top', 'Theme: auto');
	await still(chromium);
	that('light on a dark desktop', (await lightness(chromium)).every((sum) => sum > 600), await lightness(chromium));
	for (const width of [320, 400, 800]) {
		await chromium.open(file, {width, height: 800, touch: true});
		await still(chromium);
		that(`${width} pixels: nothing is wider`, await overflow(chromium) <= 0, await overflow(chromium));
		await chromium.eval(`document.querySelectorAll('.show-me')[1].click()`);
		await still(chromium);
		that(`${width} pixels, with details: nothing is wider`, await overflow(chromium) <= 0, await overflow(chromium));
		same(`${width} pixels: the chain`, (await arrows(chromium)).filter((one) => one.kind === 'holder').map((one) => [one.from, one.to]), [[SAVER, LOADER], [LOADER, MAIN]]);
		quiet(`${width} pixels`, chromium, file);
	}
	await chromium.open(file);
	await chromium.send('Emulation.setEmulatedMedia', {media: 'print', features: [{name: 'prefers-color-scheme', value: 'dark'}]});
	that('print: no buttons', await chromium.eval(`[...document.querySelectorAll('.toolbar, #top, .actions')].every((one) => one.getClientRects().length === 0)`));
	that('print: on white', (await lightness(chromium))[0] > 700);
	const {data} = await chromium.send('Page.printToPDF', {printBackground: true});
	that('print: some pages', data.length > 20000);
	/* Without motion the view is there at once. */
	await chromium.open(file, {still: true});
	await chromium.eval(`document.querySelectorAll('.show-me')[1].click()`);
	const now = await view(chromium);
	that('no motion for those who want none', !now.moving && now.to - now.from < 300 * MS, now);
	quiet('print and no motion', chromium, file);
}

async function hostile(chromium) {
	const file = made('hostile');
	await chromium.open(file);
	await chromium.eval(`document.querySelectorAll('.show-me')[0].click()`);
	await still(chromium);
	for (const tab of await chromium.eval(`[...document.querySelectorAll('#tables [role="tab"]')].map((one) => one.textContent)`))
		await press(chromium, '#tables', tab);
	quiet('hostile names', chromium, file);
	same('nothing of them runs', await chromium.eval('window.broken ?? null'), null);
	same('nothing of them is an element', await chromium.eval(`document.querySelectorAll('img, svg[onload], body script:not([type]) ~ script').length`), 0);
	that('they are shown', (await textOf(chromium, '#findings')).includes('<img src=x onerror='));
	/* Would the policy stop what nothing in the page does? */
	await chromium.eval(`(() => {
		const planted = document.createElement('div');
		planted.innerHTML = '<img src="https://example.com/x.png" onerror="window.broken = 1"><style>body { display: none }</style>';
		const script = document.createElement('script');
		script.textContent = 'window.broken = 2';
		document.body.append(planted, script);
	})()`);
	await chromium.until(`document.images[0].complete`);
	same('planted scripts do not run', await chromium.eval('window.broken ?? null'), null);
	that('planted styles do nothing', await chromium.eval(`getComputedStyle(document.body).display`) === 'block');
	same('planted images are not asked for', chromium.requests.filter((url) => !url.startsWith('file:') && !chromium.blocked.includes(url)), []);
	that('the policy says so', chromium.messages.some((text) => text.includes('Content Security Policy')), chromium.messages);
}

/* Of a program that made no calls there is a page, too; of a damaged file, a sentence. */
async function nothing(chromium) {
	const file = made('empty');
	await chromium.open(file);
	await still(chromium);
	that('nothing was found', (await textOf(chromium, '#findings')).includes('Nothing to report'));
	for (const key of ['.', 'j', 'l', 'w', 'm', 'f'])
		await chromium.key(key);
	quiet('an empty page', chromium, file);
	const damaged = join(folder, 'damaged.html');
	writeFileSync(damaged, readFileSync(made('chain'), 'utf8').replace(/(id="items">\s*.{60}).{40}/, '$1'));
	await chromium.open(damaged);
	that('a damaged file says so', (await textOf(chromium, '.failed'))?.includes('cannot be read'), await textOf(chromium, 'main'));
}

await withBrowser(new Chromium(program), async (chromium) => {
	const file = made('chain');
	await chromium.open(file);
	for (const part of [firstScreen, showMe, details, nvmlTracks, keys, search, mouse, tables, matrices, durations])
		await part(chromium);
	quiet('the page', chromium, file);
	await looks(chromium, file);
	await hostile(chromium);
	await nothing(chromium);
	console.log(howMany());
});
