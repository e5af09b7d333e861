/** `reverse_proxy` over sockets: our own engine in front, scripted upstreams behind it. */
import type { Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openWire, send, statusOf, type WireClient, withoutDate } from '../../../../runtime/protocols/http1/wire.ts';
import {
	onRequestHead,
	type ScriptedUpstream,
	scriptedUpstream,
} from '../../../../runtime/upstreams/scripted-upstream.ts';
import { type ProxiedSite, proxiedSite } from './proxied-site.ts';

const test = suite('reverse_proxy');

const closing: { close(): Promise<void> }[] = [];

test.after.each(async () => {
	for (const one of closing.splice(0).reverse()) await one.close();
});

async function upstream(script: (socket: Socket, number: number) => void): Promise<ScriptedUpstream> {
	const made = await scriptedUpstream(script);
	closing.push(made);
	return made;
}

async function site(lines: string, before = ''): Promise<ProxiedSite> {
	const made = await proxiedSite(lines, before);
	closing.push(made);
	return made;
}

/** Starts an upstream that echoes the head of each request. */
const startEcho = () =>
	upstream(socket =>
		onRequestHead(socket, head => {
			socket.write(
				`HTTP/1.1 200 OK\r\nServer: up\r\nX-Up: 1\r\nContent-Length: ${head.length}\r\n\r\n${head}`,
				'latin1',
			);
		}),
	);

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));

async function until(condition: () => boolean): Promise<void> {
	for (let i = 0; i < 200 && !condition(); i++) await pause(5);
	assert.ok(condition(), 'timed out waiting for the condition');
}

const body = (response: string) => response.slice(response.indexOf('\r\n\r\n') + 4);

test('end-to-end fields are forwarded, connection fields dropped, forwarding fields set', async () => {
	const up = await startEcho();
	const { port } = await site(`reverse_proxy ${up.address}`);
	const response = await send(
		port,
		'GET /a%20b?x=%41 HTTP/1.1\r\nHost: Example.com:81\r\nConnection: close, X-Hop, Host\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\nProxy-Authorization: secret\r\nTE: gzip, trailers\r\nX-End: 1\r\nVia: 1.0 other\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n\r\n',
	);
	assert.is(
		body(response),
		'GET /a%20b?x=%41 HTTP/1.1\r\nHost: Example.com:81\r\nX-End: 1\r\nVia: 1.0 other\r\nTE: trailers\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: Example.com:81\r\nVia: 1.1 svc\r\nAccept-Encoding: gzip\r\nConnection: TE\r\n\r\n',
	);
	assert.match(withoutDate(response), 'HTTP/1.1 200 OK\r\nServer: up\r\nX-Up: 1\r\nVia: 1.1 svc\r\n');
});

test('a client cannot remove a field that a directive has set by naming it in Connection', async () => {
	const up = await startEcho();
	const { port } = await site(
		`request_header X-User ada\nrequest_header +X-Tag b\nrequest_header X-{path.0} c\nreverse_proxy ${up.address}`,
	);
	const response = await send(
		port,
		'GET /Role HTTP/1.1\r\nHost: h\r\nConnection: close, x-user , X-Hop\r\nConnection: X-Tag, x-role\r\nX-User: eve\r\nX-Hop: 1\r\n\r\n',
	);
	const fields = body(response).split('\r\n');
	for (const field of ['X-User: ada', 'X-Tag: b', 'X-Role: c']) assert.ok(fields.includes(field), body(response));
	assert.not.match(body(response), /X-Hop|eve/);
});

test('X-Forwarded-* depends on whether the peer is trusted', async () => {
	const up = await startEcho();
	const sent = 'X-Forwarded-For: 1.2.3.4, 5.6.7.8\r\nX-Forwarded-Proto: ftp, https\r\nX-Forwarded-Host: a, b\r\n';
	const overwritten = ['127.0.0.1', 'http', 'h'];
	const believed = ['1.2.3.4, 5.6.7.8, 127.0.0.1', 'https', 'b'];
	const global = '{\n\tservers {\n\t\ttrusted_proxies static 127.0.0.0/8\n\t}\n}';
	const table: [block: string, before: string, fields: string, expected: (string | undefined)[]][] = [
		['', '', sent, overwritten],
		['', '', '', overwritten],
		['trusted_proxies 10.0.0.0/8', '', sent, overwritten],
		['trusted_proxies 127.0.0.1', '', sent, believed],
		['trusted_proxies private_ranges', '', sent, believed],
		['', global, sent, believed],
		['trusted_proxies 10.0.0.0/8', global, sent, believed],
		['trusted_proxies 127.0.0.1', '', '', overwritten],
		['header_up -X-Forwarded-For', '', sent, [undefined, 'http', 'h']],
		['header_up X-Forwarded-Proto wss', '', sent, ['127.0.0.1', 'wss', 'h']],
	];
	for (const [block, before, fields, expected] of table) {
		const { port } = await site(`reverse_proxy ${up.address} {\n${block}\n}`, before);
		const seen = body(await send(port, `GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n${fields}\r\n`));
		const values = ['For', 'Proto', 'Host'].map(name => new RegExp(`X-Forwarded-${name}: (.*)\r`).exec(seen)?.[1]);
		assert.equal(values, expected, `${block} ${before} ${fields}`);
	}
});

test('header_up and header_down edit fields; placeholder values cannot break a line or change the framing', async () => {
	const up = await startEcho();
	const { port } = await site(`
		header X-Own own
		reverse_proxy ${up.address} {
			header_up Host {rp.upstream.hostport}
			header_up X-Path {path}
			header_up +X-Add two
			header_up -X-Secret
			header_up Content-Length 3
			header_up Transfer-Encoding chunked
			header_up X-Swap (.)(.) $2$1
			header_down -X-Up
			header_down X-Status {rp.status_code}
			header_down Server (.*) <$1>
		}`);
	const response = await send(
		port,
		'GET /%0d%0aX-Evil:%201/%C4%8A HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Secret: s\r\nX-Add: one\r\nX-Swap: ab\r\n\r\n',
	);
	const seen = body(response);
	assert.match(seen, `Host: ${up.address}\r\n`);
	assert.match(seen, /X-Path: \/ ?\s?X-Evil: 1\/\u00c4\u008a\r\n/);
	assert.not.match(seen, /^X-Evil/m);
	assert.match(seen, /X-Add: one\r\n(.*\r\n)*X-Add: two\r\n/);
	assert.not.match(seen, 'X-Secret');
	assert.not.match(seen, 'Content-Length');
	assert.not.match(seen, 'Transfer-Encoding');
	assert.match(seen, 'X-Swap: ba\r\n');
	const head = response.slice(0, response.indexOf('\r\n\r\n'));
	assert.not.match(head, 'X-Up');
	assert.match(head, 'X-Status: 200');
	assert.match(head, 'X-Own: own');
	assert.match(head, 'Server: <up>');
	assert.not.match(head, 'Server: svc');
});

test('method and rewrite change only the request to the upstream', async () => {
	const up = await startEcho();
	const { port, exchanges } = await site(`reverse_proxy ${up.address} {\nmethod get\n}`);
	const seen = await send(port, 'POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc');
	assert.match(body(seen), /^GET \/a HTTP\/1\.1\r\n/);
	assert.not.match(body(seen), 'Content-Length');
	assert.is(exchanges[0]!.request.method, 'POST');
});

test('rewrite changes path and query of the upstream request, and of no other', async () => {
	const up = await startEcho();
	const { port, exchanges } = await site(`reverse_proxy ${up.address} {\nrewrite /v2{path}?{query}&from=x\n}`);
	const seen = await send(port, 'GET /a%20b?c=d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
	assert.match(body(seen), /^GET \/v2\/a%20b\?c=d&from=x HTTP\/1\.1\r\n/);
	assert.is(exchanges[0]!.request.path, '/a%20b');
	assert.is(exchanges[0]!.request.query, 'c=d');
});

test("policies that depend on the target use the upstream's target", async () => {
	const named = (name: string) =>
		upstream(socket =>
			onRequestHead(socket, () => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${name}`)),
		);
	const ups = await Promise.all(['a', 'b', 'c', 'd'].map(named));
	const to = ups.map(({ address }) => address).join(' ');
	const rewrite = 'rewrite /fixed?k={http.request.uri.path.0}';
	const plain = await site(`reverse_proxy ${to} {\n\tlb_policy uri_hash\n}`);
	const chosen = async (port: number, target: string): Promise<string> =>
		body(await send(port, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`));
	for (const [policy, more] of [
		['uri_hash', ''],
		['uri_hash', 'lb_retries 1'],
		['header X-None {\nfallback uri_hash\n}', ''],
	] as const) {
		const rewritten = await site(`reverse_proxy ${to} {\n\tlb_policy ${policy}\n\t${rewrite}\n\t${more}\n}`);
		for (let i = 0; i < 12; i++) {
			assert.is(await chosen(rewritten.port, `/${i}`), await chosen(plain.port, `/fixed?k=${i}`), `${policy} ${i}`);
		}
	}
	const byKey = await site(`reverse_proxy ${to} {\n\tlb_policy query k\n\t${rewrite}\n}`);
	const byQuery = await site(`reverse_proxy ${to} {\n\tlb_policy query k\n}`);
	for (let i = 0; i < 12; i++) {
		assert.is(await chosen(byKey.port, `/${i}?k=other`), await chosen(byQuery.port, `/?k=${i}`), `query ${i}`);
	}
});

test('bodies stream in both directions without buffering, and chunked if the length is unknown', async () => {
	const up = await upstream(socket => {
		let head = true;
		socket.on('data', bytes => {
			let text = bytes.toString('latin1');
			if (head) {
				head = false;
				assert.match(text, 'Transfer-Encoding: chunked');
				socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n');
				text = text.slice(text.indexOf('\r\n\r\n') + 4);
			}
			if (text.startsWith('0')) socket.write('0\r\nX-T: t\r\n\r\n');
			else if (text !== '') socket.write(text);
		});
	});
	const { port } = await site(`reverse_proxy ${up.address}`);
	const client: WireClient = await openWire(port);
	client.send('POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n');
	await client.until(text => text.includes('\r\n\r\n'));
	client.send('3\r\nabc\r\n');
	await client.until(text => text.endsWith('3\r\nabc\r\n'));
	client.send('2\r\nde\r\n');
	await client.until(text => text.endsWith('2\r\nde\r\n'));
	client.send('0\r\n\r\n');
	await client.until(text => text.endsWith('0\r\nX-T: t\r\n\r\n'));
	client.socket.destroy();
});

test('1xx responses reach the client before the final response', async () => {
	const up = await upstream(socket =>
		onRequestHead(socket, () =>
			socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
		),
	);
	const { port } = await site(`reverse_proxy ${up.address}`);
	const response = await send(port, 'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
	assert.match(response, /^HTTP\/1\.1 103 Early Hints\r\nLink: <\/a\.css>\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
});

test('Expect is left to the upstream: it refuses without reading the body, or sends 100', async () => {
	const up = await upstream(socket =>
		onRequestHead(socket, head => {
			if (head.startsWith('PUT')) socket.write('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
			else {
				socket.write('HTTP/1.1 100 Continue\r\n\r\n');
				socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
			}
		}),
	);
	const { port } = await site(`reverse_proxy ${up.address}`);
	const refused = await openWire(port);
	refused.send('PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n');
	assert.match(await refused.until(text => text.includes('\r\n\r\n')), /^HTTP\/1\.1 403/);
	refused.socket.destroy();
	const client = await openWire(port);
	client.send('POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n');
	await client.until(text => text === 'HTTP/1.1 100 Continue\r\n\r\n');
	client.send('abc');
	await client.until(text => text.includes('HTTP/1.1 200 OK'));
	client.socket.destroy();
});

test('HEAD, 204 and 304 have no body and leave the connection in sync', async () => {
	const up = await upstream(socket =>
		onRequestHead(socket, head => {
			if (head.startsWith('HEAD')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n');
			else if (head.includes('/204')) socket.write('HTTP/1.1 204 No Content\r\n\r\n');
			else socket.write('HTTP/1.1 304 Not Modified\r\nEtag: "a"\r\n\r\n');
		}),
	);
	const { port } = await site(`reverse_proxy ${up.address}`);
	const response = await send(
		port,
		'HEAD / HTTP/1.1\r\nHost: h\r\n\r\nGET /204 HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n',
	);
	assert.equal(response.match(/^HTTP\/1\.1 \d+|^Content-Length: \d+/gm), [
		...['HTTP/1.1 200', 'Content-Length: 42', 'HTTP/1.1 204', 'HTTP/1.1 304'],
	]);
	assert.is(up.accepted, 1);
});

test('failures are a 502, 503 or 504 by their cause, and each reaches the error routes', async () => {
	const garbage = await upstream(socket => socket.end('nonsense\r\n\r\n'));
	const silent = await upstream(() => {});
	const gone = await scriptedUpstream(() => {});
	await gone.close();
	const { port } = await site(`
		reverse_proxy /refused ${gone.address}
		reverse_proxy /garbage ${garbage.address}
		reverse_proxy /late ${silent.address} {
			transport http {
				response_header_timeout 30ms
			}
		}
		reverse_proxy /nowhere {http.request.header.X-Up}
		reverse_proxy /none {
			dynamic a nobody.invalid
		}
		handle_errors {
			respond "error {err.status_code}"
		}`);
	for (const [path, status] of [
		['refused', 502],
		['garbage', 502],
		['late', 504],
		['nowhere', 502],
		['none', 503],
	] as const) {
		const response = await send(port, `GET /${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
		assert.is(statusOf(response), status, path);
		assert.is(body(response), `error ${status}`);
	}
});

test("a truncated upstream body truncates the client's response", async () => {
	for (const framing of ['Content-Length: 10\r\n\r\nabc', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n']) {
		const up = await upstream(socket =>
			onRequestHead(socket, async () => {
				socket.write(`HTTP/1.1 200 OK\r\n${framing}`);
				await pause(20);
				socket.resetAndDestroy();
			}),
		);
		const { port } = await site(`reverse_proxy ${up.address}`);
		const response = await send(port, 'GET / HTTP/1.1\r\nHost: h\r\n\r\n');
		assert.match(response, 'abc');
		assert.not.match(response, '\r\n0\r\n\r\n');
		assert.ok(response.endsWith('abc') || response.endsWith('abc\r\n'));
	}
});

test('a client disconnect is a 499 and cancels the upstream request', async () => {
	let isClosed = false;
	const up = await upstream(socket => {
		socket.resume();
		socket.on('end', () => socket.end());
		socket.on('close', () => {
			isClosed = true;
		});
	});
	const { port, exchanges, pools } = await site(`reverse_proxy ${up.address}`);
	const client = await openWire(port);
	client.send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
	await until(() => up.accepted === 1 && exchanges.length === 1);
	client.socket.resetAndDestroy();
	await until(() => isClosed);
	await until(() => exchanges[0]!.response.status === 499);
	assert.is(pools[0]!.inFlight, 0);
});

test('WebSocket: 101 is forwarded, bytes flow both ways, and either end closes the other', async () => {
	const up = await upstream(socket => {
		socket.once('data', bytes => {
			const head = bytes.toString('latin1');
			assert.match(head, 'Connection: Upgrade\r\nUpgrade: websocket\r\n');
			assert.match(head, 'Sec-WebSocket-Key: k\r\n');
			socket.write(
				'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\nhello',
			);
			socket.on('data', more => socket.write(more));
			socket.on('end', () => socket.end());
		});
	});
	const { port, pools } = await site(`reverse_proxy ${up.address}`);
	const upgrade =
		'GET /ws HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n';
	const client = await openWire(port);
	client.send(`${upgrade}early`);
	await client.until(text => text.endsWith('helloearly'));
	assert.match(client.text, /^HTTP\/1\.1 101 Switching Protocols\r\n/);
	assert.match(client.text, 'Upgrade: websocket\r\n');
	assert.match(client.text, 'Sec-WebSocket-Accept: a\r\n');
	assert.is(client.text.match(/Connection: Upgrade\r\n/g)?.length, 1);
	const large = 'x'.repeat(1 << 20);
	client.send(large);
	await client.until(text => text.length > large.length);
	client.socket.end();
	await client.whole();
	assert.ok(client.text.endsWith(`early${large}`));
	await until(() => pools[0]!.inFlight === 0);

	const other = await openWire(port);
	other.send(upgrade);
	await other.until(text => text.endsWith('hello'));
	other.socket.resetAndDestroy();
	await until(() => pools[0]!.inFlight === 0);
});

test('no upgrade to h2c is forwarded, and a refused upgrade is an ordinary response', async () => {
	const up = await startEcho();
	const { port } = await site(`reverse_proxy ${up.address}`);
	const h2c = await send(
		port,
		'GET / HTTP/1.1\r\nHost: h\r\nConnection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n\r\n',
	);
	assert.not.match(body(h2c), 'pgrade');
	assert.not.match(body(h2c), 'HTTP2');
	const plain = await send(
		port,
		'GET / HTTP/1.1\r\nHost: h\r\nConnection: close, upgrade\r\nUpgrade: websocket\r\n\r\n',
	);
	assert.is(statusOf(plain), 200);
});

test('a switch to a protocol that was not requested is a 502', async () => {
	const up = await upstream(socket =>
		onRequestHead(socket, () => socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n')),
	);
	const { port, pools } = await site(`reverse_proxy ${up.address}`);
	const response = await send(
		port,
		'GET / HTTP/1.1\r\nHost: h\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n',
	);
	assert.is(statusOf(response), 502);
	await until(() => pools[0]!.inFlight === 0);
});

test('addresses with placeholders are resolved per request', async () => {
	const up = await startEcho();
	const { port } = await site(`reverse_proxy {http.request.header.X-Up}`);
	const response = await send(port, `GET / HTTP/1.1\r\nHost: h\r\nX-Up: ${up.address}\r\nConnection: close\r\n\r\n`);
	assert.is(statusOf(response), 200);
});

test('a named upstream is one shared pool', async () => {
	const up = await startEcho();
	const { port, pools } = await site('reverse_proxy upstream://api', `upstream api {\n\tto ${up.address}\n}`);
	assert.is(statusOf(await send(port, 'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')), 200);
	assert.equal(pools[0]!.settings, { to: [up.address], name: 'api' });
});

test('10 MB through the proxy reach a slow client intact', async () => {
	const total = 10 << 20;
	const up = await upstream(socket =>
		onRequestHead(socket, () =>
			socket.write(
				Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${total}\r\n\r\n`), Buffer.alloc(total, 'x')]),
			),
		),
	);
	const { port } = await site(`reverse_proxy ${up.address}`);
	const client = await openWire(port);
	client.socket.removeAllListeners('data');
	let received = 0;
	client.socket.on('data', bytes => {
		received += bytes.length;
		if (received < 1 << 20) {
			client.socket.pause();
			setTimeout(() => client.socket.resume(), 1);
		}
	});
	client.send('GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
	for (let i = 0; i < 400 && !client.ended; i++) await pause(10);
	assert.ok(received > total && received < total + 1000, `${received}`);
	client.socket.destroy();
});

test.run();
