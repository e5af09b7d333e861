/** Upstreams over TLS and HTTP/2, tested with a whole site: what is trusted, negotiated and refused. */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import {
	connect as connectHttp2,
	createServer as createHttp2Server,
	createSecureServer,
	type Http2Server,
	type ServerHttp2Stream,
} from 'node:http2';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import path from 'node:path';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { privateKeyPem } from '../../../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../../../runtime/certificates/issue-certificate.ts';
import { proxiedSite } from '../../../compiler/modules/directives/reverse-proxy/proxied-site.ts';
import { pauseFor, temporaryFolder, until, waitForNothing } from '../../../harness.ts';
import { withServer } from '../../running-server.ts';
import { type TestAuthority, type TestCertificate, testAuthority } from './certificates.ts';

const test = suite('upstreams over TLS and HTTP/2');

const folder = temporaryFolder();
const open: (() => unknown)[] = [];
let authority: TestAuthority;
let leaf: TestCertificate;
const trust = path.join(folder, 'root.pem');

test.before(async () => {
	authority = await testAuthority();
	leaf = await authority.issue(['localhost', '127.0.0.1', 'inner.test']);
	writeFileSync(trust, authority.cert);
});

test.after.each(async () => {
	for (const close of open.splice(0).reverse()) await close();
});

async function listen(server: Server | Http2Server | ReturnType<typeof createTcpServer>): Promise<number> {
	const sockets = new Set<Socket>();
	server.on('connection', (socket: Socket) => {
		sockets.add(socket);
		socket.on('error', () => {});
		socket.on('close', () => sockets.delete(socket));
	});
	await new Promise<void>(resolve => (server as Server).listen(0, '127.0.0.1', resolve));
	open.push(() => {
		for (const socket of sockets) socket.destroy();
		return new Promise(resolve => server.close(resolve));
	});
	return (server.address() as AddressInfo).port;
}

/** Starts a server whose responses describe the requests, over HTTP/1.1 and, if `h2`, over HTTP/2. */
function describingServer(h2: boolean, options: object = {}): Promise<number> {
	const server = h2
		? createSecureServer({ ...leaf, allowHTTP1: true, ...options }, answer as never)
		: createServer({ ...leaf, ...options }, answer as never);
	return listen(server as Server);
}

function answer(
	request: { httpVersion: string; headers: Record<string, string>; socket: TLSSocket; authority?: string },
	response: { end(text: string): void },
): void {
	const socket = request.socket;
	const { servername } = socket as never as { servername: string | false };
	const client = socket.getPeerCertificate().subject?.CN ?? '';
	const host = request.headers[':authority'] ?? request.headers.host;
	response.end(`${request.httpVersion} host=${host} sni=${servername} client=${client}`);
}

async function site(lines: string): Promise<string> {
	const made = await proxiedSite(lines);
	open.push(() => made.close());
	return `http://127.0.0.1:${made.port}`;
}

async function get(url: string, headers: Record<string, string> = {}): Promise<string> {
	const response = await fetch(url, { headers });
	return `${response.status} ${await response.text()}`;
}

test("HTTPS with a private CA uses HTTP/2 if the upstream offers it, and sends the upstream's host", async () => {
	const two = await describingServer(true);
	const both = await site(
		`reverse_proxy https://localhost:${two} {\n transport http {\n tls_trust_pool file ${trust}\n }\n}`,
	);
	assert.is(await get(both), `200 2.0 host=localhost:${two} sni=localhost client=`);
	const one = await describingServer(false);
	const plain = await site(
		`reverse_proxy https://127.0.0.1:${one} {\n header_up Host {host}\n transport http {\n tls_trust_pool file ${trust}\n }\n}`,
	);
	assert.is(await get(plain), '200 1.1 host=127.0.0.1 sni=false client=');
	const chosen = await site(
		`reverse_proxy localhost:${two} {\n transport http {\n versions 1.1\n tls\n tls_trust_pool file ${trust}\n }\n}`,
	);
	assert.is(await get(chosen), `200 1.1 host=localhost:${two} sni=localhost client=`);
	assert.is(await get(chosen), `200 1.1 host=localhost:${two} sni=localhost client=`);
});

test('an untrusted certificate, or one for another name, is an error, and nothing is sent', async () => {
	const port = await describingServer(true);
	const unknown = await site(`reverse_proxy https://localhost:${port}`);
	assert.match(await get(unknown), /^502 /);
	const misnamed = await site(
		`reverse_proxy https://localhost:${port} {\n transport http {\n tls_trust_pool file ${trust}\n tls_server_name other.test\n }\n}`,
	);
	assert.match(await get(misnamed), /^502 /);
	const careless = await site(
		`reverse_proxy https://localhost:${port} {\n transport http {\n tls_insecure_skip_verify\n }\n}`,
	);
	assert.match(await get(careless), /^200 2\.0/);
});

test('the TLS server name may come from the request, and each name has its own connections', async () => {
	const port = await describingServer(true);
	const named = await site(
		`reverse_proxy https://127.0.0.1:${port} {\n transport http {\n versions 1.1\n tls_trust_pool file ${trust}\n tls_server_name {header.X-SNI}\n }\n}`,
	);
	assert.match(await get(named, { 'X-SNI': 'inner.test' }), / sni=inner\.test /);
	assert.match(await get(named, { 'X-SNI': 'localhost' }), / sni=localhost /);
	assert.match(await get(named, { 'X-SNI': 'inner.test' }), / sni=inner\.test /);
	assert.match(await get(named, { 'X-SNI': 'evil.test' }), /^502/);
	assert.match(await get(named, { 'X-SNI': 'a b' }), / sni=false /);
});

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
	test(`a connection resumes the session of the one before (${version})`, async () => {
		const reused: boolean[] = [];
		const server = createServer({ ...leaf, maxVersion: version }, (request, response) => {
			reused.push((request.socket as TLSSocket).isSessionReused());
			response.setHeader('Connection', 'close').end('answer');
		});
		const port = await listen(server);
		const url = await site(
			`reverse_proxy https://localhost:${port} {\n transport http {\n tls_trust_pool file ${trust}\n }\n}`,
		);
		for (let count = 0; count < 4; count++) assert.is(await get(url), '200 answer');
		// The first connection offers HTTP/2, too, and the later ones resume only sessions of connections that do not.
		assert.equal(reused, [false, false, true, true]);
	});
}

test('an upstream may respond, or close the connection, as soon as the handshake has ended', async () => {
	for (const [text, expected] of [
		['HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy', '503 busy'],
		['', '502 '],
	] as const) {
		// In TLS 1.2, what the upstream sends first arrives together with the end of its handshake.
		const server = createTlsServer({ ...leaf, maxVersion: 'TLSv1.2' }, socket => {
			socket.on('error', () => {});
			socket.end(text);
		});
		const port = await listen(server);
		const url = await site(
			`reverse_proxy https://localhost:${port} {\n transport http {\n versions 1.1\n response_header_timeout 5s\n tls_trust_pool file ${trust}\n }\n}`,
		);
		for (let count = 0; count < 3; count++) assert.is(await get(url), expected);
	}
});

test('a client certificate is presented', async () => {
	const own = await authority.issue(['client.test']);
	writeFileSync(path.join(folder, 'client.crt'), own.cert);
	writeFileSync(path.join(folder, 'client.key'), own.key);
	const port = await describingServer(false, { requestCert: true, ca: authority.cert, rejectUnauthorized: true });
	const shown = await site(
		`reverse_proxy https://localhost:${port} {\n transport http {\n tls_trust_pool file ${trust}\n tls_client_auth ${folder}/client.crt ${folder}/client.key\n }\n}`,
	);
	assert.match(await get(shown), /client=client\.test$/);
	const not = await site(
		`reverse_proxy https://localhost:${port} {\n transport http {\n tls_trust_pool file ${trust}\n }\n}`,
	);
	assert.match(await get(not), /^502 /);
});

test('an unusable client certificate that appears after the load fails each request and nothing else', async () => {
	const day = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) };
	const write = (modulusLength: number): void => {
		const key = generateKeyPairSync('rsa', { modulusLength }).privateKey;
		writeFileSync(path.join(folder, 'weak.crt'), certificatePem(issueCertificate({ commonName: 'weak', key, ...day })));
		writeFileSync(path.join(folder, 'weak.key'), privateKeyPem(key));
	};
	const port = await describingServer(false);
	const line = (versions: string) =>
		`reverse_proxy https://localhost:${port} {\n transport http {\n dial_timeout 50ms\n tls_client_auth ${folder}/weak.crt ${folder}/weak.key${versions}\n }\n}`;
	write(2048);
	const sites = await Promise.all(['', '\n versions 1.1', '\n versions 2'].map(versions => site(line(versions))));
	write(1024);
	// The first request must leave no state that makes the second one hang.
	for (const weak of sites) for (let i = 0; i < 2; i++) assert.match(await get(weak), /^502 /);
	// A timer that the first request has left must not end the process, either.
	await waitForNothing(100);
});

test("requests waiting for one handshake share its failure instead of waiting for each other's timeouts", async () => {
	const silent = await listen(createTcpServer(() => {}));
	const line = (versions: string) =>
		`reverse_proxy https://localhost:${silent} {\n transport http {\n tls_timeout 1500ms${versions}\n }\n}`;
	const sites = [await site(line('')), await site(line('\n versions 2'))];
	const startedAt = performance.now();
	const answers = await Promise.all(sites.flatMap(url => Array.from({ length: 6 }, () => get(url))));
	for (const one of answers) assert.match(one, /^504 /);
	// One after the other, six timeouts would take nine seconds.
	assert.ok(performance.now() - startedAt < 8000, `${performance.now() - startedAt} ms`);
});

test('requests waiting for a stream on the only connection succeed if the upstream comes back without HTTP/2', async () => {
	let streams = 0;
	const busy = createSecureServer({ ...leaf, settings: { maxConcurrentStreams: 1 } }, () => streams++);
	let behind = await listen(busy);
	const plain = await describingServer(false);
	const passing = new Set<Socket>();
	const front = await listen(
		createTcpServer(socket => {
			const to = connect(behind, '127.0.0.1');
			passing.add(to);
			to.on('error', () => {});
			to.on('close', () => socket.destroy());
			socket.on('close', () => to.destroy());
			socket.pipe(to).pipe(socket);
		}),
	);
	const url = await site(
		`reverse_proxy https://localhost:${front} {\n transport http {\n tls_insecure_skip_verify\n max_conns_per_host 1\n }\n}`,
	);
	const ask = () => fetch(url, { signal: AbortSignal.timeout(60_000) }).then(({ status }) => status);
	const first = ask();
	await until('a stream is open', () => streams > 0);
	const others = Array.from({ length: 5 }, ask);
	await pauseFor(100);
	behind = plain;
	for (const socket of passing) socket.destroy();
	assert.is(await first, 502);
	assert.equal(await Promise.all(others), [200, 200, 200, 200, 200]);
});

test('an upstream without the required HTTP/2 is an error, and a stalled handshake times out', async () => {
	const port = await describingServer(false);
	const two = await site(
		`reverse_proxy https://localhost:${port} {\n transport http {\n versions 2\n tls_trust_pool file ${trust}\n }\n}`,
	);
	assert.match(await get(two), /^502 /);
	const silent = await listen(createTcpServer(() => {}));
	const waiting = await site(
		`reverse_proxy https://localhost:${silent} {\n transport http {\n tls_timeout 100ms\n }\n}`,
	);
	assert.match(await get(waiting), /^504 /);
});

test('over cleartext HTTP/2, many requests share a connection, and trailers and interim responses pass', async () => {
	const server = createHttp2Server({ settings: { maxConcurrentStreams: 50 } });
	let sessions = 0;
	server.on('session', () => sessions++);
	server.on('stream', (stream: ServerHttp2Stream, headers) => {
		if (headers[':path'] === '/hints') stream.additionalHeaders({ ':status': 103, link: '</a>' });
		stream.respond({ ':status': 200, 'x-method': String(headers[':method']) }, { waitForTrailers: true });
		stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': 'abc' }));
		stream.pipe(stream);
	});
	const port = await listen(server);
	const made = await proxiedSite(`reverse_proxy h2c://127.0.0.1:${port}`);
	open.push(() => made.close());
	const url = `http://127.0.0.1:${made.port}`;
	const bodies = await Promise.all(
		Array.from({ length: 40 }, (_, i) =>
			fetch(`${url}/${i}`, { method: 'POST', body: `body ${i}` }).then(r => r.text()),
		),
	);
	assert.equal(
		bodies,
		Array.from({ length: 40 }, (_, i) => `body ${i}`),
	);
	assert.is(sessions, 1);
	const large = Buffer.alloc(3_000_000, 'x');
	const echoed = await fetch(url, { method: 'PUT', body: large });
	assert.is((await echoed.arrayBuffer()).byteLength, large.length);
	assert.is(echoed.headers.get('x-method'), 'PUT');
	assert.is(made.pools[0]!.inFlight, 0);
	assert.is(made.pools[0]!.idleConnections, 1);
});

test('a connection over HTTP/1.1 can be used again after a response for a client that accepts little', async () => {
	let connections = 0;
	const upstream = createServer({ ...leaf }, (request, response) => {
		const content = Buffer.alloc(Number(request.url!.slice(1)), 'a');
		response.setHeader('Content-Length', content.length);
		response.end(content);
	});
	upstream.on('secureConnection', () => connections++);
	const options = '{\nadmin off\nservers {\nprotocols h1 h2c\n}\n}\n';
	const transport = `transport http {\ntls_trust_pool file ${trust}\n}`;
	const proxy = `reverse_proxy https://127.0.0.1:${await listen(upstream)} {\n${transport}\n}`;
	const text = `${options}http://:0 {\nbind 127.0.0.1\n${proxy}\n}\n`;
	const input = { format: 'configfile' as const, text, name: 'Configfile' };
	await withServer(undefined, { input, threads: 1 }, async ({ port }) => {
		// The server stops reading after the first TLS record, but the second one has already been decrypted.
		const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 1000 } });
		try {
			for (const size of [20_000, 3, 40_000, 3]) {
				const stream = session.request({ ':path': `/${size}` });
				stream.setTimeout(20_000, () => stream.close(8));
				let receivedBytes = 0;
				stream.on('data', (bytes: Buffer) => {
					receivedBytes += bytes.length;
				});
				await once(stream, 'end');
				assert.is(receivedBytes, size);
			}
		} finally {
			session.destroy();
		}
	});
	assert.is(connections, 1);
});

test('a response whose HTTP/2 stream is reset does not look complete, and counts as a failure', async () => {
	const server = createHttp2Server();
	let breakOff: () => void = () => {};
	server.on('stream', (stream: ServerHttp2Stream) => {
		stream.on('error', () => {});
		stream.respond({ ':status': 200 });
		stream.write('half');
		breakOff = () => stream.destroy(new Error('broken'));
	});
	const port = await listen(server);
	const url = await site(`reverse_proxy h2c://127.0.0.1:${port} {\n fail_duration 1m\n}`);
	const response = await fetch(url);
	breakOff();
	let failed = false;
	await response.text().catch(() => {
		failed = true;
	});
	assert.ok(failed);
	assert.match(await get(url), /^503 /);
});

test('a client that disconnects causes an immediate reset of the upstream stream', async () => {
	const server = createHttp2Server();
	const controller = new AbortController();
	const whenClosed = new Promise<number>(resolve => {
		server.on('stream', (stream: ServerHttp2Stream) => {
			stream.on('error', () => {});
			stream.on('close', () => resolve(stream.rstCode));
			controller.abort();
		});
	});
	const port = await listen(server);
	const url = await site(`reverse_proxy h2c://127.0.0.1:${port}`);
	const request = fetch(url, { signal: controller.signal }).catch(() => {});
	assert.is(await whenClosed, 8);
	await request;
});

test('an upgrade becomes an extended CONNECT if the HTTP/2 upstream supports it', async () => {
	const { request } = await import('node:http');
	const server = createHttp2Server({ settings: { enableConnectProtocol: true } });
	server.on('stream', (stream: ServerHttp2Stream, headers) => {
		stream.on('error', () => {});
		stream.respond({ ':status': headers[':protocol'] === 'websocket' ? 200 : 400 });
		stream.pipe(stream);
	});
	const upgrade = async (port: number): Promise<string> => {
		const url = await site(`reverse_proxy h2c://127.0.0.1:${port}`);
		const headers = {
			...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
			'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
		};
		return new Promise(resolve => {
			const asking = request(url, { headers });
			asking.on('response', response => resolve(String(response.resume().statusCode)));
			asking.on('upgrade', (response, socket) => {
				socket.on('error', () => {});
				socket.write('echo me');
				socket.once('data', bytes => {
					socket.destroy();
					resolve(`${response.statusCode} ${response.headers['sec-websocket-accept']} ${bytes}`);
				});
			});
			asking.on('error', error => resolve(error.message));
			asking.end();
		});
	};
	assert.is(await upgrade(await listen(server)), '101 s3pPLMBiTxaQ9kYGzzhZRbK+xOo= echo me');
	assert.is(await upgrade(await listen(createHttp2Server())), '502');
});

test('an upstream that does not speak HTTP/2 fails every waiting request', async () => {
	const port = await listen(createTcpServer(socket => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')));
	const url = await site(`reverse_proxy h2c://127.0.0.1:${port}`);
	const answers = await Promise.all(Array.from({ length: 5 }, () => get(url)));
	for (const answer of answers) assert.match(answer, /^502 /);
	const noise = await listen(createTcpServer(socket => socket.write(Buffer.alloc(5000, 0xff))));
	assert.match(await get(await site(`reverse_proxy h2c://127.0.0.1:${noise}`)), /^502 /);
});

test('a connection that is going away takes no new requests, and the requests on it complete', async () => {
	const server = createHttp2Server();
	let sessions = 0;
	server.on('session', () => sessions++);
	server.on('stream', (stream: ServerHttp2Stream) => {
		stream.on('error', () => {});
		stream.session!.close();
		setTimeout(() => {
			stream.respond({ ':status': 200 });
			stream.end('done');
		}, 20);
	});
	const url = await site(`reverse_proxy h2c://127.0.0.1:${await listen(server)}`);
	for (let i = 0; i < 5; i++) assert.is(await get(url), '200 done');
	assert.is(sessions, 5);
});

test.run();
