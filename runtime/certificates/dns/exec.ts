/** The DNS provider `exec`: runs a program. */
import { spawn } from 'node:child_process';
import { IssueError } from '../issuer.ts';
import type { ChallengeRecord, DnsProvider } from './dns-provider.ts';

/** Timeout of the program in milliseconds. */
const PROGRAM_TIMEOUT_MS = 60_000;
/** Timeout, in milliseconds, of the program that cleans up after a canceled order. */
const CANCELED_CLEANUP_TIMEOUT_MS = 5000;
/** Milliseconds that a program has to exit after SIGTERM. */
const KILL_DELAY_MS = 1000;
/** Maximum number of characters of a program's output that are kept for an error message. */
const MAX_OUTPUT_CHARS = 500;

export function execProvider(
	settings: { readonly [setting: string]: unknown },
	deps: {
		readonly workingDirectory: string;
		readonly environment: { readonly [name: string]: string | undefined };
	},
): DnsProvider {
	const [program = '', ...args] = Array.isArray(settings.command) ? settings.command.map(String) : [];
	const cwd = typeof settings.directory === 'string' ? settings.directory : deps.workingDirectory;
	const runAction = (action: 'present' | 'cleanup', record: ChallengeRecord, signal: AbortSignal): Promise<void> =>
		runProgram(program, [...args, action, `${record.name}.`, record.value], {
			cwd,
			env: { ...deps.environment, SVC_DNS_ZONE: record.zone, SVC_DNS_TTL: String(record.ttl) },
			signal,
		});
	return {
		isZoneOptional: true,
		async add(record, signal) {
			await runAction('present', record, AbortSignal.any([signal, AbortSignal.timeout(PROGRAM_TIMEOUT_MS)]));
			return () => {
				const cleanupAbort = new AbortController();
				const timer = setTimeout(
					() => cleanupAbort.abort(),
					signal.aborted ? CANCELED_CLEANUP_TIMEOUT_MS : PROGRAM_TIMEOUT_MS,
				);
				const shortenTimeout = (): void =>
					void setTimeout(() => cleanupAbort.abort(), CANCELED_CLEANUP_TIMEOUT_MS).unref();
				signal.addEventListener('abort', shortenTimeout, { once: true });
				return runAction('cleanup', record, cleanupAbort.signal).finally(() => {
					clearTimeout(timer);
					signal.removeEventListener('abort', shortenTimeout);
				});
			};
		},
	};
}

/**
 * Runs a program. If `signal` aborts, terminates the program and all processes that it has started, and rejects without waiting
 * for them to exit.
 */
function runProgram(
	program: string,
	args: readonly string[],
	{ cwd, env, signal }: { cwd: string; env: { readonly [name: string]: string | undefined }; signal: AbortSignal },
): Promise<void> {
	return new Promise((resolve, reject) => {
		if (signal.aborted) {
			reject(new IssueError('dns/exec', `\`${program}\` was not run, because the time limit has been reached.`));
			return;
		}
		// The program gets its own process group, so that everything a script has started is ended with it.
		const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'], detached: true, shell: false });
		let output = '';
		const terminate = (): void => {
			killGroup(child.pid, 'SIGTERM');
			setTimeout(() => killGroup(child.pid, 'SIGKILL'), KILL_DELAY_MS).unref();
			child.stderr.destroy();
			child.unref();
			reject(new IssueError('dns/exec', `\`${program}\` was ended, because it exceeded its time limit.`));
		};
		signal.addEventListener('abort', terminate, { once: true });
		child.stderr.setEncoding('utf8').on('data', (text: string) => {
			if (output.length < MAX_OUTPUT_CHARS) output += text.slice(0, MAX_OUTPUT_CHARS - output.length);
		});
		child.once('error', (error: NodeJS.ErrnoException) => {
			signal.removeEventListener('abort', terminate);
			reject(new IssueError('dns/exec', `\`${program}\` cannot be run: ${error.code ?? error.message}.`));
		});
		child.once('close', (status, exitSignal) => {
			signal.removeEventListener('abort', terminate);
			if (status === 0) resolve();
			else {
				const outcome = exitSignal === null ? `exited with status ${status}` : `was ended by ${exitSignal}`;
				const outputText = output.trim().replace(/\s+/g, ' ');
				reject(new IssueError('dns/exec', `\`${program}\` ${outcome}${outputText === '' ? '' : `: ${outputText}`}.`));
			}
		});
	});
}

/** Signals a program's process group, unless it has exited. */
function killGroup(pid: number | undefined, signal: 'SIGTERM' | 'SIGKILL'): void {
	if (pid === undefined) return;
	try {
		process.kill(-pid, signal);
	} catch {
		// The program has exited.
	}
}
