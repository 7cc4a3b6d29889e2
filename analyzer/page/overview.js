/*
 * overview.js: the first screen: what was run, how the GPUs' time was spent, and the findings as cards, each with the way
 * to its worst moment in the timeline.
 */
import {copy, el, swatch} from './dom.js';
import {count, duration, percent, plural} from './format.js';
import {inkOf} from './palette.js';

const MOST_CAUSES = 6;
const MOST_CARDS = 12;

function fact(value, term) {
	return el('div', {class: 'fact'}, el('b', {}, value), el('span', {}, term));
}

/* What was run, in one line of figures. */
export function runSummary(report) {
	const {summary = {}, hosts = [], waits = {}, losses = []} = report;
	return el('section', {id: 'run', 'aria-label': 'What was run'}, el('h1', {}, summary.program || 'A recording'),
		el('div', {class: 'facts'}, fact(duration(summary.duration_ns), 'recorded'), fact(count(summary.processes), summary.processes === 1 ? 'process' : 'processes'),
			fact(count(summary.threads), 'threads'), fact(count(summary.calls), 'CUDA calls'), fact(duration(summary.call_ns), 'thread time in calls'),
			waits.lost_ns !== undefined ? fact(`${duration(waits.lost_ns)}`, `lost in calls: ${percent(waits.lost_ns, waits.total_ns)}`) : null,
			hosts.length ? fact(hosts.length === 1 ? hosts[0].host : count(hosts.length), hosts.length === 1 ? 'host' : 'hosts') : null),
		losses.length ? el('ul', {class: 'losses'}, losses.map((loss) => el('li', {}, loss.text || `${loss.process}: ${loss.kind}`))) : null);
}

/* One GPU: worked, idle by cause, and what is not known. */
function gpuBar(gpu) {
	const whole = Math.max(1, gpu.busy_known === 'exact' ? gpu.known_ns : gpu.work_ns);
	const bar = el('div', {class: 'bar tall', role: 'img'});
	const notes = [];
	const piece = (ink, ns, text) => {
		const part = el('span', {class: `ink-${ink}`, title: `${text}: ${duration(ns)}`});
		part.style.width = `${Math.min(100, 100 * ns / whole)}%`;
		bar.append(part);
		notes.push(el('li', {}, swatch(ink), `${text} `, el('b', {}, percent(ns, whole)), el('span', {class: 'hint'}, ` ${duration(ns)}`)));
	};
	if (gpu.busy_ns > 0)
		piece('work', gpu.busy_ns, gpu.busy_known === 'exact' ? 'worked' : 'certainly worked');
	const causes = new Map();
	for (const {cause, name, ns} of gpu.idle_causes || []) {
		const sum = causes.get(cause) || {name, ns: 0};
		causes.set(cause, {name, ns: sum.ns + ns});
	}
	const sorted = [...causes].sort((a, b) => b[1].ns - a[1].ns);
	sorted.slice(0, MOST_CAUSES).forEach(([cause, {name, ns}]) => piece(inkOf(cause), ns, `idle: ${name}`));
	const rest = sorted.slice(MOST_CAUSES).reduce((sum, [, {ns}]) => sum + ns, 0);
	if (rest > 0)
		piece('unknown', rest, 'idle: other causes');
	const unknown = whole - gpu.busy_ns - gpu.idle_ns;
	if (unknown > whole * 0.001)
		piece('nothing', unknown, gpu.busy_known === 'exact' ? 'not known' : 'worked or idle: not recorded');
	bar.setAttribute('aria-label', notes.map((note) => note.textContent).join('; '));
	return el('div', {class: 'gpu'}, el('div', {class: 'gpu-name'}, el('b', {}, `GPU ${gpu.device}`), ` ${gpu.name || ''}`, el('span', {class: 'hint'}, ` ${gpu.process || ''}`)),
		bar, el('ul', {class: 'legend'}, notes), gpu.unknown || gpu.times ? el('p', {class: 'hint'}, [gpu.unknown, gpu.times].filter((text) => text).join('; ')) : null);
}

export function gpuTime(report) {
	const gpus = report.gpus || [];
	if (!gpus.length)
		return null;
	const cards = gpus.map(gpuBar);
	return el('section', {id: 'gpus', 'aria-label': 'The GPUs\' time'}, el('h2', {}, gpus.length === 1 ? 'The GPU’s time' : 'The GPUs’ time'), cards.slice(0, 8),
		cards.length > 8 ? el('details', {}, el('summary', {}, plural(cards.length - 8, 'more GPU')), cards.slice(8)) : null);
}

function price(finding) {
	const known = finding.gain_high_ns !== null && finding.gain_high_ns !== undefined;
	return el('div', {class: 'price'}, el('div', {}, el('b', {}, finding.cost_ns === null ? '?' : duration(finding.cost_ns)), el('span', {}, 'cost')),
		el('div', {}, el('b', {}, known ? duration(finding.gain_high_ns) : '?'), el('span', {}, known && finding.gain_low_ns < finding.gain_high_ns * 0.99 ? `gain at most; ${duration(finding.gain_low_ns)} at least` : 'gain')),
		finding.idle_gpu_ns > 0 ? el('div', {}, el('b', {}, duration(finding.idle_gpu_ns)), el('span', {}, 'GPU idle')) : null);
}

function card(finding, number, moment, showMe) {
	const words = [`${finding.id}: ${finding.title}`, finding.what, finding.where, finding.fix].filter((text) => text).join('\n');
	return el('article', {class: `card ${finding.severity}`, 'aria-label': `Finding ${number}: ${finding.title}`},
		el('header', {}, el('span', {class: 'number'}, String(number)), el('div', {}, el('h3', {}, finding.title), el('code', {}, finding.id), ' ', el('span', {class: 'severity'}, finding.severity))),
		price(finding), finding.what ? el('p', {}, finding.what) : null,
		finding.where ? el('p', {class: 'where'}, finding.where) : null, finding.python ? el('p', {class: 'where'}, finding.python) : null,
		finding.fix ? el('p', {class: 'cure'}, el('b', {}, 'Cure: '), finding.fix) : null, finding.suppressed ? el('p', {class: 'hint'}, `Suppressed: ${finding.suppressed}`) : null,
		el('p', {class: 'actions'}, moment ? el('button', {type: 'button', class: 'primary show-me', 'aria-label': `Show me finding ${number} in the timeline`, onclick: () => showMe(moment)}, 'Show me') : null,
			el('button', {type: 'button', onclick: (event) => copy(`${words}\n`, event.target)}, 'Copy')));
}

/* showMe(moment) goes there. */
export function findingCards(report, timeline, showMe) {
	const findings = (report.findings || []).filter((finding) => finding.severity !== 'minor');
	const minor = (report.findings || []).length - findings.length;
	const cards = findings.map((finding, i) => {
		const number = finding.rank ?? i + 1;
		return card(finding, number, timeline.moments.find((moment) => moment.finding === number), showMe);
	});
	return el('section', {id: 'findings', 'aria-label': 'Findings'}, el('h2', {}, 'Findings'),
		cards.length ? el('div', {class: 'cards'}, cards.slice(0, MOST_CARDS)) : el('p', {}, 'Nothing to report: no finding costs enough.'),
		cards.length > MOST_CARDS ? el('details', {}, el('summary', {}, `${cards.length - MOST_CARDS} more`), el('div', {class: 'cards'}, cards.slice(MOST_CARDS))) : null,
		minor ? el('p', {class: 'hint'}, `${plural(minor, 'minor finding')} left out; cudaspy report --format=json has them.`) : null);
}
