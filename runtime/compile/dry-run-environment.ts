/** The real dependencies of a dry run: file access, password checks, facts about the machine, and the environment. */

import type { DryRunEnvironment } from '../../compiler/dry-run/dry-run.ts';
import { lazily } from '../../compiler/exchange/lazily.ts';
import type { Compressor, FileReader, LeaseKinds } from '../../compiler/exchange/leases.ts';
import { readAccountFile } from '../../compiler/modules/directives/basic-auth/account-file.ts';
import type { PasswordVerifier } from '../../compiler/modules/directives/basic-auth/password-verifier.ts';
import { ThreadCompressor } from '../compression/thread-compressor.ts';
import { createFileReader } from '../files/file-reader.ts';
import { hostFacts } from '../threads/host-facts.ts';
import { diskReader } from './disk-reader.ts';

/** Returns the dependencies of a dry run in this process. None of them opens a socket. */
export function dryRunEnvironment(workingDirectory: string): DryRunEnvironment {
	const files = lazily(() => createFileReader(false));
	const realLeases: {
		readonly files: FileReader;
		readonly password_verifier: PasswordVerifier;
		readonly compressor: Compressor;
	} = {
		get files() {
			return files();
		},
		// Encodes on this thread, because nothing else is waiting for it.
		compressor: new ThreadCompressor(),
		password_verifier: {
			isLive: true,
			verify: async (_x, _user, hash, password) => {
				const { verifyPassword } = await import('../passwords/verify-password.ts');
				return verifyPassword(hash, password);
			},
		},
	};
	return {
		facts: hostFacts(workingDirectory, process.env),
		lease<K extends keyof LeaseKinds>(
			kind: K,
			settings: LeaseKinds[K]['settings'],
		): LeaseKinds[K]['lease'] | undefined {
			if (kind === 'account_file') {
				const { path } = settings as LeaseKinds['account_file']['settings'];
				const accounts = readAccountFile(path, diskReader(workingDirectory));
				return { accounts: () => accounts } as LeaseKinds[typeof kind]['lease'];
			}
			return (realLeases as Partial<{ [kind in keyof LeaseKinds]: LeaseKinds[kind]['lease'] }>)[kind] as
				| LeaseKinds[K]['lease']
				| undefined;
		},
		async logEntry(logged) {
			const { accessLogEntry } = await import('../logs/access-log-entry.ts');
			return accessLogEntry(logged);
		},
		pageWork: {
			run: async task => {
				if (task.task === 'addresses') throw new Error(`lookup ${task.host}: a dry run has no network`);
				const { runPageTask } = await import('../page-work/do-page-task.ts');
				return runPageTask(task);
			},
		},
	};
}
