/**
 * Upstreams that respond before they have read the whole request body, and then close the connection. If a write then fails,
 * the server first reads what it has received. A complete response is used; otherwise, the request has failed.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BodySource } from '../../../compiler/exchange/body.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { UpstreamError } from '../../../compiler/exchange/leases.ts';
import {
	requestFromUpstream,
	type UpstreamSettings,
} from '../../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { setPollerEnabled } from '../../../runtime/sockets/socket-poller.ts';
import { createUpstreamPool } from '../../../runtime/upstreams/upstream-pool.ts';
import { endRequestRecord, fastcgiRecord } from '../protocols/fastcgi/scripted-application.ts';
import { encodeFieldBlock, encodeUint32s, frame, settings } from '../protocols/http2/frames.ts';
import type { ResettingUpstreamInput } from './resetting-upstream.ts';
import { fakeClientExchange, readBody } from './scripted-upstream.ts';
import { type TestCertificate, testAuthority } from './transports/certificates.ts';

const test = suite('early responses of upstreams');

/** Number of times that each case is run. */
const RUNS_PER_CASE = 20;
const PIECE_BYTES = 50_000;

let tls: TestCertificate;

test.before(async () => {
	const authority = await testAuthority();
	tls = await authority.issue(['127.0.0.1']);
});

const TEXT = 'too much';
const LENGTH = `HTTP/1.1 413 Too Large\r\nContent-Length: ${TEXT.length}\r\n\r\n${TEXT}`;
const CHUNKED = `HTTP/1.1 413 Too Large\r\nTransfer-Encoding: chunked\r\n\r\n${TEXT.length}\r\n${TEXT}\r\n0\r\n\r\n`;
const UNTIL_THE_END = `HTTP/1.1 413 Too Large\r\nConnection: close\r\n\r\n${TEXT}`;
/** SETTINGS and WINDOW_UPDATE frames whose windows are large enough for everything that the test sends. */
const HTTP2_HELLO = Buffer.concat([settings(4, 0x7fffffff), frame(8, 0, 0, encodeUint32s(0x7fff0000))]);
const HTTP2_RESPONSE = Buffer.concat([
	frame(1, 4, 1, encodeFieldBlock([[':status', '413']])),
	frame(0, 1, 1, Buffer.from(TEXT)),
	frame(7, 0, 0, encodeUint32s(1, 0)),
]);
const FASTCGI = Buffer.concat([
	fastcgiRecord(6, `Status: 413 Too Large\r\n\r\n${TEXT}`),
	fastcgiRecord(6, ''),
	endRequestRecord(),
]);
const OVER_TLS = { type: 'http', tls: { insecure_skip_verify: true } } as const;
const HTTP2_TRANSPORT = { type: 'http', versions: ['h2c'] } as const;

interface Case {
	readonly answer: string | Uint8Array;
	readonly hello?: Uint8Array;
	readonly transport?: UpstreamSettings['transport'];
	/** True if the length of the body is unknown. */
	readonly chunked?: boolean;
	/** True if the whole body is available at once. */
	readonly whole?: boolean;
	readonly overTls?: boolean;
	/** True if the sockets use Node's handles instead of direct I/O. */
	readonly byHandles?: boolean;
}

const CASES: { readonly [name: string]: Case } = {
	'HTTP/1.1': { answer: LENGTH },
	'HTTP/1.1, by handles': { answer: LENGTH, byHandles: true },
	'HTTP/1.1, request and response chunked': { answer: CHUNKED, chunked: true },
	'HTTP/1.1, a response that ends with its connection': { answer: UNTIL_THE_END },
	'HTTP/1.1, a request body sent at once': { answer: LENGTH, whole: true },
	'HTTP/1.1 over TLS': { answer: LENGTH, overTls: true, transport: OVER_TLS },
	'HTTP/1.1 over TLS, a request body sent at once': { answer: LENGTH, whole: true, overTls: true, transport: OVER_TLS },
	'HTTP/2': { answer: HTTP2_RESPONSE, hello: HTTP2_HELLO, transport: HTTP2_TRANSPORT },
	'HTTP/2, by handles': {
		answer: HTTP2_RESPONSE,
		hello: HTTP2_HELLO,
		transport: HTTP2_TRANSPORT,
		byHandles: true,
	},
	FastCGI: { answer: FASTCGI, transport: { type: 'fastcgi' } },
	'FastCGI, by handles': { answer: FASTCGI, transport: { type: 'fastcgi' }, byHandles: true },
};

for (const [name, { answer, hello, transport, chunked, whole, overTls, byHandles }] of Object.entries(CASES)) {
	test(name, async () => {
		const done = new Int32Array(new SharedArrayBuffer(4));
		const workerData: ResettingUpstreamInput = {
			answer: Buffer.from(answer as string),
			hello: hello ?? new Uint8Array(0),
			reads: PIECE_BYTES,
			tls: overTls ? tls : undefined,
			done,
		};
		const thread = new Worker(new URL('./resetting-upstream.ts', import.meta.url), { workerData });
		const [port] = await once(thread, 'message');
		if (byHandles) setPollerEnabled(false);
		const pool = createUpstreamPool({ to: [`127.0.0.1:${port}`], ...(transport && { transport }) });
		/** Blocks the thread until both the response and the reset have arrived, so that the thread reads them together. */
		const blockUntilDone = () => {
			assert.is.not(Atomics.wait(done, 0, 0, 5000), 'timed-out');
			done[0] = 0;
		};
		let pulls = 0;
		const body: BodySource = {
			length: chunked ? undefined : PIECE_BYTES * 1000,
			pull() {
				if (++pulls === 1) return Buffer.alloc(PIECE_BYTES + 1000, 'a');
				return new Promise(resolve =>
					setImmediate(() => {
						if (pulls === 2) blockUntilDone();
						resolve(Buffer.alloc(PIECE_BYTES, 'b'));
					}),
				);
			},
			cancel() {},
		};
		try {
			for (let i = 0; i < RUNS_PER_CASE; i++) {
				pulls = 0;
				const x = fakeClientExchange('POST');
				const request = {
					method: 'POST',
					target: '/',
					headers: new HeaderList(['Host', 'a']),
					body: whole ? Buffer.alloc(20_000_000) : body,
					upgrade: undefined,
				};
				const sent = requestFromUpstream(pool, x, pool.select(x)!, request);
				const response = await sent.catch(error => assert.unreachable(`run ${i + 1}: ${error.message}`));
				assert.is(response!.status, 413);
				assert.is(await readBody(response!.body), TEXT);
			}
			assert.is(pool.inFlight, 0);
			assert.is(pool.idleConnections, 0, 'a connection that cannot be written to was kept');
		} finally {
			setPollerEnabled(true);
			await pool.close();
			await thread.terminate();
		}
	});
}

test('a connection reset without a response is a failure', async () => {
	const done = new Int32Array(new SharedArrayBuffer(4));
	const nothing = new Uint8Array(0);
	const workerData: ResettingUpstreamInput = { answer: Buffer.from('HTTP/1.1 41'), hello: nothing, reads: 1, done };
	const thread = new Worker(new URL('./resetting-upstream.ts', import.meta.url), { workerData });
	const [port] = await once(thread, 'message');
	const pool = createUpstreamPool({ to: [`127.0.0.1:${port}`] });
	try {
		const x = fakeClientExchange('POST');
		const headers = new HeaderList(['Host', 'a']);
		const body = Buffer.alloc(20_000_000);
		const request = { method: 'POST', target: '/', headers, body, upgrade: undefined };
		const failure = await requestFromUpstream(pool, x, pool.select(x)!, request).then(
			() => undefined,
			error => error,
		);
		assert.instance(failure, UpstreamError);
		assert.match(failure.message, /write|read|closed/);
		assert.is(pool.inFlight, 0);
	} finally {
		await pool.close();
		await thread.terminate();
	}
});

test.run();
