/**
 * Mutated requests, seeded: the verdict never depends on how the bytes arrive, and whatever we accept Node's own parser
 * accepts with the same bodies and the same number of messages. FUZZ_SEED and FUZZ_BUDGET (milliseconds) look further.
 */
import { once } from 'node:events';
import { createServer as createNodeServer, METHODS } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { bodyOf, open, serve } from './wire.ts';

/** Milliseconds for each of the two comparisons. */
const BUDGET = Number(process.env.FUZZ_BUDGET ?? 1500);

const SEEDS: readonly string[] = [
	'GET /a?b=c HTTP/1.1\r\nHost: a\r\n\r\n',
	'POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello',
	'POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\nabc\r\n0\r\n\r\n',
	'POST /t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n',
	'GET http://b:80/x HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nX-Long: aaaa bbbb\tcccc\r\n\r\n',
	'PUT /e HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok',
	'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n',
	'GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
];
const MARKER = 'GET /marker HTTP/1.1\r\nHost: marker\r\nConnection: close\r\n\r\n';
const FRAGMENTS: readonly string[] = [
	'\r',
	'\n',
	'\r\n',
	'\0',
	' ',
	'\t',
	':',
	';',
	',',
	'0',
	'1',
	'F',
	'-',
	'+',
	'\x7f',
	'\xff',
	'%',
	'#',
	'_',
	'.',
	'"',
	'Content-Length: 3\r\n',
	'Content-Length: 5\r\n',
	'Transfer-Encoding: chunked\r\n',
	'Transfer-Encoding: gzip, chunked\r\n',
	'Transfer-Encoding : chunked\r\n',
	'Host: b\r\n',
	'HTTP/1.0',
	'HTTP/1.1',
	'0\r\n\r\n',
	'\r\n\r\n',
	' chunked',
	'Connection: close\r\n',
	'Expect: x\r\n',
	'X: y\r\n z\r\n',
];

/** A generator of numbers from 0 up to below a bound, the same for the same seed (mulberry32). */
function random(seed: number): (bound: number) => number {
	let state = seed;
	return bound => {
		state = (state + 0x6d2b79f5) | 0;
		let t = Math.imul(state ^ (state >>> 15), 1 | state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) % bound;
	};
}

function mutated(next: (bound: number) => number): string {
	let text = SEEDS[next(SEEDS.length)]!;
	for (let count = next(4); count > 0; count--) {
		const at = next(text.length + 1);
		const fragment = FRAGMENTS[next(FRAGMENTS.length)]!;
		const kind = next(3);
		if (kind === 0) text = text.slice(0, at) + fragment + text.slice(at);
		else if (kind === 1) text = text.slice(0, at) + fragment + text.slice(at + fragment.length);
		else text = text.slice(0, at) + text.slice(at + 1 + next(3));
	}
	return text + MARKER;
}

/** What a server read of one connection: a line for each message, in order. */
type Reading = string[];

const differential = suite('HTTP/1.1: mutated requests');

/** Sends pieces, closes our side, and waits for the other's. */
async function exchange(port: number, pieces: readonly string[]): Promise<string> {
	const wire = await open(port);
	for (let i = 0; i < pieces.length; i++) {
		wire.send(pieces[i]!);
		// Let the server read this piece by itself.
		if (i < pieces.length - 1) await new Promise(resolve => setImmediate(() => setImmediate(resolve)));
	}
	wire.socket.end();
	const text = await wire.whole();
	wire.socket.destroy();
	return text;
}

async function ours(): Promise<{ port: number; readings: Reading; stop: () => Promise<void> }> {
	const readings: Reading = [];
	const server = await serve(async x => {
		const line = `${x.received.method} `;
		// In place before the body is read, so that the order is that of the heads.
		const index = readings.push(`${line}…`) - 1;
		const body = await bodyOf(x);
		readings[index] = line + JSON.stringify(body);
		x.response.body = 'ok';
	});
	return { port: server.port, readings, stop: () => server.stop() };
}

/** Statuses of the final responses in what came back. */
function statuses(text: string): string {
	return [...text.matchAll(/HTTP\/1\.1 ([2-5][0-9][0-9]) /g)].map(match => match[1]).join(' ');
}

differential('split anywhere, they are read as in one piece', async () => {
	const { port, readings, stop } = await ours();
	const next = random(Number(process.env.FUZZ_SEED ?? 20_260_801));
	const end = performance.now() + BUDGET;
	let compared = 0;
	let accepted = 0;
	try {
		while (performance.now() < end) {
			const request = mutated(next);
			readings.length = 0;
			const wholeText = await exchange(port, [request]);
			const whole = readings.slice();
			const cuts = Array.from({ length: 1 + next(4) }, () => next(request.length)).sort((a, b) => a - b);
			const pieces = [0, ...cuts]
				.map((cut, i) => request.slice(cut, cuts[i] ?? request.length))
				.filter(piece => piece !== '');
			readings.length = 0;
			const splitText = await exchange(port, pieces);
			const shown = JSON.stringify(pieces);
			// A body known to be malformed with its head is refused before the exchange, later within it: the client sees the same.
			const complete = (lines: Reading): string[] => lines.filter(line => !line.endsWith('…'));
			assert.equal(complete(readings), complete(whole), shown);
			assert.is(statuses(splitText), statuses(wholeText), shown);
			compared++;
			if (whole.length > 1) accepted++;
		}
	} finally {
		await stop();
	}
	assert.ok(compared > 50 && accepted > 5, `${compared} compared, ${accepted} accepted`);
});

differential('what we accept, Node accepts with the same bodies', async () => {
	const { port, readings, stop } = await ours();
	const theirs: Reading = [];
	const node = createNodeServer({ insecureHTTPParser: false, requireHostHeader: false }, async (request, response) => {
		const line = `${request.method} `;
		const index = theirs.push(`${line}…`) - 1;
		let body = '';
		try {
			for await (const piece of request) body += piece.toString('latin1');
		} catch {
			return;
		}
		theirs[index] = line + JSON.stringify(body);
		response.end('ok');
	});
	node.on('checkExpectation', (_request, response) => response.writeHead(417).end());
	node.listen(0, '127.0.0.1');
	await once(node, 'listening');
	const nodePort = (node.address() as AddressInfo).port;
	const next = random(Number(process.env.FUZZ_SEED ?? 7_112_026));
	const end = performance.now() + BUDGET;
	let compared = 0;
	try {
		while (performance.now() < end) {
			const request = mutated(next);
			readings.length = 0;
			theirs.length = 0;
			await exchange(port, [request]);
			let accepted = readings.filter(line => !line.endsWith('…'));
			// Any token is a method to us (RFC 9110 §9.1); Node has a list.
			const foreign = accepted.findIndex(line => !METHODS.includes(line.split(' ')[0]!));
			if (foreign >= 0) accepted = accepted.slice(0, foreign);
			if (accepted.length === 0) continue;
			await exchange(nodePort, [request]);
			assert.equal(theirs.slice(0, accepted.length), accepted, JSON.stringify(request));
			compared++;
		}
	} finally {
		await stop();
		node.closeAllConnections();
		await new Promise(resolve => node.close(resolve));
	}
	assert.ok(compared > 20, `${compared} compared`);
});
differential.run();
