/*
 * format.js: numbers as text, the same way as the analyzer's reports: four digits, and a unit. Pure.
 */

const TIME_UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us'], [1, 'ns']];

function fourDigits(value) {
	const digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
	return value.toFixed(digits);
}

/* Of nanoseconds: "104.0 ms". */
export function duration(ns) {
	if (ns === null || ns === undefined)
		return '?';
	const size = Math.abs(ns);
	for (const [unit, name] of TIME_UNITS)
		if (size >= unit * 0.99995 || unit === 1)
			return unit === 1 ? `${Math.round(ns)} ns` : `${ns < 0 ? '−' : ''}${fourDigits(size / unit)} ${name}`;
	return '0 ns';
}

/* For places with little room: "104 ms", "1.5 s". */
export function shortDuration(ns) {
	for (const [unit, name] of TIME_UNITS)
		if (ns >= unit)
			return `${ns >= 10 * unit ? Math.round(ns / unit) : Math.round(ns / unit * 10) / 10} ${name}`;
	return '0';
}

/* A time of the recording, to `step` nanoseconds exactly: "1.2345 s". */
export function clock(ns, step) {
	const [unit, name] = TIME_UNITS.find((row) => Math.abs(ns) >= row[0]) || TIME_UNITS[3];
	const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / Math.max(step, 1)) - 1e-9)));
	return `${(ns / unit).toFixed(digits)} ${name}`;
}

/* Steps of an axis: 1, 2 or 5 times a power of ten, so that at most `most` of them lie in `span`. */
export function niceStep(span, most) {
	const least = span / Math.max(1, most);
	const power = 10 ** Math.floor(Math.log10(least));
	for (const factor of [1, 2, 5])
		if (factor * power >= least)
			return Math.max(1, factor * power);
	return Math.max(1, 10 * power);
}

export function count(n) {
	return n === null || n === undefined ? '?' : Number(n).toLocaleString('en-US');
}

/* "1 call", "2 calls". */
export function plural(n, word) {
	return `${count(n)} ${word}${n === 1 ? '' : 's'}`;
}

export function bytes(n) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let unit = 0;
	while (n >= 1024 && unit < units.length - 1) {
		n /= 1024;
		unit++;
	}
	return unit === 0 ? `${n} B` : `${fourDigits(n)} ${units[unit]}`;
}

export function percent(part, whole) {
	if (!(whole > 0))
		return '0 %';
	const value = 100 * part / whole;
	return value > 0 && value < 0.1 ? '< 0.1 %' : `${value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} %`;
}
