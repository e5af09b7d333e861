/** The lint rule `auth/accounts-served`, which reports a file of accounts that is in a folder from which files are served. */
import { basename } from 'node:path';
import { basicAuth } from '../../modules/directives/basic-auth/basic-auth.ts';
import type { BasicAuthStep } from '../../modules/directives/basic-auth/basic-auth-handler.ts';
import { traitsOf } from '../inspection/answering.ts';
import { isHidden, rootsOf } from '../inspection/file-roots.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const accountsServed: LintRule = {
	name: 'auth/accounts-served',
	severity: 'warning',
	summary: 'A file of accounts is in a served folder.',
	documentation: [
		'Whoever can download the password hashes can guess the passwords at leisure. Move the file out of the folder, or list it',
		'under `hide` of `file_server`.',
	].join('\n'),
	check: cx => {
		const { steps } = cx.walkedDocument;
		if (!steps.some(({ step }) => step.handler === basicAuth.id)) return;
		const roots = [...rootsOf(cx.walkedDocument)].filter(({ folder: root }) => root.startsWith('/'));
		for (const { step, pointer } of steps) {
			if (step.handler !== basicAuth.id) continue;
			const { htpasswd } = step as BasicAuthStep;
			if (htpasswd === undefined) continue;
			const isServed = roots.some(
				({ folder: root, site }) =>
					htpasswd.startsWith(root.endsWith('/') ? root : `${root}/`) &&
					steps
						.filter(({ pipeline }) => pipeline.site === site)
						.flatMap(other => traitsOf(other.step).servesFiles?.(other.step) ?? [])
						.some(({ hiddenPatterns }) => !isHidden(hiddenPatterns, basename(htpasswd))),
			);
			if (!isServed) continue;
			cx.reportAt(`${pointer}/htpasswd`, 'The file of accounts is in a folder from which files are served.', {
				hint: `Move it out of that folder, or write \`hide ${basename(htpasswd)}\` in the block of \`file_server\`.`,
			});
		}
	},
};
