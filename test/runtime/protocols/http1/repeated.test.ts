/** Requests and responses that are equal to an earlier one byte for byte, and others that are only similar. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PARSE_OK } from '../../../../runtime/protocols/http1/field-parser.ts';
import { RequestHeadParser } from '../../../../runtime/protocols/http1/head-parser.ts';
import { RepeatedAnswers } from '../../../../runtime/protocols/http1/repeated-answers.ts';
import { openWire, serve, statusOf } from './wire.ts';

const repeated = suite('HTTP/1.1: repeated messages');

repeated('changes that a handler makes to request fields do not appear in the next identical request', async () => {
	const server = await serve(x => {
		const before = [...x.request.headers].join(';');
		x.request.headers.set('X-Seen', 'yes');
		x.request.headers.delete('x-a');
		x.response.body = `${before}|`;
	});
	const wire = await openWire(server.port);
	for (let i = 1; i <= 4; i++) {
		wire.send('GET /p?q HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n');
		await wire.until(text => text.split('|').length > i);
	}
	assert.equal(
		wire.text.match(/[^\n]*\|/g),
		Array(4)
			.fill('X-A,1|')
			.join('')
			.match(/X-A,1\|/g),
	);
	assert.equal(
		server.exchanges.map(x => [x.received.path, x.received.query, x.request.host]),
		Array(4).fill(['/p', 'q', 'a']),
	);
	wire.socket.destroy();
	await server.stop();
});

repeated('a head is remembered with everything in it, and nothing after it', () => {
	const parser = new RequestHeadParser(100);
	const read = (text: string): object => {
		assert.is(parser.parse(text, 0, text.length), PARSE_OK);
		const { method, path, query, authority, minor, bodyLength, keepAlive, expectsContinue, end } = parser;
		const { items, host } = parser.fields;
		return { method, path, query, authority, minor, bodyLength, keepAlive, expectsContinue, end, items, host };
	};
	const post =
		'POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n';
	// Both requests use the same slot of the cache, so each of them evicts the other.
	const plain = `GET /${'c'.repeat(post.length - 26)} HTTP/1.0\r\nHost: h\r\n\r\n`;
	const first = [read(post), read(plain)];
	for (let round = 0; round < 3; round++) {
		assert.equal(read(post), first[0]);
		assert.equal(read(post), first[0]);
		assert.equal(read(plain), first[1]);
	}
	assert.equal(read(`${post}body`), first[0]);
	assert.not.equal(read(post.replace('/a', '/A')), first[0]);
	for (const field of ['Cookie: a', 'AUTHORIZATION: b', 'proxy-authorization: c']) {
		const secret = `GET / HTTP/1.1\r\nHost: h\r\n${field}\r\n\r\n`;
		read(secret);
		assert.is(parser.headCache.find(secret), undefined, field);
	}
	parser.fields.maxCount = 2;
	parser.headCache.clear();
	assert.is(parser.parse(post, 0, post.length), 431);
});

repeated('a configuration load takes effect for previously seen heads', async () => {
	let body = 'one';
	const server = await serve(x => {
		x.response.body = `${body}|`;
	});
	const wire = await openWire(server.port);
	const head = 'GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: 2\r\n\r\n';
	for (const text of ['one', 'one', 'two', 'two']) {
		body = text;
		wire.send(head);
		await wire.until(received => received.endsWith(`${text}|`));
		wire.text = '';
	}
	server.limits = { ...server.limits, maxHeaderCount: 2 };
	wire.send(head);
	assert.is(statusOf(await wire.whole()), 431);
	await server.stop();
});

repeated('a response is assembled again if any part of it differs', () => {
	const answers = new RepeatedAnswers();
	const parts = ['HTTP/1.1 200 OK\r\n', 'Server: svc\r\n', 'Date: now\r\n', '\r\n', 'hello'] as const;
	const text = (changed: Record<number, string> = {}): string | undefined => {
		const [status, fields, date, end, body] = parts.map((part, i) => changed[i] ?? part);
		return answers.findText(status!, fields!, date!, end!, body!);
	};
	const joined = (at: number, part: string): string => {
		const [status, fields, date, end, body] = parts.map((own, i) => (i === at ? part : own));
		return `${status}${fields}${date}Content-Length: 5\r\n${end}${body}`;
	};
	assert.is(text(), undefined);
	const whole = 'HTTP/1.1 200 OK\r\nServer: svc\r\nDate: now\r\nContent-Length: 5\r\n\r\nhello';
	assert.is(text(), whole);
	assert.is(text(), whole);
	for (const [at, part] of [
		[0, 'HTTP/1.1 404 OK\r\n'],
		[1, 'Server: abc\r\n'],
		[2, 'Date: new\r\n'],
		[3, 'Connection: close\r\n\r\n'],
		[4, 'world'],
	] as const) {
		assert.is(text({ [at]: part }), undefined, part);
		assert.is(text({ [at]: part }), joined(at, part), part);
	}
	assert.is(text({ 4: 'hellö' }), undefined);
	assert.is(text({ 4: 'hellö' }), undefined, 'non-ASCII text cannot be joined as latin1');
});

repeated.run();
