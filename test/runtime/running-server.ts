/** Servers started within the test's process, with what they log. */

import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Document, Site, Step } from '../../compiler/document/document.ts';
import type { LogWriter } from '../../runtime/logs/log-writer.ts';
import { type Runtime, type RuntimeOptions, startRuntime } from '../../runtime/main/runtime.ts';

/** A log output that keeps what it is given. */
export interface KeptLog extends LogWriter {
	/** Entries so far, parsed. */
	readonly entries: { readonly [field: string]: unknown }[];
	text(): string;
}

/** Makes a log output that keeps what it is given. */
export function keptLog(): KeptLog {
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

/** A document as configuration. */
export function json(document: Document | string): ConfigInput {
	const text = typeof document === 'string' ? document : JSON.stringify(document);
	return { format: 'json', text, name: '<test>' };
}

/** A site on a free port of 127.0.0.1 that answers with a text. */
export function respondingSite(body: string, more: Partial<Site> & { steps?: readonly Step[] } = {}): Site {
	const { steps = [], ...site } = more;
	return {
		addresses: ['http://:0'],
		bind: ['127.0.0.1'],
		pipeline: [...steps, { handler: 'respond', body }],
		...site,
	};
}

/** A server under test. */
export interface TestServer {
	readonly runtime: Runtime;
	readonly log: KeptLog;
	/** Port of the first listener. */
	readonly port: number;
	/** Status and body of a path; a new connection unless kept alive. */
	get(path?: string, headers?: { [name: string]: string }): Promise<{ status: number; body: string; headers: Headers }>;
}

/** Runs a test with a server, which is ended afterwards whatever happens. */
export async function withServer(
	document: Document | undefined,
	options: RuntimeOptions,
	test: (server: TestServer) => Promise<void>,
): Promise<void> {
	const log = keptLog();
	const runtime = await startRuntime({
		...(document ? { input: json(document) } : {}),
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
		await runtime.stop();
	}
}

export { until as eventually } from '../harness.ts';
