/**
 * The lint rule `admin/open`, which reports an Admin API that has no token although it listens on an address that other machines
 * can reach.
 */
import type { LintRule } from '../inspection/lint-rule.ts';
import { isLoopback } from '../inspection/public-host.ts';

export const adminApiOpen: LintRule = {
	name: 'admin/open',
	severity: 'warning',
	summary: 'The Admin API listens on an address that others can reach, without a token.',
	documentation: [
		'Without a token, only clients with a loopback address are admitted. Another listen address is therefore of no use, and a',
		'forwarding proxy or a container network may give everybody access. Give a token, or listen on a loopback address.',
	].join('\n'),
	check: cx => {
		const admin = cx.document.settings?.admin;
		if (!admin || admin.off === true || admin.token !== undefined || admin.listen === undefined) return;
		const { listen } = admin;
		if (listen.startsWith('unix/') || listen.startsWith('fd/')) return;
		const host = listen.slice(0, listen.lastIndexOf(':'));
		if (host !== '' && isLoopback(host)) return;
		cx.reportAt('/settings/admin', `The Admin API listens on \`${listen}\` without a token.`, {
			words: listen,
			hint: `Write \`admin ${listen} {$ADMIN_TOKEN}\`, or \`admin 127.0.0.1:2019\`.`,
		});
	},
};
