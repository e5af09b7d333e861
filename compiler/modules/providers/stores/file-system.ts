/** Store `file_system`: a folder. */
import type { StoreModule } from './store-module.ts';

/** The kind of store that keeps its data in a folder, which several processes may share. */
export const fileSystem: StoreModule = {
	id: 'file_system',
	usage: 'storage file_system [<folder>] | file_system { root <folder> }',
	summary: 'Keeps certificates, keys and accounts in a folder.',
	documentation:
		"Files have mode 600, folders 700. Processes that share the folder order each certificate only once. The default folder is the one in `SVC_TLS_STORE`, otherwise `svc` in the user's data directory.",
	lower: (args, line, cx) => {
		let rootFolder: string | undefined;
		if (cx.count(line, args, 0, 1, fileSystem.usage) && args[0]) rootFolder = cx.filePath(args[0].text, args[0].span);
		cx.subdirectives(
			line.block,
			{
				root: (words, innerLine) => {
					if (cx.count(innerLine, words, 1, 1, 'root <folder>'))
						rootFolder = cx.filePath(words[0]!.text, words[0]!.span);
				},
			},
			'file_system',
		);
		return rootFolder === undefined ? {} : { root: rootFolder };
	},
	schema: { properties: { root: { type: 'string', minLength: 1, description: 'The folder.' } } },
};
