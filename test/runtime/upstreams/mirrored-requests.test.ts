/**
 * `mirror` in a running server: which copies arrive, and what happens if mirrors fail, hang, answer endlessly, or mirror to each
 * other.
 */
import { once } from 'node:events';
import {
	createServer as createHttpServer,
	type IncomingMessage,
	request,
	type Server,
	type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Server as NetServer, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document, Step } from '../../../compiler/document/document.ts';
import { TestAuthority } from '../../certificates.ts';
import { rawExchange, until } from '../../harness.ts';
import { jsonInput, respondingSite, type TestServer, withServer } from '../running-server.ts';

const mirrored = suite('mirrored requests');

/** Servers that are closed at the end, even if tests fail. */
const openServers: { close(): void }[] = [];

mirrored.after(() => {
	for (const one of openServers) one.close();
});

/** A request that an upstream received. */
interface ArrivedRequest {
	readonly line: string;
	readonly fields: readonly (readonly [name: string, value: string])[];
	readonly body: string;
}

/** An upstream that records the requests that arrive. */
class RecordingUpstream {
	readonly arrived: ArrivedRequest[] = [];
	readonly #server: Server;
	answer: (request: IncomingMessage, response: ServerResponse) => void = (_, response) =>
		response.end('from the upstream');

	constructor(server: Server = createHttpServer()) {
		this.#server = server;
		openServers.push(this);
		server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
			const parts: Buffer[] = [];
			try {
				for await (const part of request) parts.push(part);
			} catch {
				// A request whose body was cut short is not recorded.
				return;
			}
			const fields: [string, string][] = [];
			for (let i = 0; i < request.rawHeaders.length; i += 2)
				fields.push([request.rawHeaders[i]!, request.rawHeaders[i + 1]!]);
			this.arrived.push({
				line: `${request.method} ${request.url}`,
				fields,
				body: Buffer.concat(parts).toString('latin1'),
			});
			this.answer(request, response);
		});
	}

	async listen(): Promise<this> {
		this.#server.listen(0, '127.0.0.1');
		await once(this.#server, 'listening');
		return this;
	}

	get port(): number {
		return (this.#server.address() as AddressInfo).port;
	}

	close(): void {
		this.#server.closeAllConnections();
		this.#server.close();
	}
}

/** An upstream that handles each connection by a function of the test. */
class RawUpstream {
	readonly sockets = new Set<Socket>();
	/** Number of connections so far. */
	accepted = 0;
	readonly #server: NetServer;

	constructor(treat: (socket: Socket) => void) {
		openServers.push(this);
		this.#server = createServer(socket => {
			this.accepted++;
			this.sockets.add(socket);
			socket.on('error', () => {}).on('close', () => this.sockets.delete(socket));
			treat(socket);
		});
	}

	async listen(): Promise<this> {
		this.#server.listen(0, '127.0.0.1');
		await once(this.#server, 'listening');
		return this;
	}

	get port(): number {
		return (this.#server.address() as AddressInfo).port;
	}

	close(): void {
		for (const socket of this.sockets) socket.destroy();
		this.#server.close();
	}
}

const mirrorStep = (port: number, more: object = {}): Step => ({
	handler: 'mirror',
	upstreams: { to: [`127.0.0.1:${port}`] },
	...more,
});

const proxyStep = (port: number): Step => ({ handler: 'proxy', upstreams: { to: [`127.0.0.1:${port}`] } });

const site = (...steps: Step[]): Document => ({
	settings: { metrics: {} },
	sites: [respondingSite('from the site', { steps })],
});

/** Sends a request with a body, and returns the status and the body of the response. */
async function sendRequest(
	port: number,
	path: string,
	body: string | readonly string[],
	headers: object = {},
	method = 'POST',
) {
	const sent = request({ port, host: '127.0.0.1', path, method, headers: { ...headers }, agent: false });
	const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
	if (typeof body !== 'string') for (const part of body) sent.write(part);
	sent.end(typeof body === 'string' ? body : undefined);
	const [response] = await answered;
	let text = '';
	for await (const part of response.setEncoding('latin1')) text += part;
	return { status: response.statusCode, body: text };
}

/** Waits until a metric of the mirror has a value. */
async function waitForMetric({ runtime }: TestServer, family: string, label: string, value: number): Promise<void> {
	let last = '';
	await until(`${family}{${label}} is ${value}`, async () => {
		last = (await runtime.metrics())
			.split('\n')
			.filter(line => line.startsWith(family))
			.join('\n');
		return last.split('\n').some(line => line.includes(label) && line.endsWith(` ${value}`));
	}).catch(error => {
		throw new Error(`${error.message}\n${last}`);
	});
}

mirrored('arrive as the upstream receives them, marked, and without the fields of the connection', async () => {
	const upstream = await new RecordingUpstream().listen();
	const mirror = await new RecordingUpstream().listen();
	await withServer(site(mirrorStep(mirror.port), proxyStep(upstream.port)), {}, async server => {
		const headers = {
			'X-One': ['a', 'b'],
			Cookie: 'session=1',
			Connection: 'close, X-Secret-Hop',
			'X-Secret-Hop': 'gone',
			'Proxy-Authorization': 'Basic eA==',
			Expect: '100-continue',
			TE: 'gzip',
		};
		const answer = await sendRequest(server.port, '/a%2Fb/../c?x=1&y', ['first ', 'second'], headers, 'PUT');
		assert.equal(answer, { status: 200, body: 'from the upstream' });
		await until('the copy has arrived', () => mirror.arrived.length === 1);
		const [original] = upstream.arrived as [ArrivedRequest];
		const [copy] = mirror.arrived as [ArrivedRequest];
		assert.is(copy.line, original.line);
		assert.is(copy.body, 'first second');
		// `reverse_proxy` itself asks for a coding that it can decode.
		const framing = /^(?:accept-encoding|content-length|transfer-encoding|expect|x-mirrored|connection)$/i;
		const same = ({ fields }: ArrivedRequest): string[] =>
			fields.filter(([name]) => !framing.test(name)).map(([name, value]) => `${name}: ${value}`);
		assert.equal(same(copy), same(original));
		const value = (name: string): string[] =>
			copy.fields.filter(([one]) => one.toLowerCase() === name).map(([, text]) => text);
		assert.equal(value('x-mirrored'), ['1']);
		assert.equal(value('content-length'), ['12']);
		assert.equal(value('transfer-encoding'), []);
		assert.equal(value('expect'), []);
		assert.equal([...value('x-secret-hop'), ...value('proxy-authorization'), ...value('te')], []);
		assert.equal(value('x-forwarded-for'), ['127.0.0.1']);
	});
});

mirrored('have no body with `body: false`, and none of the framing of the original', async () => {
	const upstream = await new RecordingUpstream().listen();
	const mirror = await new RecordingUpstream().listen();
	const step = mirrorStep(mirror.port, {
		body: false,
		header_up: { set: [{ name: 'X-Copy', value: '{http.request.uri.path}' }] },
	});
	await withServer(site(step, proxyStep(upstream.port)), {}, async server => {
		assert.is((await sendRequest(server.port, '/p', ['GET /smuggled HTTP/1.1\r\n', 'Host: a\r\n\r\n'])).status, 200);
		await until('the copy has arrived', () => mirror.arrived.length === 1);
		assert.is(mirror.arrived[0]!.body, '');
		assert.ok(mirror.arrived[0]!.fields.some(([name, value]) => name === 'X-Copy' && value === '/p'));
		assert.ok(!mirror.arrived[0]!.fields.some(([name, value]) => name === 'Content-Length' && value !== '0'));
	});
});

mirrored('keep a request inside a body where it is, whatever framing the client chose', async () => {
	const upstream = await new RecordingUpstream().listen();
	const mirror = await new RecordingUpstream().listen();
	await withServer(site(mirrorStep(mirror.port), proxyStep(upstream.port)), {}, async server => {
		const inner = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n';
		const chunked = `POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
		assert.match(await rawExchange(server.port, chunked), /^HTTP\/1.1 200 /);
		const both = `POST /both HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n${inner}`;
		await rawExchange(server.port, both);
		assert.is((await sendRequest(server.port, '/last', 'x')).status, 200);
		await until('the last copy has arrived', () => mirror.arrived.some(({ line }) => line === 'POST /last'));
		for (const { arrived } of [upstream, mirror]) assert.not.ok(arrived.some(({ line }) => line.includes('/smuggled')));
		assert.is(mirror.arrived.find(({ line }) => line === 'POST /chunked')?.body, inner);
		assert.equal(mirror.arrived.map(({ line }) => line).sort(), upstream.arrived.map(({ line }) => line).sort());
	});
});

mirrored('of large, unread or aborted bodies are not sent, and each reason is counted', async () => {
	const upstream = await new RecordingUpstream().listen();
	const mirror = await new RecordingUpstream().listen();
	const steps = [
		mirrorStep(mirror.port, { max_body: 1000 }),
		{ handler: 'respond', body: 'unread', when: { type: 'path', patterns: ['/unread'] } },
		proxyStep(upstream.port),
	];
	await withServer(site(...steps), {}, async server => {
		const large = 'x'.repeat(1001);
		assert.is((await sendRequest(server.port, '/declared', large)).status, 200);
		assert.is((await sendRequest(server.port, '/chunked', [large.slice(1), 'x'])).status, 200);
		await waitForMetric(server, 'svc_mirror_dropped_total', 'reason="body_too_large"', 2);
		assert.is(upstream.arrived.at(-1)!.body, `${large.slice(1)}x`);
		assert.is((await sendRequest(server.port, '/unread', ['part'])).body, 'unread');
		const socket = connect(server.port, '127.0.0.1');
		socket.write('POST /aborted HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\npart');
		await until('the request is in flight', async () =>
			server.runtime.metrics().then(text => /std_http_requests_in_flight\S* [1-9]/.test(text)),
		);
		socket.destroy();
		await waitForMetric(server, 'svc_mirror_dropped_total', 'reason="body_unread"', 2);
		assert.is((await sendRequest(server.port, '/allowed', large.slice(1))).status, 200);
		await until('the copy has arrived', () => mirror.arrived.length === 1);
		assert.equal([mirror.arrived[0]!.line, mirror.arrived[0]!.body.length], ['POST /allowed', 1000]);
	});
});

mirrored('to a frozen mirror delay nobody: their number is bounded, and they end after their time', async () => {
	const frozen = await new RawUpstream(socket => void socket.resume()).listen();
	const upstream = await new RecordingUpstream().listen();
	const steps = [mirrorStep(frozen.port, { max_in_flight: 4, timeout: 3_600_000 }), proxyStep(upstream.port)];
	await withServer(site(...steps), { threads: 1 }, async server => {
		const answers = await Promise.all(
			Array.from({ length: 200 }, (_, at) => sendRequest(server.port, `/${at}`, at % 2 === 0 ? 'body' : '')),
		);
		assert.ok(answers.every(({ status, body }) => status === 200 && body === 'from the upstream'));
		await waitForMetric(server, 'svc_mirror_dropped_total', 'reason="too_many"', 196);
		assert.ok(frozen.accepted <= 4, String(frozen.accepted));
		// The limit includes copies that the old configuration sent before the reload.
		await server.runtime.load(
			jsonInput(site(...steps, { handler: 'edit_headers', response: { set: [{ name: 'X-New', value: '1' }] } })),
		);
		assert.is((await server.get('/more')).status, 200);
		await waitForMetric(server, 'svc_mirror_dropped_total', 'reason="too_many"', 197);
	});
});

mirrored('that are not answered in time are given up, and make room for others', async () => {
	const frozen = await new RawUpstream(socket => void socket.resume()).listen();
	const document = site(mirrorStep(frozen.port, { max_in_flight: 1, timeout: 500 }));
	await withServer(document, { threads: 1 }, async server => {
		for (let count = 1; count <= 3; count++) {
			assert.is((await server.get()).body, 'from the site');
			await waitForMetric(server, 'svc_mirror_requests_total', 'outcome="timed_out"', count);
		}
		await until('the connections are closed', () => frozen.sockets.size === 0);
		assert.is(frozen.accepted, 3);
	});
});

mirrored('whose answers never end are read up to a limit, and then their connections are closed', async () => {
	let written = 0;
	const endless = await new RawUpstream(socket => {
		socket.once('data', () => {
			socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
			const piece = Buffer.from(`10000\r\n${'x'.repeat(65536)}\r\n`);
			const more = (): void => {
				while (!socket.destroyed && socket.write(piece)) written += piece.length;
			};
			socket.on('drain', more);
			more();
		});
	}).listen();
	await withServer(site(mirrorStep(endless.port)), { threads: 1 }, async server => {
		assert.is((await server.get()).body, 'from the site');
		await waitForMetric(server, 'svc_mirror_requests_total', 'outcome="answered"', 1);
		await until('the connection is closed', () => endless.accepted === 1 && endless.sockets.size === 0);
		assert.ok(written < 64 * 1024 * 1024, String(written));
		assert.is((await server.get()).body, 'from the site');
	});
});

mirrored('that answer byte by byte are given up, too', async () => {
	const slow = await new RawUpstream(socket => {
		socket.once('data', () => {
			socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n');
			const timer = setInterval(() => socket.write('x'), 5);
			socket.on('close', () => clearInterval(timer));
		});
	}).listen();
	await withServer(site(mirrorStep(slow.port, { timeout: 100 })), {}, async server => {
		assert.is((await server.get()).body, 'from the site');
		await waitForMetric(server, 'svc_mirror_requests_total', 'outcome="timed_out"', 1);
		await until('the connection is closed', () => slow.sockets.size === 0);
	});
});

mirrored('that fail are counted and seen by nobody else', async () => {
	const closing = await new RawUpstream(socket => socket.destroy()).listen();
	const garbage = await new RawUpstream(socket => socket.end('garbage\r\n\r\n')).listen();
	const unused = await new RawUpstream(socket => void socket.resume()).listen();
	const { port } = unused;
	unused.close();
	const steps = [closing.port, garbage.port, port].map(one => mirrorStep(one));
	await withServer(site(...steps), {}, async server => {
		assert.equal(await sendRequest(server.port, '/', 'body'), { status: 200, body: 'from the site' });
		const { status, body } = await server.get('/');
		assert.equal({ status, body }, { status: 200, body: 'from the site' });
		for (const one of [closing.port, garbage.port, port])
			await waitForMetric(server, 'svc_mirror_requests_total', `upstream="127.0.0.1:${one}",outcome="failed"`, 1);
	});
});

mirrored('are not copied again, so that a mirror that leads back to its server ends', async () => {
	const document = site({ handler: 'mirror', upstreams: { to: ['{http.request.header.to}'] } });
	await withServer(document, {}, async server => {
		const to = `127.0.0.1:${server.port}`;
		assert.is((await server.get('/', { to })).status, 200);
		await waitForMetric(server, 'svc_mirror_dropped_total', 'reason="already_mirrored"', 1);
		await waitForMetric(server, 'svc_mirror_requests_total', 'outcome="answered"', 1);
		// The mirror's address is the request's field `to`. If the field does not contain an address, the copy is dropped.
		assert.is((await server.get('/', { to: 'http://' })).status, 200);
		await waitForMetric(server, 'svc_mirror_dropped_total', 'reason="no_upstream"', 1);
	});
});

mirrored('neither upgrade nor wait for the client: a request for another protocol is not copied', async () => {
	const mirror = await new RecordingUpstream().listen();
	await withServer(site(mirrorStep(mirror.port)), {}, async server => {
		const upgrade = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n';
		await rawExchange(server.port, upgrade);
		await waitForMetric(server, 'svc_mirror_dropped_total', 'reason="upgrade"', 1);
		await rawExchange(server.port, 'TRACE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
		assert.is((await server.get('/last')).status, 200);
		await until('the last copy has arrived', () => mirror.arrived.length > 0);
		assert.equal(
			mirror.arrived.map(({ line }) => line),
			['GET /last'],
		);
	});
});

mirrored('finish after a reload that removes the mirror, and do not delay the end of the server', async () => {
	const mirror = await new RecordingUpstream().listen();
	let finish: (() => void) | undefined;
	mirror.answer = (_, response) => {
		finish = () => response.end('late');
	};
	await withServer(site(mirrorStep(mirror.port)), {}, async server => {
		assert.is((await server.get('/old')).status, 200);
		await until('the copy has arrived', () => finish !== undefined);
		await server.runtime.load(jsonInput(site()));
		assert.is((await server.get('/new')).status, 200);
		finish!();
		await waitForMetric(server, 'svc_mirror_requests_total', 'outcome="answered"', 1);
		await server.runtime.load(jsonInput(site(mirrorStep(mirror.port, { timeout: 3_600_000 }))));
		assert.is((await server.get('/last')).status, 200);
		await until('the last copy has arrived', () => mirror.arrived.some(({ line }) => line === 'GET /last'));
		const startedAt = performance.now();
		await server.runtime.stop();
		// The server has not waited for the mirror, whose time limit is an hour.
		assert.ok(performance.now() - startedAt < 8000);
	});
});

mirrored('go over TLS with the settings of the transport', async () => {
	const authority = await TestAuthority.make();
	const { certificate, key } = await authority.issue({ names: ['127.0.0.1', 'mirror.example'] });
	const mirror = await new RecordingUpstream(createTlsServer({ cert: certificate, key }) as unknown as Server).listen();
	const transport = {
		type: 'http',
		tls: { server_name: 'mirror.example', trust: { source: 'inline', certificates: [authority.pem] } },
	};
	const trusting = { upstreams: { to: [`127.0.0.1:${mirror.port}`], transport } };
	const distrusting = { upstreams: { to: [`127.0.0.1:${mirror.port}`], transport: { type: 'http', tls: {} } } };
	await withServer(
		site({ handler: 'mirror', ...distrusting }, { handler: 'mirror', ...trusting }),
		{},
		async server => {
			assert.is((await server.get('/secret')).status, 200);
			await waitForMetric(server, 'svc_mirror_requests_total', 'outcome="answered"', 1);
			await waitForMetric(server, 'svc_mirror_requests_total', 'outcome="failed"', 1);
			assert.equal(
				mirror.arrived.map(({ line }) => line),
				['GET /secret'],
			);
		},
	);
});

mirrored('of a sample are those whose keys are in it', async () => {
	const mirror = await new RecordingUpstream().listen();
	const sample = { type: 'share', key: '{http.request.uri.path}', to: 50 };
	await withServer(site(mirrorStep(mirror.port, { sample })), {}, async server => {
		for (let at = 0; at < 40; at++) assert.is((await server.get(`/${at}`)).status, 200);
		for (let at = 0; at < 40; at++) assert.is((await server.get(`/${at}`)).status, 200);
		await until('copies have arrived', async () =>
			(await server.runtime.metrics()).includes(`outcome="answered"} ${mirror.arrived.length}\n`),
		);
		const counts = new Map<string, number>();
		for (const { line } of mirror.arrived) counts.set(line, (counts.get(line) ?? 0) + 1);
		assert.ok(counts.size > 5 && counts.size < 35, String(counts.size));
		assert.ok([...counts.values()].every(count => count === 2));
	});
});

mirrored.run();
