/** `shed` with upstreams that speak HTTP/2 or FastCGI, and with upstreams whose addresses depend on the request. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { constants, createServer as createHttp2Server, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { proxiedDocument, proxiedSite } from '../../compiler/modules/directives/reverse-proxy/proxied-site.ts';
import { until } from '../../harness.ts';
import { responseRecords, scriptedApplication } from '../protocols/fastcgi/scripted-application.ts';

const test = suite('load shedding by transport');

const cleanups: (() => unknown)[] = [];
test.after.each(async () => {
	// Upstreams end before their sites, which wait for the requests in progress.
	for (const cleanUp of cleanups.splice(0)) await cleanUp();
});

/** An upstream whose requests wait until the test answers them. */
interface HoldingUpstream {
	/** What follows `reverse_proxy` in a configuration. */
	readonly address: string;
	/** Functions that answer the requests which have arrived completely and have not been answered yet. */
	readonly held: (() => void)[];
}

async function listen(server: Server): Promise<number> {
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	return (server.address() as AddressInfo).port;
}

/** @param refuse Returns true for a stream that the upstream refuses (RFC 9113 §8.7). */
async function http2Upstream(refuse: () => boolean = () => false): Promise<HoldingUpstream> {
	const held: (() => void)[] = [];
	const sessions = new Set<Http2Session>();
	const server = createHttp2Server();
	server.on('session', session => sessions.add(session));
	server.on('stream', (stream: ServerHttp2Stream) => {
		stream.on('error', () => {});
		if (refuse()) {
			stream.close(constants.NGHTTP2_REFUSED_STREAM);
			return;
		}
		const answer = (): void => {
			stream.respond({ ':status': 200 });
			stream.end('answer');
		};
		stream.resume().on('end', () => held.push(answer));
	});
	const port = await listen(server);
	cleanups.push(() => {
		for (const session of sessions) session.destroy();
		server.close();
	});
	return { address: `h2c://127.0.0.1:${port}`, held };
}

async function http1Upstream(): Promise<HoldingUpstream> {
	const held: (() => void)[] = [];
	const server = createServer((request: IncomingMessage, response: ServerResponse) => {
		request.resume().on('end', () => held.push(() => response.end('answer')));
	});
	const port = await listen(server);
	cleanups.push(() => {
		server.closeAllConnections();
		server.close();
	});
	return { address: `127.0.0.1:${port}`, held };
}

async function fastcgiUpstream(): Promise<HoldingUpstream> {
	const held: (() => void)[] = [];
	const application = await scriptedApplication(({ socket }) =>
		held.push(() => socket.write(responseRecords('Content-Type: text/plain\r\n\r\nanswer'))),
	);
	cleanups.push(() => application.close());
	return { address: `127.0.0.1:${application.port}`, held };
}

async function statusOf(port: number, headers: { [name: string]: string } = {}): Promise<number> {
	// A request that should have been refused would wait for its answer.
	const response = await fetch(`http://127.0.0.1:${port}/x`, { headers, signal: AbortSignal.timeout(20_000) });
	await response.arrayBuffer();
	return response.status;
}

/** Opens a connection and writes a text. */
function rawClient(port: number, text: string): { readonly socket: Socket; readonly received: () => string } {
	let received = '';
	const socket = connect(port, '127.0.0.1', () => socket.write(text));
	socket.setEncoding('latin1');
	socket.on('data', piece => {
		received += piece;
	});
	socket.on('error', () => {});
	cleanups.push(() => socket.destroy());
	return { socket, received: () => received };
}

const SHED = 'shed {\n\t\tmin 1\n\t\tmax 1\n\t}';

for (const [name, makeUpstream, transport] of [
	['HTTP/2', http2Upstream, ''],
	['FastCGI', fastcgiUpstream, 'transport fastcgi {\n\t\troot /srv\n\t\tkeepalive 1m\n\t}'],
] as const) {
	test(`with ${name}, a request above the limit is refused until the one before has its response head`, async () => {
		const { address, held } = await makeUpstream();
		const { port, close } = await proxiedSite(`reverse_proxy ${address} {\n\t${SHED}\n\t${transport}\n}`);
		cleanups.push(close);
		for (let round = 0; round < 3; round++) {
			const first = statusOf(port);
			await until('the request at the upstream', () => held.length === 1);
			assert.is(await statusOf(port), 503);
			assert.is(held.length, 1);
			held.pop()!();
			assert.is(await first, 200);
		}
	});

	test(`with ${name}, an upload counts from its end`, async () => {
		const { address, held } = await makeUpstream();
		const { port, close } = await proxiedSite(`reverse_proxy ${address} {\n\t${SHED}\n\t${transport}\n}`);
		cleanups.push(close);
		const upload = rawClient(port, 'POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345');
		const first = statusOf(port);
		await until('the request at the upstream', () => held.length === 1);
		held.pop()!();
		assert.is(await first, 200);
		upload.socket.write('67890');
		await until('the upload at the upstream', () => held.length === 1);
		assert.is(await statusOf(port), 503);
		held.pop()!();
		await until('the answer to the upload', () => upload.received().includes('200'));
		const last = statusOf(port);
		await until('the next request at the upstream', () => held.length === 1);
		held.pop()!();
		assert.is(await last, 200);
	});

	test(`with ${name}, a request whose client has left no longer counts`, async () => {
		const { address, held } = await makeUpstream();
		const site = await proxiedSite(`reverse_proxy ${address} {\n\t${SHED}\n\t${transport}\n}`);
		cleanups.push(site.close);
		const client = rawClient(site.port, 'GET /x HTTP/1.1\r\nHost: a\r\n\r\n');
		await until('the request at the upstream', () => held.length === 1);
		assert.is(await statusOf(site.port), 503);
		client.socket.destroy();
		await until('the end of the request', () => site.pools[0]!.inFlight === 0);
		const next = statusOf(site.port);
		await until('the next request at the upstream', () => held.length === 2);
		held[1]!();
		assert.is(await next, 200);
	});
}

test('a request that an HTTP/2 upstream refuses and that is sent again counts once', async () => {
	let refusals = 2;
	const { address, held } = await http2Upstream(() => refusals-- > 0 && refusals % 2 === 1);
	const { port, close } = await proxiedSite(`reverse_proxy ${address} {\n\t${SHED}\n}`);
	cleanups.push(close);
	for (let round = 0; round < 3; round++) {
		refusals = 2;
		const first = statusOf(port);
		await until('the request at the upstream', () => held.length === 1);
		assert.is(await statusOf(port), 503);
		held.pop()!();
		assert.is(await first, 200);
	}
});

for (const [name, upstreams] of [
	[
		'found by a lookup',
		{ dynamic: { source: 'a', name: 'localhost', port: '{http.request.header.to}', versions: ['ipv4'] } },
	],
	['with placeholders', { to: ['127.0.0.1:{http.request.header.to}'] }],
] as const) {
	test(`upstreams ${name} have a limit each`, async () => {
		const [busy, idle] = [await http1Upstream(), await http1Upstream()];
		const settings = { to: [], ...upstreams, shed: { min: 1, max: 1, status: 429 } };
		const pipeline = [{ handler: 'proxy', upstreams: settings }];
		const { port, close } = await proxiedDocument({ sites: [{ addresses: ['http://:8080'], pipeline }] });
		cleanups.push(close);
		const to = ({ address }: HoldingUpstream) => ({ to: address.split(':')[1]! });
		for (let round = 0; round < 2; round++) {
			const first = statusOf(port, to(busy));
			await until('the request at the upstream', () => busy.held.length === 1);
			assert.is(await statusOf(port, to(busy)), 429);
			const other = statusOf(port, to(idle));
			await until('the request at the other upstream', () => idle.held.length === 1);
			idle.held.pop()!();
			assert.is(await other, 200);
			busy.held.pop()!();
			assert.is(await first, 200);
		}
	});
}

test.run();
