/** The command `svc storage-import`: imports a tar archive into the certificate store. */
import { createReadStream } from 'node:fs';
import type { Command } from '../command/command.ts';
import { printError } from '../command/terminal.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, unreadableFailure } from '../configuration/configuration.ts';
import { chooseStore, rethrowStoreFailure, STORE_RULE } from '../configuration/store-choice.ts';

export const storageImport: Command = {
	name: 'storage-import',
	summary: 'Import a tar archive into the certificate store',
	details: [
		'Values that are not in the archive are left unchanged. An archive that is incomplete or empty, or contains anything other than files within the store, is refused, and the store is left unchanged.',
		'If the store is in Redis and Redis fails during the import, some values may already be replaced; the import can be repeated.',
		'A running server uses the imported certificates after its next restart.',
		STORE_RULE,
		'Can also be written as two words: `svc storage import`.',
	],
	options: [
		{
			name: 'input',
			short: 'i',
			valueName: 'FILE',
			offers: 'file',
			required: true,
			summary: 'Archive file; - reads standard input',
		},
		{ ...CONFIG_OPTION, default: 'none' },
		ADAPTER_OPTION,
	],
	async run(invocation) {
		const { store, folder } = await chooseStore(invocation);
		const inputPath = invocation.value('input')!;
		const { importArchive, importIntoStore } = await import('../../runtime/storage/archive-import.ts');
		const archive = inputPath === '-' ? process.stdin : createReadStream(inputPath);
		const readFailure: { error?: NodeJS.ErrnoException } = {};
		archive.once('error', error => {
			readFailure.error = error;
		});
		try {
			const { values: valueCount } = await (folder === undefined
				? importIntoStore(archive, store)
				: importArchive(archive, folder));
			printError(`${valueCount} values imported into ${folder ?? store.description}.\n`);
			return 0;
		} catch (error) {
			if (readFailure.error !== undefined)
				throw unreadableFailure(inputPath, readFailure.error.code ?? readFailure.error.message);
			return rethrowStoreFailure(error);
		} finally {
			await store.close?.();
		}
	},
};
