/** When `npm start` ends, for whatever reason, the server and the demo API end, too. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, ROOT, temporaryFolder } from '../../harness.ts';

const NODE = path.join(ROOT, 'node_modules/.bin/node');

/** A running quickstart that has printed the address of its site. */
interface Quickstart {
	readonly child: ChildProcess;
	readonly ports: readonly number[];
	output(): string;
}

async function started(command: string, args: readonly string[]): Promise<Quickstart> {
	const ports = await freePorts(3);
	const [port, api, admin] = ports.map(String) as [string, string, string];
	const child = spawn(command, args, {
		cwd: ROOT,
		env: {
			...process.env,
			QUICKSTART_PORT: port,
			QUICKSTART_API_PORT: api,
			QUICKSTART_ADMIN_PORT: admin,
			XDG_STATE_HOME: temporaryFolder(),
		},
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	process.on('exit', () => child.kill('SIGKILL'));
	let text = '';
	for (const stream of [child.stdout!, child.stderr!]) {
		stream.setEncoding('utf8').on('data', chunk => {
			text += chunk;
		});
	}
	const quickstart = { child, ports, output: () => text };
	await until('the site', 60_000, () => {
		if (child.exitCode !== null) throw new Error(text);
		return text.includes('The quickstart site is at');
	}).catch(error => {
		throw new Error(`${error.message}:\n${text}`);
	});
	return quickstart;
}

async function until(what: string, limit: number, holds: () => boolean | Promise<boolean>): Promise<void> {
	const end = performance.now() + limit;
	while (!(await holds())) {
		if (performance.now() > end) throw new Error(`timed out after ${limit} ms waiting for ${what}`);
		await new Promise(resolve => setTimeout(resolve, 25));
	}
}

function isOpen(port: number): Promise<boolean> {
	return new Promise(resolve => {
		const socket = connect(port, '127.0.0.1', () => {
			socket.destroy();
			resolve(true);
		});
		socket.once('error', () => resolve(false));
	});
}

/** Returns the PIDs of all descendants of a process. */
function descendants(pid: number): number[] {
	let children: number[] = [];
	try {
		const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1');
		children = text.split(' ').filter(Boolean).map(Number);
	} catch {
		// The process has ended.
	}
	return children.flatMap(child => [child, ...descendants(child)]);
}

function isAlive(pid: number): boolean {
	try {
		return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
	} catch {
		return false;
	}
}

const quickstarts = suite('the quickstart');

// npm passes SIGTERM, SIGINT and SIGHUP on in the same way, so of these three, it is tested only with SIGTERM.
for (const [command, args, signals] of [
	['npm', ['start'], ['SIGTERM', 'SIGKILL']],
	[NODE, ['cli/packaging/quickstart.ts'], ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL']],
] as const) {
	for (const signal of signals) {
		quickstarts(`ends when ${path.basename(command)} gets ${signal}`, async () => {
			const { child, ports, output } = await started(command, args);
			let pids: number[] = [];
			try {
				for (const port of ports) await until(`port ${port}`, 20_000, () => isOpen(port));
				// The ports open before startup is complete, and a server stopped during startup logs nothing.
				await until('the start', 20_000, () => output().includes('"serving"'));
				pids = descendants(child.pid!);
				assert.ok(pids.length >= 2, 'both the server and its guard process run');
				child.kill(signal);
				await until(`the end after ${signal}`, 20_000, () => !pids.some(isAlive));
				for (const port of ports) await until(`${port} closed`, 5000, async () => !(await isOpen(port)));
				if (signal === 'SIGTERM' && command === NODE)
					await until('its last line', 5000, () => output().includes('"stopped"'));
			} catch (error) {
				throw new Error(`${(error as Error).message}:\n${output()}`);
			} finally {
				for (const pid of [child.pid!, ...pids]) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
			}
		});
	}
}

if (process.platform === 'linux') quickstarts.run();
