/** The shipped units under a real systemd: start, reload, handover, restart, watchdog, crash, and sockets that systemd passes. */

import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EchoClient, echoServer, startLoad } from '../cli/handover-load.ts';
import { freePorts, ROOT, rawExchange, until } from '../harness.ts';
import { SystemdMachine } from './systemd-machine.ts';

const CONFIGFILE = '/etc/svc/Configfile';
const UNIT = 'svc.service';

/** Ports: a plain site, a site with TLS, the Admin API, and a site that is added later. */
const [plain, tls, admin, added] = (await freePorts(4)) as [number, number, number, number];

const booted = await SystemdMachine.start();
const machine = booted as SystemdMachine;
const systemd = suite('systemd as PID 1');

function test(name: string, run: () => Promise<void>): void {
	if (typeof booted !== 'string') systemd(name, run);
}

if (typeof booted === 'string') {
	systemd(`skipped: ${booted}`, () => console.log(`skipped: ${booted}`));
} else {
	systemd.before(async () => {
		for (const unit of [UNIT, 'svc.socket']) {
			machine.copy(path.join(ROOT, 'cli/packaging', unit), `/etc/systemd/system/${unit}`);
		}
		await machine.run('mkdir', '-p', '/etc/svc');
		configure('one');
		await systemctl('daemon-reload');
	});
	systemd.after(() => machine.stop());
}

/** Writes the configuration: sites that answer with `body`, followed by the lines `more`. */
function configure(body: string, more = ''): void {
	const options = [`admin 127.0.0.1:${admin}`, 'skip_install_trust', 'auto_https disable_redirects', 'threads 2'];
	const global = `{\n${[...options, 'grace_period 20s'].map(line => `\t${line}\n`).join('')}}\n`;
	const sites = [
		`http://127.0.0.1:${plain} {\n\trespond "${body}"\n}\n`,
		`https://localhost:${tls} {\n\ttls internal\n\trespond "${body}"\n}\n`,
	];
	machine.write(CONFIGFILE, `${global}${sites.join('')}${more}`);
}

/** Returns a site that is not part of the first configuration. */
function site(body: string): string {
	return `http://127.0.0.1:${added} {\n\trespond "${body}"\n}\n`;
}

async function bodyOf(port: number): Promise<string> {
	const request = 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n';
	// If systemd holds the sockets, the connection may have to wait until the server has started.
	const answer = await rawExchange(port, request, 30_000);
	return answer.split('\r\n\r\n')[1] ?? '';
}

/** Runs systemctl. If it fails, throws its output and the state of the unit. */
async function systemctl(...words: readonly string[]): Promise<void> {
	const { status, text } = await machine.run('systemctl', ...words);
	if (status !== 0) throw new Error(`systemctl ${words.join(' ')}: status ${status}\n${text}\n${await statusOfUnit()}`);
}

/** Runs an action while clients send requests, none of which may fail. */
async function runUnderLoad(action: (load: ReturnType<typeof startLoad>) => Promise<void>): Promise<void> {
	const load = startLoad({ plain, tls });
	let failures: readonly string[] = [];
	try {
		await until('load', () => load.done('HTTP/2') > 0 && load.done('TLS resumption') > 2);
		await action(load);
	} finally {
		({ failures } = await load.stop());
	}
	assert.equal(failures, []);
}

/** Returns what `systemctl status` prints, with the last lines of the journal. */
async function statusOfUnit(): Promise<string> {
	return (await machine.run('systemctl', 'status', '--no-pager', '--full', '--lines=40', UNIT)).text;
}

/** Waits until a command prints a text. A message may reach the journal a little after the unit has changed its state. */
async function waitForText(print: () => Promise<string>, text: RegExp): Promise<void> {
	let shown = '';
	await until(`${text}`, async () => {
		shown = await print();
		return text.test(shown);
	}).catch(error => {
		throw new Error(`${error.message}\n${shown}`);
	});
}

/** Returns the last lines that systemd and the unit have logged, including lines of processes that have ended. */
async function journal(): Promise<string> {
	return (await machine.run('journalctl', '--no-pager', '--lines=60', `--unit=${UNIT}`)).text;
}

async function svc(...words: readonly string[]): Promise<string> {
	const { status, text } = await machine.run('svc', ...words);
	if (status !== 0) throw new Error(`svc ${words.join(' ')}: status ${status}\n${text}\n${await statusOfUnit()}`);
	return text;
}

async function mainProcess(): Promise<number> {
	return Number((await machine.show(UNIT, 'MainPID')).MainPID);
}

/** Returns the status line that the unit shows. */
async function statusLine(): Promise<string> {
	return (await machine.show(UNIT, 'StatusText')).StatusText ?? '';
}

/** Waits until the unit is active with another main process. */
async function waitForOtherMain(pid: number): Promise<number> {
	let now = pid;
	await until('another main process', async () => {
		const { MainPID, SubState } = await machine.show(UNIT, 'MainPID', 'SubState');
		now = Number(MainPID);
		return now !== pid && now !== 0 && SubState === 'running';
	});
	return now;
}

/** Runs an action that ends the main process, and waits until systemd has started another. */
async function assertRestartedAfter(action: () => Promise<void>): Promise<void> {
	const before = Number((await machine.show(UNIT, 'NRestarts')).NRestarts);
	await action();
	await until('another start', async () => {
		const { NRestarts, SubState } = await machine.show(UNIT, 'NRestarts', 'SubState');
		return Number(NRestarts) > before && SubState === 'running';
	});
}

const killMain = (signal: string) => systemctl('kill', '--kill-whom=main', `--signal=${signal}`, UNIT);

test('a start with a configuration that is refused fails, and the status says why', async () => {
	configure('one', 'http://127.0.0.1:1 {\n\tresond x\n}\n');
	const { status } = await machine.run('systemctl', 'start', UNIT);
	assert.is(status, 1);
	await waitForText(statusOfUnit, /error\[.*resond/s);
	configure('one');
	await systemctl('stop', UNIT);
});

test('a start returns when the server serves', async () => {
	await systemctl('start', UNIT);
	assert.is(await bodyOf(plain), 'one');
	const { ActiveState, SubState, Result } = await machine.show(UNIT, 'ActiveState', 'SubState', 'Result');
	assert.equal([ActiveState, SubState, Result], ['active', 'running', 'success']);
	assert.equal(await machine.processesOf(UNIT), [await mainProcess()]);
});

test('a reload returns when the new configuration is served, and the status line says so', async () => {
	const before = await mainProcess();
	configure('two');
	await systemctl('reload', UNIT);
	assert.is(await bodyOf(plain), 'two');
	assert.is(await mainProcess(), before);
	await until('the status line', async () => (await statusLine()).startsWith(`${CONFIGFILE} is now being served`));
});

test('a reload that is refused fails, changes nothing, and the status says why', async () => {
	configure('three', 'http://127.0.0.1:1 {\n\tresond x\n}\n');
	const { status } = await machine.run('systemctl', 'reload', UNIT);
	assert.is(status, 1);
	assert.is(await bodyOf(plain), 'two');
	await until('the status line', async () => (await statusLine()).startsWith('Reload failed: '));
	assert.match(await statusOfUnit(), 'Active: active (running)');
	await waitForText(statusOfUnit, /error\[.*resond/s);

	configure('three', site('added'));
	assert.is((await machine.run('systemctl', 'reload', UNIT)).status, 1);
	await until('the status line', async () => /^Reload failed: .*handover/.test(await statusLine()));
	configure('two');
	await systemctl('reload', UNIT);
});

test('a handover under load loses nothing, and its successor is the main process', async () => {
	await runUnderLoad(async () => {
		for (const [body, more] of [
			['four', site('added')],
			['five', ''],
		] as const) {
			const before = await mainProcess();
			configure(body, more);
			await svc('reload', CONFIGFILE, '--handover');
			assert.is(await bodyOf(plain), body);
			if (more !== '') assert.is(await bodyOf(added), 'added');
			const now = await mainProcess();
			assert.is.not(now, before);
			await until('the predecessor is gone', async () => (await machine.processesOf(UNIT)).join() === String(now));
			assert.is(await statusLine(), 'Took over from another process.');
		}
	});
	// The reload command of the unit must find the new main process.
	configure('six');
	await systemctl('reload', UNIT);
	assert.is(await bodyOf(plain), 'six');
});

test('a stop after a handover is graceful, although systemd does not regard the successor as a child of its own', async () => {
	const received = Promise.withResolvers<ServerResponse>();
	const upstream = createServer((_, response) => received.resolve(response)).listen(0, '127.0.0.1');
	try {
		await once(upstream, 'listening');
		const { port } = upstream.address() as AddressInfo;
		configure('six', `http://127.0.0.1:${added} {\n\treverse_proxy 127.0.0.1:${port}\n}\n`);
		const before = await mainProcess();
		await svc('reload', CONFIGFILE, '--handover');
		const now = await mainProcess();
		assert.is.not(now, before);
		await until('the predecessor is gone', async () => (await machine.processesOf(UNIT)).join() === String(now));
		const answer = bodyOf(added);
		const response = await received.promise;
		await systemctl('stop', '--no-block', UNIT);
		await until('the stop', async () => (await machine.show(UNIT, 'ActiveState')).ActiveState === 'deactivating');
		// The unit's stop command runs asynchronously. The server closes its socket once it has received the signal.
		await until('the socket is closed', async () => (await bodyOf(plain).catch(() => '')) !== 'six');
		response.end('in full');
		assert.is(await answer, 'in full');
		await until('the end', async () => (await machine.show(UNIT, 'ActiveState')).ActiveState === 'inactive');
		assert.is((await machine.show(UNIT, 'Result')).Result, 'success');
	} finally {
		upstream.closeAllConnections();
		upstream.close();
	}
	configure('six');
	await systemctl('start', UNIT);
});

test('a handover that must be confirmed makes the successor the main process only then', async () => {
	await runUnderLoad(async () => {
		const before = await mainProcess();
		configure('unconfirmed', site('added'));
		await svc('reload', CONFIGFILE, '--handover', '--confirm', '1h');
		assert.is(await bodyOf(plain), 'unconfirmed');
		assert.is(await mainProcess(), before);
		await until('the status line', async () => (await statusLine()).endsWith('awaits its confirmation.'));
		await svc('reload', CONFIGFILE, '--revert');
		const returned = await waitForOtherMain(before);
		assert.is(await bodyOf(plain), 'six');
		await until('one process', async () => (await machine.processesOf(UNIT)).join() === String(returned));

		await svc('reload', CONFIGFILE, '--handover', '--confirm', '1h');
		assert.is(await mainProcess(), returned);
		await svc('reload', CONFIGFILE, '--accept');
		const confirmed = await waitForOtherMain(returned);
		assert.is(await bodyOf(plain), 'unconfirmed');
		await until('one process', async () => (await machine.processesOf(UNIT)).join() === String(confirmed));
	});

	// Runs without load, because the requests of a process that is killed fail.
	configure('six');
	await svc('reload', CONFIGFILE, '--handover');
	const before = await mainProcess();
	configure('unconfirmed', site('added'));
	await svc('reload', CONFIGFILE, '--handover', '--confirm', '1h');
	const [successor] = (await machine.processesOf(UNIT)).filter(pid => pid !== before);
	await machine.run('kill', '-KILL', String(successor));
	await waitForOtherMain(before);
	assert.is(await bodyOf(plain), 'six');
	assert.is((await machine.show(UNIT, 'NRestarts')).NRestarts, '0');

	await svc('reload', CONFIGFILE, '--handover', '--confirm', '1h');
	await systemctl('stop', UNIT);
	assert.equal(await machine.processesOf(UNIT), []);
	configure('six');
	await systemctl('start', UNIT);
});

test('a handover that fails leaves the main process as it was', async () => {
	const before = await mainProcess();
	const { status, text } = await machine.run('svc', 'upgrade', CONFIGFILE, '--binary', '/bin/false');
	assert.is(status, 1, text);
	assert.is(await mainProcess(), before);
	await until('the status line', async () => (await statusLine()).startsWith('Handover failed: The new process ended'));
	assert.is((await machine.show(UNIT, 'SubState')).SubState, 'running');
	await systemctl('reload', UNIT);
});

test('systemctl kill with USR2 hands over', async () => {
	const before = await mainProcess();
	await killMain('USR2');
	await waitForOtherMain(before);
	assert.is(await bodyOf(plain), 'six');
});

test('a main process that is killed is started again', async () => {
	await assertRestartedAfter(() => killMain('KILL'));
	assert.is(await bodyOf(plain), 'six');
});

test('a successor that is killed while its predecessor still drains is replaced at once', async () => {
	const echo = await echoServer();
	const { port } = echo.address() as AddressInfo;
	let open: EchoClient | undefined;
	try {
		configure('six', `http://127.0.0.1:${added} {\n\treverse_proxy 127.0.0.1:${port}\n}\n`);
		await svc('reload', CONFIGFILE, '--handover');
		open = await EchoClient.open(added, '/');
		await svc('restart', CONFIGFILE);
		assert.is((await machine.processesOf(UNIT)).length, 2);
		const startedAt = performance.now();
		await assertRestartedAfter(() => killMain('KILL'));
		// Shows that systemd has noticed the end of the successor itself: the watchdog would react only after 30 s, and the
		// predecessor would end only after 20 s.
		assert.ok(performance.now() - startedAt < 15_000);
		assert.is(await bodyOf(plain), 'six');
	} finally {
		open?.close();
		echo.close();
	}
});

test('a main process that hangs is replaced by the watchdog', async () => {
	await machine.run('mkdir', '-p', `/etc/systemd/system/${UNIT}.d`);
	machine.write(`/etc/systemd/system/${UNIT}.d/watchdog.conf`, '[Service]\nWatchdogSec=3\n');
	await systemctl('daemon-reload');
	configure('seven');
	await systemctl('restart', UNIT);
	// The watchdog must also watch a process that has taken over.
	await svc('restart', CONFIGFILE);
	await assertRestartedAfter(() => killMain('STOP'));
	await waitForText(journal, /Watchdog timeout/);
	assert.is(await bodyOf(plain), 'seven');
	await machine.run('rm', `/etc/systemd/system/${UNIT}.d/watchdog.conf`);
	await systemctl('daemon-reload');
});

test('sockets that systemd holds serve the sites at their addresses, and restarts under load lose nothing', async () => {
	await systemctl('stop', UNIT);
	await machine.run('mkdir', '-p', '/etc/systemd/system/svc.socket.d');
	const listen = ['', plain, tls].map(port => `ListenStream=${port}\n`).join('');
	machine.write('/etc/systemd/system/svc.socket.d/ports.conf', `[Socket]\n${listen}`);
	await systemctl('daemon-reload');
	await systemctl('start', 'svc.socket');
	assert.is((await machine.show(UNIT, 'ActiveState')).ActiveState, 'inactive');
	// systemd starts the server when the first client connects.
	assert.is(await bodyOf(plain), 'seven');
	await systemctl('start', UNIT);
	await runUnderLoad(async load => {
		for (const change of ['restart', 'handover', 'restart'] as const) {
			const before = await mainProcess();
			if (change === 'restart') await systemctl('restart', UNIT);
			else await svc('restart', CONFIGFILE);
			assert.is.not(await mainProcess(), before, change);
			const count = load.done('connection per request');
			await until('more requests', () => load.done('connection per request') > count + 50);
		}
	});
});

test('a stop ends every process and is a success', async () => {
	await systemctl('stop', 'svc.socket', UNIT);
	const { ActiveState, Result } = await machine.show(UNIT, 'ActiveState', 'Result');
	assert.equal([ActiveState, Result], ['inactive', 'success']);
	assert.equal(await machine.processesOf(UNIT), []);
});

systemd.run();
