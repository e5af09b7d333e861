/** Whether a name may have a certificate on demand: what the option `on_demand_tls` names is asked. */
import type { AutomationPolicy } from '../../compiler/tls/certificate-plan.ts';

/** The option `on_demand_tls`. */
export interface PermissionSettings {
	/** URL of the endpoint, which gets `?domain=NAME` and allows with a status of 200 to 299. */
	readonly ask?: string;
	readonly permission?: { readonly module?: string; readonly endpoint?: string };
}

/** The answer. */
export interface Permission {
	readonly allowed: boolean;
	/** Why not; for the log. */
	readonly cause: string;
	/** True when the endpoint could not be asked. */
	readonly failed: boolean;
}

/** Milliseconds that the endpoint may take. */
const ASK_LIMIT = 10_000;

/** Asks. Never rejects. */
export async function askPermission(
	settings: PermissionSettings,
	policy: AutomationPolicy,
	name: string,
): Promise<Permission> {
	const endpoint = settings.ask ?? settings.permission?.endpoint;
	if (endpoint === undefined) {
		// Without an endpoint only names that the configuration spells out may be obtained on demand, or internal ones.
		const listed = policy.subjects.includes(name);
		const internal = policy.issuers.every(({ issuer }) => issuer === 'internal');
		return { allowed: listed || internal, cause: 'no permission endpoint is configured', failed: false };
	}
	try {
		const url = new URL(endpoint);
		url.searchParams.set('domain', name);
		const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(ASK_LIMIT) });
		await response.body?.cancel();
		const { status } = response;
		return { allowed: status >= 200 && status <= 299, cause: `the endpoint answered ${status}`, failed: false };
	} catch (error) {
		// The address may hold credentials; only what went wrong is told.
		const { cause, name: kind } = error as Error & { cause?: { code?: string } };
		return {
			allowed: false,
			cause: `the endpoint cannot be asked: ${cause?.code ?? (kind === 'TimeoutError' ? 'it took too long' : kind)}`,
			failed: true,
		};
	}
}
