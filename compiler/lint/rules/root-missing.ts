/** `files/root-missing`. */
import { isAbsolute } from 'node:path';
import { rootsOf } from '../file-roots.ts';
import type { LintRule } from '../lint-rule.ts';

/** The folder that files are served from is not there. */
export const rootMissing: LintRule = {
	name: 'files/root-missing',
	severity: 'warning',
	summary: 'The folder that files are served from is not there.',
	documentation: 'Every request would be answered 404. A relative path is relative to the file in which it is written.',
	check: cx => {
		for (const { root, pointer } of rootsOf(cx.walked)) {
			if (!isAbsolute(root)) continue;
			const kind = cx.reader.kind(root);
			if (kind === 'directory') continue;
			cx.at(pointer, `The root of the files is ${kind === 'file' ? 'a file' : 'not there'}.`, {
				hint: 'A relative path is relative to the configuration file; the folder may be made later.',
			});
		}
	},
};
