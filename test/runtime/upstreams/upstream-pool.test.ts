/** Upstream pools with well-behaved and misbehaving upstreams, over real sockets. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Body, isStream } from '../../../compiler/exchange/body.ts';
import type { Exchange } from '../../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { UpstreamError, type UpstreamRequest } from '../../../compiler/exchange/leases.ts';
import {
	requestFromUpstream,
	type UpstreamSettings,
} from '../../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { poolLayout, poolMemoryBytes } from '../../../runtime/upstreams/pool-memory.ts';
import { createUpstreamPool, type OwnedUpstreamPool } from '../../../runtime/upstreams/upstream-pool.ts';
import { pauseFor, until } from '../../harness.ts';
import {
	fakeClientExchange,
	onRequestHead,
	readBody,
	type ScriptedUpstream,
	scriptedUpstream,
	streamedBody,
} from './scripted-upstream.ts';

const test = suite('upstream pool');

const open: (OwnedUpstreamPool | ScriptedUpstream)[] = [];

test.after.each(async () => {
	for (const one of open.splice(0)) await one.close();
});

async function upstream(script: Parameters<typeof scriptedUpstream>[0]): Promise<ScriptedUpstream> {
	const made = await scriptedUpstream(script);
	open.push(made);
	return made;
}

function poolOf(settings: UpstreamSettings): OwnedUpstreamPool {
	const pool = createUpstreamPool(settings);
	open.push(pool);
	return pool;
}

function send(
	pool: OwnedUpstreamPool,
	request: Partial<UpstreamRequest> = {},
	x: Exchange = fakeClientExchange(),
	onInform?: (status: number, headers: HeaderList) => void,
) {
	const whole = {
		method: 'GET',
		target: '/',
		headers: new HeaderList(['Host', 'example.com']),
		body: null as Body,
		upgrade: undefined,
		...request,
	};
	if (onInform) Object.defineProperty(x, 'sendInterim', { value: onInform });
	return requestFromUpstream(pool, x, pool.select(x)!, whole);
}

async function failure(promise: Promise<unknown>): Promise<UpstreamError> {
	try {
		await promise;
	} catch (error) {
		assert.instance(error, UpstreamError);
		return error as UpstreamError;
	}
	throw new Error('the request did not fail');
}

/** Waits until `holds` returns true. The source text of `holds` describes it in a failure. */
const eventually = (holds: () => boolean): Promise<void> => until(String(holds), holds);

test('a small response arrives completely, and its connection is reused', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, (_head, number) =>
			socket.write(`HTTP/1.1 200 OK\r\nX-N: ${number}\r\nContent-Length: 5\r\n\r\nhello`),
		),
	);
	const pool = poolOf({ to: [server.address] });
	const first = await send(pool);
	assert.is(first.status, 200);
	assert.not(isStream(first.body));
	assert.is(await readBody(first.body), 'hello');
	const second = await send(pool);
	assert.is(second.headers.get('x-n'), '2');
	assert.is(server.accepted, 1);
	assert.is(pool.inFlight, 0);
	assert.is(pool.idleConnections, 1);
});

test('the request is written with its fields, target and framing', async () => {
	let receivedData = '';
	const server = await upstream(socket =>
		onRequestHead(socket, head => {
			receivedData = head;
			socket.write('HTTP/1.1 204 No Content\r\n\r\n');
		}),
	);
	const pool = poolOf({ to: [server.address] });
	await send(pool, { method: 'POST', target: '/a?b=c', headers: new HeaderList(['Host', 'h', 'X-A', 'é']) });
	assert.is(receivedData, 'POST /a?b=c HTTP/1.1\r\nHost: h\r\nX-A: é\r\nContent-Length: 0\r\n\r\n');
	await send(pool, { headers: new HeaderList(['Host', 'h', 'TE', 'trailers']) });
	assert.is(receivedData, 'GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n\r\n');
});

test('a target containing characters that could end the request line is refused before sending', async () => {
	const server = await upstream(() => {});
	const pool = poolOf({ to: [server.address] });
	for (const target of ['/a b', '/a\r\nX: y', '/\u010a', '']) {
		assert.is((await failure(send(pool, { target }))).phase, 'request');
	}
});

test('chunked responses that arrive at once become bytes, others a stream, and both keep the connection', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, async (_head, number) => {
			socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
			if (number === 1) socket.write('3\r\nabc\r\n0\r\n\r\n');
			else {
				for (const text of [
					'1',
					'\r',
					'\na\r\n2;ext=1\r\nb',
					'c\r',
					'\n0\r\nX-T: 1\r\n',
					'Content-Length: 3\r\n\r',
					'\n',
				]) {
					socket.write(text);
					await pauseFor(2);
				}
			}
		}),
	);
	const pool = poolOf({ to: [server.address] });
	assert.is(await readBody((await send(pool)).body), 'abc');
	const { body } = await send(pool);
	assert.is(await readBody(body), 'abc');
	assert.equal(isStream(body) && [...(body.trailers ?? [])], [['X-T', '1']]);
	await eventually(() => pool.idleConnections === 1);
	assert.is(server.accepted, 1);
});

test('a response without a length ends with its connection', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, async () => {
			socket.write('HTTP/1.0 200 OK\r\n\r\nab');
			await pauseFor(5);
			socket.end('cd');
		}),
	);
	const pool = poolOf({ to: [server.address] });
	const response = await send(pool);
	assert.is(response.protocol, 'HTTP/1.0');
	assert.is(await readBody(response.body), 'abcd');
	assert.is(pool.idleConnections, 0);
});

test('responses without a body: HEAD, 204, 304', async () => {
	const heads = [
		'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n',
		'HTTP/1.1 204 No Content\r\n\r\n',
		'HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n',
		'HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n',
	];
	const server = await upstream(socket => onRequestHead(socket, (_head, number) => socket.write(heads[number - 1]!)));
	const pool = poolOf({ to: [server.address] });
	const head = await send(pool, { method: 'HEAD' });
	assert.is(head.body, null);
	assert.is(head.headers.get('content-length'), '10');
	assert.is((await send(pool)).status, 204);
	assert.is((await failure(send(pool))).phase, 'response');
	assert.is(pool.inFlight, 0);
});

test('hop-by-hop fields are not forwarded', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, () =>
			socket.write(
				'HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nUpgrade: h2c\r\nProxy-Connection: x\r\nX-End: 1\r\nContent-Length: 0, 0\r\n\r\n',
			),
		),
	);
	const response = await send(poolOf({ to: [server.address] }));
	assert.equal([...response.headers], [['X-End', '1']]);
});

test('1xx responses are reported, except for a 100 that the body is waiting for', async () => {
	const order: string[] = [];
	const server = await upstream(socket =>
		onRequestHead(socket, async head => {
			if (!head.startsWith('POST')) return;
			socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n');
			socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
		}),
	);
	const body = streamedBody(['abc'], 3);
	const pull = body.pull.bind(body);
	body.pull = () => {
		order.push('pull');
		return pull();
	};
	const headers = new HeaderList(['Host', 'h', 'Expect', '100-continue']);
	const response = await send(
		poolOf({ to: [server.address] }),
		{ method: 'POST', headers, body },
		fakeClientExchange(),
		status => order.push(String(status)),
	);
	assert.is(response.status, 200);
	assert.is(order[0], '103');
	assert.is(order[1], 'pull');
});

test('invalid responses fail and are never forwarded', async () => {
	const cases = [
		'SSH-2.0-OpenSSH_9.2\r\n',
		'HTTP/2.0 200 OK\r\n\r\n',
		'HTTP/1.1 20 OK\r\n\r\n',
		'HTTP/1.1 600 X\r\n\r\n',
		'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
		'HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n',
		'HTTP/1.1 200 OK\r\nX : a\r\n\r\n',
		'HTTP/1.1 200 OK\r\nX\r\n\r\n',
		'HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n',
		'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n',
		'HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n',
		'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
		'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n',
		'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
		'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
		'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
		'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
		'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n',
	];
	let answer = '';
	const server = await upstream(socket => onRequestHead(socket, () => socket.write(answer)));
	const pool = poolOf({ to: [server.address] });
	for (answer of cases) {
		const error = await failure(send(pool)).catch(() => {
			throw new Error(`accepted: ${JSON.stringify(answer)}`);
		});
		assert.is(error.phase, 'response', answer);
	}
	assert.is(pool.inFlight, 0);
	assert.is(pool.idleConnections, 0);
});

test('a head larger than the limit fails', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, () => socket.write(`HTTP/1.1 200 OK\r\nX: ${'a'.repeat(3000)}`)),
	);
	const pool = poolOf({ to: [server.address], max_response_header: 2048 });
	assert.match((await failure(send(pool))).message, 'too large');
});

test('a head that arrives byte by byte is parsed', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, async () => {
			for (const byte of 'HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 1\r\n\r\nx') {
				socket.write(byte);
				await new Promise(setImmediate);
			}
		}),
	);
	const response = await send(poolOf({ to: [server.address] }));
	assert.is(response.headers.get('a'), 'b');
	assert.is(await readBody(response.body), 'x');
});

test('unexpected bytes after a response close the connection', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\r\n')),
	);
	const pool = poolOf({ to: [server.address] });
	assert.is(await readBody((await send(pool)).body), 'a');
	assert.is(pool.idleConnections, 0);
});

test('an unsolicited response on an idle connection closes it, and answers no request', async () => {
	const server = await upstream((socket, number) =>
		onRequestHead(socket, async () => {
			socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na');
			if (number > 1) return;
			await pauseFor(5);
			socket.write('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n');
		}),
	);
	const pool = poolOf({ to: [server.address] });
	await send(pool);
	await eventually(() => pool.idleConnections === 0);
	assert.is((await send(pool)).status, 200);
	assert.is(server.accepted, 2);
});

test('each way in which a connection can fail has its own error', async () => {
	const gone = await scriptedUpstream(() => {});
	await gone.close();
	assert.is((await failure(send(poolOf({ to: [gone.address] })))).phase, 'connect');

	const closing = await upstream(socket => onRequestHead(socket, () => socket.end()));
	assert.is((await failure(send(poolOf({ to: [closing.address] })))).phase, 'response');

	const within = await upstream(socket => onRequestHead(socket, () => socket.end('HTTP/1.1 200 OK\r\nX:')));
	assert.match((await failure(send(poolOf({ to: [within.address] })))).message, 'within the response head');

	for (const [framing, broken] of [
		['Content-Length: 10', 'abc'],
		['Transfer-Encoding: chunked', '5\r\nabc'],
	] as const) {
		const server = await upstream(socket =>
			onRequestHead(socket, async () => {
				socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n${broken}`);
				await pauseFor(20);
				if (framing.startsWith('C')) socket.resetAndDestroy();
				else socket.end();
			}),
		);
		const pool = poolOf({ to: [server.address] });
		const { body } = await send(pool);
		assert.ok(isStream(body));
		assert.is(Buffer.from((await body.pull())!).toString(), 'abc');
		await failure(Promise.resolve().then(() => body.pull()));
		assert.throws(() => body.pull(), 'UpstreamError');
		assert.is(pool.inFlight, 0);
	}
});

test('a reused connection that closes during an idempotent request costs one retry; a POST is not repeated', async () => {
	const server = await upstream((socket, number) =>
		onRequestHead(socket, (_head, count) => {
			if (number === 1 && count === 2) socket.destroy();
			else if (number === 3 && count === 2) socket.destroy();
			else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
		}),
	);
	const pool = poolOf({ to: [server.address] });
	await send(pool);
	assert.is((await send(pool)).status, 200);
	assert.is(server.accepted, 2);

	const other = createUpstreamPool({ to: [server.address] });
	open.push(other);
	await send(other);
	assert.is((await failure(send(other, { method: 'POST', body: 'a' }))).phase, 'response');
	assert.is(server.accepted, 3);
	assert.is(other.inFlight, 0);
});

test('a request is not retried after a fresh connection closes', async () => {
	const server = await upstream(socket => onRequestHead(socket, () => socket.destroy()));
	await failure(send(poolOf({ to: [server.address] })));
	assert.is(server.accepted, 1);
});

test('a slow response head times out, and a timeout longer than a timer can run never does', async () => {
	const silent = await upstream(() => {});
	const startedAt = performance.now();
	const error = await failure(send(poolOf({ to: [silent.address], response_header_timeout: 40 })));
	assert.is(error.phase, 'timeout');
	assert.ok(performance.now() - startedAt < 20_000);

	const long = await upstream(socket => onRequestHead(socket, () => socket.end('HTTP/1.1 204 No Content\r\n\r\n')));
	const month = 30 * 86_400_000;
	const patient = poolOf({ to: [long.address], connect_timeout: month, response_header_timeout: month });
	assert.is((await send(patient)).status, 204, 'a timeout longer than the maximum timer delay means no timeout');
});

test('a connection attempt times out', async () => {
	// A suspended process accepts no connections. Once its backlog is full, further connection attempts get no reply.
	const script =
		"require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () { console.log(this.address().port) })";
	const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
	const fillers: Socket[] = [];
	try {
		const [line] = await once(child.stdout, 'data');
		const port = Number(String(line));
		child.kill('SIGSTOP');
		for (let i = 0; i < 8; i++) fillers.push(connect(port, '127.0.0.1').on('error', () => {}));
		await pauseFor(100);
		const pool = poolOf({ to: [`127.0.0.1:${port}`], connect_timeout: 50 });
		const startedAt = performance.now();
		assert.is((await failure(send(pool))).phase, 'timeout');
		assert.ok(performance.now() - startedAt < 20_000);
		assert.is(pool.inFlight, 0);
	} finally {
		for (const filler of fillers) filler.destroy();
		const whenEnded = once(child, 'close');
		child.kill('SIGKILL');
		await whenEnded;
	}
});

test('a client that disconnects aborts the upstream exchange', async () => {
	let isClosed = false;
	const server = await upstream(socket => {
		socket.on('close', () => {
			isClosed = true;
		});
		socket.on('end', () => socket.end());
		socket.resume();
	});
	const pool = poolOf({ to: [server.address] });
	const x = fakeClientExchange();
	const sent = send(pool, {}, x);
	await eventually(() => server.accepted === 1);
	assert.is(pool.inFlight, 1);
	x.markGone();
	await failure(sent);
	await eventually(() => isClosed);
	assert.is(pool.inFlight, 0);
});

test('a client that disconnects later does not affect the next exchange on the same connection', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, async (_head, number) => {
			if (number === 2) await pauseFor(20);
			socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
		}),
	);
	const pool = poolOf({ to: [server.address] });
	const first = fakeClientExchange();
	await send(pool, {}, first);
	const second = send(pool);
	first.markGone();
	assert.is((await second).status, 200);
});

test('a request body is streamed: chunked without a length, with Content-Length otherwise', async () => {
	let receivedData = '';
	const server = await upstream(socket =>
		socket.on('data', bytes => {
			receivedData += bytes.toString('latin1');
			if (receivedData.endsWith('0\r\nX-T: t\r\n\r\n') || receivedData.endsWith('defg')) {
				socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
			}
		}),
	);
	const pool = poolOf({ to: [server.address] });
	const later = new Promise<string>(resolve => setTimeout(resolve, 10, 'defg'));
	const body = Object.assign(streamedBody(['abc', '', later]), { trailers: new HeaderList(['X-T', 't']) });
	await send(pool, { method: 'PUT', body });
	assert.is(receivedData.split('\r\n\r\n')[0], 'PUT / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked');
	assert.ok(receivedData.endsWith('\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-T: t\r\n\r\n'));
	receivedData = '';
	await send(pool, { method: 'PUT', body: streamedBody(['abc', 'defg'], 7) });
	assert.ok(receivedData.endsWith('Content-Length: 7\r\n\r\nabcdefg'));
	assert.is(server.accepted, 1);
});

test('a request body of the wrong length aborts the request', async () => {
	const server = await upstream(socket => socket.resume());
	const pool = poolOf({ to: [server.address] });
	for (const length of [2, 4]) {
		const error = await failure(send(pool, { method: 'POST', body: streamedBody(['abc'], length) }));
		assert.is(error.phase, 'request');
	}
	const broken = Object.assign(streamedBody([]), { pull: () => Promise.reject(new Error('client broke off')) });
	const error = await failure(send(pool, { method: 'POST', body: broken }));
	assert.match((error.cause as Error).message, 'client broke off');
});

test('an early response stops the upload, and the connection is not reused', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, () => socket.write('HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno')),
	);
	const pool = poolOf({ to: [server.address] });
	const never = streamedBody(['abc', new Promise<string>(() => {})]);
	const response = await send(pool, { method: 'POST', body: never });
	assert.is(response.status, 413);
	assert.is(await readBody(response.body), 'no');
	assert.ok(never.cancelled);
	assert.is(pool.idleConnections, 0);
	assert.is(pool.inFlight, 0);
});

test('10 MB to a slow reader: backpressure reaches the upstream, and memory use is limited', async () => {
	const total = 10 << 20;
	let written = 0;
	const server = await upstream(socket =>
		onRequestHead(socket, () => {
			socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${total}\r\n\r\n`);
			const piece = Buffer.alloc(65536, 'x');
			const more = () => {
				while (written < total) {
					written += piece.length;
					if (!socket.write(piece)) {
						socket.once('drain', more);
						return;
					}
				}
			};
			more();
		}),
	);
	const { body } = await send(poolOf({ to: [server.address] }));
	assert.ok(isStream(body));
	await pauseFor(100);
	const ahead = written;
	let read = 0;
	for (let piece = await body.pull(); piece !== null; piece = await body.pull()) {
		read += piece.length;
		if (read < 1 << 20) await pauseFor(1);
	}
	assert.is(read, total);
	// The kernel's buffers hold a part of the body, but not all of it.
	assert.ok(ahead < total, `${ahead} bytes were read ahead of the reader`);
});

test('large bodies read concurrently do not mix their bytes', async () => {
	const total = 2 << 20;
	const server = await upstream(socket =>
		onRequestHead(socket, head => {
			const letter = head.slice(5, 6);
			if (letter < 'm') socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${total}\r\n\r\n`);
			else socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${total.toString(16)}\r\n`);
			socket.write(letter.repeat(total));
			if (letter >= 'm') socket.write('\r\n0\r\n\r\n');
		}),
	);
	const pool = poolOf({ to: [server.address] });
	for (let round = 0; round < 2; round++) {
		await Promise.all(
			[...'abcxyz'].map(async letter => {
				const { body } = await send(pool, { target: `/${letter}` });
				assert.ok(isStream(body));
				let read = 0;
				for (let piece = await body.pull(); piece !== null; piece = await body.pull()) {
					const before = Buffer.from(piece);
					if (read % 3 === 0) await pauseFor(1);
					assert.ok(before.equals(piece), 'a piece changed before the next pull');
					assert.is(before.toString().replaceAll(letter, ''), '');
					read += piece.length;
				}
				assert.is(read, total);
			}),
		);
	}
});

test('10 MB to a slow upstream: the body is pulled only as fast as the upstream accepts it', async () => {
	const total = 10 << 20;
	let received = 0;
	const server = await upstream(socket => {
		socket.on('data', bytes => {
			received += bytes.length;
			if (received < 1 << 20) {
				socket.pause();
				setTimeout(() => socket.resume(), 1);
			}
			if (received >= total) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
		});
	});
	let pulled = 0;
	let most = 0;
	const piece = Buffer.alloc(65536, 'x');
	const body = {
		length: total,
		pull: () => {
			if (pulled >= total) return null;
			pulled += piece.length;
			most = Math.max(most, pulled - received);
			return piece;
		},
		cancel: () => {},
	};
	assert.is((await send(poolOf({ to: [server.address] }), { method: 'POST', body })).status, 200);
	assert.ok(most < total, `${most} bytes were pulled ahead of the upstream`);
});

test('a canceled body closes the connection', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc')),
	);
	const pool = poolOf({ to: [server.address] });
	const { body } = await send(pool);
	assert.ok(isStream(body));
	body.cancel();
	body.cancel();
	assert.is(pool.inFlight, 0);
	assert.throws(() => body.pull());
});

test('an upgrade hands over the byte stream and forwards half-closes', async () => {
	let isEnded = false;
	const server = await upstream(socket => {
		socket.once('data', bytes => {
			assert.match(bytes.toString(), 'Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
			socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nfirst');
			socket.on('data', more => socket.write(`<${more}>`));
			socket.on('end', () => {
				isEnded = true;
				socket.end('last');
			});
		});
	});
	const pool = poolOf({ to: [server.address] });
	const { status, upgradedStream: upgraded } = await send(pool, { upgrade: 'websocket' });
	assert.is(status, 101);
	assert.is(pool.inFlight, 1);
	let text = '';
	upgraded!.on('data', bytes => {
		text += bytes;
	});
	upgraded!.write('hi');
	await eventually(() => text.includes('<hi>'));
	upgraded!.end();
	await eventually(() => text === 'first<hi>last');
	assert.ok(isEnded);
	await eventually(() => pool.inFlight === 0);
});

test('an upgrade whose client disconnects at once is canceled, and affects nothing else', async () => {
	const server = await upstream(socket => {
		socket.once('data', () =>
			socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'),
		);
	});
	const pool = poolOf({ to: [server.address] });
	const x = fakeClientExchange();
	const uncaught: unknown[] = [];
	const note = (error: unknown): void => void uncaught.push(error);
	process.on('uncaughtException', note);
	try {
		const { upgradedStream: upgraded } = await send(pool, { upgrade: 'websocket' }, x);
		x.markGone();
		assert.ok(upgraded!.destroyed);
		await pauseFor(10);
		assert.equal(uncaught, []);
		assert.is(pool.inFlight, 0);
	} finally {
		process.off('uncaughtException', note);
	}
});

test('upstreams can be Unix sockets, names or resolved addresses', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'svc-pool-'));
	const path = join(folder, 's');
	const server = createServer(socket =>
		onRequestHead(socket, () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nu')),
	);
	await new Promise<void>(resolve => server.listen(path, resolve));
	const pool = poolOf({ to: [`unix/${path}`, '{http.request.header.X}'] });
	const x = fakeClientExchange();
	const request = { method: 'GET', target: '/', headers: new HeaderList(), body: null, upgrade: undefined };
	const chosen = pool.select(x, undefined, [`unix/${path}`])!;
	assert.is(chosen.address, `unix/${path}`);
	assert.is(await readBody((await requestFromUpstream(pool, x, chosen, request)).body), 'u');
	assert.is(pool.select(x, undefined, ['', 'no port', 'udp/x:1']), undefined);

	const tcp = await upstream(socket =>
		onRequestHead(socket, () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nt')),
	);
	const named = pool.select(x, undefined, [`localhost:${tcp.port}`])!;
	assert.is(await readBody((await requestFromUpstream(pool, x, named, request)).body), 't');
	await new Promise(resolve => server.close(resolve));
	rmSync(folder, { recursive: true });
});

test('idle connections are limited in number and time, and none remain after close', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, async () => {
			await pauseFor(10);
			socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
		}),
	);
	const pool = poolOf({ to: [server.address], keepalive: 60 });
	await Promise.all([send(pool), send(pool), send(pool)]);
	assert.is(pool.idleConnections, 3);
	await eventually(() => pool.idleConnections === 0);
	const last = send(pool);
	pool.close();
	assert.is((await last).status, 200);
	assert.is(pool.idleConnections, 0);
	const off = poolOf({ to: [server.address], keepalive: 0 });
	await send(off);
	assert.is(off.idleConnections, 0);
	const none = poolOf({ to: [server.address], keepalive_idle_conns: 0 });
	await send(none);
	assert.is(none.idleConnections, 0);
});

test('idle connections over the limit are kept between bursts, but no longer', async () => {
	const server = await upstream(socket =>
		onRequestHead(socket, async () => {
			await pauseFor(10);
			socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
		}),
	);
	const pool = poolOf({ to: [server.address], keepalive_idle_conns: 2 });
	for (let burst = 0; burst < 3; burst++) await Promise.all(Array.from({ length: 8 }, () => send(pool)));
	assert.is(server.accepted, 8);
	assert.is(pool.idleConnections, 8);
	await until('connections over the limit are closed', () => pool.idleConnections <= 2);
	assert.is(pool.idleConnections, 2);
	await Promise.all([send(pool), send(pool)]);
	assert.is(server.accepted, 8);
});

test('request counts cover the whole process and influence balancing', async () => {
	const silent = await upstream(() => {});
	const settings: UpstreamSettings = { to: [silent.address, '127.0.0.1:9'], balance: { policy: 'least_conn' } };
	const { rowSize: slots } = poolLayout(settings);
	assert.is(slots, 3);
	const buffer = new SharedArrayBuffer(poolMemoryBytes(settings, 2));
	const one = createUpstreamPool(settings, { buffer, rows: 2, row: 0 });
	const two = createUpstreamPool(settings, { buffer, rows: 2, row: 1 });
	open.push(one, two);
	const x = fakeClientExchange();
	const either = one.select(x)!;
	const first = [either, one.select(x, [either])!].find(({ address }) => address === silent.address)!;
	const request = { method: 'GET', target: '/', headers: new HeaderList(), body: null, upgrade: undefined };
	const sent = requestFromUpstream(one, x, first, request);
	for (let i = 0; i < 20; i++) assert.is(two.select(fakeClientExchange())!.address, '127.0.0.1:9');
	new Int32Array(buffer).fill(0, 0, slots);
	assert.is(two.select(fakeClientExchange(), [two.select(fakeClientExchange())!])!.active, 0);
	x.markGone();
	await failure(sent);
});

test('round robin uses one sequence for all threads, starting with the second upstream', () => {
	const settings: UpstreamSettings = { to: ['a:1', 'b:1', 'c:1'], balance: { policy: 'round_robin' } };
	const buffer = new SharedArrayBuffer(poolMemoryBytes(settings, 2));
	const pools = [0, 1].map(row => createUpstreamPool(settings, { buffer, rows: 2, row }));
	const seen = Array.from({ length: 6 }, (_, i) => pools[i % 2]!.select(fakeClientExchange())!.host).join('');
	assert.is(seen, 'bcabca');
	const pool = pools[0]!;
	const avoid = [pool.select(fakeClientExchange())!];
	for (let i = 0; i < 6; i++) assert.not(avoid.includes(pool.select(fakeClientExchange(), avoid)!));
});

test('bytes after a response that fills the read buffer are not taken as a response', async () => {
	let connections = 0;
	const up = await upstream(socket => {
		connections++;
		onRequestHead(socket, head => {
			if (head.includes('/second')) {
				socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright');
				return;
			}
			// The response with its head is exactly as long as one read, so the attacker's bytes come with the next read.
			const fields = 'HTTP/1.1 200 OK\r\nContent-Length: 65400\r\nX-Fill: ';
			const whole = `${fields}${'f'.repeat(65_536 - 65_400 - fields.length - 4)}\r\n\r\n${'b'.repeat(65_400)}`;
			socket.write(`${whole}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong`);
		});
	});
	const pool = poolOf({ to: [up.address], transport: { type: 'http', max_conns_per_host: 1 } });
	// The second request waits for the connection of the first request, and gets it as soon as it is idle.
	const answers = await Promise.all(['/first', '/second'].map(target => send(pool, { target })));
	assert.is(String(await readBody(answers[1]!.body)), 'right');
	assert.is(connections, 2);
});

test.run();
