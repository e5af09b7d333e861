/** `environment/unset`. */
import { escapePointer } from '../../document/validate.ts';
import { scanComments } from '../../syntax/scan-comments.ts';
import type { LintContext } from '../lint-context.ts';
import type { LintRule } from '../lint-rule.ts';

/** A variable of the environment is not set: `{$NAME}` without a default vanishes, `{env.NAME}` stands for nothing. */
export const environmentUnset: LintRule = {
	name: 'environment/unset',
	severity: 'warning',
	summary: 'A variable is not set: `{$NAME}` without a default vanishes, `{env.NAME}` stands for nothing.',
	documentation: [
		'`{$NAME}` is replaced before the text is read: an argument is missing, or the next one takes its place. Set the',
		'variable, or write a default: `{$NAME:default}`, `{$NAME:}` for an empty one. `{env.NAME}` is replaced when the',
		'configuration is loaded, and has no default. The environment that counts is that of the server: check with it set.',
	].join('\n'),
	always: true,
	check: cx => {
		checkPlaceholders(cx);
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

/** Reports `{env.NAME}` in the texts of the document, each once for its object. */
function checkPlaceholders(cx: LintContext): void {
	const visit = (value: unknown, pointer: string, holder: string, told: Set<string>): void => {
		if (typeof value === 'string') {
			for (const [whole, name] of value.matchAll(/(?<!\\)\{env\.([^{}\s]+)\}/g)) {
				if (told.has(name!) || cx.reader.env(name!) !== undefined) continue;
				told.add(name!);
				cx.at(cx.dialect ? holder : pointer, `The variable \`${name}\` is not set.`, {
					words: whole,
					hint: `Set it: \`${whole}\` stands for nothing.`,
				});
			}
		} else if (Array.isArray(value)) {
			for (const [index, item] of value.entries()) visit(item, `${pointer}/${index}`, holder, told);
		} else if (typeof value === 'object' && value !== null) {
			// A place in a text is known for objects, not for their values.
			const own = cx.subject.locate(pointer) ? pointer : holder;
			const seen = own === holder ? told : new Set<string>();
			for (const [key, item] of Object.entries(value)) visit(item, `${pointer}/${escapePointer(key)}`, own, seen);
		}
	};
	visit(cx.document, '', '', new Set());
}
