/**
 * Checks whether a configuration that compiles would start on this machine. It goes through the steps of a start, except that
 * it opens no sockets and writes nothing. Problems that depend on the network, on ports in use, or on the user that the server
 * runs as are left to the start or reported as warnings.
 */

import { http3Pointers } from '../../compiler/codegen/plan/http3-pointers.ts';
import type { Plan } from '../../compiler/codegen/plan/plan.ts';
import { usesFallibleLeases } from './fallible-leases.ts';
import type { PreflightFinding, TargetMachine } from './finding.ts';

/** Returns what a start would reject or warn about. Loads each check's code only if there is something to check. */
export async function preflight(plan: Plan, machine: TargetMachine): Promise<readonly PreflightFinding[]> {
	const { settings = {}, sites = [] } = plan.document;
	const findings: PreflightFinding[] = [];
	if (settings.logs !== undefined || sites.some(({ logs }) => logs !== undefined)) {
		const { logFindings } = await import('./log-findings.ts');
		findings.push(...logFindings(plan.document, machine));
	}
	if (plan.listeners.some(({ host }) => host !== '')) {
		const { listenerFindings } = await import('./listener-findings.ts');
		findings.push(...listenerFindings(plan, machine));
	}
	if (http3Pointers(plan.document).length > 0) {
		const { http3Findings } = await import('./http3-findings.ts');
		findings.push(...http3Findings(plan.document));
	}
	if ((plan.certificates?.managed.policies.length ?? 0) > 0 || sites.some(({ tls }) => tls?.client_auth)) {
		const { certificateFindings } = await import('./certificate-findings.ts');
		findings.push(...(await certificateFindings(plan, machine)));
	}
	// The code that opens leases is loaded only if needed, because loading it takes longer than all other checks of a small
	// configuration.
	if (usesFallibleLeases(plan, machine)) {
		const { buildFindings } = await import('./build-findings.ts');
		findings.push(...(await buildFindings(plan, machine)));
	}
	return findings;
}
