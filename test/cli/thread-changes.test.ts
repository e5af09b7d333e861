/** Reloads that change the number of threads: no restart, no lost connection, and state that survives. */
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { quicSupport } from '../../runtime/sockets/quic/quic-library.ts';
import { TestAuthority } from '../certificates.ts';
import { freePorts, rawExchange, runCommand, type ServerProcess, serve, temporaryFolder, until } from '../harness.ts';
import { Visitor } from '../long/http3-visitor.ts';
import { startLoad } from './handover-load.ts';

const changes = suite('changes of the number of threads');

/** Returns how many worker threads a process has. */
function countWorkers({ child: { pid } }: ServerProcess): number {
	const threads = readdirSync(`/proc/${pid}/task`);
	const names = threads.map(thread => {
		try {
			return readFileSync(`/proc/${pid}/task/${thread}/comm`, 'latin1').trim();
		} catch {
			// The thread ended after the folder was listed.
			return '';
		}
	});
	return names.filter(name => name === 'svc-worker').length;
}

changes('lose no request over HTTP/1, TLS, HTTP/2 and HTTP/3', async () => {
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	const [plain, tls] = (await freePorts(2)) as [number, number];
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['localhost'] });
	writeFileSync(path.join(folder, 'site.crt'), certificate);
	writeFileSync(path.join(folder, 'site.key'), key);
	const write = (threads: number): void =>
		writeFileSync(
			file,
			`{\n\tadmin unix/${folder}/admin.sock\n\tthreads ${threads}\n\tauto_https disable_redirects\n}\nhttp://127.0.0.1:${plain} {\n\trespond "plain"\n}\nhttps://localhost:${tls} {\n\ttls ${folder}/site.crt ${folder}/site.key\n\trespond "tls"\n}\n`,
		);
	write(1);
	const server = await serve([file], plain, { env: { XDG_STATE_HOME: folder } });
	const visitors = quicSupport().library === undefined ? [] : Array.from({ length: 3 }, () => new Visitor(tls));
	const clients = startLoad({ plain, tls }, 2);
	let isStopped = false;
	const visiting = visitors.map(async visitor => {
		while (!isStopped) await visitor.visit();
	});
	try {
		await until('the first requests', () => clients.done('HTTP/2') > 0);
		for (const threads of [3, 1]) {
			write(threads);
			const { status, stdout, stderr } = await runCommand(['reload', file]);
			assert.is(status, 0, stderr);
			assert.not.match(stdout + stderr, 'warning');
			await until('the old threads to end', () => countWorkers(server) === threads);
			const before = clients.done('HTTP/2');
			await until('requests of all kinds', () => clients.done('HTTP/2') > before);
		}
		isStopped = true;
		const report = await clients.stop();
		await Promise.all(visiting);
		assert.equal(report.failures, []);
		assert.equal(
			visitors.flatMap(({ failures }) => failures),
			[],
		);
		for (const visitor of visitors) assert.ok(visitor.answers.length > 10);
	} finally {
		isStopped = true;
		for (const visitor of visitors) visitor.close();
		await clients.stop();
		await server.stop();
	}
});

/** Runs a server with the sites that `sites` returns for its port. `change` reloads it with another number of threads. */
async function withSites(
	sites: (port: number) => string,
	test: (
		server: ServerProcess,
		port: number,
		change: (threads: number) => Promise<{ status: number | null; stderr: string }>,
	) => Promise<void>,
	options = '',
): Promise<void> {
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	const [port] = (await freePorts(1)) as [number];
	const write = (threads: number): void =>
		writeFileSync(file, `{\n\tadmin unix/${folder}/admin.sock\n\tthreads ${threads}\n${options}}\n${sites(port)}`);
	write(2);
	const server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	try {
		await test(server, port, threads => {
			write(threads);
			return runCommand(['reload', file]);
		});
	} finally {
		await server.stop();
	}
}

const get = (port: number, target: string): Promise<string> =>
	rawExchange(port, `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`);

changes('keep counts of rate limits, cached responses and metrics', async () => {
	let fetched = 0;
	const application = createServer((_asked, answer) => {
		fetched++;
		answer.setHeader('Cache-Control', 'max-age=600').end('fresh');
	}).listen(0, '127.0.0.1');
	await once(application, 'listening');
	const upstream = (application.address() as AddressInfo).port;
	const sites = (port: number) =>
		`http://127.0.0.1:${port} {\n\thandle /limited {\n\t\trate_limit few 3 per 1h\n\t\trespond "let in"\n\t}\n\thandle /cached {\n\t\tcache\n\t\treverse_proxy 127.0.0.1:${upstream}\n\t}\n\tmetrics /metrics\n}\n`;
	try {
		await withSites(
			sites,
			async (server, port, change) => {
				assert.match(await get(port, '/limited'), 'let in');
				assert.match(await get(port, '/cached'), 'fresh');
				const requests = async (): Promise<number> => {
					const text = await get(port, '/metrics');
					const lines = [...text.matchAll(/^std_http_requests_total\{.*\} (\d+)$/gm)];
					return lines.reduce((sum, [, count]) => sum + Number(count), 0);
				};
				const counted = await requests();
				assert.ok(counted >= 2, `${counted} requests were counted`);
				assert.is((await change(1)).status, 0);
				await until('the old threads to end', () => countWorkers(server) === 1);
				assert.ok((await requests()) > counted);
				assert.is((await change(3)).status, 0);
				assert.match(await get(port, '/limited'), 'let in');
				assert.match(await get(port, '/limited'), 'let in');
				assert.match(await get(port, '/limited'), 'HTTP/1.1 429');
				assert.match(await get(port, '/cached'), 'fresh');
				assert.is(fetched, 1);
			},
			'\tmetrics\n\tcache\n',
		);
	} finally {
		application.close();
	}
});

changes(
	'let open connections go on, by the configuration that they began with, until the grace period ends',
	async () => {
		const application = createServer().on('upgrade', (_asked, socket) => {
			socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
			socket.pipe(socket);
		});
		application.listen(0, '127.0.0.1');
		await once(application, 'listening');
		const upstream = (application.address() as AddressInfo).port;
		const sites = (port: number) => `http://127.0.0.1:${port} {\n\treverse_proxy 127.0.0.1:${upstream}\n}\n`;
		try {
			await withSites(
				sites,
				async (server, port, change) => {
					const socket = connect(port, '127.0.0.1').setEncoding('latin1');
					let text = '';
					socket.on('data', (chunk: string) => {
						text += chunk;
					});
					const whenClosed = once(socket, 'close');
					socket.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`);
					await until('the upgrade', () => text.includes('101'));
					const startedAt = performance.now();
					assert.is((await change(1)).status, 0);
					// The pool of two threads drains while the new pool already serves.
					assert.is(countWorkers(server), 3);
					socket.write('still here');
					await until('the echo', () => text.endsWith('still here'));
					await whenClosed;
					assert.ok(performance.now() - startedAt > 800, 'the connection was closed before the grace period had ended');
					await until('the old threads to end', () => countWorkers(server) === 1);
				},
				'\tgrace_period 1500ms\n',
			);
		} finally {
			application.close();
		}
	},
);

changes('need another process beyond the threads for which it has memory', async () => {
	await withSites(
		port => `http://127.0.0.1:${port} {\n\trespond "served"\n}\n`,
		async (server, port, change) => {
			const { status, stderr } = await change(250);
			assert.is(status, 1);
			assert.match(stderr, /250 threads cannot be started in this process/);
			assert.match(stderr, /--handover/);
			assert.is(countWorkers(server), 2);
			assert.match(await get(port, '/'), 'served');
		},
	);
});

changes(
	'beyond the threads for which the process has memory are foreseen by a dry run, and made by a handover',
	async () => {
		const folder = temporaryFolder();
		const file = path.join(folder, 'Configfile');
		const [port, admin] = (await freePorts(2)) as [number, number];
		const write = (threads: number, body: string): void =>
			writeFileSync(
				file,
				`{\n\tadmin 127.0.0.1:${admin}\n\tthreads ${threads}\n}\nhttp://127.0.0.1:${port} {\n\trespond "${body}"\n}\n`,
			);
		write(1, 'by one thread');
		const server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
		try {
			const threads = 2 * Math.max(availableParallelism(), 8) + 1;
			write(threads, 'by many threads');
			const { stdout: document } = await runCommand(['adapt', file]);
			const headers = { 'content-type': 'application/json' };
			const preview = await fetch(`http://127.0.0.1:${admin}/load?dry_run`, {
				method: 'POST',
				headers,
				body: document,
			});
			const { result, reasons } = (await preview.json()) as { result: string; reasons: { subject: string }[] };
			assert.is(result, 'restart_required');
			assert.equal(
				reasons.map(({ subject }) => subject),
				['threads'],
			);
			const { status, stdout, stderr } = await runCommand(['reload', file, '--handover'], {
				limitMs: 180_000,
			});
			assert.is(status, 0, stderr);
			assert.match(stdout, /now being served by process \d+, which has taken over/);
			assert.match(await get(port, '/'), 'by many threads');
		} finally {
			await server.stop();
		}
	},
);

changes.run();
