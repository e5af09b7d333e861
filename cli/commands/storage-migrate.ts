/** The command `svc storage-migrate`: copies the certificate store from or to a folder. */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure } from '../command/command.ts';
import { printError } from '../command/terminal.ts';
import { ADAPTER_OPTION, CONFIG_OPTION } from '../configuration/configuration.ts';
import { chooseStore, rethrowStoreFailure, STORE_RULE } from '../configuration/store-choice.ts';

export const storageMigrate: Command = {
	name: 'storage-migrate',
	summary: 'Copy the certificate store between a folder and Redis',
	details: [
		'Copies certificates, keys and accounts from a folder to the store of the configuration (--from), or from that store to a folder (--to), and reads each of them back. The source is unchanged.',
		'If the target has other values under the same keys, nothing is written, unless --replace is given. If a store fails on the way, the migration can be repeated.',
		'Stop the servers that use the source, or migrate again after they use the target: what they write in between is not copied.',
		STORE_RULE,
		'Can also be written as two words: `svc storage migrate`.',
	],
	options: [
		{ name: 'from', valueName: 'FOLDER', offers: 'folder', summary: 'Copy from this folder to the store' },
		{ name: 'to', valueName: 'FOLDER', offers: 'folder', summary: 'Copy from the store to this folder' },
		{ name: 'replace', summary: 'Replace values of the target that differ' },
		{ ...CONFIG_OPTION, required: true },
		ADAPTER_OPTION,
	],
	async run(invocation) {
		const [fromFolder, toFolder] = [invocation.value('from'), invocation.value('to')];
		if ((fromFolder === undefined) === (toFolder === undefined)) {
			throw new CommandFailure(`Either ${quoteWord('--from')} or ${quoteWord('--to')} is needed.`);
		}
		if (fromFolder !== undefined && !(await stat(fromFolder).catch(() => undefined))?.isDirectory()) {
			throw new CommandFailure(`${quoteWord(fromFolder)} is not a folder.`);
		}
		const { store, folder } = await chooseStore(invocation);
		try {
			if (folder === path.resolve(fromFolder ?? toFolder!)) {
				throw new CommandFailure('The folder is itself the store of the configuration.');
			}
			const { openFileStore } = await import('../../runtime/storage/file-store.ts');
			const { migrateStore } = await import('../../runtime/storage/migration.ts');
			const folderStore = openFileStore(fromFolder ?? toFolder!);
			const [source, target] = fromFolder === undefined ? [store, folderStore] : [folderStore, store];
			const { copied: copiedCount, same: sameCount } = await migrateStore(
				source,
				target,
				invocation.flag('replace'),
			).catch(rethrowStoreFailure);
			const sameText = sameCount > 0 ? `; ${sameCount} were already there` : '';
			printError(`${copiedCount} values copied from ${source.description} to ${target.description}${sameText}.\n`);
			return 0;
		} finally {
			await store.close?.();
		}
	},
};
