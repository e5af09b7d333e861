/**
 * A server with a disk cache is repeatedly killed at a random moment under load, and restarted. It must serve no wrong
 * byte and nothing that was purged or invalidated, and must keep what was written before.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, pauseFor, type ServerProcess, serve, temporaryFolder, until } from '../harness.ts';

const KILLS = 6;
const PATHS = 300;

/** The state of a seeded random number generator, which yields the same numbers in every run. */
let randomState = 20_261_121;
function random(below: number): number {
	randomState = (Math.imul(randomState ^ (randomState >>> 15), 0x2c1b3c6d) + 0x297a2d39) | 0;
	return ((randomState ^ (randomState >>> 12)) >>> 0) % below;
}

/** The origin's current version of each path. */
const versions = new Map<string, number>();
/** The newest version of each path that must not be served any more, because a purge or an invalidating request succeeded. */
const removedVersions = new Map<string, number>();
function noteRemoval(target: string, version: number): void {
	removedVersions.set(target, Math.max(removedVersions.get(target) ?? 0, version));
}

/** Number of requests that the origin has received. */
let originRequestCount = 0;

const origin = createServer((received, answer) => {
	originRequestCount++;
	const { url, method } = received;
	if (method === 'POST') {
		const changedVersion = (versions.get(url!) ?? 1) + 1;
		versions.set(url!, changedVersion);
		answer.writeHead(204, { 'X-Version': changedVersion }).end();
		return;
	}
	const version = versions.get(url!) ?? 1;
	const size = (Number(url!.slice(2)) * 7919) % 60_000;
	const body = Buffer.alloc(size, createHash('sha256').update(`${url} ${version}`).digest());
	const sum = createHash('sha256').update(body).digest('hex');
	answer.writeHead(200, {
		...{ 'Cache-Control': 'max-age=3600', 'Content-Type': 'application/octet-stream', 'Content-Length': size },
		...{ 'X-Sum': sum, 'X-Version': version, 'Cache-Tag': `t${Number(url!.slice(2)) % 10}` },
	});
	answer.end(body);
});

interface Answer {
	readonly status: number;
	readonly body: Buffer;
	readonly field: (name: string) => string;
}

let agent = new Agent({ keepAlive: true, maxSockets: 16 });

/** Sends a request. Resolves to undefined if the server died during the request. */
function requestTarget(port: number, target: string, method = 'GET', body?: string): Promise<Answer | undefined> {
	return new Promise(resolve => {
		const headers = { Host: 'example.test', ...(body !== undefined && { 'Content-Type': 'application/json' }) };
		const sent = request({ host: '127.0.0.1', port, path: target, method, agent, headers }, response => {
			const pieces: Buffer[] = [];
			response.on('data', piece => pieces.push(piece));
			response.on('error', () => resolve(undefined));
			response.on('end', () =>
				resolve({
					status: response.statusCode!,
					body: Buffer.concat(pieces),
					field: name => String(response.headers[name]),
				}),
			);
		});
		sent.on('error', () => resolve(undefined));
		sent.end(body);
	});
}

const killed = suite('a disk cache whose server is killed');

killed('serves no wrong or removed content, and keeps the rest', async () => {
	origin.listen(0, '127.0.0.1');
	await once(origin, 'listening');
	const upstream = (origin.address() as { port: number }).port;
	const [port, admin] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{
	admin 127.0.0.1:${admin} {
		origins example.test
	}
	threads 2
	cache {
		ceiling 4MiB
		disk ${path.join(folder, 'disk')} 12MiB
	}
}
http://:${port} {
	cache
	reverse_proxy 127.0.0.1:${upstream}
}
`,
	);
	let hits = 0;
	/**
	 * Number of answered requests. Each round ends after a certain number of answers, not after a certain time, so that a slow
	 * machine stores as much as a fast one.
	 */
	let answeredCount = 0;
	let server: ServerProcess | undefined;
	/** Runs one client, which mostly reads and sometimes purges or invalidates an entry. */
	const client = async (isOver: () => boolean): Promise<void> => {
		while (!isOver()) {
			const target = `/${'k'}${Math.min(random(PATHS), random(PATHS))}`;
			const what = random(60);
			if (what === 0) {
				const changed = await requestTarget(port, target, 'POST');
				// By now, the origin may have a newer version, because of a request that the server has not answered yet.
				if (changed?.status === 204) noteRemoval(target, Number(changed.field('x-version')) - 1);
				continue;
			}
			if (what === 1) {
				versions.set(target, (versions.get(target) ?? 1) + 1);
				const before = versions.get(target)! - 1;
				const tag = random(2) === 0;
				const selection = tag
					? { tag: `t${Number(target.slice(2)) % 10}`, host: 'example.test' }
					: { host: 'example.test', path: target };
				const purged = await requestTarget(admin, '/cache/purge', 'POST', JSON.stringify(selection));
				if (purged?.status === 200) noteRemoval(target, before);
				continue;
			}
			const least = removedVersions.get(target) ?? 0;
			const answer = await requestTarget(port, target);
			if (answer === undefined || answer.status === 502) continue;
			answeredCount++;
			assert.is(answer.status, 200);
			const sum = createHash('sha256').update(answer.body).digest('hex');
			assert.is(sum, answer.field('x-sum'), `wrong bytes of ${target}`);
			const expected = Buffer.alloc(
				answer.body.byteLength,
				createHash('sha256')
					.update(`${target} ${answer.field('x-version')}`)
					.digest(),
			);
			assert.ok(expected.equals(answer.body), `${target} was served with the content of another entry`);
			assert.ok(Number(answer.field('x-version')) > least, `${target} was served again after its removal`);
			if (answer.field('cache-status').includes('hit')) hits++;
		}
	};
	try {
		for (let kill = 0; kill <= KILLS; kill++) {
			server = await serve(['--config', file], port);
			const lastAnswer = answeredCount + 500 + random(1500);
			let isOver = false;
			await Promise.all([
				...Array.from({ length: 12 }, () => client(() => isOver)),
				until('the answers of the round', () => answeredCount >= lastAnswer)
					.then(() => pauseFor(random(10)))
					.finally(() => {
						if (kill < KILLS) server!.child.kill('SIGKILL');
						isOver = true;
					}),
			]);
			if (kill < KILLS) await server.stop();
			agent.destroy();
			agent = new Agent({ keepAlive: true, maxSockets: 16 });
		}
		const report = JSON.parse((await requestTarget(admin, '/cache'))!.body.toString());
		console.log(
			`${hits} hits, ${originRequestCount} requests to the origin, disk ${JSON.stringify(report.stores[0].disk)}`,
		);
		assert.ok(report.stores[0].disk.recalled > 20, 'too few entries survived the kills');
		// The clients choose their paths at random, so they may not have requested each of these.
		for (let i = 0; i < 20; i++) await requestTarget(port, `/k${i}`);
		// `stop` would kill a server that needs more than five seconds to write its entries to a busy disk.
		const whenEnded = once(server!.child, 'exit');
		server!.child.kill('SIGTERM');
		await whenEnded;
		// After an orderly stop, nearly everything is served from disk.
		server = await serve(['--config', file], port);
		// Until the server has read the folder, it serves as if the disk were empty.
		await until('the disk', async () => {
			const { stores } = JSON.parse((await requestTarget(admin, '/cache'))!.body.toString());
			return stores[0].disk.idle === undefined;
		});
		const before = originRequestCount;
		for (let i = 0; i < 20; i++) await requestTarget(port, `/k${i}`);
		assert.ok(originRequestCount - before < 12, `${originRequestCount - before} of 20 requests went to the origin`);
	} finally {
		await server?.stop();
		agent.destroy();
		origin.closeAllConnections();
		origin.close();
		rmSync(folder, { recursive: true, force: true });
	}
});

killed.run();
