/** The lint rule `header/cookie-without-flags`. */
import { fieldEditsOf } from '../inspection/header-fields.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports a cookie that is set without `HttpOnly` or `SameSite`. */
export const cookieWithoutFlags: LintRule = {
	name: 'header/cookie-without-flags',
	severity: 'note',
	summary: 'A cookie is set without `HttpOnly` or `SameSite`.',
	documentation: [
		'Scripts can read a cookie without `HttpOnly`, and other sites can send it along without `SameSite` (RFC 6265bis).',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { name, value, pointer, editedMessage, isRemoval } of fieldEditsOf(cx.walkedDocument)) {
			if (
				isRemoval ||
				(editedMessage !== 'response' && editedMessage !== 'upstream_response') ||
				name.toLowerCase() !== 'set-cookie'
			)
				continue;
			const missingFlags = ['HttpOnly', 'SameSite'].filter(flag => !value.toLowerCase().includes(flag.toLowerCase()));
			if (missingFlags.length === 0 || /max-age=0/i.test(value)) continue;
			cx.reportAt(pointer, `This cookie has no ${missingFlags.map(flag => `\`${flag}\``).join(' and no ')}.`, {
				words: name,
			});
		}
	},
};
