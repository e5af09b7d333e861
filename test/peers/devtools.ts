/** A page in headless Chromium, controlled over the DevTools protocol. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { temporaryFolder } from '../harness.ts';

/** Key codes, by the names of the keys in the protocol. */
const KEY_CODES = { Tab: 9, Enter: 13, Escape: 27, ArrowUp: 38, ArrowDown: 40, '/': 191 } as const;

/** A message of the protocol: a response, or an event. */
interface Message {
	readonly id?: number;
	readonly method?: string;
	readonly params?: { readonly [name: string]: unknown };
	readonly result?: { readonly [name: string]: unknown };
	readonly error?: { readonly message: string };
}

/** A page that is open in the browser. */
export interface Page {
	/** URLs that the page has requested so far. */
	readonly requests: readonly string[];
	/** Errors so far: exceptions, console messages at level error, and resources that the browser refused to load. */
	readonly problems: readonly string[];
	/** Opens a URL and waits until it has loaded. */
	open(url: string): Promise<void>;
	/** Performs an action that navigates to another page, and waits until that page has loaded. */
	leave(by: () => Promise<unknown>): Promise<void>;
	/** Returns the value of an expression evaluated in the page. */
	evaluate<T>(expression: string): Promise<T>;
	press(key: keyof typeof KEY_CODES): Promise<void>;
	type(text: string): Promise<void>;
	/** Sets the width of the screen in CSS pixels; less than 800 is a phone. */
	resize(width: number): Promise<void>;
	/** Sets the color scheme that the user prefers. */
	prefer(scheme: 'light' | 'dark'): Promise<void>;
	/** Returns a screenshot as PNG. */
	picture(): Promise<Buffer>;
	close(): Promise<void>;
}

/** Starts a browser with one empty page. */
export async function openPage(): Promise<Page> {
	const folder = temporaryFolder();
	const child = spawn(
		'chromium',
		[
			...['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', `--user-data-dir=${folder}`],
			...['--remote-debugging-port=0', 'about:blank'],
		],
		{ stdio: 'ignore' },
	);
	const kill = (): void => void child.kill('SIGKILL');
	process.on('exit', kill);
	const news = path.join(folder, 'DevToolsActivePort');
	await until(() => existsSync(news) && readFileSync(news, 'utf8').includes('\n'));
	const [port] = readFileSync(news, 'utf8').split('\n');
	let address: string | undefined;
	await until(async () => {
		const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as {
			type: string;
			webSocketDebuggerUrl: string;
		}[];
		address = targets.find(({ type }) => type === 'page')?.webSocketDebuggerUrl;
		return address !== undefined;
	});
	const socket = new WebSocket(address!);
	await once(socket, 'open');
	const requests: string[] = [];
	const problems: string[] = [];
	const waiting = new Map<number, (message: Message) => void>();
	let loads = 0;
	socket.addEventListener('message', ({ data }) => {
		const message = JSON.parse(String(data)) as Message;
		if (message.id !== undefined) waiting.get(message.id)?.(message);
		else if (message.method === 'Page.loadEventFired') loads += 1;
		else if (message.method === 'Network.requestWillBeSent') {
			requests.push((message.params!.request as { url: string }).url);
		} else if (isProblem(message)) problems.push(JSON.stringify(message.params));
	});
	let calls = 0;
	const call = (method: string, params: object = {}): Promise<NonNullable<Message['result']>> =>
		new Promise((resolve, reject) => {
			const id = ++calls;
			waiting.set(id, ({ result, error }) => {
				waiting.delete(id);
				if (error) reject(new Error(`${method}: ${error.message}`));
				else resolve(result!);
			});
			socket.send(JSON.stringify({ id, method, params }));
		});
	await call('Page.enable');
	await call('Network.enable');
	await call('Runtime.enable');
	await call('Log.enable');

	async function leave(by: () => Promise<unknown>): Promise<void> {
		const before = loads;
		await by();
		await until(() => loads > before);
	}

	return {
		requests,
		problems,
		leave,
		open: url => leave(() => call('Page.navigate', { url })),
		async evaluate<T>(expression: string) {
			const answer = await call('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true });
			if (answer.exceptionDetails) throw new Error(JSON.stringify(answer.exceptionDetails));
			return (answer.result as { value: T }).value;
		},
		async press(key) {
			const text = key === 'Enter' ? '\r' : key === '/' ? key : undefined;
			const words = { key, code: key, windowsVirtualKeyCode: KEY_CODES[key], ...(text && { text }) };
			await call('Input.dispatchKeyEvent', { type: 'keyDown', ...words });
			await call('Input.dispatchKeyEvent', { type: 'keyUp', ...words });
		},
		async type(text) {
			await call('Input.insertText', { text });
		},
		async resize(width) {
			const screen = { width, height: 900, deviceScaleFactor: 1, mobile: width < 800 };
			await call('Emulation.setDeviceMetricsOverride', screen);
		},
		async prefer(scheme) {
			await call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
		},
		async picture() {
			return Buffer.from((await call('Page.captureScreenshot')).data as string, 'base64');
		},
		async close() {
			socket.close();
			child.kill('SIGKILL');
			await once(child, 'close');
			process.off('exit', kill);
		},
	};
}

/** Reports whether an event of the protocol is an error of the page. */
function isProblem({ method, params }: Message): boolean {
	if (method === 'Runtime.exceptionThrown') return true;
	if (method === 'Runtime.consoleAPICalled') return params!.type === 'error';
	return method === 'Log.entryAdded' && (params!.entry as { level: string }).level === 'error';
}

/** Waits until a condition holds. Throws after 30 s. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
	const end = performance.now() + 30_000;
	while (!(await isSo())) {
		if (performance.now() > end) throw new Error('the browser did not do it within 30 s');
		await new Promise(resolve => setTimeout(resolve, 20));
	}
}
