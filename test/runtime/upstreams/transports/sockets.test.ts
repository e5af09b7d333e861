/** Upstream connections before HTTP begins: PROXY headers, forward proxies, connection limits and timeouts. */
import { createSecureServer } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { forwardProxyFor } from '../../../../runtime/upstreams/transports/forward-proxy.ts';
import { encodeProxyHeader } from '../../../../runtime/upstreams/transports/proxy-header.ts';
import { proxiedSite } from '../../../compiler/modules/directives/reverse-proxy/proxied-site.ts';
import { onRequestHead, scriptedUpstream } from '../scripted-upstream.ts';
import { testAuthority } from './certificates.ts';

const test = suite('sockets to upstreams');

const cleanups: (() => unknown)[] = [];
test.after.each(async () => {
	for (const close of cleanups.splice(0).reverse()) await close();
});

async function upstream(script: (socket: Socket, number: number) => void) {
	const made = await scriptedUpstream(script);
	cleanups.push(() => made.close());
	return made;
}

async function site(lines: string) {
	const made = await proxiedSite(lines);
	cleanups.push(() => made.close());
	return { ...made, url: `http://127.0.0.1:${made.port}` };
}

async function get(url: string, init: RequestInit = {}): Promise<string> {
	const response = await fetch(url, init);
	return `${response.status} ${await response.text()}`;
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

test('PROXY protocol headers have the exact bytes', () => {
	const four = { address: '192.0.2.1', port: 1234, localAddress: '::ffff:192.0.2.9', localPort: 80 };
	const six = { address: '2001:db8::1', port: 1, localAddress: '192.0.2.9', localPort: 2 };
	assert.is(encodeProxyHeader('v1', four).toString(), 'PROXY TCP4 192.0.2.1 192.0.2.9 1234 80\r\n');
	assert.is(encodeProxyHeader('v1', six).toString(), 'PROXY TCP6 2001:db8::1 :: 1 2\r\n');
	assert.is(encodeProxyHeader('v1', undefined).toString(), 'PROXY UNKNOWN\r\n');
	const signature = '0d0a0d0a000d0a515549540a';
	assert.is(encodeProxyHeader('v2', four).toString('hex'), `${signature}2111000cc0000201c000020904d20050`);
	const long = '20010db8000000000000000000000001';
	assert.is(encodeProxyHeader('v2', six).toString('hex'), `${signature}21210024${long}${'0'.repeat(32)}00010002`);
	assert.is(encodeProxyHeader('v2', undefined).toString('hex'), `${signature}20000000`);
});

for (const version of ['v1', 'v2']) {
	test(`PROXY protocol ${version}: the header is sent first and once per connection`, async () => {
		let receivedData = '';
		const server = await upstream(socket => {
			socket.on('data', bytes => {
				receivedData += bytes.toString('latin1');
				if (receivedData.endsWith('\r\n\r\n')) socket.write(OK);
			});
		});
		const { url } = await site(
			`reverse_proxy ${server.address} {\n transport http {\n proxy_protocol ${version}\n }\n}`,
		);
		const { Agent, request } = await import('node:http');
		const agent = new Agent({ keepAlive: true, maxSockets: 1 });
		for (let i = 0; i < 5; i++) {
			await new Promise<void>((resolve, reject) => {
				request(url, { agent }, response => response.resume().on('end', resolve))
					.on('error', reject)
					.end();
			});
		}
		agent.destroy();
		assert.is(server.accepted, 1);
		if (version === 'v1')
			assert.match(receivedData, /^PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 \d+ \d+\r\nGET \/ HTTP\/1\.1\r\n/);
		else assert.is(receivedData.indexOf('GET / '), 28);
		assert.is(receivedData.split('GET / ').length, 6);
		assert.is(receivedData.split(version === 'v1' ? 'PROXY ' : 'QUIT').length, 2);
		await get(url);
		assert.is(server.accepted, 2, 'another client got no connection of its own');
	});
}

test('the PROXY header precedes TLS and HTTP/2', async () => {
	const authority = await testAuthority();
	const server = createSecureServer(await authority.issue(['localhost']));
	server.on('stream', (stream: import('node:http2').ServerHttp2Stream) => {
		stream.respond({ ':status': 200 });
		stream.end('two');
	});
	let header = '';
	const front = await upstream(socket => {
		socket.once('data', (bytes: Buffer) => {
			socket.pause();
			const end = bytes.indexOf('\r\n') + 2;
			header = bytes.toString('latin1', 0, end);
			socket.unshift(bytes.subarray(end));
			server.emit('connection', socket);
		});
	});
	const lines = 'versions 2\n tls_insecure_skip_verify\n proxy_protocol v1';
	const { url } = await site(`reverse_proxy https://localhost:${front.port} {\n transport http {\n ${lines}\n }\n}`);
	assert.is(await get(url), '200 two');
	assert.match(header, /^PROXY TCP4 127\.0\.0\.1 /);
});

test('connections through forward proxies work with CONNECT and SOCKS5, with credentials', async () => {
	const server = await upstream(socket => onRequestHead(socket, () => socket.write(OK)));
	const asked: string[] = [];
	const relay = (socket: Socket, port: number): void => {
		const onward = connect(port, '127.0.0.1');
		onward.on('error', () => socket.destroy());
		socket.pipe(onward).pipe(socket);
	};
	const connecting = await upstream(socket => {
		socket.once('data', bytes => {
			const head = bytes.toString('latin1');
			asked.push(head);
			if (!head.includes('Basic dXNlcjpwYXNz')) {
				socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n');
			} else if (head.startsWith('CONNECT ')) {
				socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
				relay(socket, server.port);
			} else socket.write(OK);
		});
	});
	const through = (url: string, more = '') =>
		`reverse_proxy ${server.address} {\n transport http {\n network_proxy url ${url}\n ${more}\n }\n}`;
	const trusted = `http://user:pass@127.0.0.1:${connecting.port}`;
	const good = await site(through(trusted));
	assert.is(await get(`${good.url}/a?b`), '200 ok');
	assert.ok(
		asked[0]!.startsWith(`GET http://${server.address}/a?b HTTP/1.1\r\nHost: 127.0.0.1:${good.port}\r\n`),
		asked[0],
	);
	const tunnelled = await site(through(trusted, 'proxy_protocol v1'));
	assert.is(await get(tunnelled.url), '200 ok');
	assert.ok(asked[1]!.startsWith(`CONNECT ${server.address} HTTP/1.1\r\n`), asked[1]);
	const untrusted = `http://127.0.0.1:${connecting.port}`;
	assert.match(await get((await site(through(untrusted))).url), /^502 /);
	assert.match(await get((await site(through(untrusted, 'proxy_protocol v1'))).url), /^502 /);
	const socks = await upstream(socket => {
		let step = 0;
		socket.on('data', function read(bytes: Buffer) {
			step++;
			if (step === 1) socket.write(Buffer.from([5, 2]));
			else if (step === 2) {
				asked.push(bytes.toString('latin1', 2, 6));
				socket.write(Buffer.from([1, 0]));
			} else {
				socket.off('data', read);
				socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
				relay(socket, bytes.readUInt16BE(bytes.length - 2));
			}
		});
	});
	const five = await site(through(`socks5://user:pass@127.0.0.1:${socks.port}`));
	assert.is(await get(five.url), '200 ok');
	assert.is(asked.at(-1), 'user');
});

test('forward proxies, and hosts that bypass them,, are taken from the environment', () => {
	const target = { host: 'app.example.com', port: 80 };
	const at = (environment: object, settings: object = {}) =>
		forwardProxyFor({ type: 'http', ...settings } as never, target, environment as never)?.url;
	assert.is(at({ HTTP_PROXY: 'http://p:3128' }), 'http://p:3128');
	assert.is(at({ HTTPS_PROXY: 'http://p:3128' }), undefined);
	assert.is(at({ HTTPS_PROXY: 'p:3128' }, { tls: {} }), 'http://p:3128');
	assert.is(at({ HTTP_PROXY: 'http://p:3128' }, { forward_proxy: 'none' }), undefined);
	for (const list of ['*', 'example.com', '.example.com', 'x, app.example.com:80', '*.example.com']) {
		assert.is(at({ HTTP_PROXY: 'http://p:3128', NO_PROXY: list }), undefined, list);
	}
	assert.is(at({ HTTP_PROXY: 'http://p:3128', NO_PROXY: 'ample.com, app.example.com:81' }), 'http://p:3128');
	const near = { ...target, host: '10.1.2.3' };
	const environment = { HTTP_PROXY: 'http://p:3128', NO_PROXY: '192.168.0.0/16, 10.0.0.0/8, nonsense/8' };
	assert.is(forwardProxyFor({ type: 'http' }, near, environment), undefined);
	assert.is(forwardProxyFor({ type: 'http' }, { ...near, host: '11.1.2.3' }, environment)?.url, 'http://p:3128');
});

test('at the connection limit, requests wait for a connection', async () => {
	let most = 0;
	let now = 0;
	const server = await upstream(socket =>
		onRequestHead(socket, () => {
			most = Math.max(most, ++now);
			setTimeout(() => {
				now--;
				socket.write(OK);
			}, 10);
		}),
	);
	const { url } = await site(`reverse_proxy ${server.address} {\n transport http {\n max_conns_per_host 2\n }\n}`);
	const answers = await Promise.all(Array.from({ length: 10 }, () => get(url)));
	assert.equal(new Set(answers), new Set(['200 ok']));
	assert.is(most, 2);
	assert.is(server.accepted, 2);
});

test('a stalled response, and an upstream that does not read, time out', async () => {
	const stalling = await upstream(socket =>
		onRequestHead(socket, head => {
			if (head.startsWith('GET /body')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc');
		}),
	);
	const reading = await site(`reverse_proxy ${stalling.address} {\n transport http {\n read_timeout 80ms\n }\n}`);
	assert.match(await get(`${reading.url}/head`), /^504 /);
	const response = await fetch(`${reading.url}/body`);
	let failed = false;
	await response.text().catch(() => {
		failed = true;
	});
	assert.ok(failed);
	const deaf = await upstream(socket => socket.pause());
	const writing = await site(`reverse_proxy ${deaf.address} {\n transport http {\n write_timeout 80ms\n }\n}`);
	const body = new Uint8Array(20_000_000);
	const sent = await fetch(writing.url, { method: 'POST', body }).then(
		({ status }) => status,
		() => 504,
	);
	assert.is(sent, 504);
});

test('names are resolved by the configured name server, and connections use the configured local address', async () => {
	const { createSocket: createUdp } = await import('node:dgram');
	const packet = await import('dns-packet');
	const dns = createUdp('udp4');
	dns.on('message', (bytes, from) => {
		const query = packet.decode(bytes);
		const question = query.questions![0]!;
		const answers =
			question.type === 'A' ? [{ type: 'A' as const, name: question.name, ttl: 1, data: '127.0.0.1' }] : [];
		dns.send(
			packet.encode({ type: 'response', id: query.id!, questions: [question], answers }),
			from.port,
			from.address,
		);
	});
	await new Promise<void>(resolve => dns.bind(0, '127.0.0.1', resolve));
	cleanups.push(() => new Promise<void>(resolve => dns.close(() => resolve())));
	let from = '';
	const server = await upstream(socket => {
		from = socket.remoteAddress!;
		onRequestHead(socket, () => socket.write(OK));
	});
	const lines = `resolvers 127.0.0.1:${dns.address().port}\n local_address 127.0.0.3`;
	const { url } = await site(`reverse_proxy app.test:${server.port} {\n transport http {\n ${lines}\n }\n}`);
	assert.is(await get(url), '200 ok');
	assert.is(from, '127.0.0.3');
});

test('reads are limited to the configured buffer size, and the message is complete', async () => {
	const body = 'x'.repeat(100_000);
	const server = await upstream(socket =>
		onRequestHead(socket, () => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)),
	);
	const { url, pools } = await site(`reverse_proxy ${server.address} {\n transport http {\n read_buffer 2KiB\n }\n}`);
	assert.is(await get(url), `200 ${body}`);
	assert.is((pools[0] as unknown as { readBuffer(): Buffer }).readBuffer().length, 2048);
});

test('gzip is requested from the upstream and decoded if the client accepts no coding', async () => {
	const { gzipSync } = await import('node:zlib');
	const text = 'what is in it '.repeat(100_000);
	const packed = gzipSync(text);
	const heads: string[] = [];
	const server = await upstream(socket =>
		onRequestHead(socket, head => {
			heads.push(head);
			const body = head.startsWith('GET /cut') ? packed.subarray(0, packed.length / 2) : packed;
			const coding = head.startsWith('GET /lie') ? 'x' : 'gzip';
			const start = `HTTP/1.1 200 OK\r\nContent-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\n\r\n`;
			socket.write(start);
			socket.write(body);
		}),
	);
	const { port } = await site(`reverse_proxy ${server.address}`);
	const { request } = await import('node:http');
	const ask = (path: string, headers: object = {}): Promise<{ coding: string | undefined; body: Buffer } | Error> =>
		new Promise(resolve => {
			const asking = request({ port, host: '127.0.0.1', path, headers: headers as never }, response => {
				const pieces: Buffer[] = [];
				response.on('data', piece => pieces.push(piece));
				response.on('error', resolve);
				response.on('end', () =>
					resolve({ coding: response.headers['content-encoding'], body: Buffer.concat(pieces) }),
				);
			});
			asking.on('error', resolve).end();
		});
	const plain = (await ask('/')) as { coding: string | undefined; body: Buffer };
	assert.equal([plain.coding, plain.body.toString() === text], [undefined, true]);
	assert.match(heads[0]!, /\r\nAccept-Encoding: gzip\r\n/);
	const own = (await ask('/', { 'Accept-Encoding': 'gzip' })) as { coding: string | undefined; body: Buffer };
	assert.equal([own.coding, own.body.length], ['gzip', packed.length]);
	const other = (await ask('/lie')) as { coding: string | undefined; body: Buffer };
	assert.equal([other.coding, other.body.length], ['x', packed.length]);
	assert.instance(await ask('/cut'), Error);
	await ask('/', { Range: 'bytes=0-1' });
	assert.not.match(heads.at(-1)!, /Accept-Encoding/);
	const off = await site(`reverse_proxy ${server.address} {\n transport http {\n compression off\n }\n}`);
	await get(off.url);
	assert.not.match(heads.at(-1)!, /Accept-Encoding/);
});

test.run();
