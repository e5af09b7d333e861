/** The machine as commands about trust see it: its file system from a folder on, its user, and the programs that they run. */
import { spawn } from 'node:child_process';

/** What a program that ran said. */
export interface ProgramResult {
	/** Undefined when there is no such program. */
	readonly status: number | undefined;
	/** Standard error and output, shortened. */
	readonly output: string;
}

/** A machine. Tests give another folder than `/`. */
export interface Machine {
	/** Folder that the file system begins with. */
	readonly root: string;
	/** Home folder of the user, below no other root. */
	readonly home: string | undefined;
	/** Whether the user may change the machine's own trust store. */
	readonly privileged: boolean;
	/** Runs a program without a shell. Never rejects. */
	run(program: string, args: readonly string[]): Promise<ProgramResult>;
}

/** Milliseconds that a program may take. */
const LIMIT = 60_000;
/** Characters of its output that are kept. */
const KEPT_OUTPUT = 2000;

/** The machine that this process runs on. */
export function thisMachine(environment: { readonly [name: string]: string | undefined }): Machine {
	return { root: '/', home: environment.HOME, privileged: process.geteuid?.() === 0, run: runProgram };
}

function runProgram(program: string, args: readonly string[]): Promise<ProgramResult> {
	return new Promise(resolve => {
		const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: LIMIT });
		let output = '';
		const keep = (text: string): void => {
			if (output.length < KEPT_OUTPUT) output += text.slice(0, KEPT_OUTPUT - output.length);
		};
		child.stdout.setEncoding('utf8').on('data', keep);
		child.stderr.setEncoding('utf8').on('data', keep);
		child.once('error', () => resolve({ status: undefined, output: '' }));
		child.once('close', status => resolve({ status: status ?? 1, output: output.trim() }));
	});
}
