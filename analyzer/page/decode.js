/*
 * decode.js: from the packed texts of the file to typed arrays: base64, zlib, LEB128 (docs/HTML_REPORT.md).
 * Pure but for unpack(), which main.js calls when the page has loaded.
 */

const CHUNK = 1 << 20; /* letters; a multiple of four */

function fromBase64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const binary = atob(text);
	const bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++)
		bytes[i] = binary.charCodeAt(i);
	return bytes;
}

/* The bytes of a packed text, piece by piece, so that the browser stays awake. */
export async function unpack(packed) {
	const text = /\s/.test(packed) ? packed.replace(/\s+/g, '') : packed;
	const stream = new DecompressionStream('deflate');
	const writer = stream.writable.getWriter();
	const feed = (async () => {
		for (let at = 0; at < text.length; at += CHUNK)
			await writer.write(fromBase64(text.slice(at, at + CHUNK)));
		await writer.close();
	})();
	const unpacked = new Response(stream.readable).arrayBuffer();
	await Promise.all([feed, unpacked]);
	return new Uint8Array(await unpacked);
}

/* Unsigned LEB128 numbers behind each other. */
export class Numbers {
	constructor(bytes, at, end) {
		if (at < 0 || end > bytes.length)
			throw new Error('items lie behind the end of what the file holds');
		this.bytes = bytes;
		this.at = at;
		this.end = end;
	}

	next() {
		const bytes = this.bytes;
		let byte = bytes[this.at++];
		if (byte < 128)
			return byte;
		let value = byte & 127;
		let shift = 7;
		do {
			byte = bytes[this.at++];
			value += shift < 28 ? (byte & 127) << shift : (byte & 127) * 2 ** shift;
			shift += 7;
		} while (byte >= 128 && shift < 70);
		if (this.at > this.end)
			throw new Error('an item is cut off');
		return value;
	}
}

/* Columns of each kind, in the order of the file. Names ending in 1 are one more than the value: 0 is unknown, here -1. */
const KINDS = {
	calls: ['begin', 'duration', 'name', 'count', 'where', 'about', 'expected1'],
	waits: ['begin', 'duration', 'kind', 'lock', 'holder1', 'holderCall', 'release'],
	gaps: ['begin', 'duration', 'cause', 'where', 'holder1'],
	ranges: ['begin', 'duration', 'name', 'depth'],
	ops: ['begin', 'duration', 'name', 'kind', 'from1', 'queued', 'size'],
	idle: ['begin', 'duration', 'cause', 'ns'],
	collectives: ['begin', 'duration', 'name', 'number', 'wait', 'last1', 'bytes', 'queued'],
	looks: ['begin', 'duration', 'busy1', 'clock', 'most', 'slowed', 'power', 'temperature'],
};
/* What fits into 32 bits; the others are times and sizes. */
const SMALL = new Set(['name', 'count', 'where', 'about', 'kind', 'lock', 'holder1', 'holderCall', 'cause', 'depth', 'from1', 'last1',
	'busy1', 'clock', 'most', 'slowed', 'power', 'temperature']);

/*
 * The items of a lane and kind: {n, begin, duration, …}, and of calls partStart, partKind, partNs: the parts of call i are
 * those from partStart[i] to partStart[i + 1].
 */
export function decodeItems(kind, bytes, [offset, size, n]) {
	const numbers = new Numbers(bytes, offset, offset + size);
	const names = KINDS[kind];
	const columns = names.map((name) => SMALL.has(name) ? new Int32Array(n) : new Float64Array(n));
	const parts = kind === 'calls' ? {start: new Uint32Array(n + 1), kinds: [], ns: []} : null;
	let begin = 0;
	for (let i = 0; i < n; i++) {
		begin += numbers.next();
		columns[0][i] = begin;
		for (let c = 1; c < columns.length; c++)
			columns[c][i] = numbers.next();
		if (parts) {
			for (let left = numbers.next(); left > 0; left--) {
				parts.kinds.push(numbers.next());
				parts.ns.push(numbers.next());
			}
			parts.start[i + 1] = parts.ns.length;
		}
	}
	if (numbers.at !== numbers.end)
		throw new Error(`${kind} of a lane: ${numbers.end - numbers.at} bytes are left`);
	const items = {n};
	names.forEach((name, c) => {
		if (name.endsWith('1'))
			columns[c].forEach((value, i, column) => column[i] = value - 1);
		items[name.replace(/1$/, '')] = columns[c];
	});
	if (parts)
		Object.assign(items, {partStart: parts.start, partKind: Uint8Array.from(parts.kinds), partNs: Float64Array.from(parts.ns)});
	return items;
}
