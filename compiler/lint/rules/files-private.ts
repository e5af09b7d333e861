/** The lint rule `files/private-files`, which reports a served folder that contains a repository, an environment file or keys. */
import { join } from 'node:path';
import { traitsOf } from '../inspection/answering.ts';
import { isHidden, rootsOf } from '../inspection/file-roots.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Names of files and folders that contain keys, passwords or history. */
const PRIVATE_NAMES: readonly string[] = ['.git', '.svn', '.hg', '.env', '.htpasswd', '.ssh', '.aws', 'id_rsa'];

export const filesPrivate: LintRule = {
	name: 'files/private-files',
	severity: 'warning',
	summary: 'A served folder contains a repository, an environment file or keys.',
	documentation: [
		"`.git` exposes a project's whole history, `.env` its passwords. List them under `hide` of `file_server`, or",
		'serve a folder that contains only public files.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { folder: root, pointer } of rootsOf(cx.walkedDocument)) {
			// Files may change at any time.
			cx.requestReinspection();
			if (!root.startsWith('/') || cx.reader.kind(root) !== 'directory') continue;
			const fileServers = cx.walkedDocument.steps.flatMap(({ step }) => traitsOf(step).servesFiles?.(step) ?? []);
			if (fileServers.length === 0) continue;
			const privateNames = PRIVATE_NAMES.filter(name => cx.reader.kind(join(root, name)) !== undefined);
			const servedNames = privateNames.filter(name =>
				fileServers.some(({ hiddenPatterns }) => !isHidden(hiddenPatterns, name)),
			);
			if (servedNames.length === 0) continue;
			cx.reportAt(pointer, `${servedNames.map(name => `\`${name}\``).join(' and ')} would be served from here.`, {
				hint: `Write \`hide ${servedNames.join(' ')}\` in the block of \`file_server\`.`,
			});
		}
	},
};
