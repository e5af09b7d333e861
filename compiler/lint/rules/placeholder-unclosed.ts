/** The lint rule `placeholder/unclosed`, which reports a brace that opens a placeholder but is never closed. */

import { isKnownPlaceholder } from '../../codegen/placeholders/index.ts';
import { fullPlaceholderName } from '../../codegen/placeholders/shorthands.ts';
import { suggestName } from '../../diagnostics/suggest.ts';
import { linesOf } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const placeholderUnclosed: LintRule = {
	name: 'placeholder/unclosed',
	severity: 'warning',
	summary: 'A brace opens a placeholder that is never closed.',
	documentation: '`{http.request.host` without its `}` is sent literally. Write `\\{` for a literal brace.',
	dependsOn: 'site',
	check: cx => {
		if (!cx.tree) return;
		for (const { line } of linesOf(cx.tree)) {
			for (const { text, span } of line.words) {
				for (const { 1: name, index } of text.matchAll(/(?<![\\{])\{([A-Za-z_][\w.-]*)(?![\w.}*?%/-])/g)) {
					if (!isKnownPlaceholder(fullPlaceholderName(name!))) continue;
					if (
						text.slice(index + 1).search(/[{}]/) !== -1 &&
						text[index + 1 + text.slice(index + 1).search(/[{}]/)] === '}'
					)
						continue;
					const offset = span.source.text.indexOf(`{${name}`, span.start);
					const reportedSpan =
						offset !== -1 && offset < span.end
							? { source: span.source, start: offset, end: offset + name!.length + 1 }
							: span;
					const opening = { text: `{${name}`, span: reportedSpan };
					cx.report(reportedSpan, `\`{${name}\` is never closed.`, suggestName(opening, `{${name}}`));
				}
			}
		}
	},
};
