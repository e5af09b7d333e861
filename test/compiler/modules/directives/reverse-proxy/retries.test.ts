/** Retries: what is retried, what never is, and what the client sees. */
import type { Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../../../harness.ts';
import { openWire, send, statusOf } from '../../../../runtime/protocols/http1/wire.ts';
import {
	onRequestHead,
	type ScriptedUpstream,
	scriptedUpstream,
} from '../../../../runtime/upstreams/scripted-upstream.ts';
import { type ProxiedSite, proxiedDocument, proxiedSite } from './proxied-site.ts';

const test = suite('retries');

const closing: { close(): Promise<void> }[] = [];

test.after.each(async () => {
	for (const one of closing.splice(0).reverse()) await one.close();
});

interface Counted extends ScriptedUpstream {
	readonly requests: string[];
}

/** Starts an upstream that records the head of each request. */
async function startUpstream(answer: (socket: Socket, head: string, number: number) => void): Promise<Counted> {
	const requests: string[] = [];
	const made = await scriptedUpstream(socket =>
		onRequestHead(socket, head => {
			requests.push(head);
			answer(socket, head, requests.length);
		}),
	);
	closing.push(made);
	return Object.assign(Object.create(made) as ScriptedUpstream, { address: made.address, port: made.port, requests });
}

const answering = (status: number, text: string) => {
	const response = `HTTP/1.1 ${status} X\r\nX-From: ${text}\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
	return startUpstream(socket => socket.write(response));
};

const good = () => answering(200, 'ok');
const bad = () => answering(502, 'bad');
/** Starts an upstream that closes the connection after each request, without a response. */
const startCloser = () => startUpstream(socket => socket.end());

async function deadAddress(): Promise<string> {
	const closedUpstream = await scriptedUpstream(() => {});
	await closedUpstream.close();
	return closedUpstream.address;
}

async function site(lines: string, before = ''): Promise<ProxiedSite> {
	const made = await proxiedSite(lines, before);
	closing.push(made);
	return made;
}

const get = (port: number, path = '/', method = 'GET') =>
	send(port, `${method} ${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
const post = (port: number, body = 'abc') =>
	send(port, `POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
const bodyOf = (response: string) => response.slice(response.indexOf('\r\n\r\n') + 4);

test('without a policy nothing is retried', async () => {
	const [one, two] = [await bad(), await good()];
	const { port } = await site(`reverse_proxy ${one.address} ${two.address} {\nlb_policy first\n}`);
	assert.is(statusOf(await get(port)), 502);
	assert.is(two.requests.length, 0);
});

test('a failed connection is retried on another upstream, whatever the method', async () => {
	const dead = await deadAddress();
	const up = await good();
	const { port } = await site(`reverse_proxy ${dead} ${up.address} {\nlb_policy first\nlb_retries 1\n}`);
	assert.is(statusOf(await get(port)), 200);
	assert.is(bodyOf(await post(port)), 'ok');
	assert.is(up.requests.length, 2);
});

test('if an upstream closes without a response, GET and HEAD are retried, POST never', async () => {
	const [one, two] = [await startCloser(), await good()];
	const { port } = await site(`reverse_proxy ${one.address} ${two.address} {\nlb_policy first\nlb_retries 3\n}`);
	assert.is(statusOf(await get(port)), 200);
	assert.is(statusOf(await get(port, '/', 'HEAD')), 200);
	const before = two.requests.length;
	assert.is(statusOf(await post(port)), 502);
	assert.is(statusOf(await get(port, '/', 'PUT')), 502);
	assert.is(two.requests.length, before);
	assert.is(one.requests.length, 4);
});

test('a predicate with an expression is evaluated for responses and failures', async () => {
	const [one, two, three] = [await bad(), await startCloser(), await good()];
	const { port } = await site(`reverse_proxy ${one.address} ${two.address} ${three.address} {
		lb_policy first
		lb_retries 2
		lb_retry_match \`{rp.is_transport_error} || {rp.status_code} in [502, 503]\`
	}`);
	assert.is(bodyOf(await get(port)), 'ok');
	assert.is(bodyOf(await get(port, '/', 'DELETE')), 'ok');
});

test('the predicate can depend on the request, and responses it rejects are forwarded', async () => {
	const [one, two] = [await bad(), await good()];
	const { port } = await site(`reverse_proxy ${one.address} ${two.address} {
		lb_policy first
		lb_retries 1
		lb_retry_match \`path('/retry*') && {rp.status_code} in [502, 503]\`
	}`);
	assert.is(bodyOf(await get(port, '/retry')), 'ok');
	const passed = await get(port, '/other');
	assert.is(statusOf(passed), 502);
	assert.is(bodyOf(passed), 'bad');
});

test('matchers without an expression add retryable failures, and do not apply to responses', async () => {
	const [one, two] = [await startCloser(), await bad()];
	const { port } = await site(`reverse_proxy ${one.address} ${two.address} {
		lb_policy first
		lb_retries 1
		lb_retry_match method PUT
		lb_retry_match {
			method POST
			path /again
		}
	}`);
	assert.is(bodyOf(await get(port, '/', 'PUT')), 'bad');
	assert.is(bodyOf(await get(port, '/again', 'POST')), 'bad');
	assert.is(one.requests.length, 2);
	assert.is(bodyOf(await get(port, '/', 'POST')).includes('bad'), false);
	assert.is(statusOf(await get(port)), 502);
	assert.is(two.requests.length, 2);
});

test('when all attempts are used, the client gets the last status without its body', async () => {
	const [one, two] = [await bad(), await answering(503, 'also bad')];
	const { port } = await site(`reverse_proxy ${one.address} ${two.address} {
		lb_policy first
		lb_retries 1
		lb_retry_match \`{rp.status_code} >= 500\`
	}`);
	const response = await get(port);
	assert.is(statusOf(response), 503);
	assert.is(bodyOf(response), '');
	assert.equal([one.requests.length, two.requests.length], [1, 1]);
});

test('this holds for any status', async () => {
	const moved = await answering(302, 'elsewhere');
	const { port } = await site(`reverse_proxy ${moved.address} {
		lb_retries 1
		lb_try_interval 5ms
		lb_retry_match \`{rp.status_code} == 302\`
	}`);
	const response = await get(port);
	assert.equal([statusOf(response), bodyOf(response), moved.requests.length], [302, '', 2]);
});

test('a partly sent streamed body is not sent again, but a buffered one is', async () => {
	const [one, two] = [await startCloser(), await good()];
	const lines = (more: string) => `reverse_proxy ${one.address} ${two.address} {
		lb_policy first
		lb_retries 1
		lb_retry_match method POST
		${more}
	}`;
	const streaming = await site(lines(''));
	const client = await openWire(streaming.port);
	client.send('POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
	await new Promise(resolve => setTimeout(resolve, 50));
	client.send('0\r\n\r\n');
	assert.match(await client.whole(), 'HTTP/1.1 502');
	assert.is(two.requests.length, 0);

	const buffering = await site(lines('request_buffers 1MiB'));
	const other = await openWire(buffering.port);
	other.send('POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
	await new Promise(resolve => setTimeout(resolve, 50));
	other.send('3\r\ndef\r\n0\r\n\r\n');
	assert.match(await other.whole(), 'HTTP/1.1 200');
	assert.match(two.requests[0]!, 'Content-Length: 6\r\n');
});

test('a body larger than the buffer is streamed completely, and only once', async () => {
	let received = '';
	const up = await scriptedUpstream(socket =>
		socket.on('data', bytes => {
			received += bytes.toString('latin1');
			if (received.endsWith('0\r\n\r\n')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
		}),
	);
	closing.push(up);
	const { port } = await site(`reverse_proxy ${up.address} {\nrequest_buffers 1KiB\n}`);
	const client = await openWire(port);
	client.send('POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n');
	for (let i = 0; i < 20; i++) client.send(`c8\r\n${String.fromCharCode(97 + i).repeat(200)}\r\n`);
	client.send('0\r\n\r\n');
	assert.match(await client.whole(), 'HTTP/1.1 200');
	const letters = bodyOf(received)
		.replace(/[^a-t]/g, '')
		.replace(/c(?=\d)/g, '');
	for (let i = 0; i < 20; i++) assert.ok(received.includes(String.fromCharCode(97 + i).repeat(50)), `${i}`);
	assert.ok(letters.length >= 4000);
});

test('response_buffers reads the response before forwarding it', async () => {
	const up = await startUpstream(async socket => {
		socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
		await new Promise(resolve => setTimeout(resolve, 20));
		socket.write('3\r\ndef\r\n0\r\n\r\n');
	});
	const { port } = await site(`reverse_proxy ${up.address} {\nresponse_buffers 1KiB\n}`);
	const response = await get(port);
	assert.match(response, 'Content-Length: 6\r\n');
	assert.is(bodyOf(response), 'abcdef');
});

test('with a duration, the proxy waits for an upstream to recover', async () => {
	const gone = await scriptedUpstream(() => {});
	await gone.close();
	const { port } = await site(`reverse_proxy ${gone.address} {\nlb_try_duration 1m\nlb_try_interval 20ms\n}`);
	const response = get(port);
	await new Promise(resolve => setTimeout(resolve, 100));
	const back = await import('node:net').then(({ createServer }) => {
		const server = createServer(socket => {
			socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nback'));
		});
		return new Promise<typeof server>(resolve => server.listen(gone.port, '127.0.0.1', () => resolve(server)));
	});
	assert.is(bodyOf(await response), 'back');
	await new Promise(resolve => back.close(resolve));
	const start = performance.now();
	const short = await site(`reverse_proxy ${gone.address} {\nlb_try_duration 100ms\nlb_try_interval 20ms\n}`);
	assert.is(statusOf(await get(short.port)), 502);
	const elapsedMs = performance.now() - start;
	assert.ok(elapsedMs > 90 && elapsedMs < 10_000, `${elapsedMs}`);
});

test('a client disconnect ends the wait', async () => {
	const dead = await deadAddress();
	const { port, pools, exchanges } = await site(`reverse_proxy ${dead} {\nlb_try_duration 1h\nlb_try_interval 10ms\n}`);
	const client = await openWire(port);
	client.send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
	await new Promise(resolve => setTimeout(resolve, 60));
	client.socket.destroy();
	for (let i = 0; i < 100 && exchanges[0]?.response.status !== 499; i++) {
		await new Promise(resolve => setTimeout(resolve, 10));
	}
	assert.is(exchanges[0]!.response.status, 499);
	assert.is(pools[0]!.inFlight, 0);
});

test('the retry budget stops retries that would amplify an outage', async () => {
	const [one, two] = [await bad(), await bad()];
	const { port } = await site(`reverse_proxy ${one.address} ${two.address} {
		lb_retries 5
		lb_retry_match \`{rp.status_code} == 502\`
		lb_retry_budget 0% 0
	}`);
	for (let i = 0; i < 30; i++) assert.is(statusOf(await get(port)), 502);
	// The retry budget starts with ten retries, so 30 requests cause 10 retries.
	assert.is(one.requests.length + two.requests.length, 40);
});

test('fields are built for each attempt, and placeholders describe the attempt', async () => {
	const [one, two] = [await bad(), await good()];
	const { port } = await site(`reverse_proxy ${one.address} ${two.address} {
		lb_policy first
		lb_retries 1
		lb_retry_match \`{rp.status_code} == 502\`
		header_up X-To {rp.upstream.hostport}
		header_down X-Retries {rp.retries}
	}`);
	assert.match(await get(port), '\r\nX-Retries: 1\r\n');
	assert.match(one.requests[0]!, `X-To: ${one.address}\r\n`);
	assert.match(two.requests[0]!, `X-To: ${two.address}\r\n`);
});

test('a named upstream has its own retry policy', async () => {
	const [one, two] = [await bad(), await good()];
	const { port } = await site(
		'reverse_proxy upstream://both',
		`upstream both {
			to ${one.address} ${two.address}
			lb_policy first
			lb_retries 1
			lb_retry_match expression "{rp.status_code} == 502"
		}`,
	);
	assert.is(bodyOf(await get(port)), 'ok');
});

test('the retry fields of documents before 0.2.0 mean one more attempt', async () => {
	const [one, two] = [await bad(), await good()];
	const step = {
		handler: 'proxy',
		upstreams: { to: [one.address, two.address], balance: { policy: 'first' } },
		retry_methods: ['GET'],
		retry_statuses: [502],
	};
	const made = await proxiedDocument({ sites: [{ addresses: [':8080'], handle: [step] }] });
	closing.push(made);
	assert.is(bodyOf(await get(made.port)), 'ok');
	assert.is(statusOf(await get(made.port, '/', 'PUT')), 502);
});

test('a predicate in a document may use response fields and negation', async () => {
	const [one, two] = [await answering(200, 'stale'), await answering(200, 'fresh')];
	const retry_match = {
		type: 'all',
		of: [
			{ type: 'response_header', name: 'X-From', values: ['st*'] },
			{ type: 'not', of: { type: 'any', of: [{ type: 'path', patterns: ['/once'] }, { type: 'connect_error' }] } },
		],
	};
	const upstreams = { to: [one.address, two.address], balance: { policy: 'first' }, retries: 1, retry_match };
	const made = await proxiedDocument({
		sites: [{ addresses: [':8080'], pipeline: [{ handler: 'proxy', upstreams }] }],
	});
	closing.push(made);
	assert.is(bodyOf(await get(made.port)), 'fresh');
	assert.is(bodyOf(await get(made.port, '/once')), 'stale');
});

test('failed requests mark an upstream unavailable until the failures expire', async () => {
	const [one, two] = [await answering(500, 'five'), await good()];
	const { port } = await site(`reverse_proxy ${one.address} ${two.address} {
		lb_policy first
		fail_duration 2s
		max_fails 2
		unhealthy_status 5xx
	}`);
	const seen: string[] = [];
	for (let i = 0; i < 4; i++) seen.push(bodyOf(await get(port)));
	assert.equal(seen, ['five', 'five', 'ok', 'ok']);
	await until('the failures to expire', async () => bodyOf(await get(port)) === 'five');
});

test('a truncated response counts as a failure of its upstream; one cancelled by the client does not', async () => {
	const half = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf';
	const breaking = await startUpstream((socket, head) => {
		socket.write(half);
		if (!head.startsWith('GET /kept')) setTimeout(() => socket.destroy(), 10);
	});
	const { port, pools } = await site(`reverse_proxy ${breaking.address} ${(await good()).address} {
		lb_policy first
		fail_duration 1m
	}`);
	const client = await openWire(port);
	client.send('GET /kept HTTP/1.1\r\nHost: h\r\n\r\n');
	while (!client.text.includes('half')) await new Promise(resolve => setTimeout(resolve, 2));
	client.socket.destroy();
	while (pools[0]!.inFlight > 0) await new Promise(resolve => setTimeout(resolve, 2));
	assert.is(bodyOf(await get(port)), 'half');
	assert.is(bodyOf(await get(port)), 'ok');
});

test("Forwarded names the hop if configured, and an untrusted peer's is dropped", async () => {
	const up = await good();
	const { port } = await site(`handle /trusting {
		reverse_proxy ${up.address} {
			forwarded on
			trusted_proxies 127.0.0.1
		}
	}
	reverse_proxy ${up.address} {
		forwarded on
	}`);
	const request = (path: string) =>
		send(port, `GET ${path} HTTP/1.1\r\nHost: h:1\r\nForwarded: for=1.2.3.4\r\nConnection: close\r\n\r\n`);
	await request('/');
	assert.match(up.requests[0]!, '\r\nForwarded: for=127.0.0.1;host="h:1";proto=http\r\n');
	await request('/trusting');
	assert.match(up.requests[1]!, '\r\nForwarded: for=1.2.3.4, for=127.0.0.1;host="h:1";proto=http\r\n');
});

test.run();
