/**
 * Acceptance tests of proxying in the compatible language that need HTTP/2, TLS or the PROXY protocol (facts P8, X1 to X4, T3 and
 * T4 of that language's documentation). The other facts are tested by the cases in `fixtures/serve/facts-of-proxying`.
 */
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { connect as connectHttp2, createServer as createHttp2Server, createSecureServer } from 'node:http2';
import { request as secureRequest } from 'node:https';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Runtime, startRuntime } from '../../../runtime/main/runtime.ts';
import { freePorts, temporaryFolder } from '../../harness.ts';
import { recordingLog } from '../running-server.ts';
import { testAuthority } from './transports/certificates.ts';

const facts = suite('facts of proxying');

const V2_SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

let runtime: Runtime | undefined;
let folder = '';
let ports: { site: number; h2: number; sni: number; redirecting: number; wrapped: number };
const servers: Server[] = [];
const sockets = new Set<Socket>();
/** What the upstreams have received so far. */
const received: { streams: IncomingHttpHeaders[]; headers: string[]; uploaded: number } = {
	streams: [],
	headers: [],
	uploaded: 0,
};

async function listen(server: Server): Promise<number> {
	servers.push(server);
	server.on('connection', socket => {
		sockets.add(socket);
		socket.on('close', () => sockets.delete(socket)).on('error', () => {});
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	return (server.address() as AddressInfo).port;
}

/** Returns a server that strips the PROXY header from each connection, records the header, and passes the connection to `take`. */
function behindProxyHeader(take: (socket: Socket) => void): Server {
	return createServer(socket => {
		let all = Buffer.alloc(0);
		socket.on('error', () => {});
		const read = (bytes: Buffer): void => {
			all = Buffer.concat([all, bytes]);
			const two = all.subarray(0, 12).equals(V2_SIGNATURE);
			const end = two ? 16 + all.readUInt16BE(14) : all.indexOf('\r\n') + 2;
			if (end < 2 || all.length < end) return;
			socket.off('data', read);
			socket.pause();
			received.headers.push(two ? `v2 ${[...all.subarray(16, 20)].join('.')}` : all.toString('latin1', 0, end - 2));
			socket.unshift(all.subarray(end));
			take(socket);
		};
		socket.on('data', read);
	});
}

facts.before(async () => {
	folder = temporaryFolder();
	const authority = await testAuthority();
	const { cert, key } = await authority.issue(['localhost', 'example.com', '127.0.0.1']);
	writeFileSync(path.join(folder, 'cert.pem'), cert);
	writeFileSync(path.join(folder, 'key.pem'), key);
	const stream = (one: ServerHttp2Stream, headers: IncomingHttpHeaders): void => {
		received.streams.push(headers);
		one.on('error', () => {});
		one.respond({ ':status': 200 });
		one.pipe(one);
	};
	const echo = createHttp2Server().on('stream', stream);
	const behind = createHttp2Server().on('stream', stream);
	const secure = createSecureServer({ cert, key }).on('stream', stream);
	const plain = createHttpServer((request, response) => {
		request.on('data', bytes => {
			received.uploaded += bytes.length;
		});
		request.on('end', () => response.writeHead(request.method === 'POST' ? 204 : 200).end());
	});
	const [h2c, raw, h2cBehind, tlsBehind, plainPort] = [
		await listen(echo),
		await listen(behindProxyHeader(socket => plain.emit('connection', socket) && socket.resume())),
		await listen(behindProxyHeader(socket => behind.emit('connection', socket))),
		await listen(behindProxyHeader(socket => secure.emit('connection', socket))),
		await listen(plain),
	];
	const [site, h2, sni, redirecting, wrapped] = (await freePorts(5)) as [number, number, number, number, number];
	ports = { site, h2, sni, redirecting, wrapped };
	const log = recordingLog();
	const text = `{
	admin off
	skip_install_trust
	auto_https disable_redirects
	servers :${h2} {
		protocols h1 h2c
	}
	servers :${redirecting} {
		listener_wrappers {
			http_redirect
			tls
		}
	}
	servers :${wrapped} {
		listener_wrappers {
			proxy_protocol {
				timeout 5s
				allow 127.0.0.0/8
			}
		}
	}
}
http://localhost:${site} {
	${['v1', 'v2']
		.map(
			version => `reverse_proxy /x1/${version} 127.0.0.1:${raw} {
		transport http {
			versions 1.1
			proxy_protocol ${version}
		}
	}`,
		)
		.join('\n')}
	reverse_proxy /x2 h2c://127.0.0.1:${h2cBehind} {
		transport http {
			proxy_protocol v2
		}
	}
	reverse_proxy /x3 https://localhost:${tlsBehind} {
		transport http {
			versions 2
			tls_insecure_skip_verify
			proxy_protocol v1
		}
	}
	reverse_proxy /t3 https://127.0.0.1:${sni} {
		transport http {
			versions 1.1 2
			tls_server_name {header.X-SNI}
			tls_insecure_skip_verify
		}
	}
}
http://localhost:${h2} {
	reverse_proxy h2c://127.0.0.1:${h2c}
}
https://:${sni} {
	tls ${folder}/cert.pem ${folder}/key.pem
	respond "{http.request.tls.server_name}"
}
https://localhost:${redirecting} {
	tls ${folder}/cert.pem ${folder}/key.pem
	reverse_proxy 127.0.0.1:${plainPort}
}
http://:${wrapped} {
	respond {http.request.remote.host}
}
`;
	runtime = await startRuntime({
		input: { format: 'compatfile', text, name: 'Compatfile' },
		threads: 1,
		writers: { stdout: log, stderr: log },
	});
});

facts.after(async () => {
	runtime?.kill();
	await runtime?.stop();
	for (const socket of sockets) socket.destroy();
	for (const server of servers) server.close();
	rmSync(folder, { recursive: true });
});

const get = async (target: string, headers: { [name: string]: string } = {}) => {
	const response = await fetch(`http://localhost:${ports.site}${target}`, { headers });
	return { status: response.status, text: await response.text() };
};

facts('P8: HTTP/2 streams are bidirectional, with the client’s Host', async () => {
	const session = connectHttp2(`http://localhost:${ports.h2}`);
	try {
		const call = session.request({ ':method': 'POST', ':path': '/echo' });
		call.setEncoding('utf8');
		for (const word of ['one', 'two', 'three']) {
			call.write(word);
			// Each piece is written only after the previous one has been echoed, which shows that nothing is buffered.
			assert.is((await once(call, 'data'))[0], word);
		}
		call.end();
		await once(call, 'end');
		assert.is(received.streams.at(-1)![':authority'], `localhost:${ports.h2}`);
		assert.is(received.streams.at(-1)![':method'], 'POST');
	} finally {
		session.destroy();
	}
});

facts('X1: the PROXY header precedes the request', async () => {
	for (const version of ['v1', 'v2']) assert.is((await get(`/x1/${version}`)).status, 200);
	assert.match(received.headers[0]!, /^PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 \d+ \d+$/);
	assert.is(received.headers[1], 'v2 127.0.0.1');
});

facts('X2: sequential requests share HTTP/2 connections that start with the PROXY header', async () => {
	const before = received.headers.length;
	for (let i = 0; i < 5; i++) assert.is((await get('/x2')).status, 200);
	const headers = received.headers.slice(before);
	assert.ok(headers.length < 5, "a client's connection was not reused");
	assert.equal(new Set(headers), new Set(['v2 127.0.0.1']));
});

facts('X3: the PROXY header precedes the TLS handshake', async () => {
	assert.is((await get('/x3')).status, 200);
	assert.match(received.headers.at(-1)!, /^PROXY TCP4 127\.0\.0\.1 /);
});

facts('X4: a listener trusts the PROXY header of allowed peers', async () => {
	const socket = connect(ports.wrapped, '127.0.0.1');
	const address = Buffer.from([10, 0, 0, 1, 127, 0, 0, 1, 1234 >> 8, 1234 & 255, 0, 80]);
	socket.write(Buffer.concat([V2_SIGNATURE, Buffer.from([0x21, 0x11, 0, 12]), address]));
	socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
	let answer = '';
	for await (const bytes of socket) answer += bytes;
	assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*\r\n\r\n10\.0\.0\.1$/);
});

facts('T3: the TLS server name is taken from the request', async () => {
	assert.equal(await get('/t3', { 'X-SNI': 'example.com' }), { status: 200, text: 'example.com' });
	assert.equal(await get('/t3', { 'X-SNI': 'localhost' }), { status: 200, text: 'localhost' });
});

facts('T4: with the wrappers http_redirect and tls, a body of one megabyte and one byte arrives complete', async () => {
	const status = await new Promise((resolve, reject) => {
		const options = { host: '127.0.0.1', port: ports.redirecting, servername: 'localhost', method: 'POST' };
		const headers = { Host: `localhost:${ports.redirecting}` };
		secureRequest({ ...options, headers, rejectUnauthorized: false }, response => {
			response.resume();
			resolve(response.statusCode);
		})
			.on('error', reject)
			.end(Buffer.alloc(1_048_577, 'x'));
	});
	assert.equal([status, received.uploaded], [204, 1_048_577]);
	const plain = await fetch(`http://127.0.0.1:${ports.redirecting}/a`, {
		redirect: 'manual',
		headers: { Host: `localhost:${ports.redirecting}` },
	});
	assert.is(plain.status, 308);
});

facts.run();
