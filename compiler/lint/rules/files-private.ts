/** The lint rule `files/private-files`. */
import { join } from 'node:path';
import { traitsOf } from '../inspection/answering.ts';
import { isHidden, rootsOf } from '../inspection/file-roots.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Names of files and folders that contain keys, passwords or history. */
const PRIVATE: readonly string[] = ['.git', '.svn', '.hg', '.env', '.htpasswd', '.ssh', '.aws', 'id_rsa'];

/** Reports a served folder that contains a repository, an environment file or keys. */
export const filesPrivate: LintRule = {
	name: 'files/private-files',
	severity: 'warning',
	summary: 'A served folder contains a repository, an environment file or keys.',
	documentation: [
		"`.git` exposes a project's whole history, `.env` its passwords. List them under `hide` of `file_server`, or",
		'serve a folder that contains only public files.',
	].join('\n'),
	check: cx => {
		for (const { root, pointer, site } of rootsOf(cx.walked)) {
			if (!root.startsWith('/') || cx.reader.kind(root) !== 'directory') continue;
			const servers = cx.walked.steps
				.filter(({ pipeline }) => pipeline.site === site)
				.flatMap(({ step }) => traitsOf(step).servesFiles?.(step) ?? []);
			if (servers.length === 0) continue;
			const found = PRIVATE.filter(name => cx.reader.kind(join(root, name)) !== undefined);
			const open = found.filter(name => servers.some(({ hides }) => !isHidden(hides, name)));
			if (open.length === 0) continue;
			cx.at(pointer, `${open.map(name => `\`${name}\``).join(' and ')} would be served from here.`, {
				hint: `Write \`hide ${open.join(' ')}\` in the block of \`file_server\`.`,
			});
		}
	},
};
