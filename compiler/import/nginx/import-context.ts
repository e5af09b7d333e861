/** What the parts of an import share: the writer, and the definitions of `http` and of a server that inner blocks use. */
import type { ConfigfileWriter, Slot } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import type { Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import type { MapTable } from './write-maps.ts';
import type { Pools } from './write-upstream.ts';

/** What all servers share. */
export interface ImportContext {
	readonly out: ConfigfileWriter;
	readonly scope: Scope;
	readonly pools: Pools;
	readonly maps: MapTable;
	/** The `limit_req_zone` and `limit_conn_zone` lines by the names of their zones. */
	readonly zones: ReadonlyMap<string, NginxDirective>;
	/** The `proxy_cache_path` and `fastcgi_cache_path` lines by the names of their zones. */
	readonly cacheZones: ReadonlyMap<string, NginxDirective>;
	readonly logFormats: ReadonlyMap<string, NginxDirective>;
	/** The placeholder of `$remote_addr` and the matcher for its ranges: those of the client if proxies are trusted. */
	readonly address: { readonly placeholder: string; readonly matcher: 'client_ip' | 'remote_ip' };
	/** Comments at the head of the result. */
	readonly head: Slot;
}

/** What the locations of a server share. */
export interface ServerContext extends ImportContext {
	readonly directives: readonly NginxDirective[];
	readonly variables: Variables;
	/** The variables to which a single `set` gives a constant value. */
	readonly constants: ReadonlyMap<string, string>;
	/** The address to which tests send their requests; undefined if no address can be reached without a certificate. */
	readonly testAddress: string | undefined;
	/** Writes the lines that send a request to the location of its path. */
	readonly chooseLocation: () => void;
	/** Reports whether nginx may choose, for a path, another location than the one whose directives are `directives`. */
	readonly mayBelongElsewhere: (path: string, directives: readonly NginxDirective[]) => boolean;
	/** Returns the name of the route that a named location becomes. Throws Untranslatable if there is no such location. */
	readonly named: (name: string) => string;
	/** Returns the location for exactly this path (`location = PATH`); undefined if there is none. */
	readonly exact: (path: string) => NginxDirective | undefined;
	/** Returns the name of the error rules of a scope; undefined if they are those of the server. */
	readonly errorPlace: (scope: Scope) => string | undefined;
	/**
	 * Records the slot at the start of a location. A line is added to it if a request from another location may have error rules
	 * that must be reset.
	 */
	readonly noteEntry: (slot: Slot) => void;
	/** True if locations have compression lines of their own, so that the server has none. */
	readonly locationsCompress: boolean;
	/**
	 * True if some location can be reached only by internal redirects, so that the requests of these have the variable `internal`.
	 */
	readonly hasInternal: boolean;
}
