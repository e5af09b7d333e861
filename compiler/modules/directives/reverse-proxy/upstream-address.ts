/** Parses upstream addresses as they are written in configurations. */

export interface UpstreamAddress {
	/** Canonical text: `host:port`, `[v6]:port` or `unix//path`. */
	readonly address: string;
	/**
	 * The text that identifies the upstream in hash and cookie policies: network, host as written (`:8001` has no host) and port,
	 * joined as in Caddy.
	 */
	readonly dial: string;
	/** Host without brackets, or the path of a Unix socket. */
	readonly host: string;
	/** The port; 0 for a Unix socket. */
	readonly port: number;
	/** Path of a Unix socket, otherwise undefined. */
	readonly path: string | undefined;
	/** The scheme if it affects the transport: `https` for TLS, or `h2c` for HTTP/2 in plain text; '' otherwise. */
	readonly scheme: '' | 'https' | 'h2c';
}

/** A parsed upstream address of a configuration. */
export type ParsedUpstream =
	/** An address without placeholders. `scheme` is as written, '' if there is none. */
	| {
			readonly kind: 'static';
			readonly scheme: '' | 'http' | 'https' | 'h2c';
			readonly addresses: readonly UpstreamAddress[];
	  }
	/** An address with placeholders, which are resolved per request. A port range is expanded to one text for each port. */
	| { readonly kind: 'template'; readonly texts: readonly string[] }
	| { readonly kind: 'invalid'; readonly code: string; readonly message: string; readonly hint?: string };

const SCHEME_PREFIX = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/;
const NETWORK_PREFIX = /^([a-z][a-z0-9+]*)\/(.*)$/;
const PORT_RANGE = /^(.*):(\d{1,5})-(\d{1,5})$/;

/** Parses an upstream address as written in a line `reverse_proxy` or `to`, or in `to` of the document. */
export function parseUpstream(addressText: string): ParsedUpstream {
	if (addressText.includes('{')) return parseTemplate(addressText);
	const schemeMatch = SCHEME_PREFIX.exec(addressText);
	if (schemeMatch) return parseUrl(schemeMatch[1]!.toLowerCase(), schemeMatch[2]!);
	const networkMatch = NETWORK_PREFIX.exec(addressText);
	if (networkMatch) return parseNetwork(networkMatch[1]!, networkMatch[2]!);
	if (addressText.startsWith('unix:/')) {
		const path = addressText.slice(5).replace(/^\/+/, '/');
		return invalidUpstream('upstream/invalid-address', 'a Unix socket has no colon', `Write \`unix/${path}\`.`);
	}
	if (addressText.length > 1 && addressText.endsWith(',')) {
		return invalidUpstream(
			'upstream/invalid-address',
			'a comma cannot be part of an address',
			'Separate addresses by spaces.',
		);
	}
	return parseHostPort(addressText, 80);
}

/**
 * Parses an address whose placeholders have been replaced. It must be `host:port` or `unix//path`; returns undefined for anything
 * else.
 */
export function parseResolvedUpstream(addressText: string): UpstreamAddress | undefined {
	const networkMatch = NETWORK_PREFIX.exec(addressText);
	if (networkMatch && networkMatch[1] !== 'unix') return undefined;
	const parsedUpstream = networkMatch ? parseNetwork('unix', networkMatch[2]!) : parseHostPort(addressText, 0);
	return parsedUpstream.kind === 'static' && parsedUpstream.addresses.length === 1
		? parsedUpstream.addresses[0]
		: undefined;
}

function parseTemplate(addressText: string): ParsedUpstream {
	if (addressText.includes('://')) {
		return invalidUpstream(
			'upstream/placeholder-in-url',
			'due to parsing difficulties, placeholders are not allowed when an upstream address contains a scheme',
		);
	}
	const portRangeMatch = PORT_RANGE.exec(addressText);
	if (!portRangeMatch) return { kind: 'template', texts: [addressText] };
	const ports = expandPortRange(portRangeMatch[2]!, portRangeMatch[3]!);
	if (!ports)
		return invalidUpstream(
			'upstream/invalid-port',
			`\`${portRangeMatch[2]}-${portRangeMatch[3]}\` is not a range of ports`,
		);
	return { kind: 'template', texts: ports.map(port => `${portRangeMatch[1]}:${port}`) };
}

function parseUrl(scheme: string, hostAndPort: string): ParsedUpstream {
	if (scheme === 'ws' || scheme === 'wss') {
		const httpScheme = scheme === 'ws' ? 'http' : 'https';
		return invalidUpstream(
			'upstream/browser-scheme',
			`the scheme ${scheme}:// is only supported in browsers; use ${httpScheme}:// instead`,
		);
	}
	if (scheme !== 'http' && scheme !== 'https' && scheme !== 'h2c') {
		const message = `unsupported URL scheme ${scheme}://`;
		const hint = /^grpcs?$/.test(scheme)
			? 'gRPC is HTTP/2: write `h2c://`, or `https://` for TLS.'
			: scheme === 'unix'
				? `Write \`unix//${hostAndPort.replace(/^\/+/, '')}\`.`
				: undefined;
		return invalidUpstream('upstream/unknown-scheme', message, hint);
	}
	if (/[/?#]/.test(hostAndPort)) {
		return rejectPath();
	}
	if (scheme === 'https' && /:80$/.test(hostAndPort)) {
		return rejectConflictingPort('upstream address has conflicting scheme (https://) and port (:80, the HTTP port)');
	}
	if (scheme !== 'https' && /:443$/.test(hostAndPort)) {
		return rejectConflictingPort(
			`upstream address has conflicting scheme (${scheme}://) and port (:443, the HTTPS port)`,
		);
	}
	return applyScheme(parseHostPort(hostAndPort, scheme === 'https' ? 443 : 80), scheme);
}

function parseNetwork(network: string, location: string): ParsedUpstream {
	if (network === 'unix' || network === 'unix+h2c') {
		if (location === '' || location === '/' || location.includes('\0')) {
			return invalidUpstream(
				'upstream/invalid-address',
				'the path of the Unix socket is missing',
				'Write `unix//run/app.sock`.',
			);
		}
		const addressText = `unix/${location}`;
		const address: UpstreamAddress = {
			address: addressText,
			dial: addressText,
			host: location,
			port: 0,
			path: location,
			scheme: '',
		};
		const parsedUpstream: ParsedUpstream = { kind: 'static', scheme: '', addresses: [address] };
		return network === 'unix' ? parsedUpstream : applyScheme(parsedUpstream, 'h2c');
	}
	if (network === 'tcp' || network === 'tcp4' || network === 'tcp6') return parseHostPort(location, 80, `${network}/`);
	if (/^(unixgram|unixpacket|udp|udp4|udp6|fd|fdgram|ip|ip4|ip6)$/.test(network)) {
		return invalidUpstream(
			'directive/unavailable',
			`an upstream over \`${network}/\` is not supported by this build yet`,
		);
	}
	return rejectPath();
}

/**
 * Parses an address that is a host and port, with an optional network.
 * @param defaultPort Port of an address that contains no port; 0 if a port is required.
 * @param network Text before the host, such as `tcp/`; '' if there is none.
 */
function parseHostPort(addressText: string, defaultPort: number, network = ''): ParsedUpstream {
	if (/[/?#]/.test(addressText)) return rejectPath();
	let host: string;
	let port: string | undefined;
	const bracketedMatch = /^\[([^\]]*)\](?::(.*))?$/.exec(addressText);
	if (bracketedMatch) {
		host = bracketedMatch[1]!;
		port = bracketedMatch[2];
		if (!/^[0-9A-Fa-f:.]+(%[\w.-]+)?$/.test(host) || !host.includes(':')) {
			return invalidUpstream('upstream/invalid-address', `\`[${host}]\` is not an IPv6 address`);
		}
	} else {
		const colon = addressText.indexOf(':');
		if (colon !== -1 && addressText.indexOf(':', colon + 1) !== -1) {
			return invalidUpstream(
				'upstream/invalid-address',
				'the address has too many colons',
				'Write an IPv6 address as `[::1]:8080`.',
			);
		}
		host = colon === -1 ? addressText : addressText.slice(0, colon);
		port = colon === -1 ? undefined : addressText.slice(colon + 1);
		if (host === '' && port === undefined) return invalidUpstream('upstream/invalid-address', 'the address is empty');
		if (!/^[A-Za-z0-9._~-]*$/.test(host)) {
			return invalidUpstream('upstream/invalid-address', `\`${host}\` is not a host name or IP address`);
		}
	}
	if (port === undefined) {
		if (defaultPort === 0) return invalidUpstream('upstream/invalid-port', 'the address has no port');
		return { kind: 'static', scheme: '', addresses: [createAddress(network, host, defaultPort)] };
	}
	const dash = port.indexOf('-');
	const ports = dash === -1 ? expandPortRange(port, port) : expandPortRange(port.slice(0, dash), port.slice(dash + 1));
	if (!ports) {
		return invalidUpstream(
			'upstream/invalid-port',
			`\`${port}\` is not a port${dash === -1 ? '' : ' range'}`,
			'Give a number from 1 to 65535, or a range such as 8001-8005.',
		);
	}
	return { kind: 'static', scheme: '', addresses: ports.map(portNumber => createAddress(network, host, portNumber)) };
}

function createAddress(network: string, writtenHost: string, port: number): UpstreamAddress {
	const host = writtenHost === '' ? 'localhost' : writtenHost;
	const hostAndPort = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
	return {
		address: hostAndPort,
		dial: network + (writtenHost === '' ? `:${port}` : hostAndPort),
		host,
		port,
		path: undefined,
		scheme: '',
	};
}

function applyScheme(parsedUpstream: ParsedUpstream, scheme: 'http' | 'https' | 'h2c'): ParsedUpstream {
	if (parsedUpstream.kind !== 'static') return parsedUpstream;
	const requiredScheme = scheme === 'http' ? '' : scheme;
	return {
		kind: 'static',
		scheme,
		addresses: parsedUpstream.addresses.map(address => ({ ...address, scheme: requiredScheme })),
	};
}

function expandPortRange(firstText: string, lastText: string): number[] | undefined {
	if (!/^\d{1,5}$/.test(firstText) || !/^\d{1,5}$/.test(lastText)) return undefined;
	const firstPort = Number(firstText);
	const lastPort = Number(lastText);
	if (firstPort < 1 || lastPort > 65535 || lastPort < firstPort) return undefined;
	return Array.from({ length: lastPort - firstPort + 1 }, (_, i) => firstPort + i);
}

function invalidUpstream(code: string, message: string, hint?: string): ParsedUpstream {
	return hint === undefined ? { kind: 'invalid', code, message } : { kind: 'invalid', code, message, hint };
}

function rejectPath(): ParsedUpstream {
	return invalidUpstream(
		'upstream/url-with-path',
		'for now, URLs for proxy upstreams only support scheme, host, and port components',
		'Remove everything after the port; use `rewrite` to change the path.',
	);
}

function rejectConflictingPort(message: string): ParsedUpstream {
	return invalidUpstream('upstream/conflicting-port', message);
}
