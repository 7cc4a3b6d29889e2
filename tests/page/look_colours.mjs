/*
 * tests/page/look_colours.mjs MODULES CSS: the page's colours for people who see some of them alike (protanopia, deuteranopia,
 * tritanopia, simulated by the matrices of Machado, Oliveira and Fernandes, 2009), light and dark: any two inks of calls differ
 * in lightness or hue, or in their patterns; labels can be read on all inks, and text on its ground (WCAG's contrast). Needs
 * no browser. Called by tests/e2e/test_page.sh.
 */
import {readFileSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {howMany, that} from './claims.mjs';

const {inkOf, isDark, PATTERNS} = await import(pathToFileURL(resolve(join(process.argv[2], 'palette.js'))));
const css = readFileSync(process.argv[3], 'utf8');
const BUCKETS = ['own', 'loading', 'gpu_intended', 'gpu_hidden', 'lock', 'ioctl', 'queue', 'mps', 'not_running', 'unexplained'];
const OPS = ['work', 'copy', 'set', 'unknown'];
const EYES = {
	usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
	protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
	deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
	tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
};
const JUST_SEEN = 11; /* CIE76; 2.3 is what can just be told in the laboratory */

/* A property of the style sheet in a theme, as red, green and blue, linear, 0 to 1. */
function colour(name, dark) {
	const value = new RegExp(`--${name}: *([^;]+);`).exec(css)?.[1];
	const both = /^light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)$/.exec(value);
	const hex = both ? both[dark ? 2 : 1] : value;
	that(`--${name} is a colour`, /^#[0-9a-f]{6}$/.test(hex), value);
	return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
}

const seenBy = (eyes, rgb) => EYES[eyes].map((row) => Math.min(1, Math.max(0, row.reduce((sum, factor, i) => sum + factor * rgb[i], 0))));
const light = ([red, green, blue]) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;
const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);

function lab([red, green, blue]) {
	const f = (t) => t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116;
	const [x, y, z] = [(0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505, light([red, green, blue]), (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089].map(f);
	return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const apart = (a, b) => Math.hypot(...lab(a).map((part, i) => part - lab(b)[i]));

for (const dark of [false, true]) {
	const theme = dark ? 'dark' : 'light';
	for (const [ground, ...texts] of [['panel', 'text', 'faint', 'accent', 'problem', 'note', 'arrow'], ['back', 'text', 'faint', 'accent', 'problem'], ['gutter', 'text', 'faint'], ['accent', 'on-accent'], ['text', 'panel']])
		for (const text of texts)
			that(`${theme}: --${text} on --${ground}`, contrast(colour(text, dark), colour(ground, dark)) >= 4.5, contrast(colour(text, dark), colour(ground, dark)).toFixed(2));
	for (const inks of [BUCKETS.map(inkOf), OPS])
		for (const eyes of Object.keys(EYES))
			inks.forEach((a, i) => inks.slice(i + 1).forEach((b) => {
				const difference = apart(seenBy(eyes, colour(a, dark)), seenBy(eyes, colour(b, dark)));
				that(`${theme}, ${eyes}: ${a} and ${b}`, difference >= JUST_SEEN || String(PATTERNS[a]) !== String(PATTERNS[b]), `${difference.toFixed(1)} apart, and alike in pattern`);
			}));
	for (const ink of new Set([...BUCKETS.map(inkOf), ...OPS, 'rank', 'host', 'io', 'sleep', 'range0', 'range1', 'range2', 'range3', 'range4', 'range5'])) {
		const ground = colour(ink, dark);
		const bytes = ground.map((part) => 255 * (part <= 0.0031308 ? part * 12.92 : 1.055 * part ** (1 / 2.4) - 0.055));
		const ratio = contrast(colour(isDark(bytes) ? 'label-light' : 'label-dark', dark), ground);
		that(`${theme}: labels on ${ink}`, ratio >= 4.5, ratio.toFixed(2));
	}
}
console.log(howMany());
process.exit(howMany().endsWith(' 0 wrong') ? 0 : 1);
