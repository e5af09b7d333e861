/** Permission to obtain certificates on demand, granted by the endpoint that the option `on_demand_tls` names. */
import type { AutomationPolicy } from '../../compiler/codegen/plan/certificate-plan.ts';

/** The settings of the option `on_demand_tls`. */
export interface PermissionSettings {
	/** URL of the endpoint. It receives `?domain=NAME` and permits the name with a status from 200 to 299. */
	readonly ask?: string;
	readonly permission?: { readonly module?: string; readonly endpoint?: string };
}

/** Whether a certificate may be obtained for a name, and if not, why. */
export interface PermissionDecision {
	readonly isAllowed: boolean;
	/** Why the name is not permitted, for the log. */
	readonly cause: string;
	/** True if the endpoint could not be reached. */
	readonly hasFailed: boolean;
}

/** Timeout of the request in milliseconds. */
const ASK_TIMEOUT_MS = 10_000;

/** Asks whether a certificate may be obtained for a name. Never rejects. */
export async function askPermission(
	settings: PermissionSettings,
	policy: AutomationPolicy,
	name: string,
): Promise<PermissionDecision> {
	const endpoint = settings.ask ?? settings.permission?.endpoint;
	if (endpoint === undefined) {
		// Without an endpoint, only explicitly configured names and names with certificates from internal CAs are permitted.
		const isListed = policy.subjects.includes(name);
		const isInternal = policy.issuers.every(({ issuer }) => issuer === 'internal');
		return { isAllowed: isListed || isInternal, cause: 'no permission endpoint is configured', hasFailed: false };
	}
	try {
		const url = new URL(endpoint);
		url.searchParams.set('domain', name);
		const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(ASK_TIMEOUT_MS) });
		await response.body?.cancel();
		const { status } = response;
		return {
			isAllowed: status >= 200 && status <= 299,
			cause: `the endpoint answered with status ${status}`,
			hasFailed: false,
		};
	} catch (error) {
		// The error's message may contain the URL with credentials, so only the kind of the error is logged.
		const { cause, name: errorName } = error as Error & { cause?: { code?: string } };
		return {
			isAllowed: false,
			cause: `the endpoint cannot be reached: ${cause?.code ?? (errorName === 'TimeoutError' ? 'the request timed out' : errorName)}`,
			hasFailed: true,
		};
	}
}
