/**
 * Measures how long a TLS client waits for its handshake while the machine is idle, while one core sends TLS requests to
 * the same server at full speed, and while two processes burn CPU time. The servers take turns. Every figure
 * includes the client's own part of a handshake.
 *
 * Usage: node test/bench/handshakes-under-load.ts [seconds]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { freePorts } from '../harness.ts';
import { runLoad } from './load.ts';
import { isInstalled, PROGRAMS, startBenchServer } from './servers.ts';
import { TLS_TASKS } from './tasks/tls.ts';

const SECONDS = Number(process.argv[2] ?? 3);
/** Milliseconds between two handshakes. */
const PAUSE_MS = 10;

/** Performs handshakes one after another for `seconds`. Returns the milliseconds of each; rejects if one fails. */
async function handshakes(port: number, seconds: number): Promise<number[]> {
	const durationsMs: number[] = [];
	const end = performance.now() + seconds * 1000;
	while (performance.now() < end) {
		const startedAt = performance.now();
		const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false });
		await once(socket, 'secureConnect');
		durationsMs.push(performance.now() - startedAt);
		socket.destroy();
		await new Promise(resolve => setTimeout(resolve, PAUSE_MS));
	}
	return durationsMs.sort((a, b) => a - b);
}

function burner(): ChildProcess {
	return spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
}

const task = TLS_TASKS[0]!;
const backends = { files: 0, secure: 0, h2c: 0, program: 0, redis: 0 };
console.log('| server | load | handshakes | p50 | p99 | longest |\n| --- | --- | --- | --- | --- | --- |');
for (const { server: name, configuration } of task.contenders) {
	const program = PROGRAMS[name];
	if (program !== undefined && !isInstalled(program)) continue;
	const [port] = (await freePorts(1)) as [number];
	const server = await startBenchServer(name, configuration(port, backends), port, '0');
	try {
		await handshakes(port, 1);
		for (const load of ['nothing', 'requests over TLS', 'two busy processes']) {
			const burners = load === 'two busy processes' ? [burner(), burner()] : [];
			const requests =
				load === 'requests over TLS'
					? runLoad(port, { kind: 'requests', path: '/', tls: true }, [1], SECONDS + 1)
					: undefined;
			const taken = await handshakes(port, SECONDS);
			for (const process of burners) process.kill('SIGKILL');
			await requests;
			const at = (share: number): string => `${taken[Math.floor((taken.length - 1) * share)]!.toFixed(1)} ms`;
			console.log(`| ${name} | ${load} | ${taken.length} | ${at(0.5)} | ${at(0.99)} | ${at(1)} |`);
		}
	} finally {
		await server.stop();
	}
}
