/** `Max-Forwards` in TRACE and OPTIONS (RFC 9110 §7.6.2), proxied to a scripted upstream. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { send, statusOf } from '../../../../runtime/protocols/http1/wire.ts';
import {
	onRequestHead,
	type ScriptedUpstream,
	scriptedUpstream,
} from '../../../../runtime/upstreams/scripted-upstream.ts';
import { proxiedSite } from './proxied-site.ts';

const test = suite<{ up: ScriptedUpstream; heads: string[] }>('Max-Forwards');

test.before(async context => {
	context.heads = [];
	context.up = await scriptedUpstream(socket =>
		onRequestHead(socket, head => {
			context.heads.push(head);
			socket.write('HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nupstream');
		}),
	);
});
test.after(context => context.up.close());

/** Sends a request with the given header lines. Returns the response, and the request head that the upstream received. */
async function ask(
	{ up, heads }: { up: ScriptedUpstream; heads: string[] },
	request: string,
	options = '',
): Promise<{ answer: string; forwarded: string | undefined }> {
	const site = await proxiedSite(`reverse_proxy ${up.address} {\n${options}\n}`);
	heads.length = 0;
	try {
		const answer = await send(site.port, `${request}Connection: close\r\n\r\n`);
		return { answer, forwarded: heads[0] };
	} finally {
		await site.close();
	}
}

/** The value that the client sends, and the value that reaches the upstream; undefined if the upstream gets no such field. */
const FIELD_VALUES: readonly (readonly [sent: string, arrives: string | undefined])[] = [
	['0', undefined],
	['00', undefined],
	['1', '0'],
	['10', '9'],
	['99999999999999999999999999', '2147483647'],
	['-1', '-1'],
	['1.5', '1.5'],
	['x', 'x'],
	['', ''],
];

for (const method of ['TRACE', 'OPTIONS']) {
	for (const [sent, arrives] of FIELD_VALUES) {
		for (const options of ['', 'lb_retries 2']) {
			test(`${method} with \`${sent}\`${options && ' where attempts are repeated'}`, async context => {
				const request = `${method} /a?b HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: ${sent}\r\n`;
				const { answer, forwarded } = await ask(context, request, options);
				assert.is(statusOf(answer), 200);
				if (arrives === undefined) assert.is(forwarded, undefined);
				else assert.is(/^max-forwards: ?(.*)\r$/im.exec(forwarded ?? '')?.[1], arrives);
			});
		}
	}
}

test('OPTIONS with Max-Forwards: 0 lists the forwarded methods', async context => {
	const { answer } = await ask(context, 'OPTIONS * HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\n');
	assert.match(answer, /\r\nAllow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE\r\n/);
	assert.match(answer, /\r\nContent-Length: 0\r\n/);
});

test('TRACE with Max-Forwards: 0 returns the request without credentials', async context => {
	const request = [
		'TRACE /a?b HTTP/1.1',
		'Host: a.example',
		'Max-Forwards: 0',
		'Via: 1.1 before',
		'Cookie: secret',
		'Authorization: secret',
		'X-Forwarded-For: secret',
		'X-Api-Key: secret',
		'',
	].join('\r\n');
	const { answer } = await ask(context, request, 'header_up X-Token secret');
	assert.match(answer, /\r\nContent-Type: message\/http\r\n/);
	const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
	assert.is(body, 'TRACE /a?b HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\nVia: 1.1 before\r\n\r\n');
});

test('other methods, and requests created by the proxy, are not counted', async context => {
	const get = await ask(context, 'GET / HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\n');
	assert.match(get.forwarded!, /\r\nMax-Forwards: 0\r\n/);
	const changed = await ask(context, 'OPTIONS / HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\n', 'method GET');
	assert.match(changed.forwarded!, /^GET \/ HTTP\/1\.1\r\n/);
	assert.match(changed.forwarded!, /\r\nMax-Forwards: 0\r\n/);
	const none = await ask(context, 'OPTIONS / HTTP/1.1\r\nHost: a.example\r\n');
	assert.not.match(none.forwarded!, /Max-Forwards/i);
});

test.run();
