/** The settings of transports in documents: how requests reach the upstreams of a pool. */
import type { TrustPool } from '../../../../document/tls-settings.ts';

/**
 * Settings of HTTP over TCP or Unix sockets, with or without TLS. A time that is absent means no limit, unless a default is given.
 */
export interface HttpTransportSettings {
	readonly type: 'http';
	/** Versions offered, in no particular order: `1.1` and `2` (over TLS), or `h2c`. Default `1.1` and `2`. */
	readonly versions?: readonly HttpTransportVersion[];
	/** Settings of TLS to the upstreams. Default: plain text. */
	readonly tls?: ClientTlsSettings;
	/** True to request gzip if the client requested no coding, and to decode the response; default true. */
	readonly compression?: boolean;
	/** Version of the PROXY protocol, which sends the client's address at the start of each connection. Default: not used. */
	readonly proxy_protocol?: 'v1' | 'v2';
	/** The forward proxy to connect through, or `none`. Default: the proxy that environment variables name. */
	readonly forward_proxy?: 'none' | ForwardProxySettings;
	/** DNS servers as `host:port`; by default, the system's. */
	readonly resolvers?: readonly string[];
	/** Address to connect from. */
	readonly local_address?: string;
	/**
	 * Milliseconds after which the next address of a host is tried concurrently; default 300. With -1, the addresses are tried one
	 * after the other.
	 */
	readonly dial_fallback_delay?: number;
	/** Milliseconds for which a body waits for 100 (Continue) after `Expect: 100-continue`; default 1000. */
	readonly expect_continue_timeout?: number;
	/**
	 * Maximum number of bytes of one read of a socket, from {@link MIN_READ_BUFFER_BYTES} to {@link MAX_READ_BUFFER_BYTES}; default
	 * 65536.
	 */
	readonly read_buffer?: number;
	/** Timeout in milliseconds between two reads of a response. */
	readonly read_timeout?: number;
	/** Timeout in milliseconds between two writes of a request. */
	readonly write_timeout?: number;
	/** Maximum number of connections of the whole process to one upstream, including idle ones; further requests wait. */
	readonly max_conns_per_host?: number;
	/** Milliseconds between two keep-alive probes of an idle TCP connection; default 30000. */
	readonly keepalive_interval?: number;
	/** Maximum number of idle connections of one thread to all upstreams together. */
	readonly keepalive_idle_conns_total?: number;
}

export const MIN_READ_BUFFER_BYTES = 1024;
export const MAX_READ_BUFFER_BYTES = 16_777_216;

/** A version of HTTP for requests to upstreams; `h2c` is HTTP/2 in plain text. */
export type HttpTransportVersion = '1.1' | '2' | 'h2c';

/** A proxy through which upstreams are reached. */
export interface ForwardProxySettings {
	/** URL of the form `http://host:port`, `https://host:port` or `socks5://host:port`. */
	readonly url: string;
	readonly username?: string;
	readonly password?: string;
}

export interface ClientTlsSettings {
	/** Name for SNI and verification, with placeholders; by default, the upstream's host. */
	readonly server_name?: string;
	/** True to accept any certificate. */
	readonly insecure_skip_verify?: boolean;
	/** Authorities for verifying certificates; by default, the system's. */
	readonly trust?: TrustPool;
	/**
	 * Certificate for upstreams that request one: absolute paths of PEM files, or the name of a certificate that this server
	 * manages.
	 */
	readonly client_certificate?: { readonly certificate: string; readonly key: string } | { readonly managed: string };
	/** Key exchange groups, by their TLS 1.3 names. */
	readonly curves?: readonly string[];
	/** Whether upstreams may renegotiate TLS 1.2; default `never`. */
	readonly renegotiation?: 'never' | 'freely';
	/** Ports to which connections are made without TLS. */
	readonly except_ports?: readonly number[];
	/** Timeout of the handshake in milliseconds; default 10000. */
	readonly handshake_timeout?: number;
}

/** Settings of FastCGI (specification of 1996). Times are in milliseconds. */
export interface FastcgiTransportSettings {
	readonly type: 'fastcgi';
	/** Folder of the scripts, with placeholders; by default, the site's `root`. */
	readonly root?: string;
	/**
	 * Extensions of scripts, such as `.php`. The path up to the end of the first extension that occurs in it is the script; the rest
	 * is PATH_INFO.
	 */
	readonly split?: readonly string[];
	/** Additional variables; values may contain placeholders. */
	readonly env?: readonly { readonly name: string; readonly value: string }[];
	/** True to resolve symbolic links in `root`. */
	readonly resolve_root_symlink?: boolean;
	readonly read_timeout?: number;
	readonly write_timeout?: number;
	/** True to log what scripts write to standard error line by line, even if they succeed. */
	readonly capture_stderr?: boolean;
}

export type TransportSettings = HttpTransportSettings | FastcgiTransportSettings;

/** Reports whether gzip is requested if the client requested no coding. */
export function requestsGzip(transport: TransportSettings | undefined): boolean {
	return transport === undefined || (transport.type === 'http' && transport.compression !== false);
}

/** Reports whether connections of this transport use TLS, except to the ports in `except_ports`. */
export function usesTls(transport: TransportSettings | undefined): boolean {
	return transport?.type === 'http' && transport.tls !== undefined;
}
