/** Parses hosts to listen on: names and addresses, Unix sockets, and inherited sockets. */
import { parseIp } from '../exchange/ip-address.ts';

/** A parsed host to listen on. */
export type ListenHost =
	/**
	 * A TCP address. `host` is '' for every interface. With `ipv6Only`, the socket does not accept IPv4 clients, so that
	 * `tcp4/0.0.0.0` can use the same port.
	 */
	| { readonly network: 'tcp'; readonly host: string; readonly ipv6Only: boolean }
	/**
	 * A Unix socket. `path` may contain placeholders that do not depend on a request. `mode` holds the permissions of the socket
	 * file.
	 */
	| { readonly network: 'unix'; readonly path: string; readonly mode: number | undefined }
	/**
	 * An inherited socket. `descriptor` is its number, the name under which a service manager passed it, or a placeholder that does
	 * not depend on a request.
	 */
	| { readonly network: 'fd'; readonly descriptor: string };

/** The reason why a text is not a host to listen on. */
export interface ListenHostMistake {
	readonly code: 'bind/not-a-host' | 'bind/unavailable' | 'bind/mode';
	readonly message: string;
	readonly hint: string;
}

/** Default permissions of a socket file. Only its owner may connect. */
export const DEFAULT_SOCKET_MODE = 0o600;

const HOST_HINT = 'Write an address or a host name without a port, unix//path or fd/3.';
const PLACEHOLDER_PATTERN = /\{[^{}]*\}/g;

/**
 * Parses a host of `bind`, such as `10.0.0.1`, `[::1]`, `localhost`, `tcp4/0.0.0.0`, `tcp6/[::]`, `unix//run/svc.sock|0660`,
 * `fd/3`, `fd/web` or `fd/{env.LISTENER}`.
 */
export function parseListenHost(text: string): ListenHost | ListenHostMistake {
	const slashIndex = text.indexOf('/');
	if (slashIndex === -1) return parseTcpHost(text, text, '');
	const network = text.slice(0, slashIndex);
	const hostText = text.slice(slashIndex + 1);
	switch (network) {
		case 'tcp':
		case 'tcp4':
		case 'tcp6':
			return parseTcpHost(text, hostText, network.slice(3));
		case 'unix':
			return parseUnixSocket(text, hostText);
		case 'fd':
			return hasOnlyMachinePlaceholders(hostText) && /^(?:\d{1,7}|[A-Za-z_][\w.-]{0,254}|[^/]*\{[^/]*)$/.test(hostText)
				? { network: 'fd', descriptor: hostText }
				: hostMistake(text, 'Write the number of the descriptor, or the name under which it was passed: fd/3, fd/web.');
		case 'fdgram':
		case 'udp':
		case 'udp4':
		case 'udp6':
		case 'unixgram':
			return {
				code: 'bind/unavailable',
				message: `\`${text}\` is a socket for HTTP/3 alone, which this build does not listen on.`,
				hint: 'Leave it out: where `protocols` has `h3`, UDP is bound beside TCP at the same address and port.',
			};
		default:
			return hostMistake(text, HOST_HINT);
	}
}

export function isListenHost(parsed: ListenHost | ListenHostMistake): parsed is ListenHost {
	return 'network' in parsed;
}

function parseTcpHost(text: string, hostText: string, ipVersion: string): ListenHost | ListenHostMistake {
	const bareHost = hostText.replace(/^\[(.*)\]$/, '$1');
	const ip = parseIp(bareHost);
	const matchesFamily = ipVersion === '' || (ip !== undefined && ip.isIpv4 === (ipVersion === '4'));
	if (!matchesFamily) return hostMistake(text, `Write an IPv${ipVersion} address after \`tcp${ipVersion}/\`.`);
	const isName = /^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$/.test(bareHost);
	if (!ip && !isName && text !== '') return hostMistake(text, HOST_HINT);
	return { network: 'tcp', host: bareHost, ipv6Only: ipVersion === '6' && bareHost === '::' };
}

function parseUnixSocket(text: string, socketText: string): ListenHost | ListenHostMistake {
	const [, path, modeDigits] = /^(.*?)(?:\|([^|/]*))?$/s.exec(socketText)!;
	if (!/^(?:\/|\{).*[^/]$/s.test(path!) || !hasOnlyMachinePlaceholders(path!) || /[\0\n]/.test(path!)) {
		return hostMistake(text, 'Write the absolute path of the socket: unix//run/svc.sock.');
	}
	if (modeDigits === undefined) return { network: 'unix', path: path!, mode: undefined };
	const mode = /^0?[0-7]{3}$/.test(modeDigits) ? Number.parseInt(modeDigits, 8) : 0;
	// A client needs write permission to connect.
	if ((mode & 0o222) !== 0) return { network: 'unix', path: path!, mode };
	return {
		code: 'bind/mode',
		message: `With the permissions \`${modeDigits}\`, no client could connect.`,
		hint: 'Write three octal digits that grant write permission: |0660.',
	};
}

function hostMistake(text: string, hint: string): ListenHostMistake {
	return { code: 'bind/not-a-host', message: `\`${text}\` is not a host to listen on.`, hint };
}

/**
 * Reports whether the text has no placeholder that depends on a request. Such a placeholder has no value when sockets are bound.
 */
function hasOnlyMachinePlaceholders(text: string): boolean {
	const placeholders = text.match(PLACEHOLDER_PATTERN) ?? [];
	return (
		placeholders.every(placeholder => /^\{(?:env|system)\./.test(placeholder)) &&
		!/[{}]/.test(text.replace(PLACEHOLDER_PATTERN, ''))
	);
}
