/** `secret/in-file`. */
import { findSecrets, pointerOf, type Secret } from '../../document/secrets.ts';
import { valueAt } from '../../document/validate.ts';
import type { LintContext } from '../lint-context.ts';
import type { LintRule } from '../lint-rule.ts';

/** Marks of what is a pattern more often than a whole secret, or as often no secret at all. */
const UNSURE: ReadonlySet<unknown> = new Set(['by-field', 'by-source', 'by-destination', 'by-key', 'argument']);

/** A secret is written in the file instead of taken from the environment. */
export const secretInFile: LintRule = {
	name: 'secret/in-file',
	severity: 'warning',
	summary: 'A secret is written in the file instead of taken from the environment.',
	documentation: [
		'What stands in a configuration is copied with it: into repositories, back-ups and tickets. Write `{$NAME}`, or',
		'`{env.NAME}` where placeholders are filled in. Hashes of passwords are made to be stored, and are not reported.',
	].join('\n'),
	ofConfigfile: true,
	check: cx => {
		for (const secret of findSecrets(cx.document)) {
			const { path, parts, mark } = secret;
			const pointer = pointerOf(path);
			// Compiling tells of the token itself.
			if (path.at(-1) === 'hash' || (pointer === '/settings/admin/token' && cx.dialect)) continue;
			if (UNSURE.has(mark)) continue;
			const text = String(valueAt(cx.document, pointer));
			for (const { start, end } of parts) judge(text.slice(start, end), end - start < text.length, secret, cx);
		}
	},
};

function judge(value: string, isPart: boolean, { path, mark }: Secret, cx: LintContext): void {
	const pointer = pointerOf(path);
	if (value.includes('{')) return;
	if (cx.dialect && !cx.subject.sources.some(({ text }) => text.includes(value))) return;
	const listed = Array.isArray(valueAt(cx.document, pointerOf(path.slice(0, -1))));
	// What a matcher looks for within a value is no whole secret.
	if (listed && value.includes('*')) return;
	const own = listed ? path.slice(0, -1) : path;
	const holder = valueAt(cx.document, pointerOf(own.slice(0, -1))) as { name?: unknown };
	// A cookie that is the same for everybody is no secret.
	if (String(holder?.name).toLowerCase() === 'set-cookie' && !isPart) return;
	const isField = (listed || own.at(-1) === 'value') && typeof holder?.name === 'string';
	const what =
		mark === 'expression'
			? 'What a credential is compared with'
			: isPart
				? `A part of \`${own.at(-1)}\``
				: `The value of ${isField ? `the field \`${holder.name}\`` : `\`${own.at(-1)}\``}`;
	cx.at(pointer, `${what} is a secret and stands in the file.`, {
		words: value,
		hint: cx.dialect
			? 'Take it from the environment: `{$NAME}`.'
			: 'Use `{env.NAME}` where placeholders are filled in.',
	});
}
