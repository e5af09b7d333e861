/** Parses the address of the option `admin`. */

export type AdminAddress =
	| AdminEndpointAddress
	/** An inherited socket. Whether it is a TCP or a Unix socket is known only once it is used. */
	| { readonly kind: 'fd'; readonly descriptor: number; readonly text: string };

/** The address on which the Admin API listens. */
export type AdminEndpointAddress =
	| { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly text: string }
	| { readonly kind: 'unix'; readonly path: string; readonly mode: number; readonly text: string };

export const DEFAULT_ADMIN_LISTEN = '127.0.0.1:2019';

/** Default permissions of a socket file: access for its owner only. */
const DEFAULT_SOCKET_MODE = 0o600;

/**
 * Parses `host:port`, `:port` (every interface), `[v6]:port`, `unix//path`, with an optional `|0660` for the permissions
 * of the socket, and `fd/3`; `localhost` is 127.0.0.1. Returns undefined for anything else.
 */
export function parseAdminAddress(addressText: string): AdminAddress | undefined {
	const unixMatch = /^unix\/(\/[^|]+)(?:\|(0?[0-7]{3}))?$/.exec(addressText);
	if (unixMatch) {
		const mode = unixMatch[2] === undefined ? DEFAULT_SOCKET_MODE : Number.parseInt(unixMatch[2], 8);
		return { kind: 'unix', path: unixMatch[1]!, mode, text: addressText };
	}
	const fdMatch = /^fd\/(\d{1,7})$/.exec(addressText);
	if (fdMatch) return { kind: 'fd', descriptor: Number(fdMatch[1]), text: addressText };
	const tcpMatch = /^(?:tcp\/)?(?:\[([0-9a-fA-F:.%]+)\]|([^\s:/[\]]*)):(\d{1,5})$/.exec(addressText);
	if (!tcpMatch) return undefined;
	const port = Number(tcpMatch[3]);
	if (port > 65_535) return undefined;
	const host = (tcpMatch[1] ?? tcpMatch[2]!).toLowerCase();
	return { kind: 'tcp', host: host === 'localhost' ? '127.0.0.1' : host, port, text: addressText };
}

/** Reports whether an address is a loopback address: 127.0.0.0/8 (also in its IPv4-mapped IPv6 form) or ::1. */
export function isLoopback(address: string): boolean {
	return /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/i.test(address) || address === '::1';
}

/** Reports whether a host to listen on means every network interface. */
export function isWildcard(host: string): boolean {
	return host === '' || host === '0.0.0.0' || host === '::';
}
