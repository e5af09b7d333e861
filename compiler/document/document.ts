/** The configuration as JSON, which texts are compiled to and the runtime loads. Field names are those of the JSON Schema. */

import type { ClusterSettings } from './cluster-settings.ts';
import type { LogFormat, LogOutput, LogSampling } from './log-settings.ts';
import type { SiteTls } from './tls-settings.ts';

/**
 * A matcher with its type, such as `{"type":"path","patterns":["/api/*"]}`, `{"type":"all","of":[…]}`, `{"type":"any","of":[…]}` or
 * `{"type":"not","of":{…}}`.
 */
export interface Matcher {
	readonly type: string;
	readonly [field: string]: unknown;
}

/** One element of a pipeline: a handler with its settings, and the matcher that selects its requests. */
export interface Step {
	readonly handler: string;
	readonly when?: Matcher;
	/** Name of an exclusive group. Of the steps of a pipeline with the same group, only the first whose `when` holds runs. */
	readonly exclusive?: string;
	readonly '@id'?: string;
	readonly [field: string]: unknown;
}

/** Steps that handle errors of a site. The routes whose `statuses` cover an error run in order until one answers. */
export interface ErrorRoute {
	/** Statuses or classes, such as `404` or `5xx`. Default: every error. */
	readonly statuses?: readonly string[];
	readonly pipeline: readonly Step[];
	readonly '@id'?: string;
}

export interface SiteLog {
	/** Logger name; several sites may share it. */
	readonly name?: string;
	readonly output?: LogOutput;
	readonly format?: LogFormat;
	readonly level?: string;
	readonly sampling?: LogSampling;
	/** For a site's log: the lower-case hosts whose requests are recorded. Default: all. */
	readonly hostnames?: readonly string[];
	/** For a site's log: true if only requests for which `log_name` selects the log are recorded. */
	readonly no_hostname?: boolean;
	/** For a process log: the namespaces whose entries it includes. A namespace covers all names that begin with it. */
	readonly include?: readonly string[];
	readonly exclude?: readonly string[];
	readonly '@id'?: string;
}

/** A host to bind, optionally with protocols that override the listener's settings. */
export type SiteBind = string | { readonly host: string; readonly protocols: readonly string[] };

/** One site: its addresses as text (`example.com`, `:8080`, `http://a.example:81`), and its behavior. */
export interface Site {
	readonly addresses: readonly string[];
	/** Hosts on which the site listens. Default: every interface. */
	readonly bind?: readonly SiteBind[];
	readonly tls?: SiteTls;
	readonly logs?: readonly SiteLog[];
	readonly pipeline: readonly Step[];
	readonly errors?: readonly ErrorRoute[];
	readonly '@id'?: string;
}

/** Settings of the whole process: the global options, by key. */
export interface Settings {
	readonly admin?: AdminSettings;
	readonly http_port?: number;
	readonly https_port?: number;
	/** Number of threads that serve requests. */
	readonly threads?: number;
	/** How sockets and files are accessed; see runtime/sockets/io-mode.ts. */
	readonly io?: 'direct' | 'node';
	/** Milliseconds that a stop waits for requests in flight before it aborts them. Default: no limit. */
	readonly grace_period?: number;
	/** Milliseconds by which a stop is delayed. The server keeps serving meanwhile. */
	readonly shutdown_delay?: number;
	readonly debug?: boolean;
	/** Process logs by name; `default` is the main one. */
	readonly logs?: { readonly [name: string]: SiteLog };
	/** The Redis server that several machines share. */
	readonly cluster?: ClusterSettings;
	readonly metrics?: { readonly per_host?: boolean; readonly observe_catchall_hosts?: boolean };
	/** Ranges, in CIDR notation, of proxies whose `X-Forwarded-*` fields are trusted. */
	readonly trusted_proxies?: readonly string[];
	/** Hosts on which sites without `bind` listen. */
	readonly default_bind?: readonly SiteBind[];
	readonly [setting: string]: unknown;
}

/** The settings of the Admin API. If they are absent, it is not served. */
export interface AdminSettings {
	/** The address on which the Admin API listens: `host:port`, `unix//path` or `fd/3`. Default: `127.0.0.1:2019`. */
	readonly listen?: string;
	/** The access token. Secret. If set, every request must carry it as a bearer token. */
	readonly token?: string;
	readonly origins?: readonly string[];
	readonly enforce_origin?: boolean;
	/** True if the Admin API is turned off (`admin off`). */
	readonly off?: boolean;
}

/** The configuration of a server. */
export interface Document {
	/** The URL of a schema, for editors. It has no effect. */
	readonly $schema?: string;
	readonly settings?: Settings;
	/** Named upstreams of a Configfile. */
	readonly upstreams?: { readonly [name: string]: unknown };
	/** Named routes, for `invoke`. */
	readonly routes?: { readonly [name: string]: readonly Step[] };
	readonly sites?: readonly Site[];
	readonly '@id'?: string;
}
