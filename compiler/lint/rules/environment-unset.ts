/** `environment/unset`. */
import { scanComments } from '../../syntax/scan-comments.ts';
import type { LintRule } from '../lint-rule.ts';

/** `{$NAME}` has neither a value nor a default, and vanishes. */
export const environmentUnset: LintRule = {
	name: 'environment/unset',
	severity: 'warning',
	summary: '`{$NAME}` has neither a value nor a default, and vanishes.',
	documentation: [
		'It is replaced by nothing before the text is read: an argument is missing, or the next one takes its place. Set the',
		'variable, or write a default: `{$NAME:default}`, `{$NAME:}` for an empty one.',
	].join('\n'),
	check: cx => {
		if (!cx.dialect) return;
		for (const source of cx.subject.sources) {
			if (!source.text.includes('{$')) continue;
			const comments = scanComments(source.text, cx.dialect);
			for (const { 0: whole, 1: name, index } of source.text.matchAll(/\{\$([^{}:\s]+)\}/g)) {
				if (cx.reader.env(name!) !== undefined) continue;
				if (comments.some(({ start, end }) => start <= index && index < end)) continue;
				const span = { source, start: index, end: index + whole.length };
				cx.report(span, `The variable \`${name}\` is not set.`, {
					hint: `Set it, or write a default: \`{$${name}:…}\`.`,
				});
			}
		}
	},
};
