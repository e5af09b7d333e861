/** Generates requests by small random changes to well-formed and hostile requests. The same seed gives the same requests. */
import { wireRequests } from '../wire-corpus.ts';

const WELL_FORMED: readonly string[] = [
	'GET /a?b=c HTTP/1.1\r\nHost: a\r\n\r\n',
	'POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello',
	'POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\nabc\r\n0\r\n\r\n',
	'POST /t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n',
	'POST /q HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a="b\\"c"\r\nhi\r\n0;d\r\n\r\n',
	'GET http://b:80/x HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nX-Long: aaaa bbbb\tcccc\r\n\r\n',
	'PUT /e HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok',
	'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n',
	'GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
];

const FRAGMENTS: readonly string[] = [
	...['\r', '\n', '\r\n', '\0', ' ', '\t', ':', ';', ',', '0', '1', 'F', '-', '+', '\x7f', '\xff', '%', '#', '_', '.'],
	...[
		'"',
		'\\',
		'=',
		'\x0b',
		'\x0c',
		'\r\r\n',
		'\n\r',
		'\r\n ',
		'\r\n\t',
		'Content-Length: 3\r\n',
		'Content-Length: 5\r\n',
	],
	...['Transfer-Encoding: chunked\r\n', 'Transfer-Encoding: gzip, chunked\r\n', 'Transfer-Encoding : chunked\r\n'],
	...[
		'Host: b\r\n',
		'HTTP/1.0',
		'HTTP/1.1',
		'0\r\n\r\n',
		'\r\n\r\n',
		' chunked',
		'Connection: close\r\n',
		'Expect: x\r\n',
	],
	...['X: y\r\n z\r\n', ';a=b', ';a="\n"', '00000000', 'ffffffff', 'Upgrade: x\r\nConnection: Upgrade\r\n'],
];

/** The request that follows each mutated one. Where it is found shows where the parser thinks the mutated request ended. */
export const MARKER = 'GET /marker HTTP/1.1\r\nHost: marker\r\nConnection: close\r\n\r\n';

/** Returns a seeded generator of random integers from 0 to `bound` − 1 (mulberry32). */
export function seededRandom(seed: number): (bound: number) => number {
	let state = seed;
	return bound => {
		state = (state + 0x6d2b79f5) | 0;
		let t = Math.imul(state ^ (state >>> 15), 1 | state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) % bound;
	};
}

/** Generates requests, each followed by the marker request. */
export function requestMaker(seed: number): { next: (bound: number) => number; request: () => string } {
	const next = seededRandom(seed);
	const corpus = wireRequests().map(({ bytes }) => bytes);
	const pick = <T>(of: readonly T[]): T => of[next(of.length)]!;
	return {
		next,
		request(): string {
			let text = next(3) === 0 ? pick(corpus) : pick(WELL_FORMED);
			if (next(4) === 0) text += pick(WELL_FORMED);
			for (let count = next(4); count > 0; count--) {
				const at = next(text.length + 1);
				const fragment = pick(FRAGMENTS);
				const kind = next(4);
				if (kind === 0) text = text.slice(0, at) + fragment + text.slice(at);
				else if (kind === 1) text = text.slice(0, at) + fragment + text.slice(at + fragment.length);
				else if (kind === 2) text = text.slice(0, at) + text.slice(at + 1 + next(3));
				else text = text.slice(0, at) + String.fromCharCode(next(256)) + text.slice(at + 1);
			}
			return text + MARKER;
		},
	};
}
