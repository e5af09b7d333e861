/** `files/root-missing`. */
import { isAbsolute, resolve } from 'node:path';
import { rootsOf } from '../file-roots.ts';
import type { LintRule } from '../lint-rule.ts';

/** The folder that files are served from is not there. */
export const rootMissing: LintRule = {
	name: 'files/root-missing',
	severity: 'warning',
	summary: 'The folder that files are served from is not there.',
	documentation: [
		'Every request would be answered 404. A relative path is relative to the file in which it is written; in a Compatfile,',
		'to the working directory of the server.',
	].join('\n'),
	check: cx => {
		const compat = cx.dialect === 'compatfile';
		for (const { root, pointer } of rootsOf(cx.walked)) {
			if (!isAbsolute(root) && !compat) continue;
			const kind = cx.reader.kind(resolve(cx.reader.workingDirectory, root));
			if (kind === 'directory') continue;
			const place = compat ? 'working directory of the server' : 'configuration file';
			cx.at(pointer, `The root of the files is ${kind === 'file' ? 'a file' : 'not there'}.`, {
				hint: `A relative path is relative to the ${place}; the folder may be made later.`,
			});
		}
	},
};
