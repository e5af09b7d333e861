/** Hosts to listen on: names and addresses, Unix sockets, and sockets that the process was started with. */
import { parseIp } from '../exchange/ip-address.ts';

/** What a host to listen on means. */
export type ListenHost =
	/** '' is every interface. `only6`: IPv4 clients are not taken, so that `tcp4/0.0.0.0` may stand beside it. */
	| { readonly network: 'tcp'; readonly host: string; readonly only6: boolean }
	/** `path` may hold placeholders of the machine. `mode`: permissions of the socket file. */
	| { readonly network: 'unix'; readonly path: string; readonly mode: number | undefined }
	/** A number, the name that a service manager passed the socket with, or a placeholder of the machine that gives one. */
	| { readonly network: 'fd'; readonly descriptor: string };

/** Why a text is no host to listen on. */
export interface ListenHostMistake {
	readonly code: 'bind/not-a-host' | 'bind/unavailable' | 'bind/mode';
	readonly message: string;
	readonly hint: string;
}

/** Permissions of a socket file where nothing is said: its owner's alone. */
export const SOCKET_MODE = 0o600;

const HINT = 'Write an address or a host name without a port, unix//path or fd/3.';
const PLACEHOLDERS = /\{[^{}]*\}/g;

/**
 * Parses a host as `bind` takes it: `10.0.0.1`, `[::1]`, `localhost`, `tcp4/0.0.0.0`, `tcp6/[::]`, `unix//run/svc.sock|0660`,
 * `fd/3`, `fd/web`, `fd/{env.LISTENER}`.
 */
export function parseListenHost(text: string): ListenHost | ListenHostMistake {
	const slash = text.indexOf('/');
	if (slash === -1) return tcp(text, text, '');
	const network = text.slice(0, slash);
	const rest = text.slice(slash + 1);
	switch (network) {
		case 'tcp':
		case 'tcp4':
		case 'tcp6':
			return tcp(text, rest, network.slice(3));
		case 'unix':
			return unix(text, rest);
		case 'fd':
			return hasOnlyMachinePlaceholders(rest) && /^(?:\d{1,7}|[A-Za-z_][\w.-]{0,254}|[^/]*\{[^/]*)$/.test(rest)
				? { network: 'fd', descriptor: rest }
				: notAHost(text, 'Write the number of the descriptor, or the name that it was passed with: fd/3, fd/web.');
		case 'fdgram':
		case 'udp':
		case 'udp4':
		case 'udp6':
		case 'unixgram':
			return {
				code: 'bind/unavailable',
				message: `Listening on \`${text}\` is for HTTP/3, which is not supported by this build yet.`,
				hint: 'Leave it out: the site is served over TCP.',
			};
		default:
			return notAHost(text, HINT);
	}
}

/** True for what {@link parseListenHost} understood. */
export function isListenHost(parsed: ListenHost | ListenHostMistake): parsed is ListenHost {
	return 'network' in parsed;
}

function tcp(text: string, rest: string, family: string): ListenHost | ListenHostMistake {
	const bare = rest.replace(/^\[(.*)\]$/, '$1');
	const ip = parseIp(bare);
	const fits = family === '' || (ip !== undefined && ip.v4 === (family === '4'));
	if (!fits) return notAHost(text, `Write an IPv${family} address after \`tcp${family}/\`.`);
	const isName = /^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$/.test(bare);
	if (!ip && !isName && text !== '') return notAHost(text, HINT);
	return { network: 'tcp', host: bare, only6: family === '6' && bare === '::' };
}

function unix(text: string, rest: string): ListenHost | ListenHostMistake {
	const [, path, digits] = /^(.*?)(?:\|([^|/]*))?$/s.exec(rest)!;
	if (!/^(?:\/|\{).*[^/]$/s.test(path!) || !hasOnlyMachinePlaceholders(path!) || /[\0\n]/.test(path!)) {
		return notAHost(text, 'Write the path of the socket from the root: unix//run/svc.sock.');
	}
	if (digits === undefined) return { network: 'unix', path: path!, mode: undefined };
	const mode = /^0?[0-7]{3}$/.test(digits) ? Number.parseInt(digits, 8) : 0;
	// Connecting takes the right to write.
	if ((mode & 0o222) !== 0) return { network: 'unix', path: path!, mode };
	return {
		code: 'bind/mode',
		message: `\`${digits}\` are no permissions with which a client could connect.`,
		hint: 'Write three octal digits that let somebody write: |0660.',
	};
}

function notAHost(text: string, hint: string): ListenHostMistake {
	return { code: 'bind/not-a-host', message: `\`${text}\` is not a host to listen on.`, hint };
}

/** Sockets are bound before there is a request. */
function hasOnlyMachinePlaceholders(text: string): boolean {
	const found = text.match(PLACEHOLDERS) ?? [];
	return found.every(one => /^\{(?:env|system)\./.test(one)) && !/[{}]/.test(text.replace(PLACEHOLDERS, ''));
}
