/**
 * Everything that a client can observe of TLS is the same whether Node's TLS or OpenSSL itself is used: handshakes, records, and
 * the end of connections.
 */
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { canonicalJson } from '../../../compiler/document/canonical-json.ts';
import type { ClientAuth } from '../../../compiler/document/tls-settings.ts';
import { ProxyReader } from '../../../runtime/listeners/proxy-reader.ts';
import { createHttp1Server } from '../../../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../../../runtime/protocols/http1/limits.ts';
import { interceptHandles } from '../../../runtime/sockets/accepted-handles.ts';
import { DirectSocket } from '../../../runtime/sockets/direct-socket.ts';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { OpensslHandle } from '../../../runtime/sockets/openssl-handle.ts';
import { opensslThread } from '../../../runtime/sockets/openssl-thread.ts';
import { threadPoller } from '../../../runtime/sockets/socket-poller.ts';
import { useDirectTls } from '../../../runtime/sockets/tls-mode.ts';
import { ThreadTls } from '../../../runtime/tls/thread-tls.ts';
import { TlsServer } from '../../../runtime/tls/tls-server.ts';
import { TestAuthority } from '../../certificates.ts';
import { temporaryFolder, until } from '../../harness.ts';
import { CLOSE_NOTIFY, RECORD_TYPE, sealedClient } from '../../long/sealed-client.ts';
import { bodyOf } from '../protocols/http1/wire.ts';

const authority = await TestAuthority.make();
const other = await TestAuthority.make('CN=Other');
const issueCertificate = async (id: string, names: readonly string[], rsa = false) => {
	const { certificate, key } = await authority.issue({ names, rsa });
	return { id, names, chain: certificate, key };
};
const certificates = [
	await issueCertificate('curve', ['a.test', 'old.test', 'new.test', 'log.test', 'asks.test', 'demands.test']),
	await issueCertificate('rsa', ['rsa.test'], true),
];
const clients = {
	none: undefined,
	good: await authority.issue({ subject: 'CN=Good' }),
	stranger: await other.issue({ subject: 'CN=Stranger' }),
	expired: await authority.issue({ subject: 'CN=Expired', from: -7200, until: -3600 }),
};
const secretsLog = path.join(temporaryFolder(), 'secrets');
const pool = { source: 'inline', certificates: [] } as const;
const asks: ClientAuth = { mode: 'verify_if_given', trust_pool: pool };
const demands: ClientAuth = { mode: 'require_and_verify', trust_pool: pool };
const SETTINGS = JSON.stringify({
	policies: [
		{},
		{ max_version: 'tls1.2' },
		{ min_version: 'tls1.3' },
		{ insecure_secrets_log: secretsLog },
		{ client_auth: asks },
		{ client_auth: demands },
	],
	names: { 'old.test': 1, 'new.test': 2, 'log.test': 3, 'asks.test': 4, 'demands.test': 5 },
	other: 0,
	strict_sni_host: false,
});

/** The way in which connections reach the TLS layer. */
type ConnectionPath = 'handle' | 'stream' | 'PROXY header';

/** A listener, with counters of its events. */
interface Listener {
	readonly port: number;
	readonly events: string[];
	close(): void;
}

async function listen(way: ConnectionPath, byOpenssl: boolean): Promise<Listener> {
	useDirectTls(byOpenssl);
	const events: string[] = [];
	let unexpected = 0;
	const engine = createHttp1Server({
		async handle(x) {
			x.response.status = 200;
			const body = await bodyOf(x);
			const presented = x.connection.tls?.client?.subject ?? 'nobody';
			x.response.body = `${presented} ${x.connection.remoteAddress} ${x.connection.tls?.resumed} ${body.length} ${'.'.repeat(Number(x.request.path.slice(1)))}`;
		},
		...{
			onExchangeFinished: () => {},
			countRefusal: () => {},
			onConnectionOpened: () => {},
			onConnectionClosed: () => {},
		},
		...{ limits: DEFAULT_LIMITS, draining: false },
	});
	const http1: typeof engine = Object.assign(Object.create(engine), {
		accept(...given: Parameters<typeof engine.accept>) {
			const [socket] = given;
			const handle = socket instanceof DirectSocket ? socket._handle : undefined;
			if (handle instanceof OpensslHandle !== byOpenssl) unexpected++;
			engine.accept(...given);
		},
	});
	const tls = new ThreadTls(() => {});
	tls.applyUpdate({ kind: 'certificates', set: certificates, dropped: [] });
	const trust = [asks, demands].map(auth => ({
		key: canonicalJson(auth),
		authorities: [authority.pem],
		leaves: undefined,
	}));
	tls.applyUpdate({ kind: 'trust', trust });
	tls.applyUpdate({ kind: 'tickets', keys: [Buffer.alloc(48, 7)] });
	const server = new TlsServer({
		...{ tls, port: 0, protocols: () => ['h1'], http1, http2: undefined, obtain: async () => false },
		countHandshake: (version, resumed) => void events.push(`completed ${version} ${resumed}`),
		countFailure: reason => void events.push(`failed ${reason}`),
		onConnectionEnded: () => {},
	});
	server.configure(SETTINGS);
	const reader = new ProxyReader({ wrapper: 'proxy_protocol' }, reason => void events.push(reason));
	const listener = createServer({ allowHalfOpen: true }, socket => {
		if (way === 'stream') server.accept(socket, 'https');
		else reader.read(socket, false, peer => server.accept(socket, 'https', peer));
	});
	listener.listen(0, '127.0.0.1');
	await once(listener, 'listening');
	if (way === 'handle') {
		interceptHandles(listener, handle => {
			server.accept(new DirectSocket(handle), 'https');
			return true;
		});
	}
	const { port } = listener.address() as { port: number };
	return {
		port,
		events,
		close() {
			listener.close();
			server.close();
			assert.is(unexpected, 0, 'connections whose TLS was performed by the other implementation');
		},
	};
}

const get = (path = '/1', more = 'Connection: close\r\n'): string =>
	`GET ${path} HTTP/1.1\r\nHost: a.test\r\n${more}\r\n`;

/** Returns what Node's client observes: the facts of the handshake and the response, or the error code. */
async function visit(port: number, options: ConnectionOptions, request: string = get()): Promise<string> {
	const { socket, outcome } = open(port, options);
	socket.on('secureConnect', () => socket.write(request));
	return outcome;
}

function open(port: number, options: ConnectionOptions): { socket: TLSSocket; outcome: Promise<string> } {
	const seen: string[] = [];
	const socket = connectTls({ host: '127.0.0.1', port, servername: 'a.test', rejectUnauthorized: false, ...options });
	socket.on('secureConnect', () => {
		const subject = socket.getPeerX509Certificate()?.subjectAltName ?? '';
		const { name } = socket.getCipher();
		const key = JSON.stringify(socket.getEphemeralKeyInfo());
		seen.push(`${socket.getProtocol()} ${name} ${key} ${socket.alpnProtocol} ${socket.isSessionReused()} ${subject}`);
	});
	let text = '';
	socket.setEncoding('latin1').on('data', (piece: string) => {
		text += piece;
	});
	socket.on('end', () => seen.push('close_notify or FIN'));
	socket.on('error', (error: Error & { code?: string }) => seen.push(error.code ?? error.message));
	const outcome = new Promise<string>(resolve => {
		socket.on('close', () => resolve([...seen, text.replaceAll(/Date: .*\r\n/g, '')].join(' | ')));
	});
	return { socket, outcome };
}

/**
 * Sends pieces of bytes. With `waits`, sends each piece only after the server has answered the previous one. Returns the types of
 * the records that arrive before the connection ends, and the content of alerts.
 */
function exchange(port: number, pieces: readonly Uint8Array[], ends: boolean, waits: boolean): Promise<string> {
	return new Promise(resolve => {
		const chunks: Buffer[] = [];
		const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => {
			const [first, ...rest] = pieces;
			const next = (): void => {
				const piece = rest.shift();
				if (piece) socket.write(piece, () => void (waits ? socket.once('data', next) : setImmediate(next)));
				else if (ends) socket.end();
			};
			socket.write(first!, () => void (waits ? socket.once('data', next) : setImmediate(next)));
		});
		socket.on('error', () => {});
		socket.on('data', (bytes: Buffer) => void chunks.push(bytes));
		socket.on('close', () => resolve(recordsOf(Buffer.concat(chunks))));
	});
}

function recordsOf(bytes: Buffer): string {
	const found: string[] = [];
	let at = 0;
	while (at + 5 <= bytes.length) {
		const type = bytes[at]!;
		const length = bytes.readUInt16BE(at + 3);
		found.push(type === RECORD_TYPE.alert ? `alert ${bytes.toString('hex', at + 5, at + 5 + length)}` : `${type}`);
		at += 5 + length;
	}
	return found.join(' ');
}

/** Captures a ClientHello of Node's client. */
async function helloOf(options: ConnectionOptions): Promise<Buffer> {
	const recorder = createServer();
	recorder.listen(0, '127.0.0.1');
	await once(recorder, 'listening');
	const { port } = recorder.address() as { port: number };
	const client = connectTls({ port, host: '127.0.0.1', servername: 'a.test', ...options }).on('error', () => {});
	const [socket] = await once(recorder, 'connection');
	const [bytes] = (await once(socket, 'data')) as [Buffer];
	client.destroy();
	socket.destroy();
	recorder.close();
	return bytes;
}

/** A client whose result must not depend on which library performs TLS. */
type Client = (port: number) => Promise<string>;
const CLIENTS: [name: string, client: Client][] = [];
const addClient = (name: string, run: Client): void => void CLIENTS.push([name, run]);
const visits = (name: string, options: ConnectionOptions): void => addClient(name, port => visit(port, options));

const OLD = { ciphers: 'DEFAULT@SECLEVEL=0', minVersion: 'TLSv1', maxVersion: 'TLSv1.1' } as const;
for (const servername of ['a.test', 'old.test', 'new.test', 'rsa.test', 'unknown.test', '']) {
	for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
		visits(`${version} for ${servername || 'no name'}`, { servername, minVersion: version, maxVersion: version });
	}
	visits(`versions before TLS 1.2 for ${servername || 'no name'}`, { servername, ...OLD });
}
for (const ciphers of [
	...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-ECDSA-AES256-GCM-SHA384', 'AES128-SHA', 'ECDHE-RSA-AES128-GCM-SHA256'],
	...['TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_AES_128_CCM_SHA256'],
]) {
	visits(`cipher suite ${ciphers}`, { ciphers, ...(ciphers.startsWith('TLS_') ? {} : { maxVersion: 'TLSv1.2' }) });
}
for (const ecdhCurve of ['X25519', 'P-256', 'P-521', 'X448']) visits(`group ${ecdhCurve}`, { ecdhCurve });
for (const ALPNProtocols of [[], ['http/1.1'], ['h2', 'http/1.1'], ['h2'], ['nothing']]) {
	visits(`ALPN ${ALPNProtocols}`, { ALPNProtocols });
}
for (const servername of ['asks.test', 'demands.test']) {
	for (const [who, pair] of Object.entries(clients)) {
		for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
			const own = pair ? { cert: pair.certificate, key: pair.key } : {};
			visits(`${servername}, certificate: ${who}, ${maxVersion}`, { servername, maxVersion, ...own });
		}
	}
}
for (const [servername, then] of [
	['a.test', 'a.test'],
	['a.test', 'old.test'],
	['demands.test', 'demands.test'],
	['demands.test', 'asks.test'],
	['a.test', 'demands.test'],
] as const) {
	for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
		addClient(`a session of ${servername} for ${then}, ${maxVersion}`, async port => {
			const { certificate: cert, key } = clients.good;
			const own = { maxVersion, cert, key };
			const { socket, outcome } = open(port, { ...own, servername });
			let session: Buffer | undefined;
			socket.on('session', given => {
				session = given;
			});
			socket.on('secureConnect', () => socket.write(get()));
			const first = await outcome;
			return `${first} THEN ${await visit(port, { ...own, servername: then, session: session! })}`;
		});
	}
}
addClient('a session by its ID, without tickets', async port => {
	const own = { maxVersion: 'TLSv1.2', secureOptions: 1 << 14 } as const;
	const { socket, outcome } = open(port, own);
	const session = once(socket, 'secureConnect').then(() => socket.getSession());
	socket.on('secureConnect', () => socket.write(get()));
	const first = await outcome;
	return `${first} THEN ${await visit(port, { ...own, session: await session })}`;
});
addClient('the secrets log holds what a client needs to decrypt', async port => {
	rmSync(secretsLog, { force: true });
	for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) await visit(port, { servername: 'log.test', maxVersion });
	const lines = (): string[] => readFileSync(secretsLog, { encoding: 'latin1', flag: 'a+' }).split('\n');
	await until('the log is written', () => lines().length >= 7);
	return lines()
		.map(line => line.replace(/ [0-9a-f]{64} [0-9a-f]{64,96}$/, ''))
		.sort()
		.join(' ');
});
addClient('renegotiation', async port => {
	const { socket, outcome } = open(port, { maxVersion: 'TLSv1.2' });
	await once(socket, 'secureConnect');
	let result = 'no answer';
	socket.renegotiate({ rejectUnauthorized: false }, error => {
		result = (error as { code?: string } | null)?.code ?? 'done';
	});
	return `${await outcome} ${result}`;
});

const hello13 = await helloOf({});
const hello12 = await helloOf({ maxVersion: 'TLSv1.2' });
const record = (type: number, content: Uint8Array, length = content.length): Buffer =>
	Buffer.concat([Buffer.of(type, 3, 3, length >> 8, length & 255), content]);
for (const [version, hello] of [
	['TLS 1.3', hello13],
	['TLS 1.2', hello12],
] as const) {
	const sends = (name: string, ends: boolean, ...pieces: Uint8Array[]): void =>
		addClient(`${version}: ${name}`, port => exchange(port, pieces, ends, false));
	sends('the client ends after its ClientHello', true, hello);
	sends('the client ends in its ClientHello', true, hello.subarray(0, 100));
	sends('a ClientHello byte by byte', true, ...Array.from(hello, byte => Uint8Array.of(byte)));
	sends('a fatal alert', false, hello, record(RECORD_TYPE.alert, Uint8Array.of(2, 40)));
	addClient(`${version}: close_notify in the handshake`, port =>
		exchange(port, [hello, record(RECORD_TYPE.alert, Uint8Array.of(1, 0))], false, true),
	);
	sends('data before the handshake is over', false, hello, record(RECORD_TYPE.data, Buffer.alloc(40)));
	sends('an unknown type of record', false, hello, record(99, Buffer.alloc(40)));
	sends('a second ClientHello', false, Buffer.concat([hello, hello]));
	sends('an oversized record', false, hello, record(RECORD_TYPE.handshake, Buffer.alloc(40), 65_535));
	sends('a record of another version', false, hello, Buffer.of(22, 9, 9, 0, 1, 0));
	sends(
		'empty records',
		false,
		hello,
		...Array.from({ length: 40 }, () => record(RECORD_TYPE.handshake, Buffer.alloc(0))),
	);
}

/**
 * Adds a client that completes a handshake and then sends the bytes that `make` returns. The result consists of the records that
 * the client receives, and of its error.
 */
function addSealedClient(name: string, make: (seal: Sealed['seal'], one: Sealed) => Uint8Array[], ends = false): void {
	addClient(name, async port => {
		const one = await sealedClient(port, 'a.test');
		for (const bytes of make(one.seal, one)) one.raw.write(bytes);
		if (ends) one.raw.end();
		await until(`the end of: ${name}`, () => one.ended);
		const text = one
			.received()
			.toString('latin1')
			.replaceAll(/Date: .*\r\n/g, '');
		one.raw.destroy();
		return `${text} ${one.failure}`;
	});
}
type Sealed = Awaited<ReturnType<typeof sealedClient>>;

addSealedClient('records of one byte', seal => Array.from(get(), letter => seal(RECORD_TYPE.data, letter)));
addSealedClient('records of 16 KiB', seal => {
	const post = `POST /1 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 163840\r\n\r\n`;
	return [
		seal(RECORD_TYPE.data, post),
		...Array.from({ length: 10 }, () => seal(RECORD_TYPE.data, Buffer.alloc(16_384, 65))),
	];
});
addSealedClient('a record with one byte too many', seal => [seal(RECORD_TYPE.data, Buffer.alloc(16_385, 65))]);
addSealedClient('a record longer than any may be', () => [record(RECORD_TYPE.data, Buffer.alloc(100), 20_000)]);
addSealedClient('a record that cannot be decrypted', () => [record(RECORD_TYPE.data, Buffer.alloc(100))]);
addSealedClient('a record in clear', () => [record(RECORD_TYPE.handshake, Buffer.alloc(100))]);
addSealedClient('empty records of data', seal => [
	...Array.from({ length: 20 }, () => seal(RECORD_TYPE.data, '')),
	seal(RECORD_TYPE.data, get()),
]);
addSealedClient('too many empty records', seal => Array.from({ length: 200 }, () => seal(RECORD_TYPE.data, '')));
addSealedClient('close_notify after a request', seal => [
	seal(RECORD_TYPE.data, get()),
	seal(RECORD_TYPE.alert, CLOSE_NOTIFY),
]);
addSealedClient('close_notify after a request for a lot', seal => [
	seal(RECORD_TYPE.data, get('/300000')),
	seal(RECORD_TYPE.alert, CLOSE_NOTIFY),
]);
addSealedClient('FIN without close_notify after a request', seal => [seal(RECORD_TYPE.data, get('/300000'))], true);
addSealedClient('FIN without close_notify, without a request', () => [Buffer.alloc(0)], true);
addSealedClient('close_notify without a request', seal => [seal(RECORD_TYPE.alert, CLOSE_NOTIFY)]);
addSealedClient('data after close_notify', seal => [
	seal(RECORD_TYPE.alert, CLOSE_NOTIFY),
	seal(RECORD_TYPE.data, get()),
]);
addSealedClient('a fatal alert after the handshake', seal => [seal(RECORD_TYPE.alert, Uint8Array.of(2, 80))]);
addSealedClient('user_canceled, which is to be ignored', seal => [
	seal(RECORD_TYPE.alert, Uint8Array.of(1, 90)),
	seal(RECORD_TYPE.data, get()),
]);
addSealedClient('a new key between two requests', (seal, one) => [
	seal(RECORD_TYPE.data, get('/1', '')),
	one.keyUpdate(true),
	one.seal(RECORD_TYPE.data, get()),
]);
addSealedClient('a ClientHello after the handshake', seal => [seal(RECORD_TYPE.handshake, hello13.subarray(5))]);
addSealedClient('a change of ciphers after the handshake', () => [record(RECORD_TYPE.cipher, Uint8Array.of(1))]);

const differential = suite('Node and OpenSSL itself');

for (const way of ['handle', 'stream'] as const) {
	differential(`connections that reach TLS as a ${way} look the same to ${CLIENTS.length} clients`, async () => {
		if (!isDirectIo()) return;
		threadPoller();
		await until('the poller works', () => threadPoller() !== undefined);
		const results: Map<string, string>[] = [];
		for (const byOpenssl of [false, true]) {
			const listener = await listen(way, byOpenssl);
			const seen = new Map<string, string>();
			try {
				for (const [name, run] of CLIENTS) {
					const result = await run(listener.port);
					seen.set(name, `${result} — ${listener.events.splice(0).join(', ')}`);
				}
			} finally {
				listener.close();
				useDirectTls(false);
			}
			results.push(seen);
		}
		const [node, openssl] = results as [Map<string, string>, Map<string, string>];
		const differences = [...node].filter(([name, seen]) => openssl.get(name) !== seen);
		assert.equal(
			differences.map(([name]) => [name, openssl.get(name)]),
			differences,
		);
		assert.match(openssl.get('demands.test, certificate: good, TLSv1.3')!, /CN=Good/);
		assert.match(openssl.get('a fatal alert after the handshake')!, /completed/);
		await until('all connections are closed', () => opensslThread()?.connectionCount === 0);
	});
}

differential('bytes that arrive together with a PROXY header are part of the handshake', async () => {
	if (!isDirectIo()) return;
	const header = 'PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n';
	const results: string[] = [];
	for (const byOpenssl of [false, true]) {
		const listener = await listen('PROXY header', byOpenssl);
		const relay = createServer({ allowHalfOpen: true }, near => {
			const far = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true });
			near.once('data', (bytes: Buffer) => {
				far.write(Buffer.concat([Buffer.from(header), bytes]));
				near.pipe(far);
			});
			far.pipe(near);
			for (const socket of [near, far]) socket.on('error', () => {});
		});
		relay.listen(0, '127.0.0.1');
		await once(relay, 'listening');
		const { port } = relay.address() as { port: number };
		const { certificate: cert, key } = clients.good;
		results.push(`${await visit(port, {})} ${await visit(port, { servername: 'demands.test', cert, key })}`);
		relay.close();
		listener.close();
		useDirectTls(false);
	}
	assert.is(results[1], results[0]);
	assert.match(results[0]!, /nobody 192\.0\.2\.7.*CN=Good 192\.0\.2\.7/s);
	await until('all connections are closed', () => opensslThread()?.connectionCount === 0);
});

differential.run();
