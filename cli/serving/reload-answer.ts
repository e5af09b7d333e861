/**
 * The result of a reload by signal. If a service manager has provided a folder for run-time files, the server writes the result to
 * a file in this folder. `svc reload --pid` waits for that file, so that `systemctl reload` fails if the configuration is refused.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailure } from '../command/command.ts';

export interface ReloadAnswer {
	/** Time at which the reload began: `process.hrtime.bigint()` as a decimal number. All processes of a machine share that clock. */
	readonly began: string;
	readonly isServed: boolean;
	/** The result as a sentence. */
	readonly message: string;
	/** Diagnostics with source excerpts, to be printed before the message. */
	readonly details: string;
}

type Environment = { readonly [name: string]: string | undefined };

/** Milliseconds between two checks for the result. */
const CHECK_INTERVAL_MS = 50;

/** Default number of milliseconds to wait for the result. systemd ends an `ExecReload` after 90 s, without saying why. */
const RESULT_TIMEOUT_MS = 80_000;

/** Returns the file in which a process reports the results of reloads; undefined if it has no folder for run-time files. */
function answerFilePath(environment: Environment, pid: number): string | undefined {
	const folder = environment.RUNTIME_DIRECTORY?.split(':')[0];
	return folder ? path.join(folder, `reload-${pid}.json`) : undefined;
}

/**
 * Writes the result of a reload of this process to the file. Does nothing without a folder for run-time files. Throws the
 * system's error.
 */
export function writeReloadAnswer(answer: ReloadAnswer): void {
	const file = answerFilePath(process.env, process.pid);
	if (file === undefined) return;
	writeFileSync(`${file}~`, JSON.stringify(answer), { mode: 0o600 });
	renameSync(`${file}~`, file);
}

/**
 * Tells a server to reload, and resolves to the result.
 * @param limitMs Maximum milliseconds to wait for the result.
 * @throws {@link CommandFailure} if the process cannot be signaled, or the result has not come in time
 */
export async function reloadBySignal(pid: number, limitMs = RESULT_TIMEOUT_MS): Promise<ReloadAnswer> {
	const file = answerFilePath(process.env, pid);
	if (file === undefined) {
		throw new CommandFailure(
			'`--pid` needs the environment variable RUNTIME_DIRECTORY, with the folder that the server was given by systemd.',
		);
	}
	const sentAtNs = process.hrtime.bigint();
	const deadlineMs = performance.now() + limitMs;
	sendSignal(pid, 'SIGUSR1');
	for (;;) {
		const answer = readAnswer(file);
		// The answer may belong to an earlier reload that has only just ended.
		if (answer !== undefined && BigInt(answer.began) >= sentAtNs) return answer;
		if (performance.now() >= deadlineMs) {
			throw new CommandFailure(
				`Process ${pid} has not reported the result of the reload within ${limitMs < 1000 ? `${limitMs} ms` : `${Math.round(limitMs / 1000)} s`}. The reload may still take effect; see the log of the server.`,
			);
		}
		await sleep(CHECK_INTERVAL_MS);
		sendSignal(pid, 0);
	}
}

function sendSignal(pid: number, signal: 'SIGUSR1' | 0): void {
	try {
		process.kill(pid, signal);
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException;
		const reason = code === 'ESRCH' ? 'it has ended' : code === 'EPERM' ? 'it belongs to another user' : code;
		throw new CommandFailure(`Process ${pid} cannot be told to reload: ${reason}.`);
	}
}

function readAnswer(file: string): ReloadAnswer | undefined {
	try {
		return JSON.parse(readFileSync(file, 'utf8')) as ReloadAnswer;
	} catch {
		return undefined;
	}
}
