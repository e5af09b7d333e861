/**
 * HTTP/3 in the whole server: requests on all threads, certificates by name, reloads under load, and configurations for which
 * HTTP/3 is unavailable.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { request as secureRequest } from 'node:https';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../../../certificates.ts';
import {
	freePorts,
	pauseFor,
	runCommand,
	type ServerProcess,
	serve,
	startServer,
	temporaryFolder,
	until,
} from '../../../harness.ts';
import { headers, openControlStream, REQUEST, response } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { connect, QuicClient } from './quic-client.ts';

const test = http3Suite('HTTP/3 of the whole server');
const folder = temporaryFolder();
const file = path.join(folder, 'Configfile');
let server: ServerProcess;
let port = 0;
let admin = 0;
let tcpOnly = 0;

function configuration(answer: string, protocols = 'h1 h2 h3'): string {
	return `{
	admin 127.0.0.1:${admin}
	metrics
	threads 2
	auto_https disable_redirects
	servers 127.0.0.1:${port} {
		protocols ${protocols}
	}
	servers 127.0.0.1:${tcpOnly} {
		protocols h1 h2
	}
}
https://localhost:${port} {
	bind 127.0.0.1
	tls ${folder}/localhost.crt ${folder}/localhost.key
	log {
		output file ${folder}/access.log
	}
	respond "${answer} {http.request.proto} {http.request.tls.server_name}"
}
https://other.test:${port} {
	bind 127.0.0.1
	tls ${folder}/other.crt ${folder}/other.key
	respond "other"
}
https://old.test:${port} {
	bind 127.0.0.1
	tls ${folder}/other.crt ${folder}/other.key {
		protocols tls1.2 tls1.2
	}
	respond "old"
}
https://localhost:${tcpOnly} {
	bind 127.0.0.1
	tls ${folder}/localhost.crt ${folder}/localhost.key
	respond "over TCP"
}
`;
}

async function reload(text: string): Promise<void> {
	writeFileSync(file, text);
	const { status, stderr } = await runCommand(['reload', '-c', file, '--address', `127.0.0.1:${admin}`], {});
	assert.is(status, 0, stderr);
}

test.before(async () => {
	[port, admin, tcpOnly] = (await freePorts(3)) as [number, number, number];
	const authority = await TestAuthority.make();
	const certificates = { localhost: ['localhost'], other: ['other.test', 'old.test'] };
	for (const [name, names] of Object.entries(certificates)) {
		const { certificate, key } = await authority.issue({ names });
		writeFileSync(path.join(folder, `${name}.crt`), certificate);
		writeFileSync(path.join(folder, `${name}.key`), key);
	}
	writeFileSync(file, configuration('one'));
	server = await serve(['-c', file], port, { cwd: folder });
});

test.after(async () => {
	await server.stop();
	rmSync(folder, { recursive: true, force: true });
});

/** Requests `/` over HTTP/3 and returns the body. */
async function get(client: QuicClient, authority = `localhost:${port}`): Promise<string> {
	const asked = REQUEST.map(([name, value]) => [name, name === ':authority' ? authority : value] as const);
	const stream = client.open();
	const { body } = await response(client, stream.write(headers(asked), true));
	stream.stop();
	return body;
}

/** Returns the `Alt-Svc` field of a response over TCP. */
function altSvcOf(to: number, servername: string): Promise<string | undefined> {
	return new Promise((resolve, reject) => {
		const options = { host: '127.0.0.1', port: to, servername, rejectUnauthorized: false, agent: false };
		const sent = secureRequest({ ...options, headers: { host: `${servername}:${to}` } }, answer => {
			answer.resume();
			resolve(answer.headers['alt-svc'] as string | undefined);
		});
		sent.on('error', reject).end();
	});
}

async function metric(name: string): Promise<number> {
	const text = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
	return Number(new RegExp(`^${name.replaceAll(/[{}]/g, '\\$&')} (.*)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}

test('many connections are served, whichever thread they reach', async () => {
	const clients = await Promise.all(Array.from({ length: 16 }, () => connect(port)));
	for (const client of clients) openControlStream(client);
	const bodies = await Promise.all(clients.map(client => get(client)));
	for (const body of bodies) assert.is(body, 'one HTTP/3.0 localhost');
	assert.is(await metric('svc_http3_connections'), 16);
	assert.is(await metric('svc_http3_handshakes_total{result="ok"}'), 16);
	for (const client of clients) client.close();
	await until('the end of the connections', async () => (await metric('svc_http3_connections')) === 0);
});

test('access log entries have the protocol and TLS facts', async () => {
	const { readFileSync } = await import('node:fs');
	await until('the log entries', () => readFileSync(path.join(folder, 'access.log'), 'utf8').split('\n').length > 16);
	const entry = JSON.parse(readFileSync(path.join(folder, 'access.log'), 'utf8').split('\n')[0]!);
	assert.is(entry.request.proto, 'HTTP/3.0');
	assert.is(entry.request.tls.proto, 'h3');
	assert.is(entry.request.tls.server_name, 'localhost');
});

test('certificates and sites are selected by name', async () => {
	const client = await connect(port, { serverName: 'other.test' });
	assert.is(await get(client, `other.test:${port}`), 'other');
	client.close();
});

test('Alt-Svc is sent over TCP, only for sites served over HTTP/3', async () => {
	assert.is(await altSvcOf(port, 'localhost'), `h3=":${port}"; ma=2592000`);
	assert.is(await altSvcOf(port, 'old.test'), undefined);
	assert.is(await altSvcOf(tcpOnly, 'localhost'), undefined);
});

test('a site whose newest version is TLS 1.2 is not served over HTTP/3', async () => {
	const before = await metric('svc_http3_handshakes_total{result="failed"}');
	const client = new QuicClient(port, { serverName: 'old.test' });
	await until('the refusal', async () => (await metric('svc_http3_handshakes_total{result="failed"}')) > before);
	assert.not.ok(client.connected);
	client.close();
});

test('reloads and new certificates lose no request on open connections', async () => {
	let done = false;
	const seen = new Set<string>();
	const asking = Promise.all(
		Array.from({ length: 4 }, async () => {
			while (!done) {
				const client = await connect(port);
				openControlStream(client);
				// On a busy machine, the reloads take longer than the server keeps a connection: after 2,048 streams it sends GOAWAY, and
				// then rejects requests of a client that, like this one, does not heed it.
				for (let requests = 0; requests < 500 && !done; requests++) {
					seen.add(await get(client));
					await pauseFor(20);
				}
				client.close();
			}
		}),
	);
	const authority = await TestAuthority.make();
	for (let round = 0; round < 5; round++) {
		const { certificate, key } = await authority.issue({ names: ['localhost'] });
		writeFileSync(path.join(folder, 'localhost.crt'), certificate);
		writeFileSync(path.join(folder, 'localhost.key'), key);
		await reload(configuration(`round ${round}`));
		await until('the new answer', () => seen.has(`round ${round} HTTP/3.0 localhost`));
	}
	done = true;
	await asking;
	const fresh = await connect(port);
	assert.is(await get(fresh), 'round 4 HTTP/3.0 localhost');
	fresh.close();
});

test('HTTP/3 can be turned off and on again', async () => {
	const client = await connect(port);
	openControlStream(client);
	assert.match(await get(client), /HTTP\/3\.0/);
	await reload(configuration('off', 'h1 h2'));
	assert.is(await altSvcOf(port, 'localhost'), undefined);
	assert.is((await client.end()).code, 0x100);
	client.close();
	await reload(configuration('on'));
	assert.is(await altSvcOf(port, 'localhost'), `h3=":${port}"; ma=2592000`);
	const again = await connect(port);
	assert.is(await get(again), 'on HTTP/3.0 localhost');
	again.close();
});

test('random datagrams are dropped, and the next request is served', async () => {
	const { createSocket } = await import('node:dgram');
	const { randomBytes } = await import('node:crypto');
	const socket = createSocket('udp4');
	const send = (bytes: Buffer): Promise<void> =>
		new Promise((resolve, reject) =>
			socket.send(bytes, port, '127.0.0.1', error => (error ? reject(error) : resolve())),
		);
	for (let i = 0; i < 2000; i++) await send(randomBytes(1 + (i % 1400)));
	const client = await connect(port);
	assert.match(await get(client), /HTTP\/3\.0/);
	client.close();
	socket.close();
	assert.ok((await metric('svc_http3_refused_total{reason="noise"}')) > 0);
});

test('an unsupported QUIC version is answered with the supported ones', async () => {
	const { createSocket } = await import('node:dgram');
	const socket = createSocket('udp4');
	const answer = new Promise<Buffer>(resolve => socket.once('message', resolve));
	const packet = Buffer.alloc(1200);
	packet.set([0xc0, 0xba, 0xba, 0xba, 0xba, 8, 1, 2, 3, 4, 5, 6, 7, 8, 4, 9, 9, 9, 9]);
	// The packets of the previous test may have used up the Version Negotiation packets that the server sends in a second, so this
	// client repeats its packet, as a real client does.
	const send = (): void => socket.send(packet, port, '127.0.0.1');
	send();
	const resend = setInterval(send, 200);
	const got = await answer;
	clearInterval(resend);
	assert.equal([...got.subarray(1, 5)], [0, 0, 0, 0]);
	// In the reply, the two connection IDs are swapped.
	assert.equal([...got.subarray(5, 19)], [4, 9, 9, 9, 9, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
	assert.is(got.readUInt32BE(19), 1);
	socket.close();
});

test('an explicit `h3` is refused where HTTP/3 is unavailable', async () => {
	const { status, stderr } = await runCommand(['validate', '-c', file], { env: { SVC_IO: 'node' } });
	assert.is(status, 1);
	assert.match(stderr, /HTTP\/3 \(`h3`\) is unavailable here: it needs `direct` I\/O/);
	const [another, other, third] = (await freePorts(3)) as [number, number, number];
	const elsewhere = path.join(folder, 'elsewhere');
	writeFileSync(
		elsewhere,
		configuration('x')
			.replaceAll(`:${port}`, `:${another}`)
			.replaceAll(`:${admin}`, `:${other}`)
			.replaceAll(`:${tcpOnly}`, `:${third}`),
	);
	const failing = startServer(['run', '-c', elsewhere], { cwd: folder, env: { SVC_IO: 'node' } });
	await until('the refusal', () => failing.child.exitCode !== null);
	assert.match(failing.output(), /HTTP\/3 \(`h3`\) is unavailable, because it needs `direct` I\/O/);
	await failing.stop();
});

test('a stop lets requests complete', async () => {
	const client = await connect(port);
	openControlStream(client);
	assert.match(await get(client), /HTTP\/3\.0/);
	server.child.kill('SIGTERM');
	assert.is((await client.end()).code, 0x100);
	client.close();
	await until('the end of the process', () => server.child.exitCode !== null);
	assert.is(server.child.exitCode, 0);
});

test.run();
