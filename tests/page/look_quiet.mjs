/*
 * tests/page/look_quiet.mjs CHROMIUM PAGE TEXT...: a page that shows texts (none of those that are given as -TEXT), and nothing on
 * the console; that asks for nothing; all of whose tables can be opened. Called by tests/e2e/test_page.sh.
 */
import {resolve} from 'node:path';
import {Chromium} from './chromium.mjs';
import {howMany, press, quiet, same, textOf, that, withBrowser} from './claims.mjs';

const [program, page, ...texts] = process.argv.slice(2);

await withBrowser(new Chromium(program), async (chromium) => {
	await chromium.open(page);
	const shown = await textOf(chromium, 'main');
	for (const text of texts)
		that(`shown: ${text}`, text[0] === '-' ? !shown.includes(text.slice(1)) : shown.includes(text), shown.slice(0, 1000));
	same('images', await chromium.eval('document.images.length'), 0);
	for (const tab of await chromium.eval(`[...document.querySelectorAll('#tables [role="tab"]')].map((one) => one.textContent)`))
		await press(chromium, '#tables', tab);
	quiet('the page', chromium, resolve(page));
	console.log(howMany());
});
