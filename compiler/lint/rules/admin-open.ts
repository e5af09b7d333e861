/** The lint rule `admin/open`. */
import type { LintRule } from '../inspection/lint-rule.ts';
import { isLoopback } from '../inspection/public-host.ts';

/** Reports an Admin API that listens on an address which others can reach, without a token. */
export const adminApiOpen: LintRule = {
	name: 'admin/open',
	severity: 'warning',
	summary: 'The Admin API listens on an address that others can reach, without a token.',
	documentation: [
		'Without a token, only clients on this machine are admitted. The address is therefore of no use, and one forwarding proxy',
		'or container network is enough to hand the configuration to anybody. Give a token, or listen on loopback.',
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
