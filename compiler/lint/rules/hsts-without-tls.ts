/** The lint rule `header/hsts-without-tls`, which reports `Strict-Transport-Security` on plain HTTP, where it has no effect. */
import { fieldEditsOf } from '../inspection/header-fields.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const hstsWithoutTls: LintRule = {
	name: 'header/hsts-without-tls',
	severity: 'warning',
	summary: '`Strict-Transport-Security` is sent over plain HTTP, where it has no effect.',
	documentation: [
		'Browsers ignore the field unless it comes over HTTPS (RFC 6797 §8.1). Serve the site over TLS, or leave the field to',
		'the server in front that terminates TLS.',
	].join('\n'),
	dependsOn: 'served site',
	check: cx => {
		for (const { name, pointer, walkedStep, editedMessage, isRemoval } of fieldEditsOf(cx.walkedDocument)) {
			const { site } = walkedStep.pipeline;
			if (isRemoval || editedMessage === 'request' || editedMessage === 'upstream_request' || site === undefined)
				continue;
			if (name.toLowerCase() !== 'strict-transport-security') continue;
			const listeners = cx.plan.listeners.filter(({ sites }) => sites.some(entry => entry.site === site));
			if (listeners.length === 0 || listeners.some(({ scheme }) => scheme === 'https')) continue;
			cx.reportAt(pointer, 'This site is served over plain HTTP, where browsers ignore this field.', { words: name });
		}
	},
};
