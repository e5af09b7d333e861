/** The lint rule `errors-page/no-pages`, which reports a folder of error pages that contains no page. */
import { isAbsolute, join } from 'node:path';
import { STATUS_CODES } from '../../exchange/status-codes.ts';
import { type ErrorsPageStep, errorsPage } from '../../modules/directives/errors-page/errors-page.ts';
import { pageNames } from '../../modules/directives/errors-page/errors-page-handler.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const errorPagesMissing: LintRule = {
	name: 'errors-page/no-pages',
	severity: 'warning',
	summary: 'The folder of `errors_page` contains no page.',
	documentation: [
		'The built-in page would be sent for every error. Files are named by status (`404.html`), by class (`5xx.html`), or',
		'`error.html` for all others.',
	].join('\n'),
	check: cx => {
		for (const { step, pointer } of cx.walkedDocument.steps) {
			if (step.handler !== errorsPage.id) continue;
			const { folder } = step as ErrorsPageStep;
			if (folder === undefined || !isAbsolute(folder)) continue;
			const kind = cx.reader.kind(folder);
			if (kind === 'withheld') continue;
			if (kind !== 'directory') {
				cx.reportAt(
					`${pointer}/folder`,
					`The folder of error pages ${kind === undefined ? 'does not exist' : 'is a file'}.`,
					{
						hint: 'A relative path is relative to the configuration file.',
					},
				);
			} else if (!PAGE_NAMES.some(name => cx.reader.kind(join(folder, name)) !== undefined)) {
				cx.reportAt(`${pointer}/folder`, 'The folder contains no page.', {
					hint: 'Name the files `404.html`, `5xx.html` or `error.html`, for example.',
				});
			}
		}
	},
};

/** The names of files that `errors_page` looks for, the most general names first. */
const PAGE_NAMES: readonly string[] = [
	...new Set(
		Object.keys(STATUS_CODES)
			.map(Number)
			.filter(status => status >= 400)
			.flatMap(pageNames),
	),
]
	.toSorted()
	.reverse();
