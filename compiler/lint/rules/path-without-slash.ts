/**
 * The lint rule `path/prefix-without-slash`, which reports patterns such as `/api*`. They also match `/apiary`, although
 * usually `/api/*` is meant.
 */

import type { LintRule } from '../inspection/lint-rule.ts';
import { pathPatternsIn } from '../inspection/walk-document.ts';

export const pathWithoutSlash: LintRule = {
	name: 'path/prefix-without-slash',
	severity: 'warning',
	summary: 'A pattern such as `/api*` also matches `/apiary`; usually `/api/*` is meant.',
	documentation: [
		'`*` at the end of a pattern matches any text, not just the rest of a path. That does no harm in a rule that protects',
		'`/admin*`, but a rule that admits, strips a prefix or proxies also gets the paths of its neighbors.',
		'Write `/api/*`, and also `/api` if that should match too.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { patterns, pointer } of pathPatternsIn(cx.walkedDocument)) {
			patterns.forEach((pattern, index) => {
				if (!/^\/(?:[^*?[\]{}%]*[A-Za-z0-9])\*$/.test(pattern)) return;
				// If the last segment has a dot, the pattern is probably meant for several extensions.
				const prefix = pattern.slice(0, -1);
				if (prefix.slice(prefix.lastIndexOf('/')).includes('.')) return;
				const span = cx.span(`${pointer}/${index}`, pattern);
				const patternSpan = span && span.source.text.slice(span.start, span.end) === pattern ? span : undefined;
				const replacement = patterns.includes(prefix) ? `${prefix}/*` : `${prefix} ${prefix}/*`;
				const isListed = patternSpan && /(?:^|\s)path(?:\s[^\n]*)?\s$/.test(lineBefore(patternSpan));
				cx.reportAt(`${pointer}/${index}`, `\`${pattern}\` also matches \`${prefix}x\`.`, {
					words: pattern,
					label: `did you mean \`${prefix}/*\`?`,
					...(patternSpan && isListed
						? { fix: { safety: 'unsafe', edits: [{ span: patternSpan, text: replacement }] } as const }
						: {}),
				});
			});
		}
	},
};

function lineBefore({ source, start }: { source: { text: string }; start: number }): string {
	return source.text.slice(source.text.lastIndexOf('\n', start - 1) + 1, start);
}
