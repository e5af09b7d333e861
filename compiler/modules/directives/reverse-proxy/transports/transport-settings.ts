/** How requests reach the upstreams of a pool: the settings of transports as documents have them. */
import type { TrustPool } from '../../../providers/trust-pools/trust-pool.ts';

/** HTTP, over TCP or unix sockets, with or without TLS. Times in milliseconds; left out means no bound unless said. */
export interface HttpTransportSettings {
	readonly type: 'http';
	/** Versions offered, in no order: `1.1` and `2` (over TLS), or `h2c`. `1.1` and `2` if left out. */
	readonly versions?: readonly HttpTransportVersion[];
	/** TLS to the upstreams; plain text if left out. */
	readonly tls?: ClientTlsSettings;
	/** Whether gzip is asked for where the client asked for nothing, and decoded; true if left out. */
	readonly compression?: boolean;
	/** The PROXY protocol's header is sent on each connection, with the client's address. */
	readonly proxy_protocol?: 'v1' | 'v2';
	/** `none`, or the proxy that connections are made through; those of the environment if left out. */
	readonly forward_proxy?: 'none' | ForwardProxySettings;
	/** DNS servers, `host:port`; those of the system if left out. */
	readonly resolvers?: readonly string[];
	/** Address that connections are made from. */
	readonly local_address?: string;
	/** Milliseconds after which the next of a host's addresses is tried too; 300 if left out, -1 tries one after the other. */
	readonly dial_fallback_delay?: number;
	/** How long a body waits for 100 (Continue) after `Expect: 100-continue`; 1000 if left out. */
	readonly expect_continue_timeout?: number;
	/** Bytes that one read of a socket gives at most, from LEAST_READ to MOST_READ; 65536 if left out. */
	readonly read_buffer?: number;
	/** Between two reads of a response, and between two writes of a request. */
	readonly read_timeout?: number;
	readonly write_timeout?: number;
	/** Connections to one upstream of the whole process, idle ones included; requests wait for one. */
	readonly max_conns_per_host?: number;
	/** Between two probes of an idle TCP connection; 30000 if left out. */
	readonly keepalive_interval?: number;
	/** Idle connections that one thread keeps to all upstreams together. */
	readonly keepalive_idle_conns_total?: number;
}

/** The least `read_buffer`, in bytes. */
export const LEAST_READ = 1024;
/** The most, in bytes. */
export const MOST_READ = 16_777_216;

/** Versions of HTTP to upstreams. */
export type HttpTransportVersion = '1.1' | '2' | 'h2c';

/** A proxy that connections to upstreams are made through. */
export interface ForwardProxySettings {
	/** `http://host:port`, `https://host:port` or `socks5://host:port`. */
	readonly url: string;
	readonly username?: string;
	readonly password?: string;
}

/** TLS as a client. */
export interface ClientTlsSettings {
	/** Name for SNI and verification, with placeholders; the upstream's host if left out. */
	readonly server_name?: string;
	/** True: any certificate is taken. */
	readonly insecure_skip_verify?: boolean;
	/** What certificates are verified with; the system's authorities if left out. */
	readonly trust?: TrustPool;
	/** Shown to upstreams that ask: absolute paths of PEM files, or the name of a certificate that this server manages. */
	readonly client_certificate?: { readonly certificate: string; readonly key: string } | { readonly managed: string };
	/** Groups for key exchange, by the names of TLS 1.3. */
	readonly curves?: readonly string[];
	/** `never` if left out. */
	readonly renegotiation?: 'never' | 'freely';
	/** Ports that are spoken to without TLS. */
	readonly except_ports?: readonly number[];
	/** Of the handshake; 10000 if left out. */
	readonly handshake_timeout?: number;
}

/** FastCGI (its specification of 1996). Times in milliseconds. */
export interface FastcgiTransportSettings {
	readonly type: 'fastcgi';
	/** Folder of the scripts, with placeholders; the site's `root` if left out. */
	readonly root?: string;
	/** Extensions such as `.php`: the path up to the first that it holds is the script, the rest PATH_INFO. */
	readonly split?: readonly string[];
	/** Further variables; values with placeholders. */
	readonly env?: readonly { readonly name: string; readonly value: string }[];
	/** True: links in `root` are resolved. */
	readonly resolve_root_symlink?: boolean;
	readonly read_timeout?: number;
	readonly write_timeout?: number;
	/** True: what scripts write to standard error is logged line by line even when they answer well. */
	readonly capture_stderr?: boolean;
}

/** Settings of any transport. */
export type TransportSettings = HttpTransportSettings | FastcgiTransportSettings;

/** True if gzip is asked for where the client asked for nothing. */
export function asksForGzip(transport: TransportSettings | undefined): boolean {
	return transport === undefined || (transport.type === 'http' && transport.compression !== false);
}

/** True if connections of this transport are over TLS, whatever the port. */
export function usesTls(transport: TransportSettings | undefined): boolean {
	return transport?.type === 'http' && transport.tls !== undefined;
}
