/** Message heads on the client side: reading the heads of upstream responses, and writing the heads of requests. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HeaderList } from '../../../../compiler/exchange/header-list.ts';
import {
	formatLastChunk,
	formatRequestHead,
	InvalidResponse,
	PendingHead,
	parseResponseHead,
	requestFraming,
} from '../../../../runtime/protocols/http1/client-head.ts';
import { CachedHeads, FieldLineCache, LastHead } from '../../../../runtime/protocols/http1/remembered-heads.ts';

const heads = suite('client heads');

const parse = (lines: string, method = 'GET') => parseResponseHead(`${lines}\r\n`, method, false);

heads('framing follows RFC 9112 section 6.3', () => {
	const table: [lines: string, method: string, framing: string, length: number, persistent: boolean][] = [
		['HTTP/1.1 200 OK\r\nContent-Length: 5', 'GET', 'length', 5, true],
		['HTTP/1.1 200 OK\r\nContent-Length: 5, 5', 'GET', 'length', 5, true],
		['HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 5', 'GET', 'length', 5, true],
		['HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked', 'GET', 'chunked', 0, true],
		['HTTP/1.1 200 OK', 'GET', 'close', 0, false],
		['HTTP/1.1 200', 'GET', 'close', 0, false],
		['HTTP/1.1 200 ', 'GET', 'close', 0, false],
		['HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close', 'GET', 'length', 5, false],
		['HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: x, Close', 'GET', 'length', 5, false],
		['HTTP/1.0 200 OK\r\nContent-Length: 5', 'GET', 'length', 5, false],
		['HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive', 'GET', 'length', 5, true],
		['HTTP/1.1 200 OK\r\nContent-Length: 5', 'HEAD', 'none', 0, true],
		['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked', 'HEAD', 'none', 0, true],
		['HTTP/1.1 204 No Content\r\nContent-Length: 5', 'GET', 'none', 0, true],
		['HTTP/1.1 304 Not Modified\r\nContent-Length: 5', 'GET', 'none', 0, true],
		['HTTP/1.1 103 Early Hints\r\nContent-Length: 5', 'GET', 'none', 0, true],
	];
	for (const [lines, method, framing, length, persistent] of table) {
		const head = parse(lines, method);
		assert.equal([head.framing, head.length, head.persistent], [framing, length, persistent], lines);
	}
});

heads('framing and hop-by-hop fields are removed', () => {
	const head = parse(
		'HTTP/1.1 200 OK\r\nConnection: X-A ,keep-alive\r\nx-a: 1\r\nB:\t b \t\r\nKeep-Alive: 1\r\nContent-Length: 1\r\nUpgrade: x',
	);
	assert.equal([...head.headers], [['B', 'b']]);
	assert.equal([...parse('HTTP/1.1 200 OK\r\nContent-Length: 9, 9', 'HEAD').headers], [['Content-Length', '9']]);
});

heads('101 is accepted only for a request that asked for an upgrade', () => {
	assert.throws(
		() => parse('HTTP/1.1 101 X\r\nUpgrade: a'),
		(error: unknown) => error instanceof InvalidResponse,
	);
	const head = parseResponseHead('HTTP/1.1 101 X\r\nUpgrade: a\r\nConnection: upgrade\r\n', 'GET', true);
	assert.is(head.framing, 'upgrade');
	assert.equal([...head.headers], [['Upgrade', 'a']]);
});

heads('a head with an invalid character is refused', () => {
	const malformed = [
		'HTTP/1.1 200 OK\nA: b',
		'HTTP/1.1 200 OK\r\nA: b\nC: d',
		'HTTP/1.1 200 OK\r\nA: b\rC: d',
		'HTTP/1.1 200 OK\r\nA: b\0',
		'HTTP/1.1 200 O\x01K\r\nA: b',
		'HTTP/1.1 200 OK\r\nA: \x7f',
		'HTTP/1.1 200 OK\r\nA b: c',
		'HTTP/1.1 200 OK\r\nA : c',
		'HTTP/1.1 200 OK\r\n: c',
		'HTTP/1.1 200 OK\r\nA',
		'HTTP/1.1 200 OK\r\n folded: c',
		'HTTP/1.1 20\r\nA: b',
		'HTTP/1.1 2000 OK',
		'HTTP/1.1\r\n200 OK',
		'HTTP/1.1 200 OK\r',
	];
	for (const lines of malformed) {
		assert.throws(
			() => parse(lines),
			(error: unknown) => error instanceof InvalidResponse,
			lines,
		);
	}
	assert.equal([...parse('HTTP/1.1 200 \xe9\r\nA: \t\xe9\tb').headers], [['A', '\xe9\tb']]);
});

heads('requests are framed by the length of their body', () => {
	assert.is(requestFraming(0, 'GET'), 'none');
	assert.is(requestFraming(0, 'POST'), 'length');
	assert.is(requestFraming(3, 'GET'), 'length');
	assert.is(requestFraming(undefined, 'GET'), 'chunked');
	const request = { method: 'GET', target: '/', headers: new HeaderList(), body: null, upgrade: 'websocket' };
	assert.is(
		formatRequestHead(request, 'none', 0, true, new FieldLineCache()),
		'GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
	);
	const closing = { ...request, upgrade: undefined };
	assert.is(
		formatRequestHead(closing, 'length', 2, false, new FieldLineCache()),
		'GET / HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n',
	);
	assert.is(formatLastChunk(new HeaderList(['A', 'b'])), '0\r\nA: b\r\n\r\n');
	assert.is(formatLastChunk(undefined), '0\r\n\r\n');
});

heads('a split head is recognized wherever it is split, and its size is limited', () => {
	const whole = Buffer.from('HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody');
	for (let cut = 1; cut < 25; cut++) {
		const pending = new PendingHead();
		pending.begin(whole, 0, cut);
		const rest = whole.subarray(cut);
		assert.ok(pending.add(rest, rest.length, 100), String(cut));
		assert.equal(pending.takeBytes(), whole);
		assert.is(pending.length, 0);
	}
	const endless = new PendingHead();
	endless.begin(whole, 0, 5);
	assert.throws(() => {
		for (let i = 0; i < 1000; i++) endless.add(whole, 1, 100);
	}, 'too large');
	const bare = new PendingHead();
	bare.begin(Buffer.from('HTTP/1.1 200 OK\n'), 0, 16);
	assert.throws(() => bare.add(Buffer.from('\n'), 1, 100), 'bare LF');
});

heads('a repeated response head is remembered until a different one arrives', () => {
	const remembered = new LastHead(new CachedHeads());
	const text = 'HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n';
	const data = Buffer.from(`xx${text}\r\nok`);
	const see = () => remembered.headReceived(text, data, 2, parseResponseHead(text, 'GET', false));
	assert.is(remembered.find(data, 2, data.length), undefined);
	see();
	assert.is(remembered.find(data, 2, data.length), undefined, 'a head must be seen twice to be remembered');
	see();
	const known = remembered.find(data, 2, data.length)!;
	assert.is(remembered.sizeBytes, text.length + 2);
	assert.equal([known.status, known.framing, known.length, [...known.headers]], [200, 'length', 2, [['A', 'b']]]);
	// A change to the fields of one response must not appear in the next response.
	known.headers.add('Via', '1.1 svc');
	assert.equal([...remembered.find(data, 2, data.length)!.headers], [['A', 'b']]);
	const cut = data.length - 3;
	assert.is(remembered.find(data, 2, cut), undefined, 'an incomplete head was recognized');
	see();
	for (let at = 2; at < cut; at++) {
		const other = Buffer.from(data);
		other[at]! ^= 1;
		assert.is(remembered.find(other, 2, other.length), undefined, String(at));
		see();
	}
});

heads('remembered field lines match the fields, whatever was sent in between', () => {
	const remembered = new FieldLineCache();
	for (let i = 0; i < 400; i++) {
		const value = String(i % 3);
		const headers = new HeaderList(['Host', 'a', 'B', value, ...(i % 2 ? ['Te', 'trailers'] : []), 'C', '\xe9']);
		const { text, hasTe: te } = remembered.format(headers);
		assert.is(text, `Host: a\r\nB: ${value}\r\n${i % 2 ? 'Te: trailers\r\n' : ''}C: \xe9\r\n`);
		assert.is(te, i % 2 === 1);
	}
});

heads.run();
