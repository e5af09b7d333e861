/** `svc run` as a process: serving, signals, the commands that control it, and exit statuses. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	type CommandResult,
	freePorts,
	runCommand,
	type ServerProcess,
	serve,
	startServer,
	temporaryFolder,
	until,
	WAIT_LIMIT_MS,
} from '../harness.ts';

const folders = temporaryFolder();
const servers: ServerProcess[] = [];

/** Registers a server to be stopped after the test, even if the test fails. */
function stopAfterTest(server: ServerProcess): ServerProcess {
	servers.push(server);
	return server;
}

async function served(...args: Parameters<typeof serve>): Promise<ServerProcess> {
	return stopAfterTest(await serve(...args));
}

function started(...args: Parameters<typeof startServer>): ServerProcess {
	return stopAfterTest(startServer(...args));
}

async function stopServers(): Promise<void> {
	await Promise.all(servers.splice(0).map(server => server.stop()));
}

function folderWith(files: { readonly [name: string]: string }): string {
	const folder = mkdtempSync(path.join(folders, 'case-'));
	for (const [name, text] of Object.entries(files)) {
		mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
		writeFileSync(path.join(folder, name), text);
	}
	return folder;
}

async function body(port: number): Promise<string> {
	const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } });
	return response.text();
}

/** Waits for a server to end and returns its exit status. */
async function whenEnded(server: ServerProcess): Promise<number | null> {
	if (server.child.exitCode === null && server.child.signalCode === null) await once(server.child, 'exit');
	// Its output may still be on its way.
	return server.stop();
}

/** Starts a server that accepts connections and never responds. */
async function startSilentUpstream(): Promise<{ server: Server; port: number; connected: Promise<unknown> }> {
	const server = createServer(socket => socket.on('error', () => {}));
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	return { server, port: (server.address() as { port: number }).port, connected: once(server, 'connection') };
}

const site = (port: number, text: string): string => `:${port} {\n\trespond "${text}"\n}\n`;

/** Global options that make the server start faster: one thread instead of one per core. */
const ONE_THREAD = '{\n\tthreads 1\n}\n';

const processes = suite('server process');
processes.after.each(stopServers);

processes(
	'the configuration can come from standard input; a second SIGINT aborts requests and exits with 2',
	async () => {
		const upstream = await startSilentUpstream();
		const [port] = (await freePorts(1)) as [number];
		const text = `${ONE_THREAD}:${port} {\n\treverse_proxy /slow 127.0.0.1:${upstream.port}\n\trespond "from stdin"\n}\n`;
		const server = started(['run', '-c', '-'], { stdin: text });
		await until('serving', () => server.output().includes('"serving"'));
		assert.is(await body(port), 'from stdin');
		const pending = fetch(`http://127.0.0.1:${port}/slow`).catch(() => 'ended');
		await upstream.connected;
		server.child.kill('SIGINT');
		await until('stopping', () => server.output().includes('"stopping"'));
		assert.is(server.child.exitCode, null, 'the first SIGINT waits for the request');
		server.child.kill('SIGINT');
		assert.is(await whenEnded(server), 2);
		assert.is(await pending, 'ended');
		upstream.server.close();
	},
);

processes('a start and each kind of reload warn about a root folder that does not exist', async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = folderWith({ 'public/index.html': 'page' });
	const file = path.join(folder, 'Configfile');
	const write = (root: string): void =>
		writeFileSync(
			file,
			`{\n\tadmin unix/${folder}/admin.sock\n\tthreads 1\n}\n\n:${port} {\n\troot ${root}\n\tfile_server\n}\n`,
		);
	write('pubic');
	const server = await served([file], port, { env: { XDG_STATE_HOME: folder } });
	const countWarnings = (): number => server.output().split(`${file}:7: The root folder does not exist.`).length - 1;
	assert.is(countWarnings(), 1, server.output());

	write('publik');
	const { status, stderr } = await runCommand(['reload', file]);
	assert.is(status, 0, stderr);
	assert.match(stderr, /^warning\[files\/root-missing\]: The root folder does not exist\.\n +--> .*Configfile:7:2\n/);
	assert.is(stderr.split('root-missing').length, 2, 'the warning is printed once');

	write('pvblic');
	server.child.kill('SIGUSR1');
	await until('the warning after a signal', () => countWarnings() === 2);

	write('pvblic # lint: off files/root-missing -- made by another program');
	const silenced = await runCommand(['reload', file]);
	assert.is(silenced.stderr, '');
	write('public');
	const mended = await runCommand(['reload', file]);
	assert.is(mended.stderr, '');
	assert.is(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'page');
	assert.is(countWarnings(), 2);
});

processes('SIGUSR1 and SIGHUP reload the file; an invalid file changes nothing; SIGTERM exits with 0', async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = folderWith({ Configfile: site(port, 'one') });
	const server = await served([], port, { cwd: folder });
	assert.is(await body(port), 'one');
	writeFileSync(path.join(folder, 'Configfile'), site(port, 'one and a half'));
	server.child.kill('SIGHUP');
	await until('the new text', async () => (await body(port)) === 'one and a half');
	writeFileSync(path.join(folder, 'Configfile'), site(port, 'two'));
	server.child.kill('SIGUSR1');
	await until('the new text', async () => (await body(port)) === 'two');
	writeFileSync(path.join(folder, 'Configfile'), 'nonsense {');
	server.child.kill('SIGUSR1');
	await until('a refusal in the log', () =>
		server.output().includes('configuration refused; the previous one stays in use'),
	);
	assert.is(await body(port), 'two');
	rmSync(path.join(folder, 'Configfile'));
	server.child.kill('SIGHUP');
	await until('a missing file in the log', () =>
		server.output().includes('the configuration could not be reloaded; the previous one stays in use'),
	);
	assert.is(await body(port), 'two');
	assert.not.match(server.output(), 'Debugger');
	assert.is(await server.stop(WAIT_LIMIT_MS), 0);
	assert.match(server.output(), `":${port}"`);
});

processes('shutdown_delay keeps serving, requests can see that it began, and a second signal ends it', async () => {
	const [port, admin] = (await freePorts(2)) as [number, number];
	const options = `{\n\tadmin 127.0.0.1:${admin}\n\tshutdown_delay 30s\n\tthreads 1\n}\n`;
	const steps = 'error /missing 404\n\trespond "{http.shutting_down} {http.time_until_shutdown}"';
	const text = `${options}:${port} {\n\t${steps}\n}\n`;
	const status = async (at: number, path: string): Promise<number> =>
		(await fetch(`http://127.0.0.1:${at}${path}`, { headers: { connection: 'close' } })).status;
	const server = await served(['--verbose'], port, { cwd: folderWith({ Configfile: text }) });
	assert.is(await body(port), 'false ');
	assert.is(await status(port, '/missing'), 404);
	await until('a debug entry', () => server.output().includes('"level":"debug"'));
	assert.is(await status(admin, '/ready'), 200);
	server.child.kill('SIGTERM');
	await until('the delay', async () => /^true (?:30|29|28)s$/.test(await body(port)));
	assert.is(await status(admin, '/ready'), 503);
	assert.is(await status(admin, '/live'), 200);
	server.child.kill('SIGTERM');
	assert.is(await whenEnded(server), 2);
});

processes(
	'--watch reloads when an imported file changes, is fixed, starts to match a glob, or is deleted; SIGQUIT exits at once',
	async () => {
		const upstream = await startSilentUpstream();
		const [port] = (await freePorts(1)) as [number];
		const folder = folderWith({
			Configfile: `${ONE_THREAD}import part\nimport sites/*.conf\n`,
			part: site(port, 'one'),
			'sites/none': '',
		});
		const server = await served(['--watch'], port, { cwd: folder });
		const part = path.join(folder, 'part');
		writeFileSync(part, site(port, 'second'));
		await until('the new text', async () => (await body(port)) === 'second');
		writeFileSync(part, 'nonsense {');
		await until('a refusal in the log', () => server.output().includes('configuration refused'));
		writeFileSync(part, site(port, 'the third'));
		await until('the mended text', async () => (await body(port)) === 'the third');
		const added = path.join(folder, 'sites/b.conf');
		const proxy = `reverse_proxy /slow 127.0.0.1:${upstream.port}\n\trespond local`;
		writeFileSync(added, `http://127.0.0.1:${port} {\n\t${proxy}\n}\n`);
		await until('the new site', async () => (await body(port)) === 'local');
		const pending = fetch(`http://127.0.0.1:${port}/slow`).catch(() => 'ended');
		await upstream.connected;
		rmSync(added);
		await until('the old site again', async () => (await body(port)) === 'the third');
		server.child.kill('SIGQUIT');
		assert.is(await whenEnded(server), 2);
		assert.is(await pending, 'ended');
		upstream.server.close();
	},
);

processes('stop --pid returns when the process has ended, after its requests', async () => {
	const received = Promise.withResolvers<ServerResponse>();
	const upstream = createHttpServer((_, response) => received.resolve(response)).listen(0, '127.0.0.1');
	try {
		await once(upstream, 'listening');
		const [port] = (await freePorts(1)) as [number];
		const target = (upstream.address() as AddressInfo).port;
		const cwd = folderWith({ Configfile: `http://127.0.0.1:${port} {\n\treverse_proxy 127.0.0.1:${target}\n}\n` });
		const server = await served([], port, { cwd });
		const answer = body(port);
		const response = await received.promise;
		let hasReturned = false;
		const stop = runCommand(['stop', '--pid', String(server.child.pid)]).finally(() => {
			hasReturned = true;
		});
		await until('the stop', () => server.output().includes('"stopping"'));
		assert.is(hasReturned, false);
		response.end('in full');
		assert.is(await answer, 'in full');
		assert.equal(await stop, { status: 0, stdout: '', stderr: '' });
		assert.is(await whenEnded(server), 0);
		for (const none of ['', String(server.child.pid)]) {
			assert.equal(await runCommand(['stop', `--pid=${none}`]), { status: 0, stdout: '', stderr: '' });
		}
	} finally {
		upstream.closeAllConnections();
		upstream.close();
	}
});

processes('an address in use, or a folder without a configuration, ends the start with status 1', async () => {
	const [forAdmin, forSite] = await Promise.all(
		['127.0.0.1', undefined].map(async host => {
			const occupyingServer = createServer().listen(0, host);
			await once(occupyingServer, 'listening');
			return { taken: occupyingServer, port: (occupyingServer.address() as { port: number }).port };
		}),
	);
	const [port] = (await freePorts(1)) as [number];
	const options = `{\n\tadmin 127.0.0.1:${forAdmin!.port}\n\tthreads 1\n}\n`;
	const [admin, address, none] = await Promise.all([
		runCommand(['run'], { cwd: folderWith({ Configfile: options + site(port, 'one') }) }),
		runCommand(['run'], { cwd: folderWith({ Configfile: ONE_THREAD + site(forSite!.port, 'one') }) }),
		runCommand(['run', '/'], {}),
	]);
	forAdmin!.taken.close();
	forSite!.taken.close();
	assert.is(admin!.status, 1);
	const occupied = `error: failed to bind admin API on 127.0.0.1:${forAdmin!.port}: the address is in use. If`;
	assert.match(admin!.stderr, occupied);
	assert.not.match(`${admin!.stdout}${admin!.stderr}`, 'serving');
	assert.is(address!.status, 1);
	assert.match(address!.stderr, `error: Cannot listen on :${forSite!.port}: the address is in use. If`);
	assert.is(none!.status, 1);
	assert.is(none!.stderr, 'error: The folder `/` contains no Configfile, Compatfile or Caddyfile.\n');
});

processes('without a configuration only the Admin API listens, and the first load may add listeners', async () => {
	const empty = folderWith({});
	const env = { XDG_STATE_HOME: empty };
	const server = started(['run'], { cwd: empty, env });
	const whenDone = whenEnded(server);
	await until(
		'the admin API or the end',
		() => server.output().includes('the admin API listens') || server.child.exitCode !== null,
	);
	// Another program may use the port, which is always the same.
	if (!server.output().includes('the admin API listens')) {
		assert.is(await whenDone, 1);
		assert.match(server.output(), 'error: failed to bind admin API on 127.0.0.1:2019: the address is in use.\n');
		return;
	}
	assert.is((await fetch('http://127.0.0.1:2019/ready', { headers: { connection: 'close' } })).status, 200);
	server.child.kill('SIGUSR1');
	await until('a word about SIGUSR1', () => server.output().includes('nothing can be reloaded'));
	const [port] = (await freePorts(1)) as [number];
	const folder = folderWith({ Configfile: site(port, 'loaded') });
	const result = await runCommand(['reload'], { cwd: folder });
	assert.is(result.stdout, 'Configfile is now being served (generation 1).\n', result.stderr);
	assert.is(await body(port), 'loaded');
	server.child.kill('SIGHUP');
	await until('a word about SIGHUP', () => server.output().includes('SIGHUP is ignored'));
	assert.is((await runCommand(['stop'], { cwd: empty })).status, 0);
	assert.is(await whenEnded(server), 0);
	// The loaded document does not mention the Admin API, and no configuration file exists.
	const again = await served(['--resume'], port, { cwd: empty, env });
	await until('the admin API', () => again.output().includes('the admin API listens'));
	assert.is(await body(port), 'loaded');
});

processes.run();

const clients = suite('reload, stop and start');
clients.after.each(stopServers);

clients(
	'reload sends imported files, and stop stops; both use the token of the configuration or the environment',
	async () => {
		const [port, admin] = (await freePorts(2)) as [number, number];
		const options = `{\n\tadmin 127.0.0.1:${admin} {$TEST_TOKEN}\n\tthreads 1\n}\n`;
		const folder = folderWith({ Configfile: `${options}import parts/*\n`, 'parts/a': site(port, 'one') });
		const env = { TEST_TOKEN: 'sesame' };
		const server = await served([], port, { cwd: folder, env });
		await until('the admin API', () => server.output().includes('the admin API listens'));
		const svc = (args: string[], more: Record<string, string> = env): Promise<CommandResult> =>
			runCommand(args, { cwd: folder, env: more });

		writeFileSync(path.join(folder, 'parts/a'), site(port, 'two'));
		const applied = await svc(['reload']);
		assert.is(applied.stdout, 'Configfile is now being served (generation 2).\n', applied.stderr);
		assert.is(await body(port), 'two');
		assert.is((await svc(['reload'])).stdout, 'Configfile has not changed (generation 2).\n');

		const [wrong, first] = await Promise.all([
			svc(['reload'], { TEST_TOKEN: 'wrong' }),
			svc(['reload'], { TEST_TOKEN: 'sesame', SVC_ADMIN_TOKEN: 'wrong' }),
		]);
		assert.is(wrong.status, 1);
		assert.match(wrong.stderr, 'access token is missing or wrong');
		assert.is(first.status, 1, 'the environment variable takes precedence');

		const [other] = (await freePorts(1)) as [number];
		writeFileSync(path.join(folder, 'parts/a'), site(other, 'three'));
		const restart = await svc(['reload']);
		assert.is(restart.status, 1);
		assert.match(restart.stderr, 'A restart is needed.');
		assert.match(restart.stderr, `:${other}`);
		assert.is(await body(port), 'two');

		const stopped = await runCommand(['stop', '--address', `localhost:${admin}`], {
			cwd: folderWith({}),
			env: { SVC_ADMIN_TOKEN: 'sesame' },
		});
		assert.is(stopped.stdout, 'The server is stopping.\n', stopped.stderr);
		assert.is(await whenEnded(server), 0);
	},
);

clients(
	'reload prints the diagnostics of the server, and stop works even if the configuration file is invalid',
	async () => {
		const [port, admin, nobody] = (await freePorts(3)) as [number, number, number];
		const answers = createServer(socket => {
			const text = JSON.stringify({
				error: { code: 'invalid_config', message: 'No.', diagnostics: [{ text: 'error[x/y]: No.' }] },
			});
			socket.on('error', () => {});
			socket.once('data', () =>
				socket.end(`HTTP/1.1 400 Bad Request\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n${text}`),
			);
		}).listen(admin, '127.0.0.1');
		await once(answers, 'listening');
		const [refused, broken] = await Promise.all([
			runCommand(['reload', '--address', `127.0.0.1:${admin}`], {
				cwd: folderWith({ Configfile: site(port, 'one') }),
			}),
			runCommand(['stop', '--address', `127.0.0.1:${nobody}`], { cwd: folderWith({ Configfile: 'nonsense {' }) }),
		]);
		answers.close();
		assert.is(refused.status, 1);
		assert.is(refused.stderr, 'error[x/y]: No.\n\nerror: The server did not apply Configfile: No.\n');
		assert.is(broken.status, 1);
		assert.match(broken.stderr, 'warning: Configfile is refused');
		assert.match(broken.stderr, `error: The Admin API at 127.0.0.1:${nobody} cannot be reached`);
	},
);

clients('reload works with an earlier release of the server, which accepts only plain documents', async () => {
	const [port, admin] = (await freePorts(2)) as [number, number];
	const asked: string[] = [];
	const earlier = createHttpServer((request, response) => {
		asked.push(`${request.method} ${request.url} ${request.headers['content-type']}`);
		let text = '';
		request.on('data', chunk => {
			text += chunk;
		});
		request.on('end', () => {
			const isDocument = JSON.parse(text).sites !== undefined;
			response.writeHead(isDocument ? 200 : 400);
			response.end(isDocument ? '{"generation":7}' : '{"error":{"code":"invalid_config","message":"No sites."}}');
		});
	}).listen(admin, '127.0.0.1');
	await once(earlier, 'listening');
	const result = await runCommand(['reload', '--address', `127.0.0.1:${admin}`, '--confirm', '30s'], {
		cwd: folderWith({ Configfile: site(port, 'one') }),
	});
	earlier.close();
	assert.is(result.stderr, '');
	assert.is(result.stdout, 'Configfile is now being served (generation 7).\n');
	assert.equal(asked, [
		'POST /load?confirm=30s application/vnd.svc.placed+json',
		'POST /load?confirm=30s application/json',
	]);
});

clients('start prints warnings, and how to stop a server that has no Admin API', async () => {
	const [port] = (await freePorts(1)) as [number];
	const folder = folderWith({ Configfile: `${ONE_THREAD}\n:${port} {\n\troot missing\n\tfile_server\n}\n` });
	const { status, stdout, stderr } = await runCommand(['start'], { cwd: folder });
	const pid = Number(/ To stop it, run: kill (\d+)\n$/.exec(stdout)?.[1]);
	try {
		assert.is(status, 0, stderr);
		assert.ok(isAlive(pid), stdout);
		assert.match(stderr, /^warning\[files\/root-missing\]: The root folder does not exist\.\n +--> Configfile:6:2\n/);
		process.kill(pid, 'SIGTERM');
		await until('the end of the server', () => !isAlive(pid));
	} finally {
		if (pid > 0 && isAlive(pid)) process.kill(pid, 'SIGKILL');
	}
});

clients('start returns when the server is ready, and the server runs in the background until stop', async () => {
	const [port, admin] = (await freePorts(2)) as [number, number];
	const folder = folderWith({ Configfile: `{\n\tadmin 127.0.0.1:${admin}\n\tthreads 1\n}\n${site(port, 'one')}` });
	const started = await runCommand(['start'], { cwd: folder });
	const pid = Number(/process (\d+)/.exec(started.stdout)?.[1]);
	try {
		assert.is(
			started.stdout,
			`The server is running in the background as process ${pid}, listening on :${port}.\n`,
			started.stderr,
		);
		assert.is(await body(port), 'one');
		const again = await runCommand(['start'], { cwd: folder });
		assert.is(again.status, 1);
		const occupied = `error: failed to bind admin API on 127.0.0.1:${admin}: the address is in use.`;
		const hint =
			'If a running svc uses it, `svc reload Configfile --handover` makes that one serve this file, without downtime.';
		assert.is(again.stderr, `${occupied} ${hint}\n`);
		assert.is((await runCommand(['stop'], { cwd: folder })).status, 0);
		await until('the end of the server', () => !isAlive(pid));
	} finally {
		if (pid > 0 && isAlive(pid)) process.kill(pid, 'SIGKILL');
	}
});

clients('start, reload and stop accept the path of the configuration as an argument', async () => {
	const [port, admin] = (await freePorts(2)) as [number, number];
	const options = `{\n\tadmin 127.0.0.1:${admin} sesame\n\tthreads 1\n}\n`;
	const folder = folderWith({ 'sites/Configfile': `${options}${site(port, 'one')}` });
	const svc = (...args: string[]): Promise<CommandResult> => runCommand(args, { cwd: folder });
	const started = await svc('start', 'sites');
	const pid = Number(/process (\d+)/.exec(started.stdout)?.[1]);
	try {
		assert.is(await body(port), 'one', started.stderr);
		writeFileSync(path.join(folder, 'sites/Configfile'), `${options}${site(port, 'two')}`);
		const reloaded = await svc('reload', 'sites/Configfile');
		assert.is(reloaded.stdout, 'sites/Configfile is now being served (generation 2).\n', reloaded.stderr);
		assert.is(await body(port), 'two');
		assert.is((await svc('reload', '--confirm', '30s', '--force', 'sites')).status, 0);
		assert.is((await svc('reload', '--accept', 'sites')).stdout, 'Generation 3 is confirmed.\n');
		assert.is((await svc('stop', 'sites')).stdout, 'The server is stopping.\n');
		await until('the end of the server', () => !isAlive(pid));
	} finally {
		if (pid > 0 && isAlive(pid)) process.kill(pid, 'SIGKILL');
	}
});

function isAlive(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}

clients.run();

const quick = suite('respond, file-server and reverse-proxy');
quick.after.each(stopServers);

/** Starts a command and returns the address that it prints. */
async function startListening(
	args: readonly string[],
	cwd?: string,
): Promise<{ server: ServerProcess; address: string }> {
	const server = started(args, cwd === undefined ? {} : { cwd });
	await until(
		'an address',
		() => /Listening on http:\/\/\S+\n/.test(server.output()) || server.child.exitCode !== null,
	);
	const address = /Listening on (http:\/\/\S+)/.exec(server.output())?.[1];
	if (address === undefined) throw new Error(server.output());
	return { server, address };
}

quick('respond answers as configured, and file-server and reverse-proxy serve and forward', async () => {
	const folder = folderWith({
		'www/a.txt': 'a file\n'.repeat(200),
		'www/page.html': '<p>{{ .Host }}</p>',
		'www/sub/1.txt': '',
		'www/sub/2.txt': '',
		'www/sub/3.txt': '',
	});
	const [told, files] = await Promise.all([
		startListening(['respond', '-s', '203', '-H', 'X-Told: yes', '-H', 'X-Many: a', '-H', 'X-Many: b', '-b', 'text']),
		startListening(
			[
				...['file-server', '--root', 'www', '--listen', '127.0.0.1:0', '--access-log', '--no-compress'],
				...['--browse', '--file-limit', '2', '--templates'],
			],
			folder,
		),
	]);
	const response = await fetch(told.address);
	assert.is(response.status, 203);
	assert.is(response.headers.get('x-told'), 'yes');
	assert.is(response.headers.get('x-many'), 'a, b');
	assert.is(await response.text(), 'text');

	const upstream = told.address.replace('http://', '');
	const proxy = await startListening([
		...['reverse-proxy', '--from', 'http://127.0.0.1:0', '--to', upstream],
		...['--to', files.address.replace('http://', ''), '--header-down', 'X-Told: changed'],
	]);
	// Each request chooses one of two servers at random. The probability that 40 requests never reach one of them is about 1 in
	// 10^12.
	const usedUpstreams = new Set<string>();
	for (let count = 0; count < 40; count++) {
		const { status, headers } = await fetch(proxy.address.replace('http://:', 'http://127.0.0.1:'));
		usedUpstreams.add(`${status} ${headers.get('x-told')}`);
	}
	assert.equal([...usedUpstreams].toSorted(), ['200 changed', '203 changed']);
	assert.is(await proxy.server.stop(WAIT_LIMIT_MS), 0);
	assert.is(await told.server.stop(WAIT_LIMIT_MS), 0);

	const file = await fetch(`${files.address}/a.txt`, { headers: { 'Accept-Encoding': 'gzip' } });
	assert.is(await file.text(), 'a file\n'.repeat(200));
	assert.is(file.headers.get('content-encoding'), null);
	assert.is(await (await fetch(`${files.address}/page.html`)).text(), '<p>127.0.0.1</p>');
	const listed = await fetch(`${files.address}/sub/`, { headers: { Accept: 'application/json' } });
	assert.is(((await listed.json()) as unknown[]).length, 2);
	assert.is((await fetch(`${files.address}/b.txt`)).status, 404);
	await until('access lines', () => files.server.output().includes('/b.txt'));
	assert.is(await files.server.stop(WAIT_LIMIT_MS), 0);
});

quick.run();
