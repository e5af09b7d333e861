/** `settings.servers`: which item holds for a listener. */
import type { ListenerWrapper } from '../modules/options/servers/listener-wrappers.ts';
import type { Settings } from './document.ts';

/** Time-outs in milliseconds, rates in bytes a second, a size in bytes; 0 is without bound. */
export interface ServerTimeouts {
	readonly read_header?: number;
	readonly read_body?: number;
	readonly read_body_idle?: number;
	readonly read_body_rate?: number;
	readonly write?: number;
	readonly write_idle?: number;
	readonly write_rate?: number;
	readonly write_max_chunk?: number;
	readonly idle?: number;
	readonly handshake?: number;
}

/** Bounds of one listener, all threads together; 0 is without bound. Times are milliseconds, sizes bytes. */
export interface ServerLimits {
	readonly connections?: number;
	readonly connections_per_client?: number;
	readonly requests?: number;
	readonly requests_per_client?: number;
	readonly queue?: number;
	readonly queue_time?: number;
	readonly retry_after?: number;
	readonly requests_per_connection?: number;
	readonly header_count?: number;
	readonly unread_body?: number;
	readonly chunk_extensions?: number;
	/** A second. */
	readonly handshakes?: number;
	readonly handshakes_per_client?: number;
}

/** One item of `settings.servers`. */
export interface ServerSettings {
	/** As written: `:443`, `tcp/127.0.0.1:80`. Every listener without an item of its own if left out. */
	readonly listener?: string;
	readonly name?: string;
	/** `h1`, `h2`, `h2c`. */
	readonly protocols?: readonly string[];
	readonly timeouts?: ServerTimeouts;
	readonly max_header_size?: number;
	readonly limits?: ServerLimits;
	/** Milliseconds; negative turns keep-alive of TCP off. */
	readonly keepalive_interval?: number;
	readonly keepalive_idle?: number;
	readonly keepalive_count?: number;
	readonly listener_wrappers?: readonly ListenerWrapper[];
	/** Names of request fields that are kept although they hold `_` or `.`; a last `*` makes a prefix. */
	readonly expected_underscore_headers?: readonly string[];
	readonly expected_dot_headers?: readonly string[];
	/** Whether handlers that run are told of in debug entries. */
	readonly trace?: boolean;
	/** Whether access logs show fields that hold credentials. */
	readonly log_credentials?: true;
	readonly [field: string]: unknown;
}

/** A listener's address: '' is every interface. */
export interface ListenerPlace {
	readonly host: string;
	readonly port: number;
}

const NONE: ServerSettings = {};

/** The address that `servers` names; undefined when it is none. `unix//path` and `fd/3` have port 0. */
export function parseServerListener(text: string): ListenerPlace | undefined {
	if (/^(?:unix\/[/{]|fd\/).+/.test(text)) return { host: text, port: 0 };
	const parts = /^(?:tcp[46]?\/)?(?:\[([0-9a-fA-F:.%]+)\]|([^\s:/[\]]*)):([0-9]{1,5})$/.exec(text);
	const port = Number(parts?.[3]);
	if (!parts || port > 65_535) return undefined;
	return { host: (parts[1] ?? parts[2] ?? '').toLowerCase(), port };
}

/** The item that holds for a listener: of those that name its address the one with the longest text, else the general one. */
export function serverSettingsFor(settings: Settings, place: ListenerPlace): ServerSettings {
	const servers = (settings.servers as readonly ServerSettings[] | undefined) ?? [];
	let found: ServerSettings | undefined;
	for (const server of servers) {
		if (server.listener === undefined) {
			found ??= server;
			continue;
		}
		const address = parseServerListener(server.listener);
		if (address?.port !== place.port || address.host !== place.host) continue;
		if ((found?.listener?.length ?? -1) < server.listener.length) found = server;
	}
	return found ?? NONE;
}
