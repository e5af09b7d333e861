/** The lint rule `environment/unset`. */
import { escapePointer } from '../../schema/validate.ts';
import { scanComments } from '../../syntax/scan-comments.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports environment variables that are not set: `{$NAME}` without a default vanishes, and `{env.NAME}` becomes empty. */
export const environmentUnset: LintRule = {
	name: 'environment/unset',
	severity: 'warning',
	summary: 'An environment variable is not set: `{$NAME}` without a default vanishes, and `{env.NAME}` is empty.',
	documentation: [
		'`{$NAME}` is replaced before the text is parsed, so an unset variable leaves an argument missing, or the next one takes its place. Set the',
		'variable, or write a default: `{$NAME:default}`, or `{$NAME:}` for an empty one. `{env.NAME}` is replaced when the',
		`configuration is loaded, and has no default. The server's environment is the one that counts: check with the variable set.`,
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

/** Reports `{env.NAME}` in the document's strings, each name once per object. */
function checkPlaceholders(cx: LintContext): void {
	const visit = (value: unknown, pointer: string, holder: string, reported: Set<string>): void => {
		if (typeof value === 'string') {
			for (const [whole, name] of value.matchAll(/(?<!\\)\{env\.([^{}\s]+)\}/g)) {
				if (reported.has(name!) || cx.reader.env(name!) !== undefined) continue;
				reported.add(name!);
				cx.at(cx.dialect ? holder : pointer, `The variable \`${name}\` is not set.`, {
					words: whole,
					hint: `Set it; until then \`${whole}\` is empty.`,
				});
			}
		} else if (Array.isArray(value)) {
			for (const [index, item] of value.entries()) visit(item, `${pointer}/${index}`, holder, reported);
		} else if (typeof value === 'object' && value !== null) {
			// Places in the source are known for objects, not for their values.
			const own = cx.subject.locate(pointer) ? pointer : holder;
			const seen = own === holder ? reported : new Set<string>();
			for (const [key, item] of Object.entries(value)) visit(item, `${pointer}/${escapePointer(key)}`, own, seen);
		}
	};
	// Most configurations contain none, and finding the places of all objects is slow.
	if (JSON.stringify(cx.document).includes('{env.')) visit(cx.document, '', '', new Set());
}
