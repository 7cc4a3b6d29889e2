/*
 * palette.js: inks: a colour of the style sheet and a pattern, for each thing that time goes into. Colours are those of
 * Okabe and Ito, which people tell apart whatever their eyes; the patterns tell them apart without any colour. The same
 * inks have CSS classes (page.css: ink-NAME).
 */

/* By the keys of the timeline's buckets, causes and kinds; what is not here is `unknown`. */
const INKS = {
	own: 'own', loading: 'loading', gpu_intended: 'gpu', gpu_hidden: 'hidden', lock: 'lock', ioctl: 'kernel', queue: 'queue',
	mps: 'mps', not_running: 'parked', unexplained: 'unknown',
	python: 'host', cpu: 'host', gil: 'lock', sleep: 'sleep', pipe: 'io', socket: 'io', file: 'io', loader: 'io', join: 'sleep',
	'not-running': 'parked', launch: 'own', 'cuda-call': 'own', 'cuda-lock': 'lock', 'cuda-wait': 'gpu', 'gpu-query': 'gpu', 'kernel-module': 'kernel',
	'code-loading': 'loading', dependency: 'gpu', collective: 'rank', 'gpu-work': 'hidden', 'nothing-to-do': 'sleep',
	mutex: 'lock', rwlock: 'lock', spin: 'lock', condition: 'lock', cond: 'lock', semaphore: 'lock', futex: 'lock',
};
const RANGE_INKS = ['range0', 'range1', 'range2', 'range3', 'range4', 'range5'];
const OP_INKS = ['work', 'copy', 'set', 'unknown'];
const COLLECTIVE_INKS = ['rank', 'work'];
const LOOK_INKS = ['work', 'gpu', 'kernel', 'nothing'];
/* Eight bytes: the dots of eight rows. */
export const PATTERNS = {
	lock: [0x11, 0x22, 0x44, 0x88, 0x11, 0x22, 0x44, 0x88],
	hidden: [0x88, 0x44, 0x22, 0x11, 0x88, 0x44, 0x22, 0x11],
	kernel: [0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11],
	queue: [0xff, 0, 0, 0, 0xff, 0, 0, 0],
	mps: [0x11, 0, 0x44, 0, 0x11, 0, 0x44, 0],
	parked: [0x01, 0, 0, 0, 0x10, 0, 0, 0],
	unknown: [0x81, 0x42, 0x24, 0x18, 0x18, 0x24, 0x42, 0x81],
	rank: [0x0f, 0, 0, 0, 0xf0, 0, 0, 0],
	io: [0x22, 0, 0x88, 0, 0x22, 0, 0x88, 0],
	copy: [0, 0, 0xff, 0, 0, 0, 0, 0],
	loading: [0x08, 0x1c, 0x08, 0, 0, 0, 0, 0],
};

export function inkOf(key) {
	return INKS[key] || 'unknown';
}

/* Waits that have no ink of their own are waits for somebody. */
export function waitInk(kind) {
	return INKS[kind] || 'lock';
}

/* The inks of a kind's categories, in their order. */
export function inksOf(model, kind) {
	switch (kind) {
	case 'calls':
		return model.buckets.map((bucket) => inkOf(bucket.key));
	case 'waits':
		return model.wait_kinds.map((wait) => waitInk(wait.key));
	case 'gaps':
	case 'idle':
		return model.causes.map((cause) => inkOf(cause.key));
	case 'ranges':
		return RANGE_INKS;
	case 'ops':
		return OP_INKS;
	case 'looks':
		return LOOK_INKS;
	default:
		return COLLECTIVE_INKS;
	}
}

function rgb(colour) {
	const value = parseInt(colour.trim().slice(1), 16);
	return [value >> 16 & 255, value >> 8 & 255, value & 255];
}

/* Is white easier to read on it than black? Red, green and blue, 0 to 255. */
export function isDark(colour) {
	const [red, green, blue] = colour.map((part) => (part / 255) ** 2.2);
	return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.185;
}

/* As the pixels of an ImageData lie in memory on all of today's machines. */
function pixel([red, green, blue]) {
	return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
}

/* The colours of the theme that the page has now, for canvases. */
export class Palette {
	constructor() {
		const theme = document.documentElement.dataset.theme || 'auto';
		this.dark = theme === 'auto' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark';
		this.style = getComputedStyle(document.documentElement);
		this.cache = {};
	}

	/* A property of the style sheet: of light-dark(…) the one that holds now. */
	css(name) {
		return this.cache[name] ??= this.style.getPropertyValue(`--${name}`).trim()
			.replace(/^light-dark\(([^,]*),(.*)\)$/, this.dark ? '$2' : '$1').trim();
	}

	/* {plain, mark, pattern, dark} of an ink: pixels, and where `mark` goes; `dim`: hardly more than the ground. */
	ink(name, dim = false) {
		const key = `ink/${name}/${dim}`;
		if (!this.cache[key]) {
			const ground = rgb(this.css('lane'));
			const plain = rgb(this.css(name)).map((part, i) => dim ? Math.round(part * 0.25 + ground[i] * 0.75) : part);
			const dark = isDark(plain);
			const mark = plain.map((part) => Math.round(dark ? part + (255 - part) * 0.3 : part * 0.74));
			this.cache[key] = {plain: pixel(plain), mark: pixel(dim ? plain : mark), pattern: PATTERNS[name] || null, dark};
		}
		return this.cache[key];
	}

	ground() {
		return this.cache.ground ??= pixel(rgb(this.css('lane')));
	}
}
