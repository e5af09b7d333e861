/** The command `svc storage-export`: exports the certificate store as a tar archive. */
import { constants } from 'node:fs';
import { open, readdir, rename, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { Store } from '../../runtime/storage/store.ts';
import {
	removeIfAbandoned,
	UNFINISHED_SUFFIX,
	unfinishedName,
	unfinishedPrefix,
} from '../../runtime/storage/unfinished-files.ts';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure } from '../command/command.ts';
import { printError } from '../command/terminal.ts';
import { ADAPTER_OPTION, CONFIG_OPTION } from '../configuration/configuration.ts';
import { chooseStore, rethrowStoreFailure, STORE_RULE } from '../configuration/store-choice.ts';

export const storageExport: Command = {
	name: 'storage-export',
	summary: 'Export the certificate store as a tar archive',
	details: [
		'The archive contains private keys; the file has mode 600. It appears under its name only once it is complete.',
		STORE_RULE,
		'Can also be written as two words: `svc storage export`.',
	],
	options: [
		{
			name: 'output',
			short: 'o',
			valueName: 'FILE',
			offers: 'file',
			required: true,
			summary: 'Archive file; - writes to standard output',
		},
		{ ...CONFIG_OPTION, default: 'none' },
		ADAPTER_OPTION,
	],
	async run(invocation) {
		const { store } = await chooseStore(invocation);
		try {
			return await exportTo(store, invocation.value('output')!);
		} finally {
			await store.close?.();
		}
	},
};

async function exportTo(store: Store, outputPath: string): Promise<number> {
	const { exportStore } = await import('../../runtime/storage/archive-export.ts');
	if (outputPath === '-') {
		if (process.stdout.isTTY) {
			throw new CommandFailure('Standard output is a terminal; write the archive to a file or pipe it to a program.');
		}
		await exportStore(store, writeToStandardOutput).catch(rethrowStoreFailure);
		return 0;
	}
	const temporaryPath = unfinishedName(outputPath);
	await removeAbandonedExports(outputPath);
	try {
		const handle = await open(temporaryPath, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600).catch(
			error => {
				throw new CommandFailure(`${quoteWord(outputPath)} cannot be written: ${error.code}.`);
			},
		);
		let result: { readonly values: number };
		try {
			await handle.chmod(0o600);
			result = await exportStore(store, async bytes => void (await handle.writeFile(bytes)));
			await handle.sync();
		} finally {
			await handle.close();
		}
		await rename(temporaryPath, outputPath);
		printError(`${result.values} values exported to ${quoteWord(path.normalize(outputPath))}.\n`);
		return 0;
	} catch (error) {
		await unlink(temporaryPath).catch(() => {});
		throw storeFailureOf(error);
	}
}

/** Deletes temporary files that earlier exports to the same file left behind because they were killed. */
async function removeAbandonedExports(outputPath: string): Promise<void> {
	const { dir, base } = path.parse(unfinishedPrefix(path.resolve(outputPath)));
	for (const name of await readdir(dir).catch(() => [])) {
		if (name.startsWith(base) && name.endsWith(UNFINISHED_SUFFIX)) await removeIfAbandoned(path.join(dir, name));
	}
}

function storeFailureOf(error: unknown): unknown {
	try {
		return rethrowStoreFailure(error);
	} catch (failure) {
		return failure;
	}
}

function writeToStandardOutput(bytes: Uint8Array): Promise<void> {
	return new Promise((resolve, reject) => {
		process.stdout.write(bytes, error => (error ? reject(error) : resolve()));
	});
}
