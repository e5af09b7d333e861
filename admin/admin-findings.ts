/** Preflight check of the Admin API's address: what would keep it from listening, found without listening. */
import type { Plan } from '../compiler/codegen/plan/plan.ts';
import { unixSocketProblem } from '../runtime/listeners/listener-sockets.ts';
import type { PreflightFinding } from '../runtime/preflight/finding.ts';
import { hostBindError } from '../runtime/preflight/listener-findings.ts';
import { DEFAULT_ADMIN_LISTEN, isWildcard, parseAdminAddress } from './listen-address.ts';

/** Returns what would, or might, make a start fail. */
export function adminFindings({ document, listeners }: Plan): PreflightFinding[] {
	const { admin } = document.settings ?? {};
	if (!admin || admin.off === true) return [];
	const text = admin.listen ?? DEFAULT_ADMIN_LISTEN;
	const address = parseAdminAddress(text);
	const pointer = admin.listen === undefined ? '/settings/admin' : '/settings/admin/listen';
	const failed = (reason: string, severity: PreflightFinding['severity'] = 'error'): PreflightFinding[] => [
		{ code: 'admin/listen', severity, pointer, message: `failed to bind admin API on ${text}: ${reason}.` },
	];
	if (!address || address.kind === 'fd') return [];
	if (address.kind === 'unix') {
		const problem = unixSocketProblem(address.path);
		return problem === undefined ? [] : failed(problem);
	}
	const { host, port } = address;
	const taken = listeners.some(
		listener =>
			port !== 0 &&
			listener.port === port &&
			!listener.host.includes('/') &&
			(listener.host === host || isWildcard(host) || isWildcard(listener.host)),
	);
	if (taken) return failed('a site listens there');
	return hostBindError(host) === undefined
		? []
		: failed('no network interface of this machine has the address', 'warning');
}
