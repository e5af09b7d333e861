/** Notifications to systemd, recorded by a fake systemd-notify. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { reloadBySignal } from '../../cli/serving/reload-answer.ts';
import { ServiceManager } from '../../cli/serving/service-manager.ts';
import { freePorts, runCommand, serve, temporaryFolder } from '../harness.ts';
import { eventually, respondingSite, withServer } from '../runtime/running-server.ts';

const manager = suite('service manager');

async function withFakeNotify(
	script: string,
	test: (told: () => string[], child: Awaited<ReturnType<typeof serve>>, file: string) => Promise<void>,
) {
	const folder = temporaryFolder();
	const [port] = (await freePorts(1)) as [number];
	const file = path.join(folder, 'Configfile');
	const notificationsFile = path.join(folder, 'told');
	const program = path.join(folder, 'systemd-notify');
	writeFileSync(file, `{\n\tadmin off\n\tthreads 1\n}\nhttp://127.0.0.1:${port} {\n\trespond "hi"\n}\n`);
	writeFileSync(program, script);
	chmodSync(program, 0o755);
	const server = await serve([file], port, {
		env: {
			...{ PATH: `${folder}:${process.env.PATH}`, TOLD: notificationsFile, XDG_STATE_HOME: folder },
			...{ NOTIFY_SOCKET: path.join(folder, 'socket'), WATCHDOG_USEC: '400000', RUNTIME_DIRECTORY: folder },
		},
	});
	try {
		await test(
			() => (existsSync(notificationsFile) ? readFileSync(notificationsFile, 'utf8').trim().split('\n') : []),
			server,
			file,
		);
	} finally {
		await server.stop();
	}
}

manager('receives readiness, reloads and the stop in order, and watchdog messages in between', async () => {
	let last: () => string[] = () => [];
	let name = '';
	await withFakeNotify('#!/bin/sh\necho "$@" >> "$TOLD"\n', async (told, server, file) => {
		last = told;
		name = file;
		await eventually('ready and alive', () => told()[0] === 'READY=1' && told().includes('WATCHDOG=1'));
		server.child.kill('SIGUSR1');
		await eventually('reloaded', () => told().filter(line => line.startsWith('READY=1')).length === 2);
	});
	assert.equal(
		last().filter(line => line !== 'WATCHDOG=1'),
		['READY=1', 'RELOADING=1', `READY=1 STATUS=${name} has not changed (generation 1).`, 'STOPPING=1'],
	);
});

manager('learns from the exit status of its reload command, and from the status line, how a reload ended', async () => {
	await withFakeNotify('#!/bin/sh\necho "$@" >> "$TOLD"\n', async (told, server, file) => {
		const last = (): string | undefined => told().findLast(line => line.includes('STATUS='));
		const reload = () =>
			runCommand(['reload', '--pid', String(server.child.pid)], { env: { RUNTIME_DIRECTORY: path.dirname(file) } });
		const good = readFileSync(file, 'utf8');
		writeFileSync(file, good.replace('"hi"', '"changed"'));
		const served = await reload();
		assert.is(served.status, 0, served.stderr);
		assert.is(served.stdout, `${file} is now being served (generation 2).\n`);
		await eventually('told', () => last() === `READY=1 STATUS=${file} is now being served (generation 2).`);

		writeFileSync(file, good.replace('respond', 'resond'));
		const refused = await reload();
		assert.is(refused.status, 1);
		assert.match(refused.stderr, /error\[.*resond/s);
		await eventually('told', () => last()?.startsWith('READY=1 STATUS=Reload failed: ') === true);

		writeFileSync(file, good.replace('127.0.0.1', 'localhost').replace('threads 1', 'metrics'));
		const needing = await reload();
		assert.is(needing.status, 1);
		assert.match(needing.stderr, /needs a restart or a handover: .*metrics/s);
		await eventually('the log says what to do', () =>
			server.output().includes('to apply the new one without downtime, run: svc reload --handover'),
		);
		assert.match(last() ?? '', /STATUS=Reload failed: /);

		writeFileSync(file, good);
		assert.is((await reload()).status, 0);
	});
});

manager('is told if there is nothing to wait for', async () => {
	const env = { RUNTIME_DIRECTORY: temporaryFolder() };
	const gone = spawnSync('true').pid;
	const ended = await runCommand(['reload', '--pid', String(gone)], { env });
	assert.is(ended.status, 1);
	assert.is(ended.stderr, `error: Process ${gone} cannot be told to reload: it has ended.\n`);
	const without = await runCommand(['reload', '--pid', '1'], { env: { RUNTIME_DIRECTORY: '' } });
	assert.match(without.stderr, /`--pid` needs the environment variable RUNTIME_DIRECTORY/);
	const both = await runCommand(['reload', '--pid', '1', '--force'], { env });
	assert.match(both.stderr, /`--pid` and `--force` cannot be combined/);
});

manager('is told if a process does not report the result of a reload; an earlier result does not count', async () => {
	const folder = temporaryFolder();
	const before = process.env.RUNTIME_DIRECTORY;
	const silent = spawn('/bin/sh', ['-c', 'trap "" USR1; echo ready; exec sleep 600'], {
		stdio: ['ignore', 'pipe', 'inherit'],
	});
	const whenEnded = once(silent, 'exit');
	try {
		await once(silent.stdout, 'data');
		const earlier = { began: String(process.hrtime.bigint()), isServed: true, message: 'Served.', details: '' };
		writeFileSync(path.join(folder, `reload-${silent.pid}.json`), JSON.stringify(earlier));
		process.env.RUNTIME_DIRECTORY = folder;
		const message = await reloadBySignal(silent.pid!, 200).then(
			answer => answer.message,
			(error: Error) => error.message,
		);
		assert.match(message, `Process ${silent.pid} has not reported the result of the reload within 200 ms.`);
	} finally {
		if (before === undefined) delete process.env.RUNTIME_DIRECTORY;
		else process.env.RUNTIME_DIRECTORY = before;
		silent.kill('SIGKILL');
		await whenEnded;
	}
});

manager('may reject notifications without affecting the server', async () => {
	await withFakeNotify('#!/bin/sh\nexit 3\n', async (_told, server) => {
		await eventually('said', () => /could not be told.*status 3/.test(server.output()));
	});
});

manager('a hanging thread suspends watchdog messages until it is replaced; a thread that died does not', async () => {
	const folder = temporaryFolder();
	const notificationsFile = path.join(folder, 'told');
	writeFileSync(path.join(folder, 'systemd-notify'), '#!/bin/sh\necho "$@" >> "$TOLD"\n', { mode: 0o755 });
	const env = { PATH: `${folder}:${process.env.PATH}`, TOLD: notificationsFile, WATCHDOG_USEC: '200000' };
	const signs = (): number => readFileSync(notificationsFile, 'utf8').split('WATCHDOG=1').length - 1;
	await withServer({ sites: [respondingSite('hi')] }, {}, async ({ runtime, log }) => {
		const systemd = new ServiceManager(
			env,
			() => {},
			() => runtime.whenResponsive(),
		);
		try {
			systemd.notifyReady();
			await eventually('a sign of life', () => existsSync(notificationsFile) && signs() > 0);
			runtime.crashWorker(1);
			await eventually('replaced', () => log.text().includes('a worker thread was replaced'));
			const before = signs();
			await eventually('another', () => signs() > before);
			runtime.crashWorker(0, 'stall');
			// When this is reported, the threads have answered all checks made before the stall.
			await eventually('reported', () => log.text().includes('a worker thread does not respond'));
			const last = signs();
			await eventually('given up', () => log.text().includes('stopped responding and is being replaced'));
			assert.ok(signs() <= last + 1, `${signs() - last} watchdog messages while the thread hung`);
			await eventually('one more', () => signs() > last + 1);
		} finally {
			await systemd.finish();
		}
	});
});

manager.run();
