/** Which hosts the public can reach, as far as a name tells. */
import { parseIp } from '../exchange/ip-address.ts';

/** Names that are never delegated (RFC 2606, RFC 6761, RFC 6762, RFC 8375, and `.internal`). */
const PRIVATE_NAME = /(?:^|\.)(?:localhost|local|internal|test|example|invalid|home\.arpa|lan|localdomain)$/;

/** True for a name that a public certificate could be had for: no address, no name of a local network. `*` labels count. */
export function isPublicName(host: string): boolean {
	if (!host.includes('.') || host.includes('{') || parseIp(host)) return false;
	return !PRIVATE_NAME.test(host);
}

/** True for a host that only this machine reaches. */
export function isLoopback(host: string): boolean {
	const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
	return bare === 'localhost' || bare.endsWith('.localhost') || bare === '::1' || /^127\./.test(bare);
}
