/**
 * Rate limits at full size: an attacker with ten million keys in a minute, and a million requests over threads and reloads. The
 * server admits as many requests as the algorithm allows.
 */
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Rate } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { LimitTable, limitTableWords } from '../../runtime/rate-limits/limit-table.ts';
import { freePorts, serve, temporaryFolder } from '../harness.ts';

const test = suite('rate limits at full size');

const MAX_KEYS = 65_536;
const ATTACKER_KEYS = 10_000_000;
const PER_MINUTE = 10;

/**
 * Simulates a minute in which an attacker uses ten million keys, while a client sends 10,000 requests.
 * @param requestsPerKey Number of requests of each of the attacker's keys.
 * @returns How many requests of the client were admitted.
 */
function attack(table: LimitTable, requestsPerKey: number): number {
	const rate: Rate = { intervalMs: 60_000 / PER_MINUTE, capacityMs: 60_000, maxDelayMs: 0 };
	let admittedCount = 0;
	for (let index = 0; index < ATTACKER_KEYS; index++) {
		const now = 1000 + (index * 60_000) / ATTACKER_KEYS;
		if (index % 1000 === 0 && table.take('client', now, rate, 1) <= 0) admittedCount++;
		for (let request = 0; request < requestsPerKey; request++) table.take(`attacker ${index}`, now, rate, 1);
	}
	return admittedCount;
}

test('ten million keys in a minute stay within the memory of a zone, and do not free a limited client', () => {
	const buffer = new SharedArrayBuffer(4 * limitTableWords(MAX_KEYS));
	assert.ok(buffer.byteLength <= MAX_KEYS * 20, `${buffer.byteLength} bytes`);
	const before = process.memoryUsage.rss();
	const admittedCount = attack(new LimitTable(buffer, MAX_KEYS), 1);
	// At most, the client gets the burst at the beginning and the requests that become available during the minute.
	const isLimited = admittedCount >= PER_MINUTE && admittedCount <= 2 * PER_MINUTE;
	assert.ok(isLimited, `${admittedCount} requests were admitted`);
	const grownMiB = (process.memoryUsage.rss() - before) / 2 ** 20;
	assert.ok(grownMiB < 128, `${grownMiB} MiB`);
});

test('an attacker whose keys are refused, too, gains a client one request for each 65,536 of them', () => {
	const table = new LimitTable(new SharedArrayBuffer(4 * limitTableWords(MAX_KEYS)), MAX_KEYS);
	const admittedCount = attack(table, 2);
	const bound = 2 * PER_MINUTE + 1.2 * (ATTACKER_KEYS / MAX_KEYS);
	assert.ok(admittedCount >= PER_MINUTE && admittedCount <= bound, `${admittedCount} requests were admitted`);
});

const CONNECTIONS = 20;
const BATCHES = 50;
const REQUESTS_PER_BATCH = 1000;
const KEYS = 10;
/** The limit of each key: the burst in requests, and the rate in requests per second. */
const BURST = 40_000;
const PER_SECOND = 100;

/** The admitted and refused requests of one key, and the times between which they were decided, in milliseconds. */
class KeyCount {
	admitted = 0;
	refused = 0;
	firstSentAt = Number.POSITIVE_INFINITY;
	firstAnsweredAt = Number.POSITIVE_INFINITY;
	lastSentAt = 0;
	lastAnsweredAt = 0;
}

/** Sends batches of requests for random keys over one connection, and counts the responses. */
async function sendBatches(port: number, counts: readonly KeyCount[]): Promise<void> {
	const socket = connect(port, '127.0.0.1').setNoDelay();
	let rest = '';
	let unanswered: number[] = [];
	let position = 0;
	let onAnswered: () => void = () => {};
	let onFailed: (error: Error) => void = () => {};
	socket.setEncoding('latin1').on('data', (data: unknown) => {
		const text = rest + String(data);
		const now = performance.now();
		let end = 0;
		for (const match of text.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
			const count = counts[unanswered[position++]!]!;
			if (match[1] === '200') count.admitted++;
			else if (match[1] === '429') count.refused++;
			else onFailed(new Error(`a response with status ${match[1]}`));
			count.firstAnsweredAt = Math.min(count.firstAnsweredAt, now);
			count.lastAnsweredAt = now;
			end = match.index + match[0].length;
		}
		// A status line may be divided between two chunks.
		rest = text.slice(Math.max(end, text.length - 'HTTP/1.1 20'.length));
		if (position === unanswered.length) onAnswered();
	});
	socket.on('close', () => onFailed(new Error('the server closed the connection')));
	for (let batch = 0; batch < BATCHES; batch++) {
		unanswered = Array.from({ length: REQUESTS_PER_BATCH }, () => Math.floor(Math.random() * KEYS));
		position = 0;
		const text = unanswered.map(key => `GET /?key${key} HTTP/1.1\r\nHost: a.test\r\n\r\n`).join('');
		const now = performance.now();
		for (const key of new Set(unanswered)) {
			counts[key]!.firstSentAt = Math.min(counts[key]!.firstSentAt, now);
			counts[key]!.lastSentAt = now;
		}
		await new Promise<void>((resolve, reject) => {
			onAnswered = resolve;
			onFailed = reject;
			socket.write(text);
		});
	}
	onFailed = () => {};
	socket.destroy();
}

test('a million random requests over threads and reloads are admitted within one in a thousand of the algorithm', async () => {
	const [port, admin] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	const configuration = (text: string): string => `{
	admin 127.0.0.1:${admin}
	threads 2
}
http://:${port} {
	bind 127.0.0.1
	rate_limit * all ${BURST} per ${BURST / PER_SECOND}s {
		key {http.request.uri.query}
	}
	respond "${text}"
}
`;
	const file = path.join(folder, 'Configfile');
	writeFileSync(file, configuration('0'));
	const server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	try {
		const counts = Array.from({ length: KEYS }, () => new KeyCount());
		let reloads = 0;
		let isOver = false;
		const reload = async (): Promise<void> => {
			while (!isOver) {
				const response = await fetch(`http://127.0.0.1:${admin}/load`, {
					method: 'POST',
					headers: { 'content-type': 'text/configfile' },
					body: configuration(String(++reloads)),
				});
				assert.is(response.status, 200, await response.text());
			}
		};
		const reloading = reload();
		await Promise.all(Array.from({ length: CONNECTIONS }, () => sendBatches(port, counts))).finally(() => {
			isOver = true;
		});
		await reloading;
		let [admitted, refused] = [0, 0];
		for (const [key, count] of counts.entries()) {
			const expected = (from: number, to: number): number => BURST + (PER_SECOND * (to - from)) / 1000;
			const most = expected(count.firstSentAt, count.lastAnsweredAt);
			const least = expected(count.firstAnsweredAt, count.lastSentAt);
			const shown = `key ${key}: ${count.admitted} admitted, by the algorithm ${least.toFixed(0)} to ${most.toFixed(0)}`;
			assert.ok(count.admitted <= most * 1.001, shown);
			assert.ok(count.admitted >= least * 0.999, shown);
			admitted += count.admitted;
			refused += count.refused;
		}
		assert.is(admitted + refused, CONNECTIONS * BATCHES * REQUESTS_PER_BATCH);
		assert.ok(reloads >= 3, `${reloads} reloads`);
		console.log(`${admitted} of a million requests were admitted, during ${reloads} reloads`);
	} finally {
		await server.stop();
	}
});

test.run();
