/** `secret/in-file`. */
import { findSecrets } from '../../document/secrets.ts';
import { escapePointer, valueAt } from '../../document/validate.ts';
import type { LintRule } from '../lint-rule.ts';

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
		for (const path of findSecrets(cx.document)) {
			const pointer = pointerOf(path);
			// Compiling tells of the token itself.
			if (path.at(-1) === 'hash' || (pointer === '/settings/admin/token' && cx.dialect)) continue;
			const value = String(valueAt(cx.document, pointer));
			if (value.includes('{')) continue;
			if (cx.dialect && !cx.subject.sources.some(({ text }) => text.includes(value))) continue;
			const listed = Array.isArray(valueAt(cx.document, pointerOf(path.slice(0, -1))));
			// What a matcher looks for within a value is no whole secret.
			if (listed && value.includes('*')) continue;
			const own = listed ? path.slice(0, -1) : path;
			const holder = valueAt(cx.document, pointerOf(own.slice(0, -1))) as { name?: unknown };
			// A cookie that is the same for everybody is no secret.
			if (String(holder?.name).toLowerCase() === 'set-cookie') continue;
			const isField = (listed || own.at(-1) === 'value') && typeof holder?.name === 'string';
			const what = isField ? `the field \`${holder.name}\`` : `\`${own.at(-1)}\``;
			cx.at(pointer, `The value of ${what} is a secret and stands in the file.`, {
				words: value,
				hint: cx.dialect
					? 'Take it from the environment: `{$NAME}`.'
					: 'Use `{env.NAME}` where placeholders are filled in.',
			});
		}
	},
};

function pointerOf(path: readonly string[]): string {
	return path.map(key => `/${escapePointer(key)}`).join('');
}
