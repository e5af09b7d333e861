/** Servers that run in the test's own process, with their logs. */

import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Document, Site, Step } from '../../compiler/document/document.ts';
import type { LogWriter } from '../../runtime/logs/log-writer.ts';
import { type Runtime, type RuntimeOptions, startRuntime } from '../../runtime/main/runtime.ts';

/** A log output that records everything in memory. */
export interface RecordingLog extends LogWriter {
	/** The entries so far, parsed from JSON. */
	readonly entries: { readonly [field: string]: unknown }[];
	text(): string;
}

/** Creates a log output that records everything in memory. */
export function recordingLog(): RecordingLog {
	let all = '';
	return {
		write(text) {
			all += text;
			return true;
		},
		flush: async () => {},
		close: async () => {},
		text: () => all,
		get entries() {
			return all
				.split('\n')
				.filter(line => line !== '')
				.map(line => JSON.parse(line));
		},
	};
}

export function jsonInput(document: Document | string): ConfigInput {
	const text = typeof document === 'string' ? document : JSON.stringify(document);
	return { format: 'json', text, name: '<test>' };
}

/** Returns a site on a free port of 127.0.0.1 that responds with the given body. */
export function respondingSite(body: string, more: Partial<Site> & { steps?: readonly Step[] } = {}): Site {
	const { steps = [], ...site } = more;
	return {
		addresses: ['http://:0'],
		bind: ['127.0.0.1'],
		pipeline: [...steps, { handler: 'respond', body }],
		...site,
	};
}

export interface TestServer {
	readonly runtime: Runtime;
	readonly log: RecordingLog;
	/** Port of the first listener. */
	readonly port: number;
	/** Requests a path. Uses a new connection unless the headers ask for keep-alive. */
	get(path?: string, headers?: { [name: string]: string }): Promise<{ status: number; body: string; headers: Headers }>;
}

/** Runs a test with a server. The server is stopped afterwards, even if the test fails. */
export async function withServer(
	document: Document | undefined,
	options: RuntimeOptions,
	test: (server: TestServer) => Promise<void>,
): Promise<void> {
	const log = recordingLog();
	const runtime = await startRuntime({
		...(document ? { input: jsonInput(document) } : {}),
		threads: 2,
		writers: { stdout: log, stderr: log },
		...options,
	});
	try {
		await test({
			runtime,
			log,
			get port() {
				return runtime.listeners[0]!.port;
			},
			async get(path = '/', headers = {}) {
				const response = await fetch(`http://127.0.0.1:${runtime.listeners[0]!.port}${path}`, {
					headers: { connection: 'close', ...headers },
				});
				return { status: response.status, body: await response.text(), headers: response.headers };
			},
		});
	} finally {
		runtime.kill();
		// Sockets are open until their threads have ended, and the next server may listen on the same port.
		await runtime.threadsEnded;
	}
}

export { until as eventually } from '../harness.ts';
