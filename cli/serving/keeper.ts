/**
 * Keeps the first process of a series of handovers alive when something waits for it: a shell, a container or a supervisor. That
 * process forwards signals, and exits with the status of its last successor when that successor exits. Each serving process holds
 * the write end of a pipe, on which it reports its PID and its exit status. When the pipe is closed, no process is left.
 */
import { writeSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { reapOrphans } from '../../runtime/main/handover/reap-orphans.ts';

/** The read end of the pipe, in the first process. */
export class Keeper {
	/** Resolves to the exit status once no process serves any longer; undefined if the last process did not report its status. */
	readonly exitStatus: Promise<number | undefined>;
	#servingPid: number;

	/** @param servingPid PID of the process that serves now. */
	constructor(pipe: Readable, servingPid: number) {
		this.#servingPid = servingPid;
		// As PID 1, this process becomes the parent of orphaned processes, and must reap them.
		if (process.pid === 1) process.on('SIGCHLD', reapOrphans);
		this.exitStatus = new Promise(resolve => {
			let text = '';
			let status: number | undefined;
			pipe.setEncoding('utf8');
			pipe.on('data', (chunk: string) => {
				text += chunk;
				const lines = text.split('\n');
				text = lines.pop()!;
				for (const [kind, value] of lines.map(line => line.split(' '))) {
					if (kind === 'serving') this.#servingPid = Number(value);
					else status = Number(value);
				}
			});
			pipe.on('error', () => {});
			pipe.once('close', () => resolve(status));
		});
	}

	/** Forwards a signal to the serving process. */
	signal(signal: NodeJS.Signals): void {
		try {
			process.kill(this.#servingPid, signal);
		} catch {
			// The process has just exited.
		}
	}
}

/** Reports to the first process, at the other end of the pipe, which process serves, or how a process has ended. */
export function reportToKeeper(pipe: number | undefined, message: `serving ${number}` | `ended ${number}`): void {
	if (pipe === undefined || pipe < 0) return;
	try {
		writeSync(pipe, `${message}\n`);
	} catch {
		// The first process has been killed, so nobody reads the report.
	}
}
