/** Handovers: a new process takes over from another without losing a request, and a failed handover changes nothing. */
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	freePorts,
	rawExchange,
	runCommand,
	SVC,
	serve,
	temporaryFolder,
	until,
	untilOutput,
	WAIT_LIMIT_MS,
} from '../harness.ts';
import { EchoClient, echoServer, startLoad } from './handover-load.ts';
import { bodyOf, processesOf, siteText, withServer } from './handover-server.ts';

const handover = suite('handover');

/** Starts an application whose download lasts until `finish` is called, and which answers an upload with its size. */
async function startApplication(): Promise<{ port: number; finish(): void; close(): void }> {
	const ends: (() => void)[] = [];
	const server = createHttpServer((request, answer) => {
		if (request.method === 'GET') {
			const timer = setInterval(() => answer.write('x'.repeat(10_000)), 5);
			ends.push(() => {
				clearInterval(timer);
				answer.end('the end');
			});
			return;
		}
		let size = 0;
		request.on('data', (chunk: Buffer) => {
			size += chunk.length;
		});
		request.on('end', () => answer.end(String(size)));
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	return {
		port: (server.address() as AddressInfo).port,
		finish: () => {
			for (const end of ends.splice(0)) end();
		},
		close: () => {
			server.closeAllConnections();
			server.close();
		},
	};
}

handover('under load loses nothing', async () => {
	const echo = await echoServer();
	const app = await startApplication();
	const echoPort = (echo.address() as AddressInfo).port;
	const sites = (ports: readonly number[], more: string) =>
		`http://127.0.0.1:${ports[0]} {\n\thandle /echo {\n\t\treverse_proxy 127.0.0.1:${echoPort}\n\t}\n\thandle /app {\n\t\treverse_proxy 127.0.0.1:${app.port}\n\t}\n\thandle {\n\t\trespond "plain"\n\t}\n}\nhttps://localhost:${ports[1]} {\n\ttls internal\n\trespond "tls"\n}\n${more}`;
	const open: EchoClient[] = [];
	try {
		await withServer(
			ports => sites(ports, ''),
			async ({ ports, load }) => {
				const [first, tls, third] = ports as [number, number, number];
				for (let i = 0; i < 20; i++) open.push(await EchoClient.open(first, '/echo'));
				const download = fetch(`http://127.0.0.1:${first}/app`).then(answer => answer.text());
				const upload = request({ port: first, host: '127.0.0.1', method: 'POST', path: '/app' });
				const uploaded = once(upload, 'response');
				upload.write('y'.repeat(1000));
				const clients = startLoad({ plain: first, tls }, 3);
				await until('load', () => clients.done('HTTP/2') > 0 && clients.done('TLS resumption') > 2);
				const port = siteText(third, 'new port');
				const changes = [port, `${port}https://other.localhost:${tls} {\n\ttls internal\n\trespond "name"\n}\n`];
				for (const [round, change] of changes.entries()) {
					const { status, body } = await load(sites(ports, change));
					assert.is(status, 200, JSON.stringify(body));
					assert.ok((body as { handover?: { pid: number } }).handover!.pid > 0);
					for (const socket of open) await socket.echo(`round ${round}`);
					upload.write('y'.repeat(1000));
					const count = clients.done('connection per request');
					await until('more requests', () => clients.done('connection per request') > count + 20);
				}
				assert.is(await bodyOf(third), 'new port');
				const report = await clients.stop();
				assert.equal(report.failures, []);
				// A TLS session established with one process is resumed by the next.
				assert.is(report.resumed, report.done['TLS resumption']! - 1);
				app.finish();
				assert.ok((await download).endsWith('the end'));
				upload.end();
				const [answer] = (await uploaded) as [IncomingMessage];
				assert.is(await text(answer), '3000');
				for (const socket of open) {
					assert.ok(socket.open);
					socket.close();
				}
			},
			'\tthreads 2\n',
		);
	} finally {
		for (const socket of open) socket.close();
		app.close();
		echo.close();
	}
});

handover(
	'that fails changes nothing: a configuration that is wrong, a port that is taken, a process that is too slow',
	async () => {
		const occupyingServer = createServer().listen(0, '127.0.0.1');
		await once(occupyingServer, 'listening');
		const takenPort = (occupyingServer.address() as AddressInfo).port;
		try {
			await withServer(
				([port]) => siteText(port!, 'one'),
				async ({ server, folder, ports, load }) => {
					const [first, second] = ports as [number, number];
					const before = new Set(descriptorsOf(server.child.pid!));
					const attempts = async (): Promise<void> => {
						const wrong = await load(`${siteText(first, 'one')}http://127.0.0.1:${second} {\n\trespnd\n}\n`);
						assert.is(wrong.status, 400);
						const refused = await load(`${siteText(first, 'one')}${siteText(takenPort, 'two')}`);
						assert.is(refused.status, 503);
						assert.match(errorOf(refused.body), /goes on as before\. Cannot listen on .*: the address is in use/);
						// No process starts within 10 ms, so this handover fails.
						const late = await load(`${siteText(first, 'one')}${siteText(second, 'two')}`, '?handover=10ms');
						assert.is(late.status, 503);
						assert.match(errorOf(late.body), /did not become ready in time \(10 ms\)/);
						assert.is(await bodyOf(first), 'one');
					};
					await attempts();
					await attempts();
					assert.equal(processesOf(folder), [server.child.pid!]);
					const remainingDescriptors = descriptorsOf(server.child.pid!).filter(one => !before.has(one));
					assert.ok(remainingDescriptors.length < 4, remainingDescriptors.join());
					// The server can still hand over after the failure.
					assert.is((await load(`${siteText(first, 'three')}${siteText(second, 'two')}`)).status, 200);
					assert.is(await bodyOf(first), 'three');
				},
			);
		} finally {
			occupyingServer.close();
		}
	},
);

/** Returns the files that a process has open. */
function descriptorsOf(pid: number): string[] {
	return readdirSync(`/proc/${pid}/fd`).flatMap(fd => {
		try {
			return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
		} catch {
			return [];
		}
	});
}

function errorOf(body: { readonly [name: string]: unknown }): string {
	return (body.error as { message: string }).message;
}

handover('of a process that is killed is completed by its successor, and a killed successor is forgotten', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ server, folder, ports, load }) => {
			const [first, second] = ports as [number, number];
			// This log line shows that the new process has started and has received its predecessor's offer.
			const started = (pid: number) => server.output().includes(`a new process has been started","pid":${pid}}`);
			const loading = load(`${siteText(first, 'two')}${siteText(second, 'new')}`);
			await until('a successor', () => processesOf(folder).some(started));
			process.kill(processesOf(folder).find(pid => pid !== server.child.pid)!, 'SIGKILL');
			const answer = await loading;
			assert.is(answer.status, 503);
			assert.match(errorOf(answer.body), /ended with SIGKILL/);
			assert.is(await bodyOf(first), 'one');

			const lost = load(`${siteText(first, 'two')}${siteText(second, 'new')}`).catch(() => undefined);
			await until('a successor', () => processesOf(folder).some(started));
			const successor = processesOf(folder).find(pid => pid !== server.child.pid)!;
			server.child.kill('SIGKILL');
			await lost;
			await until('served', async () => (await bodyOf(first).catch(() => '')) === 'two');
			assert.is(await bodyOf(second), 'new');
			process.kill(successor, 'SIGTERM');
			await until('stopped', () => processesOf(folder).length === 0);
		},
	);
});

handover('keeps Unix sockets, and a stop ends the process that serves', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ server, folder, ports, load }) => {
			const [first, second] = ports as [number, number];
			const unix = `http://:1 {\n\tbind unix/${folder}/site.sock\n\trespond unix\n}\n`;
			assert.is((await load(`${siteText(first, 'two')}${unix}`)).status, 200);
			const { ino } = statSync(path.join(folder, 'site.sock'));
			const admin = statSync(path.join(folder, 'admin.sock')).ino;
			assert.is((await load(`${siteText(first, 'three')}${unix}${siteText(second, 'more')}`)).status, 200);
			assert.is(statSync(path.join(folder, 'site.sock')).ino, ino);
			assert.is(statSync(path.join(folder, 'admin.sock')).ino, admin);
			assert.is(await bodyOf(second), 'more');
			// The first process remains as long as its parent may wait for its exit. Only the processes between the first and the
			// last have ended.
			await until('two processes', () => processesOf(folder).length === 2);
			assert.is(await server.stop(WAIT_LIMIT_MS), 0);
			assert.equal(processesOf(folder), []);
			assert.equal(
				readdirSync(folder).filter(name => name.endsWith('.sock')),
				[],
			);
		},
	);
});

handover('is offered by `svc reload`, and carried out by its option, by restart, upgrade and USR2', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ server, folder, file, ports }) => {
			const [first, second] = ports as [number, number];
			const add = siteText(second, 'two');
			writeFileSync(file, `${readFileSync(file, 'utf8')}${add}`);
			const refused = await runCommand(['reload', file]);
			assert.is(refused.status, 1);
			assert.match(refused.stderr, `Listening on :${second} (http) needs a restart`);
			assert.match(refused.stderr, `To do it without downtime, run: svc reload ${file} --handover`);
			const reloaded = await runCommand(['reload', file, '--handover']);
			assert.is(reloaded.status, 0, reloaded.stderr);
			assert.match(reloaded.stdout, /is now being served by process \d+, which has taken over\.\n/);
			assert.is(await bodyOf(second), 'two');
			const serving = new Set(processesOf(folder));
			for (const words of [['restart'], ['upgrade'], ['upgrade', '--binary', SVC]]) {
				const replaced = await runCommand([...words, '--address', `unix/${folder}/admin.sock`], { cwd: folder });
				assert.is(replaced.status, 0, replaced.stderr);
				const pid = Number(/^Process (\d+) has taken over/.exec(replaced.stdout)?.[1]);
				assert.not(serving.has(pid));
				serving.add(pid);
				assert.is(await bodyOf(second), 'two');
			}
			const program = path.join(folder, 'program');
			writeFileSync(program, '#!/bin/sh\necho cannot load a library >&2\nexit 7\n', { mode: 0o777 });
			chmodSync(program, 0o777);
			const upgrade = () =>
				runCommand(['upgrade', '--binary', program, '--address', `unix/${folder}/admin.sock`], { cwd: folder });
			assert.match((await upgrade()).stderr, 'nobody else may be able to write to them');
			chmodSync(program, 0o700);
			chmodSync(folder, 0o777);
			assert.match((await upgrade()).stderr, 'nobody else may be able to write to them');
			chmodSync(folder, 0o700);
			const failed = await upgrade();
			assert.match(failed.stderr, 'The new process ended with status 7 before it served.');
			assert.match(failed.stderr, 'The new process wrote:\n    cannot load a library\n\nerror: ');
			await untilOutput(server, '\ncannot load a library\n');
			server.child.kill('SIGUSR2');
			await until('another process', () => processesOf(folder).some(pid => !serving.has(pid)));
			await until('served', () => server.output().split('a new process has taken over').length === 6);
			assert.is(await bodyOf(first), 'one');
		},
	);
});

handover('does not begin by a signal while a load can still be rolled back', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ server, folder, ports, load }) => {
			assert.is((await load(siteText(ports[0]!, 'two'), '?confirm=1h')).status, 200);
			server.child.kill('SIGUSR2');
			await until('refused', () => server.output().includes('SIGUSR2 is ignored until the load is confirmed'));
			assert.is(await bodyOf(ports[0]!), 'two');
			const reverted = await runCommand(['reload', '--revert', '--address', `unix/${folder}/admin.sock`], {
				cwd: folder,
			});
			assert.is(reverted.status, 0, reverted.stderr);
			assert.is(await bodyOf(ports[0]!), 'one');
			server.child.kill('SIGUSR2');
			await until('served', () => server.output().includes('a new process has taken over'));
			assert.is(await bodyOf(ports[0]!), 'one');
		},
	);
});

handover('is what a second server on the same addresses is told to ask for', async () => {
	await withServer(
		([port]) => siteText(port!, 'one'),
		async ({ file, folder, ports }) => {
			const second = await runCommand(['run', file]);
			assert.is(second.status, 1);
			assert.match(second.stderr, `failed to bind admin API on unix/${folder}/admin.sock: the address is in use. If`);
			assert.match(second.stderr, `\`svc reload ${file} --handover\``);
			const other = path.join(folder, 'Other');
			writeFileSync(other, siteText(ports[0]!, 'two'));
			assert.match(
				(await runCommand(['run', other])).stderr,
				`\`svc reload ${other} --handover\` makes that one serve`,
			);
		},
	);
});

handover('a confirmed process is the main one of systemd before its predecessor exits', async () => {
	const folder = temporaryFolder();
	const [port, second] = (await freePorts(2)) as [number, number];
	const file = path.join(folder, 'Configfile');
	const notificationsFile = path.join(folder, 'told');
	// A slow systemd-notify, as on a busy machine, which records whether the predecessor has already exited.
	const script = `#!/bin/sh
case "$*" in *'has been confirmed.'*)
	sleep 1
	kill -0 "$(cat "$TOLD.pid")" 2>/dev/null || echo 'the predecessor has exited' >> "$TOLD"
esac
echo "$@" >> "$TOLD"
`;
	writeFileSync(path.join(folder, 'systemd-notify'), script, { mode: 0o755 });
	const options = `{\n\tadmin unix/${folder}/admin.sock\n\tthreads 1\n}\n`;
	writeFileSync(file, `${options}${siteText(port, 'one')}`);
	const server = await serve([file], port, {
		env: {
			...{ PATH: `${folder}:${process.env.PATH}`, TOLD: notificationsFile, XDG_STATE_HOME: folder },
			...{ NOTIFY_SOCKET: path.join(folder, 'socket') },
		},
	});
	try {
		writeFileSync(`${notificationsFile}.pid`, String(server.child.pid));
		writeFileSync(file, `${options}${siteText(port, 'one')}${siteText(second, 'two')}`);
		const reloaded = await runCommand(['reload', file, '--handover', '--confirm', '1h']);
		assert.is(reloaded.status, 0, reloaded.stderr);
		const accepted = await runCommand(['reload', file, '--accept']);
		assert.is(accepted.status, 0, accepted.stderr);
		await until('the end of the predecessor', () => server.child.exitCode === 0);
		const notifications = readFileSync(notificationsFile, 'utf8');
		assert.match(notifications, /MAINPID=\d+ READY=1 STATUS=The new configuration has been confirmed\./);
		assert.not.match(notifications, 'the predecessor has exited');
		const [successor] = processesOf(folder);
		process.kill(successor!, 'SIGTERM');
		await until('stopped', () => processesOf(folder).length === 0);
	} finally {
		for (const pid of processesOf(folder)) process.kill(pid, 'SIGKILL');
		await server.stop();
	}
});

handover('tells systemd which process is the main one, and leaves no process besides it', async () => {
	const folder = temporaryFolder();
	const [port, second] = (await freePorts(2)) as [number, number];
	const file = path.join(folder, 'Configfile');
	const notificationsFile = path.join(folder, 'told');
	writeFileSync(path.join(folder, 'systemd-notify'), '#!/bin/sh\necho "$@" >> "$TOLD"\n', { mode: 0o755 });
	const options = `{\n\tadmin unix/${folder}/admin.sock\n\tthreads 1\n}\n`;
	writeFileSync(file, `${options}${siteText(port, 'one')}`);
	const server = await serve([file], port, {
		env: {
			...{ PATH: `${folder}:${process.env.PATH}`, TOLD: notificationsFile, XDG_STATE_HOME: folder },
			...{ NOTIFY_SOCKET: path.join(folder, 'socket'), WATCHDOG_USEC: '400000', WATCHDOG_PID: '' },
		},
	});
	const lines = (): string[] =>
		readFileSync(notificationsFile, 'utf8')
			.split('\n')
			.filter(line => line !== '' && line !== 'WATCHDOG=1');
	try {
		writeFileSync(file, `${options}${siteText(port, 'one')}${siteText(second, 'two')}`);
		const reloaded = await runCommand(['reload', file, '--handover']);
		assert.is(reloaded.status, 0, reloaded.stderr);
		const pid = Number(/process (\d+)/.exec(reloaded.stdout)?.[1]);
		await until('alone', () => processesOf(folder).join() === String(pid));
		await until('its end', () => server.child.exitCode === 0);
		// The process must not report STOPPING=1, because the service keeps running.
		assert.equal(lines(), [
			'READY=1',
			'RELOADING=1',
			'READY=1',
			`MAINPID=${pid} READY=1 STATUS=Took over from another process.`,
		]);
		// The new process notifies the watchdog immediately, because it may hand over itself before its first watchdog period has
		// passed.
		assert.match(readFileSync(notificationsFile, 'utf8'), /READY=1\nWATCHDOG=1\nMAINPID=/);
		const before = readFileSync(notificationsFile, 'utf8').length;
		await until('a sign of life', () => readFileSync(notificationsFile, 'utf8').slice(before).includes('WATCHDOG=1'));

		const slow = await runCommand(['upgrade', file, '--binary', '/bin/false']);
		assert.is(slow.status, 1);
		await until('the notification of the failure', () => lines().length > 5);
		assert.equal(lines().slice(4), [
			'RELOADING=1',
			`MAINPID=${pid} READY=1 STATUS=Handover failed: The new process ended with status 1 before it served. It was starting.`,
		]);
		process.kill(pid, 'SIGTERM');
		await until('stopped', () => processesOf(folder).length === 0);
		assert.is(lines().at(-1), 'STOPPING=1');
	} finally {
		for (const pid of processesOf(folder)) process.kill(pid, 'SIGKILL');
	}
});

handover('of a background server leaves one process, which `svc stop` ends', async () => {
	const folder = temporaryFolder();
	const [port, second] = (await freePorts(2)) as [number, number];
	const file = path.join(folder, 'Configfile');
	const options = `{\n\tadmin unix/${folder}/admin.sock\n\tthreads 1\n}\n`;
	writeFileSync(file, `${options}${siteText(port, 'one')}`);
	try {
		assert.is((await runCommand(['start', file])).status, 0);
		writeFileSync(file, `${options}${siteText(port, 'two')}${siteText(second, 'more')}`);
		assert.is((await runCommand(['reload', file, '--handover'])).status, 0);
		assert.is(await bodyOf(port), 'two');
		await until('one process', () => processesOf(folder).length === 1);
		assert.is((await runCommand(['stop', file])).status, 0);
		await until('stopped', () => processesOf(folder).length === 0);
	} finally {
		for (const pid of processesOf(folder)) process.kill(pid, 'SIGKILL');
	}
});

/** Reports whether a process can write to a file of responses in a cache's folder. */
function isWriter(pid: number, disk: string): boolean {
	try {
		return readdirSync(`/proc/${pid}/fd`).some(fd => {
			const file = readlinkSync(`/proc/${pid}/fd/${fd}`);
			if (!file.startsWith(`${disk}/`) || !file.endsWith('.segment')) return false;
			const flags = /^flags:\s+([0-7]+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'latin1'))?.[1] ?? '0';
			return (Number.parseInt(flags, 8) & 3) !== 0;
		});
	} catch {
		// The process has ended, or the descriptor has just been closed.
		return false;
	}
}

/** Reports whether a process runs the successor's program. A process that was just forked is still a copy of its predecessor. */
function isSuccessor(pid: number): boolean {
	try {
		return readFileSync(`/proc/${pid}/environ`, 'latin1').includes('SVC_HANDOVER=');
	} catch {
		return false;
	}
}

handover('the disk of a response cache passes to the new process, and has one writer at a time', async () => {
	let answers = 0;
	const origin = createHttpServer((request, answer) => {
		answers++;
		answer.setHeader('Cache-Control', 'max-age=600').end(`answer to ${request.url}`);
	}).listen(0, '127.0.0.1');
	await once(origin, 'listening');
	const { port: upstream } = origin.address() as AddressInfo;
	const site = (port: number): string =>
		`http://127.0.0.1:${port} {\n\tcache\n\treverse_proxy 127.0.0.1:${upstream}\n}\n`;
	const disk = path.join(temporaryFolder(), 'cache');
	const targets = Array.from({ length: 20 }, (_, at) => `/${at}`);
	const getAll = async (port: number): Promise<void> => {
		for (const target of targets) {
			const answer = await rawExchange(port, `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
			assert.match(answer, new RegExp(`answer to ${target}$`));
		}
	};
	try {
		await withServer(
			([first]) => site(first!),
			async ({ ports: [first, second], load, server, folder }) => {
				const before = server.child.pid!;
				// Responses that arrive earlier are stored only in memory.
				await until('the disk is open', () => /the cache disk is open/.test(server.output()));
				await getAll(first!);
				assert.is(answers, targets.length);
				await until('a writer', () => isWriter(before, disk));
				let done = false;
				const both: number[] = [];
				const watching = (async () => {
					while (!done) {
						for (const after of processesOf(folder)) {
							// The old process is checked last, and does not reopen files after it has released the folder. So if both
							// processes are found to have a file open, both had one open at the same time.
							const isBoth = isSuccessor(after) && isWriter(after, disk) && isWriter(before, disk);
							if (isBoth) both.push(after);
						}
						await new Promise(resolve => setTimeout(resolve, 2));
					}
				})();
				const { status, body } = await load(`${site(first!)}${siteText(second!, 'new')}`);
				assert.is(status, 200, JSON.stringify(body));
				// The new process can open the folder only after the old one has released it.
				await until('the disk is open again', () => /the cache disk is open.*"responses":20/.test(server.output()));
				await getAll(first!);
				assert.is(answers, targets.length, 'all of them are hits');
				const { pid } = (body as { readonly handover: { readonly pid: number } }).handover;
				await rawExchange(first!, 'GET /more HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
				await until('the new process writes', () => isWriter(pid, disk));
				done = true;
				await watching;
				assert.equal(both, []);
			},
			`\tcache {\n\t\tdisk ${disk} 10MB\n\t}\n`,
		);
	} finally {
		origin.close();
	}
});

handover.run();
