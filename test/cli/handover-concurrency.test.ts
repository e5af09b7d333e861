/** `limit_concurrent` during handovers, in which two processes serve: the limit applies to both together. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { pauseFor, rawExchange, until } from '../harness.ts';
import { pidOf, withServer } from './handover-server.ts';

const handover = suite('concurrent requests during handovers');

const LIMIT = 4;
/** Maximum milliseconds for an answer. Requests that the upstream holds back must outlast handovers on a busy machine. */
const MAX_ANSWER_MS = 120_000;

/** An upstream that holds requests for `/hold` back until they are released, and answers others after a short time. */
async function withUpstream(test: (upstream: Upstream) => Promise<void>): Promise<void> {
	const held: ServerResponse[] = [];
	const upstream: Upstream = { port: 0, held, running: 0, maxRunning: 0, release: () => held.shift()!.end('released') };
	const server = createServer((request, response) => {
		upstream.running++;
		upstream.maxRunning = Math.max(upstream.maxRunning, upstream.running);
		response.once('close', () => upstream.running--);
		if (request.url === '/hold') held.push(response);
		else void pauseFor(5).then(() => response.end('done'));
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
	upstream.port = (server.address() as AddressInfo).port;
	try {
		await test(upstream);
	} finally {
		server.closeAllConnections();
		server.close();
	}
}

interface Upstream {
	port: number;
	readonly held: ServerResponse[];
	running: number;
	maxRunning: number;
	/** Answers the request that has been held back for longest. */
	release(): void;
}

/** Sends a request on a new connection and returns its status; 0 if the connection broke. */
async function statusOf(port: number, path = '/'): Promise<number> {
	const answer = await rawExchange(
		port,
		`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`,
		MAX_ANSWER_MS,
	).catch(() => '');
	return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0);
}

/** Returns a configuration that differs in each round, so that it needs a handover. */
const sitesOf =
	(upstream: Upstream, round: number) =>
	(ports: readonly number[]): string =>
		`http://127.0.0.1:${ports[0]} {
	limit_concurrent all ${LIMIT} {
		key static
	}
	reverse_proxy 127.0.0.1:${upstream.port}
}
http://127.0.0.1:${ports[1 + round]} {
	respond more
}
`;

handover('under load, requests of the old and the new process together stay within the limit', () =>
	withUpstream(upstream =>
		withServer(sitesOf(upstream, 0), async ({ ports, load }) => {
			const port = ports[0]!;
			const heldRequests = [statusOf(port, '/hold'), statusOf(port, '/hold')];
			await until('two requests run in the old process', () => upstream.held.length === 2);
			let answers = 0;
			let isEnding = false;
			const statuses = new Set<number>();
			const clients = Array.from({ length: 8 }, async () => {
				while (!isEnding) {
					statuses.add(await statusOf(port));
					answers++;
					// Refusals arrive immediately. Without pauses, they would take all of the processor's time.
					await pauseFor(5);
				}
			});
			const untilAnswers = (count: number): Promise<void> => {
				const end = answers + count;
				return until(`${count} further answers`, () => answers >= end);
			};
			try {
				await untilAnswers(100);
				const { status } = await load(sitesOf(upstream, 1)(ports));
				assert.is(status, 200);
				// Waits until requests that began during the switch have ended.
				await untilAnswers(100);
				upstream.maxRunning = 0;
				await untilAnswers(300);
				assert.is(upstream.maxRunning, LIMIT);
				upstream.release();
				upstream.release();
				assert.equal(await Promise.all(heldRequests), [200, 200]);
			} finally {
				isEnding = true;
				await Promise.all(clients);
			}
			assert.equal([...statuses].sort(), [200, 503]);
		}),
	),
);

handover('a place is free again once a request of the old process ends, or the old process is killed', () =>
	withUpstream(upstream =>
		withServer(sitesOf(upstream, 0), async ({ ports, load }) => {
			const port = ports[0]!;
			const { body } = await load(sitesOf(upstream, 1)(ports));
			const oldPid = pidOf({ status: 200, body });
			const heldRequests = Array.from({ length: LIMIT }, () => statusOf(port, '/hold'));
			await until('the old process is at its limit', () => upstream.held.length === LIMIT);
			assert.is((await load(sitesOf(upstream, 2)(ports))).status, 200);
			assert.is(await statusOf(port), 503);
			upstream.release();
			await until('a place is free', async () => (await statusOf(port)) === 200);
			heldRequests.push(statusOf(port, '/hold'));
			await until('the limit is reached again', () => upstream.held.length === LIMIT);
			assert.is(await statusOf(port), 503);
			process.kill(oldPid, 'SIGKILL');
			await until('the places of the killed process are free', async () => (await statusOf(port)) === 200);
			while (upstream.held.length > 0) upstream.release();
			assert.equal((await Promise.all(heldRequests)).sort(), [0, 0, 0, 200, 200]);
		}),
	),
);

handover.run();
