/**
 * The lint rule `placeholder/unknown`, which reports placeholders that this server does not know. They become empty or stay as
 * written.
 */

import { suggestName } from '../../diagnostics/suggest.ts';
import { mappedPlaceholderNames } from '../../lower/context/mapped-placeholders.ts';
import { knownPlaceholders } from '../../lower/known-placeholders.ts';
import { registryOf } from '../../lower/registry.ts';
import { namesLogFields } from '../../modules/providers/log-formats/log-text.ts';
import { linesOf } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const placeholderUnknown: LintRule = {
	name: 'placeholder/unknown',
	severity: 'warning',
	summary: 'A placeholder is unknown to this server: it becomes empty or is left as written.',
	documentation: [
		'A Configfile rejects unknown placeholders. A Compatfile allows them, because other modules may define more, but most are misspelled.',
		'Write `\\{` for a literal brace.',
	].join('\n'),
	check: cx => {
		if (cx.dialect !== 'compatfile' || !cx.tree) return;
		const directives = registryOf(cx.dialect).directives;
		const mappedNames = mappedPlaceholderNames(directives, () => [...cx.tree!.sites, ...cx.tree!.namedRoutes])();
		for (const { line } of linesOf(cx.tree)) {
			if (namesLogFields(line.words)) continue;
			const module = directives.get(line.words[0]!.text);
			const ownPlaceholders = (module?.kind === 'handler' && module.ownPlaceholders) || [];
			for (const word of line.words) {
				if (!word.text.includes('{') || word.quote === 'heredoc') continue;
				for (const { name, nearest } of knownPlaceholders.findUnknown(word.text)) {
					// `${name}` refers to a group of a regular expression.
					if (word.text.includes(`$\{${name}}`)) continue;
					// This directive itself defines the placeholder.
					if (ownPlaceholders.includes(name)) continue;
					if (mappedNames.has(name) || /^(?:\$|args|block)/.test(name)) continue;
					const offset = word.span.source.text.indexOf(`{${name}}`, word.span.start);
					const isLiteral = offset !== -1 && offset < word.span.end;
					const span = isLiteral
						? { source: word.span.source, start: offset, end: offset + name.length + 2 }
						: word.span;
					const { label, fix } = suggestName({ text: `{${name}}`, span }, nearest && `{${nearest}}`);
					cx.report(span, `\`{${name}}\` is not a placeholder.`, {
						label,
						fix: nearest?.includes('*') ? undefined : fix,
					});
				}
			}
		}
	},
};
