/*
 * tests/page/look_job.mjs CHROMIUM PAGE PLANTED.json RANKS: the page of a job's digests: whoever was planted (gendigest) is named
 * first, with its host; all ranks are there; and on a phone the page is no wider than the screen, nor is text cut off.
 * Called by tests/e2e/test_page.sh.
 */
import {readFileSync} from 'node:fs';
import {resolve} from 'node:path';
import {Chromium} from './chromium.mjs';
import {howMany, quiet, same, that, withBrowser} from './claims.mjs';

const [program, page, planted, ranks] = process.argv.slice(2);
const table = (title) => `[...document.querySelectorAll('section')].find((one) => one.querySelector('h2').textContent.startsWith('${title}'))`;

await withBrowser(new Chromium(program), async (chromium) => {
	for (const width of [1280, 400]) {
		await chromium.open(page, {width, touch: width < 600});
		const differences = await chromium.eval(`${table('DIFFERENT')}.innerText`);
		for (const {who} of JSON.parse(readFileSync(planted)).planted)
			that(`${who} is named`, differences.includes(who), differences);
		that('hosts are named', /node\d+/.test(differences));
		same('ranks', await chromium.eval(`${table('RANKS')}.querySelectorAll('tr.first').length`), Number(ranks));
		same(`wider than ${width}`, await chromium.eval('document.documentElement.scrollWidth > document.documentElement.clientWidth'), false);
		same(`outside of ${width}`, await chromium.eval(`[...document.querySelectorAll('h1, h2, p, .facts td, .below')].filter((one) =>
			one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.textContent.slice(0, 60))`), []);
		same(`numbers in several lines at ${width}`, await chromium.eval(`[...document.querySelectorAll('td.number')].filter((one) =>
			one.getBoundingClientRect().height > 0 && getComputedStyle(one).whiteSpace !== 'nowrap').length`), 0);
		quiet('the page', chromium, resolve(page));
	}
	console.log(howMany());
});
