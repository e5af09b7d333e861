/** DNS provider `exec`: runs a program of the operator's. */
import { spawn } from 'node:child_process';
import { IssueError } from '../issuer.ts';
import type { ChallengeRecord, DnsProvider } from './dns-provider.ts';

/** Milliseconds that the program may take. */
const LIMIT = 60_000;
/** Characters of what it prints that are kept for an error. */
const KEPT_OUTPUT = 500;

/** Makes the provider. */
export function execProvider(
	settings: { readonly [setting: string]: unknown },
	around: {
		readonly workingDirectory: string;
		readonly environment: { readonly [name: string]: string | undefined };
	},
): DnsProvider {
	const [program = '', ...args] = Array.isArray(settings.command) ? settings.command.map(String) : [];
	const cwd = typeof settings.directory === 'string' ? settings.directory : around.workingDirectory;
	const run = (action: 'present' | 'cleanup', record: ChallengeRecord): Promise<void> =>
		runProgram(program, [...args, action, `${record.name}.`, record.value], {
			cwd,
			env: { ...around.environment, SVC_DNS_ZONE: record.zone, SVC_DNS_TTL: String(record.ttl) },
		});
	return {
		zoneOptional: true,
		async add(record) {
			await run('present', record);
			return () => run('cleanup', record);
		},
	};
}

function runProgram(
	program: string,
	args: readonly string[],
	{ cwd, env }: { cwd: string; env: { readonly [name: string]: string | undefined } },
): Promise<void> {
	return new Promise((resolve, reject) => {
		const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'], timeout: LIMIT, shell: false });
		let said = '';
		child.stderr.setEncoding('utf8').on('data', (text: string) => {
			if (said.length < KEPT_OUTPUT) said += text.slice(0, KEPT_OUTPUT - said.length);
		});
		child.once('error', (error: NodeJS.ErrnoException) =>
			reject(new IssueError('dns/exec', `\`${program}\` cannot be run: ${error.code ?? error.message}.`)),
		);
		child.once('close', (status, signal) => {
			if (status === 0) resolve();
			else {
				const how = signal === null ? `ended with status ${status}` : `was ended by ${signal}`;
				const why = said.trim().replace(/\s+/g, ' ');
				reject(new IssueError('dns/exec', `\`${program}\` ${how}${why === '' ? '' : `: ${why}`}.`));
			}
		});
	});
}
