/**
 * Listeners that read PROXY headers, in a real server: which client address is used, and which connections are closed.
 */
import { Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ProxyProtocolWrapper } from '../../../compiler/document/server-settings.ts';
import { ProxyReader } from '../../../runtime/listeners/proxy-reader.ts';
import { freePorts, pauseFor } from '../../harness.ts';
import { openWire, type WireClient } from '../protocols/http1/wire.ts';
import { type TestServer, withServer } from '../running-server.ts';

const proxied = suite('PROXY protocol');
const HEADER = 'PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n';
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

/** Starts one server with a listener for each element of `all`, in this order. */
async function withListeners(
	all: readonly Omit<ProxyProtocolWrapper, 'wrapper'>[],
	test: (ports: readonly number[], server: TestServer) => Promise<void>,
): Promise<void> {
	const ports = await freePorts(all.length);
	const servers = all.map((settings, index) => ({
		listener: `127.0.0.1:${ports[index]}`,
		name: `edge${index}`,
		listener_wrappers: [{ wrapper: 'proxy_protocol', ...settings }],
	}));
	const sites = ports.map(port => ({
		addresses: [`http://:${port}`],
		bind: ['127.0.0.1'],
		pipeline: [{ handler: 'respond', body: '[{http.request.remote}]' }],
	}));
	await withServer({ settings: { metrics: {}, servers }, sites }, { threads: 1 }, server => test(ports, server));
}

/** Sends the pieces on a connection. Resolves to the response's body, or '' if the connection is closed. */
async function sendPieces(port: number, ...pieces: readonly string[]): Promise<string> {
	const wire: WireClient = await openWire(port);
	for (const piece of pieces) {
		wire.send(piece);
		if (pieces.length > 1) await pauseFor(20);
	}
	const text = await wire.whole(4000);
	return /\[(.*)\]/.exec(text)?.[1] ?? text;
}

const CASES: readonly (readonly [
	what: string,
	settings: Omit<ProxyProtocolWrapper, 'wrapper'>,
	header: string,
	address: string | RegExp,
])[] = [
	['without lists any peer may name the client', {}, HEADER, '192.0.2.1:56324'],
	['without lists a header may be missing', {}, '', /^127\.0\.0\.1:/],
	['a bad header closes', {}, HEADER.replace('TCP4', 'TCP9'), ''],
	['a peer in `allow` names the client', { allow: ['127.0.0.0/8'] }, HEADER, '192.0.2.1:56324'],
	["another peer's header is read and not trusted", { allow: ['10.0.0.0/8'] }, HEADER, /^127\.0\.0\.1:/],
	['a peer in `deny` is closed', { deny: ['127.0.0.1'] }, '', ''],
	['REJECT closes connections with a header', { allow: ['10.0.0.0/8'], fallback_policy: 'reject' }, HEADER, ''],
	['REJECT accepts connections without one', { allow: ['10.0.0.0/8'], fallback_policy: 'reject' }, '', /^127/],
	['REQUIRE closes connections without a header', { fallback_policy: 'require' }, '', ''],
	['REQUIRE accepts connections with one', { fallback_policy: 'require' }, HEADER, '192.0.2.1:56324'],
	['USE accepts headers from everybody', { allow: ['10.0.0.0/8'], fallback_policy: 'use' }, HEADER, '192.0.2.1:56324'],
	['SKIP does not look for a header', { fallback_policy: 'skip' }, HEADER, /^HTTP\/1\.1 400 /],
];

proxied('each policy treats each peer as documented', async () => {
	await withListeners(
		CASES.map(([, settings]) => settings),
		async ports => {
			for (const [index, [what, , header, address]] of CASES.entries()) {
				const got = await sendPieces(ports[index]!, header + REQUEST);
				if (typeof address === 'string') assert.is(got, address, what);
				else assert.match(got, address, what);
			}
		},
	);
});

proxied(
	'a header may arrive in pieces or with the request, and a partial header that times out closes the connection',
	async () => {
		await withListeners([{}, { timeout: 100 }], async ([port, hasty], { runtime }) => {
			const from = '192.0.2.1:56324';
			assert.is(await sendPieces(port!, HEADER.slice(0, 3), HEADER.slice(3, 20), HEADER.slice(20), REQUEST), from);
			assert.is(await sendPieces(port!, HEADER.slice(0, 10), HEADER.slice(10) + REQUEST), from);
			assert.is(await sendPieces(hasty!, HEADER.slice(0, 20)), '');
			const text = await runtime.metrics();
			assert.match(text, 'svc_client_timeouts_total{phase="proxy_header"} 1');
			assert.match(text, /std_http_requests_total\{[^}]*server="edge0"/);
			const wire = await openWire(hasty!);
			await pauseFor(250);
			wire.send(REQUEST);
			assert.match(await wire.whole(), '[127.0.0.1:', 'a client that sends nothing for a while is served');
		});
	},
);

proxied(
	'a PROXY header from a peer that has already disconnected is not trusted: its address cannot be checked',
	() => {
		const wrapper = { wrapper: 'proxy_protocol', deny: ['127.0.0.0/8'], fallback_policy: 'use' } as const;
		const reader = new ProxyReader(wrapper, () => {});
		const gone = new Socket();
		let accepted = false;
		reader.read(gone, false, () => {
			accepted = true;
		});
		assert.is(gone.destroyed, true);
		assert.is(accepted, false);
	},
);

proxied.run();
