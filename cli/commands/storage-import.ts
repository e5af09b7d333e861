/** `svc storage-import`. */
import { createReadStream } from 'node:fs';
import type { Command } from '../command.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, unreadable } from '../configuration.ts';
import { STORE_RULE, storeFailure, storeFolderOf } from '../store-choice.ts';
import { printError } from '../terminal.ts';

/** Restores a tar archive into the store of certificates. */
export const storageImport: Command = {
	name: 'storage-import',
	summary: 'Restore a tar archive into the certificate store',
	details: [
		'Values that the archive does not hold stay as they are. An archive that is not whole, holds nothing, or holds anything but files inside the store is refused, and the store stays as it was.',
		'A running server takes restored certificates at its next start.',
		STORE_RULE,
		'May be written as two words: `svc storage import`.',
	],
	options: [
		{
			name: 'input',
			short: 'i',
			value: 'FILE',
			offers: 'file',
			required: true,
			summary: 'File of the archive; - reads standard input',
		},
		{ ...CONFIG_OPTION, default: 'none' },
		ADAPTER_OPTION,
	],
	async run(invocation) {
		const folder = await storeFolderOf(invocation);
		const input = invocation.value('input')!;
		const { importArchive } = await import('../../runtime/storage/archive-import.ts');
		const archive = input === '-' ? process.stdin : createReadStream(input);
		const reading: { error?: NodeJS.ErrnoException } = {};
		archive.once('error', error => {
			reading.error = error;
		});
		try {
			const { values } = await importArchive(archive, folder);
			printError(`${values} values were restored into ${folder}.\n`);
			return 0;
		} catch (error) {
			if (reading.error !== undefined) throw unreadable(input, reading.error.code ?? reading.error.message);
			return storeFailure(error);
		}
	},
};
