/**
 * The lint rule `header/cors-for-everyone`, which reports header fields that let every origin read responses with the user's
 * credentials (CORS).
 */
import { type FieldEdit, fieldEditsOf } from '../inspection/header-fields.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const corsForEveryone: LintRule = {
	name: 'header/cors-for-everyone',
	severity: 'warning',
	summary: `Every origin may read responses with the user's credentials.`,
	documentation: [
		'Browsers refuse `Access-Control-Allow-Credentials: true` together with `Access-Control-Allow-Origin: *` (Fetch,',
		'CORS protocol). With `{header.Origin}` in place of `*` they accept it, and then every page on the web can read what the',
		'user can. Name the origins that may.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		const credentialEdits: FieldEdit[] = [];
		const originEdits: FieldEdit[] = [];
		for (const edit of fieldEditsOf(cx.walkedDocument)) {
			const name = edit.name.toLowerCase();
			if (name === 'access-control-allow-credentials' && edit.value.toLowerCase() === 'true')
				credentialEdits.push(edit);
			if (name === 'access-control-allow-origin' && /^(?:\*|\{http\.request\.header\.origin\})$/i.test(edit.value)) {
				// A matcher on the origin restricts the field to an allowlist.
				if (
					edit.value === '*' ||
					!JSON.stringify(edit.walkedStep.step.when ?? '')
						.toLowerCase()
						.includes('origin')
				)
					originEdits.push(edit);
			}
		}
		for (const edit of originEdits) {
			const credentialEdit = credentialEdits.find(
				({ walkedStep }) => walkedStep.pipeline.site === edit.walkedStep.pipeline.site,
			);
			if (!credentialEdit) continue;
			const message =
				edit.value === '*'
					? 'Browsers refuse `*` together with credentials.'
					: `Every origin is allowed to use the user's credentials.`;
			cx.reportAt(edit.pointer, message, {
				words: edit.name,
				related: cx.relatedEntry(credentialEdit.pointer, 'credentials are allowed here'),
				hint: 'Name the allowed origins with a matcher on `header Origin`.',
			});
		}
	},
};
