/** Measures a server before it has anything to do: its start, the check of a small file, and its memory. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, createWriteStream, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { freePorts, SVC, temporaryFolder } from '../harness.ts';
import type { StartContender, StartMeasure } from './tasks/task.ts';

/** Milliseconds from the first response until a server has finished its background work at startup. */
const SETTLED_AFTER_MS = 3000;
/** Number of additional threads, over which the memory of one thread is averaged. */
const FURTHER_THREADS = 2;

/**
 * A copy of the binary, written in small pieces. If a file is written in one piece, the kernel may count its pages as resident in
 * large units, most of which are never used.
 */
let binary: Promise<string> | undefined;

async function copyOfBinary(): Promise<string> {
	const copy = path.join(temporaryFolder(), 'svc');
	const source = createReadStream(process.env.SVC_BIN ?? SVC, { highWaterMark: 16_384 });
	await pipeline(source, createWriteStream(copy, { mode: 0o755 }));
	return copy;
}

/** Takes one measurement, in the unit of {@link StartMeasure}. */
export async function sampleStart(contender: StartContender, measure: StartMeasure): Promise<number> {
	if (measure !== 'memory per further thread') return measureProcess(contender, measure, 1);
	const one = await measureProcess(contender, 'memory', 1);
	return ((await measureProcess(contender, 'memory', 1 + FURTHER_THREADS)) - one) / FURTHER_THREADS;
}

async function measureProcess(contender: StartContender, measure: StartMeasure, threads: number): Promise<number> {
	const [port] = (await freePorts(1)) as [number];
	const folder = temporaryFolder();
	const file = path.join(folder, 'configuration');
	writeFileSync(file, contender.configuration(port, threads));
	binary ??= copyOfBinary();
	const command = commandOf(contender.server, await binary, file, measure === 'validate' ? 'validate' : 'run');
	const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
	const before = performance.now();
	const child = spawn(command[0]!, command.slice(1), { cwd: folder, env, stdio: 'ignore' });
	const exited = once(child, 'exit');
	if (measure === 'validate') {
		const [status] = await exited;
		if (status !== 0) throw new Error(`${command.join(' ')}: status ${status}`);
		return performance.now() - before;
	}
	try {
		while (!(await answers(port))) {
			if (child.exitCode !== null) throw new Error(`${command.join(' ')}: status ${child.exitCode}`);
			await pause(1);
		}
		const time = performance.now() - before;
		if (measure === 'time') return time;
		if (measure === 'processor time') return processorMilliseconds(child);
		await pause(SETTLED_AFTER_MS);
		return residentMebibytes(child);
	} finally {
		child.kill('SIGKILL');
		await exited;
	}
}

function commandOf(server: StartContender['server'], svc: string, file: string, verb: 'run' | 'validate'): string[] {
	switch (server) {
		case 'svc':
			return [svc, verb, '--config', file];
		case 'caddy':
			return ['caddy', verb, '--config', file, '--adapter', 'caddyfile'];
		case 'node':
			return [process.execPath, ...(verb === 'run' ? [file] : ['-e', '0'])];
	}
}

/** Requests a page. Resolves to false if there is no answer. */
function answers(port: number): Promise<boolean> {
	return new Promise(resolve => {
		const socket = connect(port, '127.0.0.1', () => socket.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`));
		const settle = (found: boolean): void => {
			resolve(found);
			socket.destroy();
		};
		socket.once('data', () => settle(true));
		socket.once('error', () => settle(false));
		socket.once('close', () => settle(false));
	});
}

/** Returns the processor time of all threads of a process. */
function processorMilliseconds({ pid }: ChildProcess): number {
	let nanoseconds = 0;
	for (const thread of readdirSync(`/proc/${pid}/task`)) {
		nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]);
	}
	return nanoseconds / 1e6;
}

function residentMebibytes({ pid }: ChildProcess): number {
	return (Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * 4096) / 2 ** 20;
}
