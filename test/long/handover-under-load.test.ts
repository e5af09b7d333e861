/**
 * Handovers for new ports, for new TLS names and for upgrades of the program, under every kind of load at once. Nothing is
 * refused, reset or cut short. HANDOVERS=100 runs the full trial. From 20 handovers on, downloads have 1 GB, and there are 64
 * clients of each kind and 500 WebSockets. CLIENTS, WEB_SOCKETS, FILE_MB and GRACE_SECONDS set other sizes.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { quicSupport } from '../../runtime/sockets/quic/quic-library.ts';
import { TestAuthority } from '../certificates.ts';
import { startLoad } from '../cli/handover-load.ts';
import { freePorts, pauseFor, rawExchange, runCommand, SVC, serve, temporaryFolder, until } from '../harness.ts';
import { Visitor } from './http3-visitor.ts';

const trial = suite('handovers under load');

const HANDOVER_COUNT = Number(process.env.HANDOVERS ?? 3);
const IS_FULL = HANDOVER_COUNT >= 20;
const CLIENTS = Number(process.env.CLIENTS ?? (IS_FULL ? 64 : 16));
const WEB_SOCKETS = Number(process.env.WEB_SOCKETS ?? (IS_FULL ? 500 : 60));
const FILE_BYTES = Number(process.env.FILE_MB ?? (IS_FULL ? 1024 : 32)) * 1024 ** 2;
const UPLOAD_BYTES = IS_FULL ? 64 * 1024 ** 2 : 8 * 1024 ** 2;
/**
 * Milliseconds for which a predecessor serves its open connections. Anything that takes longer is cut off, such as
 * uploads on a busy machine.
 */
const GRACE_MS = Number(process.env.GRACE_SECONDS ?? (IS_FULL ? 120 : 12)) * 1000;

/** A description of each failure of a client, with the kind of client. */
const failures: string[] = [];
const doneByKind: { [kind: string]: number } = {};
let isStopped = false;

/** Repeats a client's work until the trial ends. */
async function repeatWork(kind: string, work: () => Promise<void>): Promise<void> {
	while (!isStopped) {
		try {
			await work();
			doneByKind[kind] = (doneByKind[kind] ?? 0) + 1;
		} catch (error) {
			failures.push(`${kind}: ${(error as Error).message}`);
			await pauseFor(20);
		}
	}
}

/** Writes a file of pseudo-random bytes. Returns its checksum. */
function writeLarge(file: string, bytes: number): string {
	const block = Buffer.alloc(1024 ** 2);
	const hash = createHash('sha256');
	const descriptor = openSync(file, 'w');
	for (let written = 0, seed = 1; written < bytes; written += block.length) {
		for (let at = 0; at < block.length; at += 4) {
			seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) | 0;
			block.writeInt32LE(seed, at);
		}
		hash.update(block);
		writeSync(descriptor, block);
	}
	closeSync(descriptor);
	return hash.digest('hex');
}

async function download(port: number, checksum: string): Promise<void> {
	const clientRequest = request({ host: '127.0.0.1', port, path: '/large', agent: false }).end();
	const [answer] = await once(clientRequest, 'response');
	const hash = createHash('sha256');
	for await (const chunk of answer) hash.update(chunk);
	if (hash.digest('hex') !== checksum) throw new Error('the checksum differs');
}

/** Uploads slowly, so that handovers happen during the upload. The application answers with the checksum. */
async function upload(port: number): Promise<void> {
	const clientRequest = request({ host: '127.0.0.1', port, path: '/upload', method: 'POST', agent: false });
	const answered = once(clientRequest, 'response');
	answered.catch(() => {});
	const hash = createHash('sha256');
	const chunk = Buffer.alloc(256 * 1024, 'upload');
	for (let sent = 0; sent < UPLOAD_BYTES; sent += chunk.length) {
		hash.update(chunk);
		if (!clientRequest.write(chunk)) await Promise.race([once(clientRequest, 'drain'), answered]);
		await pauseFor(10);
	}
	clientRequest.end();
	const [answer] = await answered;
	let text = '';
	for await (const part of answer) text += part;
	if (text !== hash.digest('hex')) throw new Error(`status ${answer.statusCode}: the checksum differs`);
}

/** A client on an upgraded connection. It sends messages and reads their echoes until the server closes the connection. */
class EchoConnection {
	readonly #socket: Socket;
	echoes = 0;
	/** When the client began to connect, and when the connection opened and closed, in milliseconds of `performance.now()`. */
	readonly begunAt = performance.now();
	openedAt = 0;
	closedAt: number | undefined;

	constructor(port: number) {
		this.#socket = connect(port, '127.0.0.1');
		const socket = this.#socket;
		socket.write(
			`GET /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
		);
		let timer: NodeJS.Timeout | undefined;
		socket.on('data', bytes => {
			if (this.openedAt === 0) {
				if (!bytes.toString('latin1').startsWith('HTTP/1.1 101')) failures.push(`WebSocket: answered ${bytes}`);
				this.openedAt = performance.now();
			} else this.echoes++;
			timer = setTimeout(() => socket.write('echo'), 250);
		});
		let connectedAt: number | undefined;
		let reason = 'closed without an answer';
		socket.on('connect', () => {
			connectedAt = performance.now();
		});
		socket.on('error', (error: NodeJS.ErrnoException) => {
			reason = error.code ?? error.message;
		});
		socket.on('close', () => {
			clearTimeout(timer);
			this.closedAt = performance.now();
			if (this.openedAt !== 0 || isStopped) return;
			const since = (at: number | undefined) =>
				at === undefined ? 'never' : `${Math.round(performance.now() - at)} ms ago`;
			failures.push(`WebSocket: ${reason}; begun ${since(this.begunAt)}, connected ${since(connectedAt)}`);
		});
	}

	close(): void {
		this.#socket.destroy();
	}
}

/** Replaces the numbers in texts by `#`. Returns each distinct result, preceded by how often it occurs. */
function countTexts(texts: readonly string[]): string[] {
	const counts = new Map<string, number>();
	for (const text of texts) {
		const kind = text.replace(/\d+/g, '#').slice(0, 200);
		counts.set(kind, (counts.get(kind) ?? 0) + 1);
	}
	return [...counts].map(([kind, count]) => `${count} × ${kind}`);
}

function percentile(values: readonly number[], share: number): number {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

trial('lose nothing, whatever changes', async () => {
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	const [first, tls, ...others] = (await freePorts(4)) as [number, number, number, number];
	const checksum = writeLarge(path.join(folder, 'large'), FILE_BYTES);
	const echo = new Worker(new URL('./echo-thread.ts', import.meta.url));
	const [echoPort] = (await once(echo, 'message')) as [number];
	const application = createServer((request, answer) => {
		const hash = createHash('sha256');
		request.on('data', chunk => hash.update(chunk));
		request.on('end', () => answer.end(hash.digest('hex')));
		request.on('error', () => {});
	}).listen(0, '127.0.0.1');
	await once(application, 'listening');
	const authority = await TestAuthority.make();
	const { certificate, key } = await authority.issue({ names: ['localhost', '*.localhost'] });
	writeFileSync(path.join(folder, 'site.crt'), certificate);
	writeFileSync(path.join(folder, 'site.key'), key);
	const port = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
	const options = `{\n\tadmin unix/${folder}/admin.sock\n\tthreads 2\n\tgrace_period ${GRACE_MS}ms\n\tauto_https disable_redirects\n}\n`;
	const plain = `http://127.0.0.1:${first} {\n\thandle /echo {\n\t\treverse_proxy 127.0.0.1:${echoPort}\n\t}\n\thandle /upload {\n\t\treverse_proxy 127.0.0.1:${port(application)}\n\t}\n\thandle /large {\n\t\troot ${folder}\n\t\tfile_server\n\t}\n\thandle {\n\t\trespond "plain"\n\t}\n}\n`;
	const text = (extra: number, names: number): string =>
		`${options}${plain}https://localhost:${tls}${names > 0 ? `, https://name${names}.localhost:${tls}` : ''} {\n\ttls ${folder}/site.crt ${folder}/site.key\n\trespond "tls"\n}\nhttp://127.0.0.1:${others[extra % 2]} {\n\trespond "extra"\n}\n`;
	writeFileSync(file, text(0, 0));
	const server = await serve([file], first, { env: { XDG_STATE_HOME: folder } });
	/** The start times and durations of requests on new connections, in milliseconds. */
	const times: { readonly at: number; readonly took: number }[] = [];
	/** The times at which each handover began and ended. */
	const handovers: { readonly from: number; to: number }[] = [];
	const echoes = new Set<EchoConnection>();
	const endedEchoes: EchoConnection[] = [];
	const visitors = quicSupport().library === undefined ? [] : Array.from({ length: 4 }, () => new Visitor(tls));
	const clients = startLoad({ plain: first, tls }, CLIENTS);
	try {
		const loops = [
			repeatWork('download', () => download(first, checksum)),
			repeatWork('upload', () => upload(first)),
			...visitors.map(visitor =>
				repeatWork('HTTP/3', async () => {
					await visitor.visit();
					await pauseFor(5);
				}),
			),
			repeatWork('timed', async () => {
				const at = performance.now();
				const answer = await rawExchange(first, 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
				if (!answer.endsWith('plain')) throw new Error(`answered ${JSON.stringify(answer.slice(0, 60))}`);
				times.push({ at, took: performance.now() - at });
				await pauseFor(5);
			}),
			repeatWork('WebSockets', async () => {
				for (const one of echoes) {
					if (one.closedAt === undefined) continue;
					echoes.delete(one);
					endedEchoes.push(one);
				}
				while (echoes.size < WEB_SOCKETS) echoes.add(new EchoConnection(first));
				await pauseFor(50);
			}),
		];
		await until('the first requests', () => (doneByKind.timed ?? 0) > 10);
		await until('requests over HTTP/2', () => clients.done('HTTP/2') > 0);
		await until('quiet requests', () => (doneByKind.timed ?? 0) > 100);
		let extra = 0;
		let names = 0;
		for (let round = 0; round < HANDOVER_COUNT; round++) {
			const startedAt = performance.now();
			const handover = { from: startedAt, to: Infinity };
			handovers.push(handover);
			if (round % 3 === 0) extra++;
			if (round % 3 === 1) names++;
			writeFileSync(file, text(extra, names));
			const words = round % 3 === 2 ? ['upgrade', file, '--binary', SVC] : ['reload', file, '--handover'];
			const { status, stdout, stderr } = await runCommand(words);
			assert.is(status, 0, stderr);
			assert.match(stdout, 'has taken over');
			handover.to = performance.now();
			const count = doneByKind.timed ?? 0;
			await until('a quiet request', () => (doneByKind.timed ?? 0) > count);
			await until('quiet requests', () => (doneByKind.timed ?? 0) > count + 10);
			await until('more quiet requests', () => (doneByKind.timed ?? 0) > count + 30);
		}
		// The WebSockets of the last predecessor stay open until its grace period has ended.
		const last = handovers.at(-1)!;
		while (performance.now() < last.to + GRACE_MS) await pauseFor(100);
		await until('the end of the last predecessor', () =>
			[...echoes].every(one => one.openedAt > last.from || one.closedAt !== undefined),
		);
		isStopped = true;
		const report = await clients.stop();
		await Promise.all(loops);
		for (const visitor of visitors) failures.push(...visitor.failures.map(failure => `HTTP/3: ${failure}`));
		failures.push(...report.failures);
		assert.equal(failures.slice(0, 20), []);
		for (const one of endedEchoes) {
			// The grace period begins at an unknown time during the handover; only the start of the handover is known exactly.
			const handoverBefore = handovers.find(({ to }) => to > one.begunAt);
			if (handoverBefore === undefined) continue;
			const lived = one.closedAt! - handoverBefore.from;
			assert.ok(lived > GRACE_MS - 500, `a WebSocket lived for ${lived} ms after a handover had begun`);
		}
		const isDuring = (at: number) => handovers.some(({ from, to }) => at >= from && at <= to);
		const during = times.filter(({ at }) => isDuring(at)).map(({ took }) => took);
		const quiet = times.filter(({ at }) => !isDuring(at)).map(({ took }) => took);
		const [busy99, quiet99] = [percentile(during, 0.99), percentile(quiet, 0.99)];
		console.log(
			`${HANDOVER_COUNT} handovers: ${JSON.stringify({ ...report.done, ...doneByKind, resumed: report.resumed, ended: endedEchoes.length })}; p99 ${busy99.toFixed(1)} ms during handovers, ${quiet99.toFixed(1)} ms otherwise`,
		);
		assert.ok(report.resumed > 0);
		for (const kind of ['download', 'upload', ...(visitors.length > 0 ? ['HTTP/3'] : [])])
			assert.ok(doneByKind[kind]! > 0, kind);
		// A handover starts a process on the same processors, so on a busy machine the server is not the only cause of delays.
		assert.ok(busy99 < 20 * quiet99 + 500, `p99 ${busy99} ms during handovers, ${quiet99} ms otherwise`);
	} catch (error) {
		const report = await clients.stop(5000);
		failures.push(...report.failures);
		console.log(`failed in handover ${handovers.length}: ${JSON.stringify({ ...report.done, ...doneByKind })}`);
		console.log([...failures.slice(0, 20), 'all failures:', ...countTexts(failures), 'log of the server:'].join('\n'));
		console.log(
			server
				.output()
				.split('\n')
				.filter(line => /"level":"(warn|error)"/.test(line))
				.slice(-50)
				.join('\n'),
		);
		throw error;
	} finally {
		isStopped = true;
		for (const one of echoes) one.close();
		for (const visitor of visitors) visitor.close();
		await server.stop();
		await clients.stop();
		await echo.terminate();
		application.closeAllConnections();
		application.close();
	}
});

trial.run();
