/*
 * tests/page/shots.mjs CHROMIUM FILE OUT: pictures of a report for people to look at: light, dark and 400 pixels wide, with
 * the first finding shown in the timeline.
 */
import {Chromium} from './chromium.mjs';

const [program, file, out] = process.argv.slice(2);
const chromium = new Chromium(program);
await chromium.start();
for (const [name, how] of [['light', {}], ['dark', {dark: true}], ['phone', {width: 400, height: 800}]]) {
	await chromium.open(file, how);
	const height = await chromium.eval('document.documentElement.scrollHeight');
	const width = how.width || 1280;
	await chromium.shot(`${out}-${name}-first.png`, false);
	await chromium.eval('document.querySelector(".show-me")?.click()');
	await chromium.until('!cudaspy.view().moving');
	await chromium.send('Emulation.setDeviceMetricsOverride', {width, height: Math.min(6000, height + 300), deviceScaleFactor: 1, mobile: false});
	await new Promise((done) => setTimeout(done, 300));
	await chromium.shot(`${out}-${name}.png`, false);
	console.log(name, chromium.messages, chromium.requests.length, JSON.stringify(await chromium.eval('cudaspy.marks()')));
}
await chromium.stop();
