/** Selects the item of `settings.servers` that applies to a listener. */
import type { Settings } from './document.ts';

/** Timeouts in milliseconds, rates in bytes per second, and a size in bytes (`write_max_chunk`). 0 means no limit. */
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

/** Limits of a listener, which apply to all threads together. 0 means no limit. Times are in milliseconds and sizes in bytes. */
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
	/** Maximum number of handshakes per second. */
	readonly handshakes?: number;
	readonly handshakes_per_client?: number;
}

/** Limits of HTTP/3 on a listener, which apply to each thread. Rates are per second. */
export interface QuicSettings {
	readonly connections?: number;
	readonly connections_per_client?: number;
	readonly handshakes?: number;
	readonly handshakes_per_client?: number;
	/**
	 * Maximum number of unfinished handshakes with clients whose addresses have not been validated. Above this number, new clients
	 * must have their addresses validated first.
	 */
	readonly retry_above?: number;
	readonly retries?: number;
	readonly proven_handshakes?: number;
	readonly initials_per_client?: number;
}

/** One item of `settings.servers`. */
export interface ServerSettings {
	/**
	 * The address of a listener as written, such as `:443` or `tcp/127.0.0.1:80`. An item without an address applies to all
	 * listeners that no other item names.
	 */
	readonly listener?: string;
	readonly name?: string;
	/** The HTTP versions of the listener: `h1`, `h2`, `h2c`, `h3`. */
	readonly protocols?: readonly string[];
	readonly timeouts?: ServerTimeouts;
	readonly max_header_size?: number;
	readonly limits?: ServerLimits;
	readonly quic?: QuicSettings;
	/** Milliseconds between two probes of TCP keep-alive; a negative number disables it. */
	readonly keepalive_interval?: number;
	readonly keepalive_idle?: number;
	readonly keepalive_count?: number;
	readonly listener_wrappers?: readonly ListenerWrapper[];
	/** Names of request fields that are accepted although they contain `_`. A `*` at the end matches any ending. */
	readonly expected_underscore_headers?: readonly string[];
	readonly expected_dot_headers?: readonly string[];
	/** True if debug log entries record which handlers run. */
	readonly trace?: boolean;
	/** True if access logs show the values of fields that contain credentials. */
	readonly log_credentials?: true;
	readonly [field: string]: unknown;
}

/** The address of a listener. `host` is '' for every interface. */
export interface ListenerAddress {
	readonly host: string;
	readonly port: number;
}

const NO_SETTINGS: ServerSettings = {};

/** Parses the address of a listener in `servers`; undefined if it is invalid. `unix//path` and `fd/3` have port 0. */
export function parseServerListener(text: string): ListenerAddress | undefined {
	if (/^(?:unix\/[/{]|fd\/).+/.test(text)) return { host: text, port: 0 };
	const parts = /^(?:tcp[46]?\/)?(?:\[([0-9a-fA-F:.%]+)\]|([^\s:/[\]]*)):([0-9]{1,5})$/.exec(text);
	const port = Number(parts?.[3]);
	if (!parts || port > 65_535) return undefined;
	return { host: (parts[1] ?? parts[2] ?? '').toLowerCase(), port };
}

/**
 * Returns the settings for a listener: the item that names its address or, if there is none, the item without an address. If
 * several items name the address in different spellings, the one with the longest spelling applies.
 */
export function serverSettingsFor(settings: Settings, listener: ListenerAddress): ServerSettings {
	const servers = (settings.servers as readonly ServerSettings[] | undefined) ?? [];
	let bestMatch: ServerSettings | undefined;
	for (const server of servers) {
		if (server.listener === undefined) {
			bestMatch ??= server;
			continue;
		}
		const address = parseServerListener(server.listener);
		if (address?.port !== listener.port || address.host !== listener.host) continue;
		if ((bestMatch?.listener?.length ?? -1) < server.listener.length) bestMatch = server;
	}
	return bestMatch ?? NO_SETTINGS;
}

/**
 * An item of `listener_wrappers`. The wrapper `tls` has no effect of its own: it marks where TLS starts in the order of the
 * wrappers.
 */
export type ListenerWrapper =
	| ProxyProtocolWrapper
	| { readonly wrapper: 'http_redirect' }
	| { readonly wrapper: 'tls' };

export interface ProxyProtocolWrapper {
	readonly wrapper: 'proxy_protocol';
	/** Timeout, in milliseconds, for receiving the PROXY header; default 5000, 0 for no limit. */
	readonly timeout?: number;
	readonly allow?: readonly string[];
	readonly deny?: readonly string[];
	/** What is done with a PROXY header from a peer that is neither in `allow` nor in `deny`; default `ignore`. */
	readonly fallback_policy?: ProxyPolicy;
}

/** Reports whether the connections of a listener with these settings may begin with a PROXY header. */
export function readsProxyHeader({ listener_wrappers = [] }: ServerSettings): boolean {
	return listener_wrappers.some(({ wrapper }) => wrapper === 'proxy_protocol');
}

export type ProxyPolicy = (typeof PROXY_POLICIES)[number];

/** What can be done with a PROXY header from a peer that is neither in `allow` nor in `deny`. */
export const PROXY_POLICIES = ['ignore', 'use', 'reject', 'require', 'skip'] as const;
