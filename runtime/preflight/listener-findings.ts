/** Preflight check of listen addresses, without binding them. */
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { ListenerSpec, Plan } from '../../compiler/codegen/plan/plan.ts';
import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import { parseListenHost } from '../../compiler/document/listen-host.ts';
import { unixSocketProblem } from '../listeners/listener-sockets.ts';
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
	const found: PreflightFinding[] = [];
	for (const listener of listeners) {
		const code = listener.host.includes('/') ? socketProblem(listener, expand) : hostBindError(listener.host);
		if (code === undefined) continue;
		const { message } = new ListenError(code, socketText(listener));
		const site = listener.sites.find(one => one.site >= 0)?.site;
		found.push({
			code: 'listen',
			severity: WARNINGS.has(code) ? 'warning' : 'error',
			message,
			...(site === undefined ? {} : { pointer: `/sites/${site}/bind` }),
		});
	}
	return found;
}

/** Error codes reported as warnings only, because the result may differ for another user or at another time. */
const WARNINGS: ReadonlySet<string> = new Set(['EACCES', 'EADDRNOTAVAIL']);

/** Returns the system's error code for binding a listener, or undefined if no problem is known. */
function socketProblem({ host }: ListenerSpec, expand: ExpandText): string | undefined {
	let incomplete = false;
	const parsed = parseListenHost(
		expand(host, () => {
			incomplete = true;
		}),
	);
	if (incomplete || !('network' in parsed)) return 'EINVAL';
	// Only the process that a service manager starts knows the sockets passed to it.
	return parsed.network === 'unix' ? unixSocketProblem(parsed.path) : undefined;
}

/** Returns `EADDRNOTAVAIL` if `host` is an address that this machine does not have. */
export function hostBindError(host: string): string | undefined {
	const plain = host.replace(/%.*$/, '');
	if (isIP(plain) === 0 || plain === '0.0.0.0' || plain === '::' || plain === '::1' || plain.startsWith('127.')) {
		return undefined;
	}
	const own = Object.values(networkInterfaces()).flatMap(addresses => addresses ?? []);
	return own.some(({ address }) => address === plain) ? undefined : 'EADDRNOTAVAIL';
}
