/**
 * Keeps the first process of a series of handovers alive if a shell, a container or a supervisor waits for it. The first process
 * forwards signals to its successors, and exits with the status of the last one. Each serving process holds the write end of a
 * pipe, on which it reports its PID and its exit status. When the pipe is closed, no serving process is left.
 */
import { writeSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { reapOrphans } from '../../runtime/sockets/reap-orphans.ts';

/** Reads the pipe in the first process: learns which process serves, and the status with which the last one has exited. */
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
			let unfinishedLine = '';
			let reportedStatus: number | undefined;
			pipe.setEncoding('utf8');
			pipe.on('data', (chunk: string) => {
				unfinishedLine += chunk;
				const lines = unfinishedLine.split('\n');
				unfinishedLine = lines.pop()!;
				for (const [kind, value] of lines.map(line => line.split(' '))) {
					if (kind === 'serving') this.#servingPid = Number(value);
					else reportedStatus = Number(value);
				}
			});
			pipe.on('error', () => {});
			pipe.once('close', () => resolve(reportedStatus));
		});
	}

	/** Forwards a signal to the serving process. */
	signal(signal: NodeJS.Signals): void {
		try {
			process.kill(this.#servingPid, signal);
		} catch {
			// The serving process has just exited.
		}
	}
}

/** Tells the first process, through the pipe, which process serves, or with which status a process has ended. */
export function reportToKeeper(pipe: number | undefined, message: `serving ${number}` | `ended ${number}`): void {
	if (pipe === undefined || pipe < 0) return;
	try {
		writeSync(pipe, `${message}\n`);
	} catch {
		// The first process has been killed, so the report has no reader.
	}
}
