/*
 * tests/page/look_ranks.mjs CHROMIUM PAGE RANK: the page of a job of several ranks, of which that one holds the others up: the
 * finding leads to a collective that waited for it, with all ranks beside each other, and the bars and the matrix show it.
 * Called by tests/e2e/test_page.sh. Prints how many ranks there are.
 */
import {resolve} from 'node:path';
import {Chromium} from './chromium.mjs';
import {press, quiet, same, still, that, withBrowser} from './claims.mjs';

const [program, page, text] = process.argv.slice(2);
const late = Number(text);

await withBrowser(new Chromium(program), async (chromium) => {
	await chromium.open(page, {still: true});
	const card = await chromium.eval(`[...document.querySelectorAll('.card')].findIndex((one) => one.querySelector('code').textContent === 'straggler-rank')`);
	that('the straggler is a finding', card >= 0);
	await chromium.eval(`document.querySelectorAll('.card')[${card}].querySelector('.show-me').click()`);
	await still(chromium);
	const {selected, lanes} = await chromium.eval('cudaspy.view()');
	same('a collective is chosen', selected?.kind, 'collectives');
	const arrows = await chromium.eval(`cudaspy.arrows().filter((one) => one.kind === 'last').map((one) => cudaspy.model.lanes[one.to].rank)`);
	same('its arrow leads to who came last', arrows, [late]);
	const ranks = await chromium.eval(`cudaspy.model.lanes.flatMap((lane, i) => lane.kind === 'rank' ? [[i, lane.rank]] : [])`);
	that('all ranks are seen beside each other', ranks.every(([lane]) => lanes.includes(lane)), lanes);
	/* The same collective, in all ranks: they end together, and begin when each came. */
	const together = await chromium.eval(`(() => {
		const {selected} = cudaspy.view();
		const {number} = cudaspy.model.items(selected.lane, 'collectives');
		return ${JSON.stringify(ranks)}.map(([lane]) => cudaspy.model.items(lane, 'collectives').number.indexOf(number[selected.i]) >= 0);
	})()`);
	that('the collective has a part in each', together.every((one) => one), together);
	const tallest = await chromium.eval(`(() => {
		const [, bars] = document.querySelectorAll('.rank-columns');
		const heights = [...bars.children].map((one) => parseFloat(one.firstChild.style.height));
		return heights.indexOf(Math.max(...heights));
	})()`);
	same('the tallest bar of those waited for', ranks[tallest]?.[1], late);
	await press(chromium, '#waits', 'Ranks');
	const heaviest = await chromium.eval(`(() => {
		const columns = [...document.querySelectorAll('#waits thead th')].map((one) => one.textContent);
		const sums = columns.map((unused, i) => [...document.querySelectorAll('#waits tbody tr')].reduce((sum, row) => {
			const title = row.querySelectorAll('td')[i].title;
			const [, number, unit] = / waited ([0-9.]+) ([a-z]+) for /.exec(title) || [null, 0, 's'];
			return sum + number * {s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9}[unit];
		}, 0));
		return columns[sums.indexOf(Math.max(...sums))];
	})()`);
	same('the column of the matrix that is waited for most', heaviest, `rank ${late}`);
	await chromium.eval(`document.querySelectorAll('.rank-columns')[1].children[${tallest}].click()`);
	await still(chromium);
	const only = await chromium.eval(`cudaspy.view().lanes.map((lane) => cudaspy.model.lanes[lane].rank)`);
	that('a bar leads to its rank alone', only.length > 0 && only.every((rank) => rank === late), only);
	quiet('the page', chromium, resolve(page));
	console.log(`${ranks.length} ranks`);
});
