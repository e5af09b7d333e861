/** The lint rule `files/root-missing`. */
import { isAbsolute, resolve } from 'node:path';
import { rootsOf } from '../inspection/file-roots.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports a root folder that does not exist, although files are to be served from it. */
export const rootMissing: LintRule = {
	name: 'files/root-missing',
	severity: 'warning',
	alwaysChecked: true,
	summary: 'The folder from which files are served does not exist.',
	documentation: [
		'Every request would be answered with 404. A relative path is relative to the file that contains it; in a Compatfile,',
		`to the server's working directory.`,
	].join('\n'),
	check: cx => {
		const isCompatfile = cx.dialect === 'compatfile';
		for (const { folder: root, pointer } of rootsOf(cx.walkedDocument)) {
			if (!isAbsolute(root) && !isCompatfile) continue;
			const kind = cx.reader.kind(resolve(cx.reader.workingDirectory, root));
			if (kind === 'directory' || kind === 'withheld') continue;
			const place = isCompatfile ? `server's working directory` : 'configuration file';
			cx.reportAt(pointer, `The root folder ${kind === 'file' ? 'is a file' : 'does not exist'}.`, {
				hint: `A relative path is relative to the ${place}; the folder may also be created later.`,
			});
		}
	},
};
