/** The machine on which trust commands work: its file system, its user, and its programs. */
import { spawn } from 'node:child_process';

export interface ProgramResult {
	/** The exit status; undefined if the program does not exist. */
	readonly status: number | undefined;
	/** Standard output and standard error, truncated. */
	readonly output: string;
}

/** A machine whose trust stores are changed. Tests use a root other than `/`. */
export interface MachineToTrust {
	/** The root of the file system. */
	readonly root: string;
	/** The user's home folder, not relative to `root`. */
	readonly home: string | undefined;
	/** True if the user may change the system's trust store. */
	readonly isPrivileged: boolean;
	/** Runs a program without a shell. Never rejects. */
	run(program: string, args: readonly string[]): Promise<ProgramResult>;
}

/** Timeout of a program in milliseconds. */
const PROGRAM_TIMEOUT_MS = 60_000;
/** Maximum characters of output to keep. */
const MAX_OUTPUT_CHARACTERS = 2000;

/** Returns the machine that this process runs on. */
export function thisMachine(environment: { readonly [name: string]: string | undefined }): MachineToTrust {
	return { root: '/', home: environment.HOME, isPrivileged: process.geteuid?.() === 0, run: runProgram };
}

function runProgram(program: string, args: readonly string[]): Promise<ProgramResult> {
	return new Promise(resolve => {
		const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: PROGRAM_TIMEOUT_MS });
		let output = '';
		const addOutput = (text: string): void => {
			if (output.length < MAX_OUTPUT_CHARACTERS) output += text.slice(0, MAX_OUTPUT_CHARACTERS - output.length);
		};
		child.stdout.setEncoding('utf8').on('data', addOutput);
		child.stderr.setEncoding('utf8').on('data', addOutput);
		child.once('error', () => resolve({ status: undefined, output: '' }));
		child.once('close', status => resolve({ status: status ?? 1, output: output.trim() }));
	});
}
