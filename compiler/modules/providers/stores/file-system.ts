/** Store `file_system`: a folder. */
import type { StoreModule } from './store-module.ts';

/** A folder that several processes may share. */
export const fileSystem: StoreModule = {
	id: 'file_system',
	usage: 'storage file_system [<folder>] | file_system { root <folder> }',
	summary: 'Keeps certificates, keys and accounts in a folder.',
	documentation:
		'Files are of mode 600, folders of 700. Processes that share the folder order each certificate once. Without a folder it is what `SVC_TLS_STORE` names, else `svc` in the data directory of the user.',
	lower: (args, line, cx) => {
		let root: string | undefined;
		if (cx.count(line, args, 0, 1, fileSystem.usage) && args[0]) root = cx.filePath(args[0].text, args[0].span);
		cx.subdirectives(
			line.block,
			{
				root: (words, at) => {
					if (cx.count(at, words, 1, 1, 'root <folder>')) root = cx.filePath(words[0]!.text, words[0]!.span);
				},
			},
			'file_system',
		);
		return root === undefined ? {} : { root };
	},
	schema: { properties: { root: { type: 'string', minLength: 1, description: 'The folder.' } } },
};
