/*
 * tests/page/claims.mjs: what a test of the page says of it, and an end with status 1 if anything was not so. Also: where
 * things lie on its canvas, for clicks.
 */
let wrong = 0;
let made = 0;

export function that(what, condition, more = '') {
	made++;
	if (condition)
		return;
	wrong++;
	console.log(`FAILED: ${what}${more === '' ? '' : `: ${typeof more === 'string' ? more : JSON.stringify(more)}`}`);
}

export function same(what, got, wanted) {
	that(what, JSON.stringify(got) === JSON.stringify(wanted), `${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`);
}

export function howMany() {
	return `${made} claims, ${wrong} wrong`;
}

/* Runs a test with a browser that ends in any case. */
export async function withBrowser(chromium, test) {
	try {
		await chromium.start();
		await test(chromium);
	} catch (error) {
		wrong++;
		console.log(`FAILED: ${error.stack}`);
	} finally {
		await chromium.stop();
	}
	process.exit(wrong ? 1 : 0);
}

/* Nothing on the console, and nothing asked for but the file itself. */
export function quiet(what, chromium, file) {
	same(`${what}: messages on the console`, chromium.messages, []);
	same(`${what}: requests`, chromium.requests.map((url) => decodeURIComponent(url)), [`file://${file}`]);
}

/* The view has stopped moving, and the last frame is drawn. */
export async function still(chromium) {
	await chromium.until('!cudaspy.view().moving');
	await chromium.eval('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
}

/* Brings the canvas to where it can be clicked; its corner. */
export async function canvasAt(chromium) {
	return chromium.eval(`(() => {
		document.querySelector('#timeline-section canvas').scrollIntoView({block: 'center'});
		const {x, y, width, height} = document.querySelector('#timeline-section canvas').getBoundingClientRect();
		return {x, y, width, height};
	})()`);
}

/* A click on an item as people do it: where it is drawn. */
export async function clickItem(chromium, item) {
	const corner = await canvasAt(chromium);
	const box = await chromium.eval(`cudaspy.box(${JSON.stringify(item)})`);
	const [x, y] = [corner.x + (box.left + box.right) / 2, corner.y + (box.top + box.bottom) / 2];
	await chromium.mouse('mousePressed', x, y);
	await chromium.mouse('mouseReleased', x, y);
	await still(chromium);
}

/* The text of an element; null: there is none. */
export async function textOf(chromium, selector) {
	return chromium.eval(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? null`);
}

/* Clicks the button of that text within a part of the page. */
export async function press(chromium, within, text) {
	const found = await chromium.eval(`(() => {
		const button = [...document.querySelectorAll(${JSON.stringify(`${within} button`)})].find((one) => one.textContent.trim() === ${JSON.stringify(text)});
		button?.click();
		return Boolean(button);
	})()`);
	that(`there is a button "${text}" in ${within}`, found);
}
