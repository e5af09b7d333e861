/** Preflight check of listen addresses, without binding them. */
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { ListenerSpec, Plan } from '../../compiler/codegen/plan/plan.ts';
import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import { parseListenHost } from '../../compiler/document/listen-host.ts';
import { unixSocketErrorCode } from '../listeners/listener-sockets.ts';
import { ListenError } from '../listeners/port-probe.ts';
import { type ExpandText, machineText } from '../logs/machine-text.ts';
import { hostFacts } from '../threads/host-facts.ts';
import type { PreflightFinding, TargetMachine } from './finding.ts';

/** Returns what would prevent listeners from being bound. Only a start can tell whether ports are free and names resolve. */
export function listenerFindings(
	{ listeners }: Plan,
	{ workingDirectory, environment }: TargetMachine,
): PreflightFinding[] {
	const expand = machineText(hostFacts(workingDirectory, environment));
	const findings: PreflightFinding[] = [];
	for (const listener of listeners) {
		const code = listener.host.includes('/') ? socketProblem(listener, expand) : hostBindError(listener.host);
		if (code === undefined) continue;
		const { message } = new ListenError(code, socketText(listener));
		const siteIndex = listener.sites.find(siteEntry => siteEntry.site >= 0)?.site;
		findings.push({
			code: 'listen',
			severity: WARNING_CODES.has(code) ? 'warning' : 'error',
			message,
			...(siteIndex === undefined ? {} : { pointer: `/sites/${siteIndex}/bind` }),
		});
	}
	return findings;
}

/** Error codes that are reported only as warnings, because the result may differ for another user or at another time. */
const WARNING_CODES: ReadonlySet<string> = new Set(['EACCES', 'EADDRNOTAVAIL']);

/** Returns the system's error code for binding a listener, or undefined if no problem is known. */
function socketProblem({ host }: ListenerSpec, expand: ExpandText): string | undefined {
	let isIncomplete = false;
	const parsed = parseListenHost(
		expand(host, () => {
			isIncomplete = true;
		}),
	);
	if (isIncomplete || !('network' in parsed)) return 'EINVAL';
	// Sockets that a service manager passes are not checked, because only the process that it starts knows them.
	return parsed.network === 'unix' ? unixSocketErrorCode(parsed.path) : undefined;
}

/** Returns `EADDRNOTAVAIL` if `host` is an address that this machine does not have. */
export function hostBindError(host: string): string | undefined {
	const withoutZone = host.replace(/%.*$/, '');
	if (
		isIP(withoutZone) === 0 ||
		withoutZone === '0.0.0.0' ||
		withoutZone === '::' ||
		withoutZone === '::1' ||
		withoutZone.startsWith('127.')
	) {
		return undefined;
	}
	const localAddresses = Object.values(networkInterfaces()).flatMap(addresses => addresses ?? []);
	return localAddresses.some(({ address }) => address === withoutZone) ? undefined : 'EADDRNOTAVAIL';
}
