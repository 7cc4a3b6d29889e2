/*
 * tests/page/picture.mjs CHROMIUM FILE OUT [OPTION...]: a picture of an HTML report, for documents and for people who change the
 * page. Options: --width=N (1280), --height=N (900), --dark, --finding=ID (what its "Show me" shows; without, the first screen),
 * --whole (all of the page). Called by tests/page/pictures.
 */
import {Chromium} from './chromium.mjs';
import {still, that, withBrowser} from './claims.mjs';

const [program, file, out, ...words] = process.argv.slice(2);
const options = Object.fromEntries(words.map((word) => [...word.slice(2).split('='), true].slice(0, 2)));
const [width, height] = [Number(options.width || 1280), Number(options.height || 900)];

await withBrowser(new Chromium(program), async (chromium) => {
	await chromium.open(file, {width, height, dark: Boolean(options.dark), touch: width < 600, still: true});
	await chromium.until('cudaspy.marks().all !== undefined');
	if (options.finding) {
		const found = await chromium.eval(`(() => {
			const card = [...document.querySelectorAll('.card')].find((one) => one.querySelector('code').textContent === ${JSON.stringify(options.finding)});
			card?.querySelector('.show-me')?.click();
			return Boolean(card);
		})()`);
		that(`there is a finding ${options.finding}`, found);
		await still(chromium);
	}
	await chromium.shot(out, Boolean(options.whole));
	that('nothing on the console', chromium.messages.length === 0, chromium.messages);
});
