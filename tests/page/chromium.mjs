/*
 * tests/page/chromium.mjs: a headless Chromium, asked over a pipe by its DevTools protocol. What the tests of the page
 * need of it and no more; no package is needed.
 */
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';

export class Chromium {
	constructor(program) {
		this.home = mkdtempSync(join(tmpdir(), 'cudaspy-page.'));
		this.process = spawn(program, ['--headless', '--remote-debugging-pipe', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--no-first-run', '--disable-background-networking',
			`--user-data-dir=${this.home}`, 'about:blank'], {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true});
		this.ended = new Promise((done) => this.process.on('exit', done));
		this.asked = new Map();
		this.number = 0;
		this.messages = []; /* of the console, and errors */
		this.requests = [];
		this.blocked = []; /* those of the requests that were not made */
		this.loaded = null;
		this.urls = new Map();
		let rest = Buffer.alloc(0);
		this.process.stdio[4].on('data', (data) => {
			rest = Buffer.concat([rest, data]);
			for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
				this.hear(JSON.parse(rest.subarray(0, end)));
				rest = rest.subarray(end + 1);
			}
		});
	}

	hear({id, result, error, method, params}) {
		if (id) {
			const [done, failed] = this.asked.get(id);
			this.asked.delete(id);
			return error ? failed(new Error(error.message)) : done(result);
		}
		if (method === 'Runtime.consoleAPICalled')
			this.messages.push(params.args.map((arg) => arg.value ?? arg.description).join(' '));
		else if (method === 'Runtime.exceptionThrown')
			this.messages.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
		else if (method === 'Log.entryAdded')
			this.messages.push(`${params.entry.text} ${params.entry.url || ''}`);
		else if (method === 'Network.requestWillBeSent')
			this.asks(params);
		else if (method === 'Network.loadingFailed' && params.blockedReason)
			this.blocked.push(this.urls.get(params.requestId));
		else if (method === 'Page.loadEventFired')
			this.loaded?.();
	}

	asks({requestId, request}) {
		this.requests.push(request.url);
		this.urls.set(requestId, request.url);
	}

	send(method, params = {}) {
		const id = ++this.number;
		this.process.stdio[3].write(`${JSON.stringify({id, method, params, sessionId: this.session})}\0`);
		return new Promise((done, failed) => this.asked.set(id, [done, failed]));
	}

	async start() {
		const {targetInfos} = await this.send('Target.getTargets');
		const {sessionId} = await this.send('Target.attachToTarget', {targetId: targetInfos.find((one) => one.type === 'page').targetId, flatten: true});
		this.session = sessionId;
		for (const domain of ['Page', 'Runtime', 'Network', 'Log'])
			await this.send(`${domain}.enable`);
	}

	/* Opens a file at a size and theme, `still`: for somebody who wants no motion; waits until the page says that it is ready, if
	 * it has a script. */
	async open(file, {width = 1280, height = 900, dark = false, touch = false, still = false} = {}) {
		this.messages = [];
		this.requests = [];
		this.blocked = [];
		await this.send('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor: 1, mobile: touch});
		await this.send('Emulation.setEmulatedMedia', {media: '', features: [{name: 'prefers-color-scheme', value: dark ? 'dark' : 'light'},
			{name: 'prefers-reduced-motion', value: still ? 'reduce' : 'no-preference'}]});
		const loaded = new Promise((done) => this.loaded = done);
		await this.send('Page.navigate', {url: pathToFileURL(file).href});
		await loaded;
		await this.until('window.cudaspy !== undefined || document.querySelector(".failed") !== null || document.scripts.length === 0');
	}

	async eval(expression) {
		const {result, exceptionDetails} = await this.send('Runtime.evaluate', {expression, returnByValue: true, awaitPromise: true});
		if (exceptionDetails)
			throw new Error(`${expression}: ${exceptionDetails.exception?.description || exceptionDetails.text}`);
		return result.value;
	}

	async until(expression, seconds = 20) {
		for (let left = seconds * 50; left > 0; left--) {
			if (await this.eval(expression))
				return;
			await new Promise((done) => setTimeout(done, 20));
		}
		throw new Error(`not within ${seconds} s: ${expression}`);
	}

	async click(selector) {
		await this.eval(`document.querySelector(${JSON.stringify(selector)}).click()`);
	}

	async key(key, text = key.length === 1 ? key : undefined) {
		await this.send('Input.dispatchKeyEvent', {type: 'keyDown', key, text});
		await this.send('Input.dispatchKeyEvent', {type: 'keyUp', key});
	}

	async mouse(type, x, y, more = {}) {
		await this.send('Input.dispatchMouseEvent', {type, x, y, button: 'left', clickCount: 1, ...more});
	}

	async shot(file, full = true) {
		const {data} = await this.send('Page.captureScreenshot', {format: 'png', captureBeyondViewport: full});
		writeFileSync(file, Buffer.from(data, 'base64'));
	}

	/* All of its processes: they are a group, and those that are left would keep the pipe open, and this program with it. */
	async stop() {
		try {
			process.kill(-this.process.pid, 'SIGKILL');
		} catch {
			/* It has ended by itself. */
		}
		await this.ended;
		this.process.stdio[3].destroy();
		this.process.stdio[4].destroy();
		rmSync(this.home, {recursive: true, force: true, maxRetries: 20, retryDelay: 100});
	}
}
