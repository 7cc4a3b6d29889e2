/*
 * overview.js: the first screen: what was run, how the GPUs' time was spent, and the findings as cards, each with the way
 * to its worst moment in the timeline.
 */
import {copy, el, swatch} from './dom.js';
import {count, duration, percent, plural} from './format.js';
import {inkOf} from './palette.js';

const MOST_CAUSES = 6;
const MOST_CARDS = 12;
const MOST_FOLDED = 100; /* cards, those included that are folded away */
const MOST_GPUS = 16;
const MOST_LEGENDS = 2; /* GPUs, each of which has its own */

function fact(value, term) {
	return el('div', {class: 'fact'}, el('b', {}, value), el('span', {}, term));
}

/* "2026-11-25 13:29", where the reader is. */
function when(seconds) {
	return seconds > 0 ? new Date(seconds * 1000).toLocaleString('sv-SE', {dateStyle: 'short', timeStyle: 'short'}) : null;
}

/* What it comes to, in one sentence for somebody who never saw such a report. */
function verdict({summary = {}, waits = {}, findings = []}) {
	const [worst] = findings.filter((one) => one.severity === 'problem');
	const lost = waits.lost_ns > 0 ? `Threads spent ${duration(waits.total_ns)} inside CUDA calls; ${duration(waits.lost_ns)} of it (${percent(waits.lost_ns, waits.total_ns)}) was spent waiting for something that the calls did not need. ` : '';
	const problems = summary.problems ?? findings.filter((one) => one.severity === 'problem').length;
	return el('p', {class: 'verdict'}, lost, problems ? `${plural(problems, 'problem')} found; the first ${worst?.cost_ns === null || worst?.cost_ns === undefined ? '' : `costs ${duration(worst.cost_ns)}: `}${worst?.title}.` : summary.found ? `Found ${summary.found}.` : 'No sure problem was found.');
}

/* What the text begins with, where there is something to say: how far the rest of the page can be trusted. */
const CAVEATS = [['recorded', 'Recorded'], ['failures', 'Failed'], ['ended', 'Ended'], ['several_runs', 'Note'], ['unread', 'Files']];

function caveats(summary, losses) {
	const said = CAVEATS.filter(([key]) => summary[key]).map(([key, term]) => [`${term}: ${summary[key]}`, key === 'recorded' && summary.windows > 0]);
	const lost = losses.map((loss) => [loss.text || `${loss.process}: ${loss.kind}`, false]);
	const all = [...said, ...lost];
	return all.length ? el('ul', {class: 'caveats'}, all.map(([text, meant]) => el('li', {class: meant ? 'hint' : 'losses'}, text))) : null;
}

/* What was run, and a line of figures. */
export function runSummary(report) {
	const {summary = {}, hosts = [], losses = [], only, recording_cost: costs = []} = report;
	const cost = costs.find(({kind, sentence}) => kind === 'all' && sentence);
	const said = [when(summary.began_unix_s), hosts.length === 1 ? `on ${hosts[0].host}` : hosts.length ? `on ${plural(hosts.length, 'host')}` : null].filter((text) => text).join(' ');
	return el('section', {id: 'run', 'aria-label': 'What was run'}, el('h1', {}, summary.program || 'A recording'),
		summary.command ? el('p', {class: 'command'}, el('code', {}, summary.command), el('span', {class: 'hint'}, ` ${said}`)) : said ? el('p', {class: 'hint command'}, said) : null,
		el('div', {class: 'facts'}, fact(duration(summary.duration_ns), 'traced'), fact(count(summary.processes), summary.processes === 1 ? 'process' : 'processes'),
			fact(count(summary.threads), summary.threads === 1 ? 'thread' : 'threads'), report.gpus?.length ? fact(count(new Set(report.gpus.map((gpu) => gpu.device)).size), 'GPUs used') : null,
			report.ranks?.length > 1 ? fact(count(report.ranks.length), 'ranks') : null, fact(count(summary.calls), 'CUDA calls')),
		verdict(report),
		cost ? el('p', {class: 'hint'}, `Overhead: ${cost.sentence}.`) : null,
		summary.besides ? el('p', {class: 'hint'}, `Besides: ${summary.besides}.`) : null,
		only ? el('p', {class: 'losses'}, 'Only a part of the recording: ', el('code', {}, (only.options || []).map(({option, value}) => `--${option}=${value}`).join(' ')),
			`. Left out: ${plural(only.left_out, 'call')}, ${duration(only.left_out_ns)}.${only.not_limited ? ` Not limited by it: ${only.not_limited}.` : ''}`) : null,
		caveats(summary, losses));
}

/* ---- the GPUs' time ------------------------------------------------------------------------- */

/* What a GPU's time went into: {whole, pieces: [{ink, ns, text}]}, the first is what it worked. */
function gpuPieces(gpu) {
	const exact = gpu.busy_known === 'exact';
	const whole = Math.max(1, exact ? gpu.known_ns : gpu.work_ns);
	const causes = new Map();
	for (const {cause, name, ns} of gpu.idle_causes || [])
		causes.set(cause, {ink: inkOf(cause), text: `idle: ${name}`, ns: ns + (causes.get(cause)?.ns || 0)});
	const sorted = [...causes.values()].sort((a, b) => b.ns - a.ns);
	const rest = sorted.slice(MOST_CAUSES).reduce((sum, {ns}) => sum + ns, 0);
	return {whole, pieces: [{ink: 'work', ns: gpu.busy_ns, text: exact ? 'worked' : 'certainly worked'}, ...sorted.slice(0, MOST_CAUSES),
		{ink: 'unknown', ns: rest, text: 'idle: other causes'},
		{ink: 'nothing', ns: Math.max(0, whole - gpu.busy_ns - gpu.idle_ns), text: exact ? 'not known' : 'worked or idle: unknown'}].filter(({ns}) => ns > 0)};
}

function pieceLegend({ink, ns, text}, whole) {
	return el('li', {}, swatch(ink), `${text} `, el('b', {}, percent(ns, whole)), el('span', {class: 'hint'}, ` ${duration(ns)}`));
}

/* One GPU's row; with what its pieces are, if there is room. */
function gpuRow(gpu, withLegend) {
	const {whole, pieces} = gpuPieces(gpu);
	const bar = el('div', {class: 'bar tall', role: 'img', 'aria-label': `GPU ${gpu.device}: ${pieces.map(({text, ns}) => `${text} ${percent(ns, whole)}`).join(', ')}`},
		pieces.map(({ink, ns, text}) => {
			const part = el('span', {class: `ink-${ink}`, title: `${text}: ${duration(ns)}, ${percent(ns, whole)}`});
			part.style.width = `${Math.min(100, 100 * ns / whole)}%`;
			return part;
		}));
	const idle = gpu.idle_ns >= whole / 1000 ? `idle ${percent(gpu.idle_ns, whole)}${gpu.busy_known === 'exact' ? '' : ' or more'}` : '';
	const worked = gpu.busy_ns > 0 ? `worked ${percent(gpu.busy_ns, whole)}${gpu.busy_known === 'exact' ? '' : ' or more'}` : '';
	return el('div', {class: 'gpu'}, el('div', {class: 'gpu-row'},
		el('div', {class: 'gpu-name', title: `GPU ${gpu.device} ${gpu.name || ''}, ${gpu.process === 'several' ? 'several processes' : gpu.process || ''}`}, el('b', {}, `GPU ${gpu.device}`), el('span', {class: 'hint'}, ` ${gpu.name || ''}${gpu.process === 'several' || !gpu.process ? '' : `, ${gpu.process}`}`)), bar,
		el('div', {class: 'gpu-says'}, [worked, idle].filter((text) => text).join(', '))),
	withLegend ? el('ul', {class: 'legend'}, pieces.map((piece) => pieceLegend(piece, whole))) : null,
	withLegend && (gpu.unknown || gpu.times) ? el('p', {class: 'hint'}, [gpu.unknown, gpu.times].filter((text) => text).join('; ')) : null,
	gpu.nvml ? el('p', {class: 'hint nvml'}, gpu.nvml) : null);
}

/* Of all of them together. */
function sharedLegend(gpus) {
	const sums = new Map();
	let all = 0;
	for (const {whole, pieces} of gpus.map(gpuPieces)) {
		all += whole;
		for (const {ink, ns, text} of pieces)
			sums.set(text, {ink, text, ns: ns + (sums.get(text)?.ns || 0)});
	}
	return el('ul', {class: 'legend', 'aria-label': 'All GPUs together'}, el('li', {class: 'legend-head'}, 'All together'), [...sums.values()].sort((a, b) => b.ns - a.ns).map((piece) => pieceLegend(piece, all)));
}

export function gpuTime(report) {
	const gpus = report.gpus || [];
	if (!gpus.length)
		return null;
	const known = gpus.filter((gpu) => gpu.nvml || gpu.busy_ns + gpu.idle_ns > 0.001 * gpu.work_ns);
	const few = known.length <= MOST_LEGENDS;
	const rows = known.map((gpu) => gpuRow(gpu, few));
	const silent = gpus.length - known.length;
	return el('section', {id: 'gpus', 'aria-label': 'The GPUs\' time'}, el('h2', {}, gpus.length === 1 ? 'The GPU’s time' : 'The GPUs’ time'), rows.slice(0, MOST_GPUS),
		rows.length > MOST_GPUS ? el('details', {}, el('summary', {}, plural(rows.length - MOST_GPUS, 'more GPU')), rows.slice(MOST_GPUS)) : null,
		!few ? sharedLegend(known) : null,
		silent ? el('p', {class: 'hint'}, `When ${silent === gpus.length ? `the ${plural(silent, 'GPU')}` : `${plural(silent, 'other GPU')}`} worked, the program's calls do not tell: `, el('code', {}, 'cudaspy run --gpu'), ' measures it.') : null);
}

/* ---- ranks ------------------------------------------------------------------------------------ */

/*
 * Who waited and who was waited for, as bars up and down, a rank beside the other: one that holds the others up sticks out.
 * choose(rank) goes to it.
 */
export function rankTime(report, choose) {
	const ranks = [...(report.ranks || [])].sort((a, b) => a.rank - b.rank);
	const most = (key) => Math.max(0, ...ranks.map((rank) => rank[key] || 0));
	if (ranks.length < 2 || !(most('wait_ns') > 0))
		return null;
	const bars = (key, ink, text) => el('div', {class: 'rank-bars', 'aria-hidden': 'true'}, el('span', {class: 'rank-scale'}, el('b', {}, duration(most(key))), ` ${text}`), el('div', {class: 'rank-columns'}, ranks.map((rank) => {
		const bar = el('span', {class: `ink-${ink}`});
		bar.style.height = `${100 * (rank[key] || 0) / Math.max(1, most(key))}%`;
		return el('span', {class: 'rank-column', title: `rank ${rank.rank}: waited ${duration(rank.wait_ns)} for others; others' GPUs waited ${duration(rank.caused_ns)} for it`, onclick: () => choose(rank.rank)}, bar);
	})));
	const worst = [...ranks].sort((a, b) => (b.caused_ns || 0) - (a.caused_ns || 0)).slice(0, 3).filter((rank) => rank.caused_ns > 0);
	return el('section', {id: 'ranks', 'aria-label': 'Ranks'}, el('h2', {}, 'Ranks'),
		bars('wait_ns', 'rank', 'at most that a rank waited for others in collectives'), bars('caused_ns', 'lock', 'at most that all others together waited for a rank'),
		el('p', {class: 'hint'}, `From rank ${ranks[0].rank} to rank ${ranks.at(-1).rank}. Waited for most: `, worst.flatMap((rank, i) => [i ? ', ' : '', el('button', {type: 'button', class: 'link', onclick: () => choose(rank.rank)}, `rank ${rank.rank}`),
			` (${duration(rank.caused_ns)}, last in ${rank.last_count} of ${plural(rank.timed, 'collective')})`]), '.'));
}

/* ---- findings ----------------------------------------------------------------------------------- */

/* A title is a sentence: it begins with a capital, unless that is a function's name. */
function sentence(text) {
	return /^[a-z]+[ ,:]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
}

function price(finding) {
	const known = finding.gain_high_ns !== null && finding.gain_high_ns !== undefined;
	return el('div', {class: 'price'}, el('div', {}, el('b', {}, finding.cost_ns === null ? '?' : duration(finding.cost_ns)), el('span', {}, 'cost')),
		el('div', {}, el('b', {}, known ? duration(finding.gain_high_ns) : '?'), el('span', {}, known && finding.gain_low_ns < finding.gain_high_ns * 0.99 ? `gain at most; ${duration(finding.gain_low_ns)} at least` : 'gain')),
		finding.idle_gpu_ns > 0 ? el('div', {}, el('b', {}, duration(finding.idle_gpu_ns)), el('span', {}, 'GPU idle')) : null);
}

function card(finding, number, moment, showMe) {
	const words = [`${finding.id}: ${finding.title}`, finding.what, finding.where, finding.fix, finding.otherwise].filter((text) => text).join('\n');
	return el('article', {class: `card ${finding.severity}`, 'aria-label': `Finding ${number}: ${finding.title}`},
		el('header', {}, el('span', {class: 'number'}, String(number)), el('div', {}, el('h3', {}, sentence(finding.title)), el('code', {}, finding.id), ' ', el('span', {class: 'severity'}, finding.severity))),
		price(finding), finding.what ? el('p', {}, finding.what) : null,
		finding.where ? el('p', {class: 'where'}, finding.where) : null, finding.python ? el('p', {class: 'where'}, finding.python) : null,
		finding.fix ? el('p', {class: 'cure'}, el('b', {}, 'Cure: '), finding.fix, finding.otherwise ? ` ${finding.otherwise}` : '') : null, finding.suppressed ? el('p', {class: 'hint'}, `Suppressed: ${finding.suppressed}`) : null,
		el('p', {class: 'actions'}, moment ? el('button', {type: 'button', class: 'primary show-me', 'aria-label': `Show me finding ${number} in the timeline`, onclick: () => showMe(moment)}, 'Show me') : null,
			el('button', {type: 'button', onclick: (event) => copy(`${words}\n`, event.target)}, 'Copy'), el('code', {class: 'hint explain'}, `cudaspy explain ${finding.id}`)));
}

/* showMe(moment) goes there. */
export function findingCards(report, timeline, showMe) {
	const findings = (report.findings || []).filter((finding) => finding.severity !== 'minor');
	const minor = (report.findings || []).length - findings.length;
	const more = findings.length - MOST_FOLDED;
	const cards = findings.slice(0, MOST_FOLDED).map((finding, i) => {
		const number = finding.rank ?? i + 1;
		return card(finding, number, timeline.moments.find((moment) => moment.finding === number), showMe);
	});
	return el('section', {id: 'findings', 'aria-label': 'Findings'}, el('h2', {}, 'Findings'),
		cards.length ? el('div', {class: 'cards'}, cards.slice(0, MOST_CARDS)) : el('p', {}, 'Nothing to report: no finding costs enough.'),
		cards.length > MOST_CARDS ? el('details', {}, el('summary', {}, `${cards.length - MOST_CARDS} more`), el('div', {class: 'cards'}, cards.slice(MOST_CARDS))) : null,
		more > 0 ? el('p', {class: 'hint'}, `${plural(more, 'more finding')}, which cost less, in the table of sites.`) : null,
		minor ? el('p', {class: 'hint'}, `${plural(minor, 'minor finding')} left out: cudaspy why N shows one, cudaspy report --format=json has all.`) : null);
}
