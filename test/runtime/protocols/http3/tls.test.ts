/** TLS over QUIC behaves like TLS over TCP: placeholders, refused handshakes, and session tickets on every thread. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../../../certificates.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../../../harness.ts';
import { headers, openControlStream, response } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { connect, freeSession, QuicClient, type QuicClientOptions } from './quic-client.ts';

const test = http3Suite('TLS over QUIC');
const folder = temporaryFolder();
/** The error codes of TLS alerts in QUIC are CRYPTO_ERROR (RFC 9001 §4.8) plus the alert's code (RFC 8446 §6). */
const CRYPTO_ERROR = 0x100;
const UNRECOGNIZED_NAME = 112;
const NO_APPLICATION_PROTOCOL = 120;
/** Options for two clients: one whose ClientHello fits in one datagram, and one whose ClientHello needs two. */
const HELLO_SIZES: readonly QuicClientOptions[] = [{ groups: 'X25519' }, {}];
let server: ServerProcess;
let port = 0;

test.before(async () => {
	[port] = (await freePorts(1)) as [number];
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['localhost'] });
	writeFileSync(path.join(folder, 'c.pem'), certificate);
	writeFileSync(path.join(folder, 'k.pem'), key);
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin off
	threads 2
	auto_https disable_redirects
}
https://localhost:${port} {
	bind 127.0.0.1
	tls ${folder}/c.pem ${folder}/k.pem
	respond "{http.request.tls.version} {http.request.tls.proto} {http.request.tls.resumed} {http.request.tls.cipher_suite}"
}
`,
	);
	server = await serve([], port, { cwd: folder });
});

test.after(async () => {
	await server.stop();
});

async function get(client: QuicClient): Promise<string> {
	openControlStream(client);
	return (await response(client, client.open().write(headers(), true))).body;
}

test('placeholders tell the facts', async () => {
	const client = await connect(port);
	assert.match(await get(client), /^tls1\.3 h3 false TLS_/);
	client.close();
});

/**
 * Returns how the server ends a handshake. Fails if the server does not end it at once, because clients wait for seconds before
 * they try TCP.
 */
async function refusalOf(terms: QuicClientOptions): Promise<unknown> {
	const client = new QuicClient(port, terms);
	const startedAt = performance.now();
	try {
		const closed = await client.end();
		assert.ok(performance.now() - startedAt < 5000);
		return closed;
	} finally {
		client.close();
	}
}

test('a name that no certificate covers is refused with the alert of TCP', async () => {
	const expected = { code: CRYPTO_ERROR + UNRECOGNIZED_NAME, transport: true, byServer: true };
	for (const size of HELLO_SIZES) {
		for (let i = 0; i < 5; i++) assert.equal(await refusalOf({ ...size, serverName: 'nobody.test' }), expected);
	}
});

test('a client that does not offer h3 is refused, also for the ACME challenge over TLS', async () => {
	const expected = { code: CRYPTO_ERROR + NO_APPLICATION_PROTOCOL, transport: true, byServer: true };
	for (const size of HELLO_SIZES) {
		for (const alpn of ['h2', 'acme-tls/1']) assert.equal(await refusalOf({ ...size, alpn }), expected);
	}
});

test('a ticket resumes the session on whichever thread takes the connection', async () => {
	const first = await connect(port);
	await get(first);
	const session = first.session();
	for (let i = 0; i < 12; i++) {
		const next = await connect(port, { session });
		assert.ok(next.resumed, `connection ${i}`);
		assert.match(await get(next), /^tls1\.3 h3 true TLS_/);
		next.close();
	}
	freeSession(session);
	first.close();
});

test.run();
