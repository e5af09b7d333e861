/** `header/cors-for-everyone`. */
import { editsOf, type FieldEdit } from '../header-fields.ts';
import type { LintRule } from '../lint-rule.ts';

/** Every origin may read responses with the credentials of the user. */
export const corsForEveryone: LintRule = {
	name: 'header/cors-for-everyone',
	severity: 'warning',
	summary: 'Every origin may read responses with the credentials of the user.',
	documentation: [
		'`Access-Control-Allow-Credentials: true` beside `Access-Control-Allow-Origin: *` is refused by browsers (Fetch,',
		'CORS protocol). With `{header.Origin}` in place of `*` it is not, and then every page on the web can read what the',
		'user can. Name the origins that may.',
	].join('\n'),
	check: cx => {
		const credentials: FieldEdit[] = [];
		const origins: FieldEdit[] = [];
		for (const edit of editsOf(cx.walked)) {
			const name = edit.name.toLowerCase();
			if (name === 'access-control-allow-credentials' && edit.value.toLowerCase() === 'true') credentials.push(edit);
			if (name === 'access-control-allow-origin' && /^(?:\*|\{http\.request\.header\.origin\})$/i.test(edit.value)) {
				// Behind a matcher on the origin it is a list of those that may.
				if (
					edit.value === '*' ||
					!JSON.stringify(edit.of.step.when ?? '')
						.toLowerCase()
						.includes('origin')
				)
					origins.push(edit);
			}
		}
		for (const edit of origins) {
			const other = credentials.find(({ of }) => of.pipeline.site === edit.of.pipeline.site);
			if (!other) continue;
			const message =
				edit.value === '*'
					? 'Browsers refuse `*` together with credentials.'
					: 'Every origin gets the credentials of the user.';
			cx.at(edit.pointer, message, {
				words: edit.name,
				related: cx.related(other.pointer, 'credentials are allowed here'),
				hint: 'Name the origins that may, by a matcher on `header Origin`.',
			});
		}
	},
};
