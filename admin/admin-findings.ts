/** Preflight check of the Admin API's address: finds what would keep it from listening, without listening. */
import type { Plan } from '../compiler/codegen/plan/plan.ts';
import { unixSocketErrorCode } from '../runtime/listeners/listener-sockets.ts';
import type { PreflightFinding } from '../runtime/preflight/finding.ts';
import { hostBindError } from '../runtime/preflight/listener-findings.ts';
import { DEFAULT_ADMIN_LISTEN, isWildcard, parseAdminAddress } from './listen-address.ts';

/** Returns a finding if binding the Admin API's address would or might fail at a start. */
export function adminFindings({ document, listeners }: Plan): PreflightFinding[] {
	const { admin } = document.settings ?? {};
	if (!admin || admin.off === true) return [];
	const addressText = admin.listen ?? DEFAULT_ADMIN_LISTEN;
	const address = parseAdminAddress(addressText);
	const pointer = admin.listen === undefined ? '/settings/admin' : '/settings/admin/listen';
	const bindFindings = (reason: string, severity: PreflightFinding['severity'] = 'error'): PreflightFinding[] => [
		{ code: 'admin/listen', severity, pointer, message: `failed to bind admin API on ${addressText}: ${reason}.` },
	];
	if (!address || address.kind === 'fd') return [];
	if (address.kind === 'unix') {
		const problem = unixSocketErrorCode(address.path);
		return problem === undefined ? [] : bindFindings(problem);
	}
	const { host, port } = address;
	const isTaken = listeners.some(
		listener =>
			port !== 0 &&
			listener.port === port &&
			!listener.host.includes('/') &&
			(listener.host === host || isWildcard(host) || isWildcard(listener.host)),
	);
	if (isTaken) return bindFindings('a site listens there');
	return hostBindError(host) === undefined
		? []
		: bindFindings('no network interface of this machine has the address', 'warning');
}
