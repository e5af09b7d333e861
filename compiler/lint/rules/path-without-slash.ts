/** The lint rule `path/prefix-without-slash`. */

import { pathsOf } from '../../modules/registry/matchers.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { allNestedMatchers } from '../inspection/walk-document.ts';

/** Reports patterns such as `/api*`, which also match `/apiary`; usually `/api/*` is meant. */
export const pathWithoutSlash: LintRule = {
	name: 'path/prefix-without-slash',
	severity: 'warning',
	summary: 'A pattern such as `/api*` also matches `/apiary`; usually `/api/*` is meant.',
	documentation: [
		'`*` at the end of a pattern matches any text, not just the rest of a path. That does no harm in a rule that protects',
		'`/admin*`, but a rule that admits, strips a prefix or proxies also gets the paths of its neighbors.',
		'Write `/api/*`, and also `/api` if that should match too.',
	].join('\n'),
	check: cx => {
		for (const { matcher, pointer } of cx.walked.matchers) {
			for (const { matcher: inner, pointer: at } of allNestedMatchers(matcher, pointer)) {
				const paths = pathsOf(inner);
				if (!paths) continue;
				const { values: patterns, field } = paths;
				patterns.forEach((pattern, index) => {
					if (!/^\/(?:[^*?[\]{}%]*[A-Za-z0-9])\*$/.test(pattern)) return;
					// If `/api` or `/api/` is listed, too, the pattern is intended.
					const stem = pattern.slice(0, -1);
					if (stem.slice(stem.lastIndexOf('/')).includes('.')) return;
					const span = cx.span(`${at}/${field}/${index}`, pattern);
					const exact = span && span.source.text.slice(span.start, span.end) === pattern ? span : undefined;
					const instead = patterns.includes(stem) ? `${stem}/*` : `${stem} ${stem}/*`;
					const listed = exact && /(?:^|\s)path(?:\s[^\n]*)?\s$/.test(lineBefore(exact));
					cx.at(`${at}/${field}/${index}`, `\`${pattern}\` also matches \`${stem}x\`.`, {
						words: pattern,
						label: `did you mean \`${stem}/*\`?`,
						...(exact && listed ? { fix: { safety: 'unsafe', edits: [{ span: exact, text: instead }] } as const } : {}),
					});
				});
			}
		}
	},
};

function lineBefore({ source, start }: { source: { text: string }; start: number }): string {
	return source.text.slice(source.text.lastIndexOf('\n', start - 1) + 1, start);
}
