/*
 * tests/page/fake.mjs PAGE CASE OUT: a report as `cudaspy report --format=html` writes it, with made-up data whose truth is
 * known, put into the built page. Cases: chain (three threads, one chain of waits), hostile (the same with names that
 * try to break out), ranks (64 ranks with collectives), big (10^6 calls of 64 threads), empty (a program without calls).
 */
import {readFileSync, writeFileSync} from 'node:fs';
import {deflateSync} from 'node:zlib';

export const BUCKETS = [['own', 'own work', false], ['loading', 'loading code', false], ['gpu_intended', 'intended GPU waits', false],
	['gpu_hidden', 'hidden GPU waits', true], ['lock', 'locks', true], ['ioctl', 'kernel module', true], ['queue', 'full queues', true],
	['mps', 'another user\'s MPS server', true], ['not_running', 'not running', true], ['unexplained', 'unexplained', true]]
	.map(([key, name, lost]) => ({key, name, lost}));
const [HIDDEN, LOCK] = [3, 4];
const CAUSES = [['cpu', 'computing on a CPU'], ['cuda-lock', 'waiting for a lock inside CUDA'], ['collective', 'waiting for another rank'], ['sleep', 'asleep']]
	.map(([key, name]) => ({key, name}));
const MS = 1e6;

function leb(out, value) {
	while (value >= 128) {
		out.push(value % 128 + 128);
		value = Math.floor(value / 128);
	}
	out.push(value);
}

/* Collects lanes and their items: rows of values as docs/HTML_REPORT.md lists them, begins being times. */
export class Fake {
	constructor() {
		this.names = [''];
		this.numbers = new Map([['', 0]]);
		this.lanes = [];
		this.chunks = [];
		this.size = 0;
		this.calls = 0;
		this.moments = [];
	}

	name(text) {
		if (!this.numbers.has(text))
			this.numbers.set(text, this.names.push(text) - 1);
		return this.numbers.get(text);
	}

	lane(properties, kinds) {
		const items = {};
		for (const [kind, rows] of Object.entries(kinds)) {
			const out = [];
			let before = 0;
			for (const row of rows) {
				leb(out, row[0] - before);
				before = row[0];
				for (let i = 1; i < row.length; i++)
					leb(out, row[i]);
			}
			items[kind] = [this.size, out.length, rows.length];
			this.chunks.push(Buffer.from(out));
			this.size += out.length;
		}
		this.calls += kinds.calls?.length || 0;
		this.lanes.push({short: properties.name, process: null, pid: 0, tid: 0, rank: null, host: null, first_ns: 0, last_ns: 0, ...properties, items});
	}

	timeline(end) {
		return {schema: 'cudaspy-timeline-1', begin_ns: 0, end_ns: end, names: this.names, buckets: BUCKETS, causes: CAUSES,
			wait_kinds: [{key: 'mutex', name: 'a mutex'}], lanes: this.lanes, whole: [], merged_ns: 0, calls: this.calls, shown: this.calls,
			left_out: [], moments: this.moments};
	}

	/* The file. */
	html(page, report, end) {
		const pack = (data) => deflateSync(data).toString('base64');
		const payloads = {REPORT: pack(JSON.stringify(report)), TIMELINE: pack(JSON.stringify(this.timeline(end))), ITEMS: pack(Buffer.concat(this.chunks))};
		return page.replace(/@(REPORT|TIMELINE|ITEMS)@/g, (unused, key) => payloads[key]);
	}
}

function finding(rank, more) {
	return {rank, id: 'pageable-copy', title: 'asynchronous copies block: the host memory is not pinned', severity: 'problem', cost_ns: 150 * MS, gain_low_ns: 90 * MS,
		gain_high_ns: 140 * MS, idle_gpu_ns: 20 * MS, count: 5, total_ns: 194 * MS, function: 'cudaMemcpyAsync', where: 'cudaMemcpyAsync in load_batch() at train.cu:212',
		what: '5 calls copied 20.0 KiB to pageable memory and did not return at once; 2 threads waited for them', fix: 'Pin the buffer (cudaMallocHost), once.',
		stack: [{function: 'load_batch', file: 'train.cu', line: 212, module: 'train', offset: 4096}], ...more};
}

export function baseReport(more) {
	return {schema: 'cudaspy-report-2', summary: {program: 'train', processes: 1, threads: 3, duration_ns: 400 * MS, calls: 9, call_ns: 255 * MS}, hosts: [{host: 'node7'}],
		waits: {total_ns: 255 * MS, lost_ns: 150 * MS}, losses: [], findings: [finding(1), finding(2, {id: 'stall', severity: 'note', title: 'cudaMalloc waits for other threads', cost_ns: 60 * MS, gain_high_ns: 40 * MS, gain_low_ns: 40 * MS, idle_gpu_ns: null, function: 'cudaMalloc', where: 'cudaMalloc in grow() at pool.cu:40', stack: []})],
		gpus: [{device: 0, name: 'NVIDIA H200', process: 'train.4711', work_ns: 400 * MS, busy_known: 'exact', known_ns: 400 * MS, busy_ns: 250 * MS, idle_ns: 150 * MS,
			nvml: 'NVML: a kernel ran for 60 % of the time at most; clock 1485 of 1980 MHz, slowed by its power limit for 50 % of the time; power 312 of 700 W, 64 degrees C at most; another process is on it (99), with 3.00 GiB',
			idle_causes: [{cause: 'cpu', ns: 60 * MS, name: 'computing on a CPU'}, {cause: 'cuda-lock', ns: 70 * MS, name: 'waiting for a lock inside CUDA'}, {cause: 'sleep', ns: 20 * MS, name: 'asleep'}]},
		{device: 1, name: 'NVIDIA H200', process: 'train.4711', work_ns: 400 * MS, busy_known: 'bounds', known_ns: 0, busy_ns: 80 * MS, idle_ns: 60 * MS,
			idle_causes: [{cause: 'cpu', ns: 60 * MS, name: 'computing on a CPU'}]}],
		calls: [{function: 'cudaMemcpyAsync', count: 5, failed: 0, total_ns: 194 * MS, median_ns: 90000, p99_ns: 100 * MS, max_ns: 100 * MS},
			{function: 'cudaMalloc', count: 3, failed: 0, total_ns: 60 * MS, median_ns: 20 * MS, p99_ns: 58 * MS, max_ns: 58 * MS},
			{function: 'cudaLaunchKernel', count: 1, failed: 0, total_ns: MS, median_ns: MS, p99_ns: MS, max_ns: MS}],
		threads: [[101, 'main'], [102, 'loader'], [103, 'saver']].map(([tid, name], i) => ({process: 'train.4711', tid, name, count: 3 + i, counted: 0, total_ns: (100 - i * 30) * MS, copied_bytes: 4096})),
		locks: [{name: 'L1', kind: 'mutex', place: 'libcuda.so.1+0xa010', process: 'train.4711', waits: 2, waited_ns: 150 * MS, longest_ns: 90 * MS, waking_ns: 0, waiters: 2, holders: 2, first_function: 'cudaMalloc'}],
		blame: [{waiter: 102, holder: 101, waiter_function: 'cudaMalloc', holder_function: 'cudaMemcpyAsync', lock: 'L1', waited_ns: 90 * MS, process: 'train.4711'},
			{waiter: 103, holder: 102, waiter_function: 'cudaMalloc', holder_function: 'cudaMalloc', lock: 'L2', waited_ns: 60 * MS, process: 'train.4711'}],
		root_blame: [{waiter: 102, root: 101, waiter_device: 0, root_device: 0, waiter_function: 'cudaMalloc', root_function: 'cudaMemcpyAsync', waited_ns: 90 * MS, process: 'train.4711'},
			{waiter: 103, root: 101, waiter_device: 1, root_device: 0, waiter_function: 'cudaMalloc', root_function: 'cudaMemcpyAsync', waited_ns: 55 * MS, process: 'train.4711'}],
		device_blame: [{waiter_device: 1, holder_device: 0, waited_ns: 60 * MS}, {waiter_device: 0, holder_device: 0, waited_ns: 90 * MS}],
		call_blame: [{waiter_function: 'cudaMalloc', holder_function: 'cudaMemcpyAsync', waited_ns: 90 * MS}, {waiter_function: 'cudaMalloc', holder_function: 'cudaMalloc', waited_ns: 60 * MS}], ...more};
}

/* saver waits for L2, which loader has, which waits for L1, which main has: main copies to pageable memory. */
export function chain(rename = (text) => text) {
	const fake = new Fake();
	const name = (text) => fake.name(rename(text));
	const call = (begin, took, text, parts, expected = 0, where = '', count = 1) =>
		[begin * MS, took * MS, name(text), count, where ? name(where) : 0, 0, expected, parts.length, ...parts.flatMap(([bucket, ms]) => [bucket, ms * MS])];
	const thread = (tid, text) => ({kind: 'thread', name: rename(`${text} (tid ${tid})`), process: rename('train.4711'), pid: 4711, tid, last_ns: 400 * MS});
	fake.lane(thread(101, 'main'), {calls: [call(10, 5, 'cudaLaunchKernel', []), call(100, 100, 'cudaMemcpyAsync', [[HIDDEN, 99]], 40001, 'train.cu:212'), call(230, 20, 'cudaMemcpyAsync', [[2, 15]])],
		gaps: [[205 * MS, 20 * MS, 0, 0, 0]], ranges: [[0, 220 * MS, name('epoch 1'), 0], [95 * MS, 110 * MS, name('load'), 1], [225 * MS, 170 * MS, name('epoch 2'), 0]]});
	fake.lane(thread(102, 'loader'), {calls: [call(50, 30, 'cudaFree', [[5, 20]]), call(110, 92, 'cudaMalloc', [[LOCK, 90]], 2 * MS + 1)],
		waits: [[111 * MS, 89 * MS, 0, name('L1'), 1, name('cudaMemcpyAsync'), 0]]});
	fake.lane(thread(103, 'saver'), {calls: [call(140, 64, 'cudaMalloc', [[LOCK, 61]], 2 * MS + 1), call(300, 60, 'cudaEventQuery', [[8, 20], [9, 20]])],
		waits: [[141 * MS, 61 * MS, 0, name('L2'), 2, name('cudaMalloc'), 0]], gaps: [[210 * MS, 80 * MS, 3, 0, 2]]});
	fake.lane({kind: 'gpu', name: 'GPU 0', gpu: 0}, {idle: [[20 * MS, 70 * MS, 0, 60 * MS], [200 * MS, 40 * MS, 1, 40 * MS]],
		looks: [[0, 200 * MS, 301, 990, 1980, name('its power limit'), 312, 64], [200 * MS, 150 * MS, 901, 1980, 1980, 0, 0, 0], [350 * MS, 50 * MS, 0, 0, 0, 0, 0, 0]]});
	fake.lane({kind: 'stream', name: 'stream 7', gpu: 0}, {ops: [[12 * MS, 8 * MS, name('gemm_kernel<float>'), 0, 1, MS, 128], [90 * MS, 108 * MS, name('copy to host'), 1, 1, 0, 1 << 20]]});
	fake.moments.push({finding: 1, lane: 0, begin_ns: 100 * MS, end_ns: 200 * MS, text: ''}, {finding: 2, lane: 2, begin_ns: 140 * MS, end_ns: 204 * MS, text: ''});
	return [fake, 400 * MS];
}

/* 64 ranks: each with a thread and a rank's lane; rank 9 comes last to every collective. */
function ranks() {
	const fake = new Fake();
	const [launch, reduce] = [fake.name('ncclAllReduce'), fake.name('AllReduce')];
	for (let rank = 0; rank < 64; rank++) {
		const calls = [];
		const collectives = [];
		for (let step = 0; step < 400; step++) {
			const at = step * MS * 2.5;
			const late = rank === 9 ? 900000 : rank * 4000;
			for (let k = 0; k < 12; k++)
				calls.push([at + k * 60000, 30000 + (rank * 37 + k * 101) % 9000, launch, 1, 0, 0, 28001, k % 4 === 0 ? 1 : 0, ...(k % 4 === 0 ? [LOCK, 12000] : [])]);
			collectives.push([at + 800000 + late, 1500000 - late, reduce, step, 900000 - late, 2 * 9 + 2, 1 << 22, 20000]);
		}
		fake.lane({kind: 'thread', name: `rank ${rank} main`, process: `train.${1000 + rank}`, pid: 1000 + rank, tid: 1000 + rank, rank, host: `node${rank >> 3}`}, {calls});
		fake.lane({kind: 'rank', name: `rank ${rank}`, rank, host: `node${rank >> 3}`}, {collectives});
	}
	fake.moments.push({finding: 1, lane: 1, begin_ns: 500 * MS, end_ns: 503 * MS, text: ''});
	const rows = Array.from({length: 64}, (unused, rank) => ({rank, host: `node${rank >> 3}`, process: `train.${1000 + rank}`, operations: 400, wait_ns: rank === 9 ? 0 : 300 * MS, caused_ns: rank === 9 ? 18900 * MS : 0,
		waited_for: rank === 9 ? [] : [{rank: 9, ns: 300 * MS}]}));
	return [fake, 1000 * MS, {ranks: rows}];
}

/* 10^6 calls in 64 threads; in each, waits for the next one. */
function big() {
	const fake = new Fake();
	const names = ['cudaLaunchKernel', 'cudaMemcpyAsync', 'cudaMalloc', 'cudaStreamSynchronize'].map((text) => fake.name(text));
	let random = 1;
	const next = (n) => Math.floor((random = (random * 48271) % 2147483647) / 2147483647 * n);
	for (let thread = 0; thread < 64; thread++) {
		const calls = [];
		const waits = [];
		let at = next(50000);
		for (let i = 0; i < 15625; i++) {
			const took = 2000 + next(30000) + (next(500) === 0 ? 900000 : 0);
			const lock = next(5) === 0 ? Math.floor(took * 0.7) : 0;
			calls.push([at, took, names[next(4)], 1, 0, 0, 2501, lock ? 1 : 0, ...(lock ? [LOCK, lock] : [])]);
			if (lock)
				waits.push([at + 100, lock, 0, fake.name(`L${next(3)}`), (thread + 1) % 64 + 1, names[1], 0]);
			at += took + next(40000);
		}
		fake.lane({kind: 'thread', name: `worker ${thread}`, process: 'serve.77', pid: 77, tid: 100 + thread}, {calls, waits});
	}
	fake.moments.push({finding: 1, lane: 5, begin_ns: 100 * MS, end_ns: 101 * MS, text: ''});
	return [fake, 640 * MS];
}

export const HOSTILE = '</script><img src=x onerror="window.broken=1"><svg onload=window.broken=1>\u202e\u0000\t\n"\'`${1}';
const CASES = {
	chain: () => chain(), ranks, big,
	empty: () => [new Fake(), 0, {findings: [], gpus: [], calls: [], threads: [], locks: [], blame: [], root_blame: [], device_blame: [], call_blame: [], waits: {}, hosts: []}],
	hostile: () => {
		const bad = (text) => text + HOSTILE;
		return [...chain(bad), {summary: {program: bad('train'), duration_ns: 1, calls: 1, threads: 1, processes: 1}, findings: [finding(1, {title: bad('title'), where: bad('where'), what: bad('what'), fix: bad('fix'), id: bad('id')})],
			calls: [{function: bad('cudaMemcpyAsync'), count: 1, total_ns: 1}]}];
	},
};

export function write(page, name, out) {
	const [fake, end, more] = CASES[name]();
	writeFileSync(out, fake.html(readFileSync(page, 'utf8'), baseReport(more), end));
}

if (process.argv[1]?.endsWith('fake.mjs'))
	write(...process.argv.slice(2, 5));
