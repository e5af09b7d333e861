/**
 * The lint rule `secret/in-file`, which reports a secret that is written in the configuration file instead of being taken from
 * the environment.
 */

import { valueAt } from '../../document/json-pointer.ts';
import { findSecrets, jsonPointer, type Secret } from '../../schema/secrets.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** The `secret` marks of the schema for values that are often patterns or not secret at all. Such values are not reported. */
const UNRELIABLE_MARKS: ReadonlySet<unknown> = new Set([
	'by-field',
	'by-source',
	'by-destination',
	'by-key',
	'argument',
]);

export const secretInFile: LintRule = {
	name: 'secret/in-file',
	severity: 'warning',
	summary: 'A secret is written into the file instead of taken from the environment.',
	documentation: [
		'A configuration gets copied, and its secrets with it: into repositories, backups and tickets. Write `{$NAME}`, or',
		'`{env.NAME}` where placeholders are replaced. Password hashes are meant to be stored and are not reported.',
	].join('\n'),
	checkedForConfigfile: true,
	dependsOn: 'site',
	check: cx => {
		for (const secret of findSecrets(cx.scope.document)) {
			// Whether the secret is reported depends on the texts of all files.
			cx.requestReinspection();
			const { path, parts, schemaMark } = secret;
			const pointer = jsonPointer(path);
			// The compiler itself reports the token of the Admin API.
			if (path.at(-1) === 'hash' || (pointer === '/settings/admin/token' && cx.dialect)) continue;
			if (UNRELIABLE_MARKS.has(schemaMark)) continue;
			const text = String(valueAt(cx.document, pointer));
			for (const { start, end } of parts) reportSecret(text.slice(start, end), end - start < text.length, secret, cx);
		}
	},
};

function reportSecret(value: string, isPart: boolean, { path, schemaMark }: Secret, cx: LintContext): void {
	const pointer = jsonPointer(path);
	if (value.includes('{')) return;
	if (cx.dialect && !cx.subject.sources.some(({ text }) => text.includes(value))) return;
	const isListed = Array.isArray(valueAt(cx.document, jsonPointer(path.slice(0, -1))));
	// A listed value with `*` is a pattern of a matcher rather than a complete secret.
	if (isListed && value.includes('*')) return;
	const fieldPath = isListed ? path.slice(0, -1) : path;
	const parentObject = valueAt(cx.document, jsonPointer(fieldPath.slice(0, -1))) as { name?: unknown };
	// A cookie with a fixed value is the same for everybody, so it is not a secret.
	if (String(parentObject?.name).toLowerCase() === 'set-cookie' && !isPart) return;
	const isField = (isListed || fieldPath.at(-1) === 'value') && typeof parentObject?.name === 'string';
	const subject =
		schemaMark === 'expression'
			? 'The value a credential is compared with'
			: isPart
				? `Part of \`${fieldPath.at(-1)}\``
				: `The value of ${isField ? `the field \`${parentObject.name}\`` : `\`${fieldPath.at(-1)}\``}`;
	cx.reportAt(pointer, `${subject} is a secret and is written into the file.`, {
		words: value,
		hint: cx.dialect ? 'Take it from the environment: `{$NAME}`.' : 'Use `{env.NAME}` where placeholders are replaced.',
	});
}
