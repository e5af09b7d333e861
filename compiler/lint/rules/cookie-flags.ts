/**
 * The lint rule `header/cookie-without-flags`, which reports a cookie that is set without `HttpOnly` or `SameSite`, unless other
 * lines certainly add them.
 */
import { finishedCookie } from '../inspection/finished-cookie.ts';
import { fieldEditsOf } from '../inspection/header-fields.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const cookieWithoutFlags: LintRule = {
	name: 'header/cookie-without-flags',
	severity: 'note',
	summary: 'A cookie is set without `HttpOnly` or `SameSite`.',
	documentation: [
		'Scripts can read a cookie without `HttpOnly`, and other sites can send it along without `SameSite` (RFC 6265bis).',
		'The line that sets the cookie may leave them to another one, such as `cookie { http_only; same_site lax }`, if that line',
		'applies to every response with the cookie.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const edit of fieldEditsOf(cx.walkedDocument)) {
			const { name, value, pointer, editedMessage, isRemoval } = edit;
			if (
				isRemoval ||
				(editedMessage !== 'response' && editedMessage !== 'upstream_response') ||
				name.toLowerCase() !== 'set-cookie'
			)
				continue;
			if (missingFlags(value).length === 0) continue;
			const finished = finishedCookie(edit, cx.document.routes ?? {});
			if (finished === undefined || /max-age=0/i.test(finished)) continue;
			// A flag that another line removes is not reported here, because removing it is deliberate.
			const missing = missingFlags(value).filter(flag => missingFlags(finished).includes(flag));
			if (missing.length === 0) continue;
			cx.reportAt(pointer, `This cookie has no ${missing.map(flag => `\`${flag}\``).join(' and no ')}.`, {
				words: name,
			});
		}
	},
};

function missingFlags(cookieField: string): string[] {
	return ['HttpOnly', 'SameSite'].filter(flag => !cookieField.toLowerCase().includes(flag.toLowerCase()));
}
