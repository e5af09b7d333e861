/** Determines from a host name whether the host can be reached from the Internet. */
import { parseIp } from '../../exchange/ip-address.ts';

/** Matches names in domains that are never delegated (RFC 2606, RFC 6761, RFC 6762, RFC 8375, and `.internal`). */
const PRIVATE_NAME = /(?:^|\.)(?:localhost|local|internal|test|example|invalid|home\.arpa|lan|localdomain)$/;

/**
 * Reports whether a public authority could issue a certificate for a name. Addresses and names of local networks are excluded. `*`
 * labels are allowed.
 */
export function isPublicName(host: string): boolean {
	if (!host.includes('.') || host.includes('{') || parseIp(host)) return false;
	return !PRIVATE_NAME.test(host);
}

/** Reports whether a host can be reached only from this machine. */
export function isLoopback(host: string): boolean {
	const hostWithoutBrackets = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
	return (
		hostWithoutBrackets === 'localhost' ||
		hostWithoutBrackets.endsWith('.localhost') ||
		hostWithoutBrackets === '::1' ||
		/^127\./.test(hostWithoutBrackets)
	);
}
