/** Handovers of HTTP/3: every connection stays with its process, whichever process reads its datagrams. */
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../certificates.ts';
import { freePorts, runCommand, type ServerProcess, serve, temporaryFolder, until } from '../harness.ts';
import { frame, openControlStream, response } from '../runtime/protocols/http3/frames.ts';
import { http3Suite } from '../runtime/protocols/http3/http3-suite.ts';
import { Nat } from '../runtime/protocols/http3/nat.ts';
import { type ClientStream, connect, QuicClient } from '../runtime/protocols/http3/quic-client.ts';
import { getRequest, isLeaving, Visitor } from './http3-visitor.ts';

const handover = http3Suite('handover of HTTP/3');

interface RunningServer {
	readonly server: ServerProcess;
	readonly port: number;
	readonly file: string;
	/** Writes the first configuration to the file, with additional sites. */
	write(more: string): void;
	/** Hands over to a process that answers with another text, by default with the same number of threads. */
	reload(
		answer: string,
		threads?: number,
		more?: readonly string[],
	): Promise<{ status: number | null; stdout: string; stderr: string }>;
}

/** Runs a server that answers with `one`. Requests for `/slow` are proxied to the application. */
async function withServer(
	application: number,
	test: (running: RunningServer) => Promise<void>,
	{ options = '', threads: first = 2 } = {},
): Promise<void> {
	const folder = temporaryFolder();
	const [port, extra] = (await freePorts(2)) as [number, number];
	const file = path.join(folder, 'Configfile');
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['localhost'] });
	writeFileSync(path.join(folder, 'site.crt'), certificate);
	writeFileSync(path.join(folder, 'site.key'), key);
	const write = (answer: string, threads: number, more = ''): void =>
		writeFileSync(
			file,
			`{\n\tadmin unix/${folder}/admin.sock\n\tthreads ${threads}\n\tauto_https disable_redirects\n${options}}\nhttps://localhost:${port} {\n\tbind 127.0.0.1\n\ttls ${folder}/site.crt ${folder}/site.key\n\thandle /slow {\n\t\treverse_proxy 127.0.0.1:${application}\n\t}\n\trespond "${answer}"\n}\n${more}`,
		);
	write('one', first);
	const server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	const reload: RunningServer['reload'] = (answer, threads = 2, more = []) => {
		// Adds a listening address or removes it. Either change needs a handover.
		write(answer, threads, answer === 'two' ? `http://127.0.0.1:${extra} {\n\trespond "more"\n}\n` : '');
		return runCommand(['reload', file, '--handover', ...more], {});
	};
	try {
		await test({ server, port, file, write: more => write('one', 2, more), reload });
	} finally {
		await server.stop();
	}
}

/** Starts an application whose answers begin at once and end when `finish` is called. */
async function slowApplication(): Promise<{ port: number; open(): number; finish(): void; close(): void }> {
	const answers: ServerResponse[] = [];
	const server = createServer((_asked, answer) => {
		answer.write('begun ');
		answers.push(answer);
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	return {
		port: (server.address() as AddressInfo).port,
		open: () => answers.length,
		finish: () => {
			for (const answer of answers.splice(0)) answer.end('ended');
		},
		close: () => {
			server.closeAllConnections();
			server.close();
		},
	};
}

for (const threads of [2, 1, 3]) {
	handover(`to ${threads} threads, no request fails, and open connections are served to their end`, async () => {
		const application = await slowApplication();
		try {
			await withServer(application.port, async ({ port, reload }) => {
				const old = await Promise.all(Array.from({ length: 8 }, () => connect(port)));
				for (const client of old) openControlStream(client);
				const downloads = old.map(client => ({ client, stream: client.open().write(getRequest('/slow'), true) }));
				await until('the downloads', () => application.open() === old.length);
				const visitors = Array.from({ length: 4 }, () => new Visitor(port));
				let isStopped = false;
				const visiting = visitors.map(async visitor => {
					while (!isStopped) await visitor.visit();
				});
				const newcomers: Promise<string>[] = [];
				const coming = (async () => {
					while (!isStopped) {
						const visitor = new Visitor(port);
						const came = visitor.visit().then(() => {
							visitor.close();
							return visitor.failures.join() || visitor.answers.join();
						});
						newcomers.push(came);
						await came;
					}
				})();
				const { status, stderr } = await reload('two', threads);
				assert.is(status, 0, stderr);
				await until('everybody at the successor', () => visitors.every(visitor => visitor.answers.at(-1) === 'two'));
				for (const client of old) await client.until('the GOAWAY', () => isLeaving(client));
				// The old connections still work, because the new process forwards their packets to the process that owns them.
				application.finish();
				for (const { client, stream } of downloads) {
					assert.is((await response(client, stream)).body, 'begun ended');
					assert.is((await client.end()).code, 0x100);
				}
				isStopped = true;
				await Promise.all([...visiting, coming]);
				assert.equal(
					visitors.flatMap(({ failures }) => failures),
					[],
				);
				for (const answer of await Promise.all(newcomers)) assert.match(answer, /^(one|two)$/);
				for (const visitor of visitors) visitor.close();
				for (const client of old) client.close();
			});
		} finally {
			application.close();
		}
	});
}

for (const [how, left] of [
	['on request', 8],
	['because the successor dies', 8],
	['because the successor dies when no old connection is left', 0],
] as const) {
	handover(`that is rolled back ${how}: connections of the first process are served on`, async () => {
		const application = await slowApplication();
		try {
			await withServer(application.port, async ({ server, port, file, reload }) => {
				const downloads = await Promise.all(
					Array.from({ length: left }, async () => {
						const client = await connect(port);
						openControlStream(client);
						return { client, stream: client.open().write(getRequest('/slow'), true) };
					}),
				);
				await until('the downloads', () => application.open() === downloads.length);
				const { status, stdout, stderr } = await reload('two', 2, ['--confirm', '1h']);
				assert.is(status, 0, stderr);
				const unconfirmed = new Visitor(port);
				await unconfirmed.visit();
				unconfirmed.close();
				assert.equal([unconfirmed.answers, unconfirmed.failures], [['two'], []]);
				if (how === 'on request') assert.is((await runCommand(['reload', '--revert', file], {})).status, 0);
				else {
					if (left === 0) await until('the end', () => server.output().includes('ended after a handover'));
					process.kill(Number(/process (\d+)/.exec(stdout)?.[1]), 'SIGKILL');
					await until('another process', () => server.output().split('"serving"').length === 4);
				}
				const visitors = Array.from({ length: 16 }, () => new Visitor(port));
				await Promise.all(visitors.map(visitor => visitor.visit()));
				for (const visitor of visitors) {
					visitor.close();
					assert.equal([visitor.answers, visitor.failures], [['one'], []]);
				}
				application.finish();
				for (const { client, stream } of downloads) {
					assert.is((await response(client, stream)).body, 'begun ended');
					client.close();
				}
			});
		} finally {
			application.close();
		}
	});
}

handover('of handovers: connections of both predecessors are served', async () => {
	const application = await slowApplication();
	try {
		await withServer(application.port, async ({ port, reload }) => {
			const downloads: { client: QuicClient; stream: ReturnType<QuicClient['open']> }[] = [];
			for (const answer of ['two', 'three', 'two']) {
				const before = downloads.length;
				for (let i = 0; i < 4; i++) {
					const client = await connect(port);
					openControlStream(client);
					downloads.push({ client, stream: client.open().write(getRequest('/slow'), true) });
				}
				await until('the downloads', () => application.open() === before + 4);
				const { status, stderr } = await reload(answer);
				assert.is(status, 0, stderr);
			}
			application.finish();
			for (const { client, stream } of downloads) {
				assert.is((await response(client, stream)).body, 'begun ended');
				client.close();
			}
		});
	} finally {
		application.close();
	}
});

handover(
	'whose successor hands over and ends: connections of the first process are served on by the third',
	async () => {
		const application = await slowApplication();
		try {
			await withServer(application.port, async ({ server, port, reload }) => {
				const downloads = await Promise.all(
					Array.from({ length: 8 }, async () => {
						const client = await connect(port);
						openControlStream(client);
						return { client, stream: client.open().write(getRequest('/slow'), true) };
					}),
				);
				await until('the downloads', () => application.open() === downloads.length);
				for (const answer of ['two', 'three', 'two']) {
					const { status, stderr } = await reload(answer);
					assert.is(status, 0, stderr);
					for (const { client } of downloads) await client.until('the GOAWAY', () => isLeaving(client));
					// The old process must not read packets that belong to the process that serves.
					for (let i = 0; i < 10; i++) {
						const visitor = new Visitor(port);
						await visitor.visit();
						visitor.close();
						assert.equal([visitor.answers, visitor.failures], [[answer], []]);
					}
				}
				// The processes between the first and the last have no clients and therefore end. The first stays until its clients leave.
				await until('two ends', () => server.output().split('ended after a handover').length === 3);
				const visitors = Array.from({ length: 16 }, () => new Visitor(port));
				await Promise.all(visitors.map(visitor => visitor.visit()));
				for (const visitor of visitors) {
					visitor.close();
					assert.equal([visitor.answers, visitor.failures], [['two'], []]);
				}
				application.finish();
				for (const { client, stream } of downloads) {
					assert.is((await response(client, stream)).body, 'begun ended');
					assert.is((await client.end()).code, 0x100);
					client.close();
				}
			});
		} finally {
			application.close();
		}
	},
);

for (const threads of [2, 1, 3]) {
	handover(
		`to ${threads} threads: connections of both processes continue when the ports of their clients change`,
		async () => {
			const application = await slowApplication();
			const nats: Nat[] = [];
			try {
				await withServer(application.port, async ({ port, reload }) => {
					const downloads: { nat: Nat; client: QuicClient; stream: ClientStream; control: ClientStream }[] = [];
					const open = async (): Promise<void> => {
						for (let i = 0; i < 6; i++) {
							const nat = await Nat.start(port);
							nats.push(nat);
							const client = await connect(nat.port);
							const control = openControlStream(client);
							downloads.push({ nat, client, control, stream: client.open().write(getRequest('/slow'), true) });
						}
						await until('the downloads', () => application.open() === downloads.length);
					};
					await open();
					assert.is((await reload('two', threads)).status, 0);
					await open();
					for (let round = 0; round < 3; round++) {
						for (const { nat, control } of downloads) {
							await nat.rebind();
							// A frame of a reserved type (RFC 9114 §7.2.8) lets the server notice the port.
							control.write(frame(0x21));
						}
						for (const { nat, client } of downloads) {
							await client.until('an acknowledgment at the new port', () => nat.receivedCount > 0);
							assert.is(client.closed, undefined);
						}
					}
					application.finish();
					for (const { client, stream } of downloads) {
						assert.is((await response(client, stream)).body, 'begun ended');
						client.close();
					}
				});
			} finally {
				for (const nat of nats) nat.close();
				application.close();
			}
		},
	);
}

handover('to more threads: all take HTTP/3 connections, which the next process serves to their end', async () => {
	const application = await slowApplication();
	try {
		await withServer(
			application.port,
			async ({ port, reload }) => {
				const { status, stderr } = await reload('two', 3);
				assert.is(status, 0, stderr);
				const downloads: { client: QuicClient; stream: ReturnType<QuicClient['open']> }[] = [];
				// Each thread has at most six connections, and refuses others without an answer.
				for (let tries = 0; application.open() <= 12 && tries < 60; tries++) {
					const client = new QuicClient(port, {});
					const before = application.open();
					const refusedAt = performance.now() + 2000;
					let stream: ReturnType<QuicClient['open']> | undefined;
					await until('a download or a refusal', () => {
						if (client.connected && stream === undefined) {
							openControlStream(client);
							stream = client.open().write(getRequest('/slow'), true);
						}
						return application.open() > before || performance.now() > refusedAt;
					});
					if (stream !== undefined && application.open() > before) downloads.push({ client, stream });
					else client.close();
				}
				assert.ok(downloads.length > 12, `two threads are enough for ${downloads.length} connections`);
				assert.is((await reload('three', 4)).status, 0);
				for (const { client } of downloads) await client.until('the GOAWAY', () => isLeaving(client));
				application.finish();
				for (const { client, stream } of downloads) {
					assert.is((await response(client, stream)).body, 'begun ended');
					client.close();
				}
				const visitor = new Visitor(port);
				await visitor.visit();
				visitor.close();
				assert.equal([visitor.answers, visitor.failures], [['three'], []]);
			},
			{ threads: 1, options: '\tservers {\n\t\tquic {\n\t\t\tconnections 6\n\t\t}\n\t}\n' },
		);
	} finally {
		application.close();
	}
});

handover('that fails leaves HTTP/3 as it was, and no descriptor open', async () => {
	const application = await slowApplication();
	const occupyingServer = createServer();
	occupyingServer.listen(0, '127.0.0.1');
	await once(occupyingServer, 'listening');
	const takenPort = (occupyingServer.address() as AddressInfo).port;
	try {
		await withServer(application.port, async ({ server, port, file, write, reload }) => {
			const client = await connect(port);
			openControlStream(client);
			const download = client.open().write(getRequest('/slow'), true);
			await until('the download', () => application.open() === 1);
			const open = (): number => readdirSync(`/proc/${server.child.pid}/fd`).length;
			const fail = async (): Promise<void> => {
				write(`http://127.0.0.1:${takenPort} {\n\tbind 127.0.0.1\n\trespond "taken"\n}\n`);
				const { status, stderr } = await runCommand(['reload', file, '--handover'], {});
				assert.is(status, 1);
				assert.match(stderr, /the address is in use/);
			};
			await fail();
			const before = open();
			for (let round = 0; round < 3; round++) await fail();
			await until('no more descriptors', () => open() <= before);
			const visitor = new Visitor(port);
			await visitor.visit();
			visitor.close();
			assert.equal([visitor.answers, visitor.failures], [['one'], []]);
			application.finish();
			assert.is((await response(client, download)).body, 'begun ended');
			assert.not.ok(isLeaving(client));
			client.close();
			assert.is((await reload('two')).status, 0);
		});
	} finally {
		occupyingServer.close();
		application.close();
	}
});

handover.run();
