/**
 * The first of the processes that succeed one another stays where somebody waits for it: a shell, a container, a supervisor.
 * It passes on signals, and ends when the last of them does, with its status. Every serving process holds the other end of a
 * pipe, in which it writes who it is and how it ends; nobody is left once the pipe ends.
 */
import { writeSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { reapOrphans } from '../../runtime/main/handover/reap-orphans.ts';

/** The pipe's end in the first process. */
export class Keeper {
	/** Resolves to the exit status once no process serves any more; undefined if the last one did not say. */
	readonly ended: Promise<number | undefined>;
	#serving: number;

	/** `serving` is the process that serves now. */
	constructor(pipe: Readable, serving: number) {
		this.#serving = serving;
		// The system's first process inherits the children of those that have ended.
		if (process.pid === 1) process.on('SIGCHLD', reapOrphans);
		this.ended = new Promise(resolve => {
			let text = '';
			let status: number | undefined;
			pipe.setEncoding('utf8');
			pipe.on('data', (chunk: string) => {
				text += chunk;
				const lines = text.split('\n');
				text = lines.pop()!;
				for (const [word, number] of lines.map(line => line.split(' '))) {
					if (word === 'serving') this.#serving = Number(number);
					else status = Number(number);
				}
			});
			pipe.on('error', () => {});
			pipe.once('close', () => resolve(status));
		});
	}

	/** Passes a signal on. */
	signal(signal: NodeJS.Signals): void {
		try {
			process.kill(this.#serving, signal);
		} catch {
			// It has just ended.
		}
	}
}

/** Tells the first process, at the other end of the pipe, which process serves. */
export function tellKeeper(pipe: number | undefined, what: `serving ${number}` | `ended ${number}`): void {
	if (pipe === undefined || pipe < 0) return;
	try {
		writeSync(pipe, `${what}\n`);
	} catch {
		// It has been killed.
	}
}
