/** The lint rule `environment/unset`, which reports environment variables that are not set. */
import { escapePointer } from '../../document/json-pointer.ts';
import { scanComments } from '../../syntax/scan-comments.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const environmentUnset: LintRule = {
	name: 'environment/unset',
	severity: 'warning',
	summary: 'An environment variable is not set: `{$NAME}` without a default vanishes, and `{env.NAME}` is empty.',
	documentation: [
		'`{$NAME}` is replaced before the text is parsed, so an unset variable leaves an argument missing, or the next one takes its place. Set the',
		'variable, or write a default: `{$NAME:default}`, or `{$NAME:}` for an empty one. `{env.NAME}` is replaced when the',
		`configuration is loaded, and has no default. The server's environment is the one that counts: check with the variable set.`,
	].join('\n'),
	alwaysChecked: true,
	check: cx => {
		checkPlaceholders(cx);
		if (!cx.dialect) return;
		for (const source of cx.subject.sources) {
			if (!source.text.includes('{$')) continue;
			const comments = scanComments(source.text, cx.dialect);
			for (const { 0: reference, 1: name, index } of source.text.matchAll(/\{\$([^{}:\s]+)\}/g)) {
				if (cx.reader.env(name!) !== undefined) continue;
				if (comments.some(({ start, end }) => start <= index && index < end)) continue;
				const span = { source, start: index, end: index + reference.length };
				cx.report(span, `The variable \`${name}\` is not set.`, {
					hint: `Set it, or write a default: \`{$${name}:…}\`.`,
				});
			}
		}
	},
};

/** Reports unset variables in `{env.NAME}` placeholders of the document, each name once per object. */
function checkPlaceholders(cx: LintContext): void {
	const visit = (value: unknown, pointer: string, objectPointer: string, reportedNames: Set<string>): void => {
		if (typeof value === 'string') {
			for (const [reference, name] of value.matchAll(/(?<!\\)\{env\.([^{}\s]+)\}/g)) {
				if (reportedNames.has(name!) || cx.reader.env(name!) !== undefined) continue;
				reportedNames.add(name!);
				cx.reportAt(cx.dialect ? objectPointer : pointer, `The variable \`${name}\` is not set.`, {
					words: reference,
					hint: `Set it; until then \`${reference}\` is empty.`,
				});
			}
		} else if (Array.isArray(value)) {
			for (const [index, item] of value.entries()) visit(item, `${pointer}/${index}`, objectPointer, reportedNames);
		} else if (typeof value === 'object' && value !== null) {
			// The place in the source is known only for objects, not for the values in them.
			const innerObject = cx.subject.locate(pointer) ? pointer : objectPointer;
			const innerReported = innerObject === objectPointer ? reportedNames : new Set<string>();
			for (const [key, item] of Object.entries(value))
				visit(item, `${pointer}/${escapePointer(key)}`, innerObject, innerReported);
		}
	};
	// Most configurations contain no `{env.NAME}` placeholder, and finding the places of all objects is slow.
	const { sites = [], ...outside } = cx.document;
	if (mentionsEnvironment(outside) || sites.some(mentionsEnvironment)) visit(cx.document, '', '', new Set());
}

const mentionsByPart = new WeakMap<object, boolean>();

/** Reports whether a part of a document may contain an `{env.NAME}` placeholder. */
function mentionsEnvironment(part: object): boolean {
	let isMentioned = mentionsByPart.get(part);
	if (isMentioned === undefined) {
		isMentioned = JSON.stringify(part).includes('{env.');
		mentionsByPart.set(part, isMentioned);
	}
	return isMentioned;
}
