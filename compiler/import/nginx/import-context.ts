/** The contexts that the parts of an import share: the writer, and definitions in `http` and `server` that inner blocks use. */
import type { ConfigfileWriter, Slot } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import type { Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import type { MapTable } from './write-maps.ts';
import type { Pools } from './write-upstream.ts';

/** The context that all servers share. */
export interface ImportContext {
	readonly out: ConfigfileWriter;
	readonly scope: Scope;
	readonly pools: Pools;
	readonly maps: MapTable;
	/** The `limit_req_zone` and `limit_conn_zone` lines, by the names of their zones. */
	readonly zones: ReadonlyMap<string, NginxDirective>;
	/** The `proxy_cache_path` and `fastcgi_cache_path` lines, by the names of their zones. */
	readonly cacheZones: ReadonlyMap<string, NginxDirective>;
	readonly logFormats: ReadonlyMap<string, NginxDirective>;
	/**
	 * How `$remote_addr` is written: its placeholder, and the matcher for address ranges. Both refer to the client's address if
	 * proxies are trusted.
	 */
	readonly address: { readonly placeholder: string; readonly matcher: 'client_ip' | 'remote_ip' };
	/** Comments at the start of the Configfile. */
	readonly head: Slot;
}

/** The context that the locations of a server share. */
export interface ServerContext extends ImportContext {
	readonly directives: readonly NginxDirective[];
	readonly variables: Variables;
	/** The values of variables that are `set` once in the server, to a constant. */
	readonly constants: ReadonlyMap<string, string>;
	/** The address to which tests send their requests; undefined if no address can be reached without a certificate. */
	readonly testAddress: string | undefined;
	/** Writes the lines that pass a request to the location for its path. */
	readonly chooseLocation: () => void;
	/** Reports whether nginx may choose a different location for `path` than the one whose block is `directives`. */
	readonly mayChooseOtherLocation: (path: string, directives: readonly NginxDirective[]) => boolean;
	/**
	 * Returns the name of the route that stands for a named location such as `@fallback`. Throws Untranslatable if there is no such
	 * location.
	 */
	readonly routeOf: (name: string) => string;
	/** Returns the location for exactly this path (`location = PATH`); undefined if there is none. */
	readonly findExactLocation: (path: string) => NginxDirective | undefined;
	/** Returns the name of a scope's rules for error responses (`error_page`); undefined if the server's rules apply. */
	readonly errorRulesName: (scope: Scope) => string | undefined;
	/**
	 * Records the slot at the start of a location to which the server's rules for error responses apply. If requests may arrive
	 * from locations with rules of their own, a line that makes the server's rules apply again is added to the slot.
	 */
	readonly noteEntrySlot: (slot: Slot) => void;
	/**
	 * True if compression is written in the locations rather than in the server, because some of them have settings of their own.
	 */
	readonly locationsCompress: boolean;
	/** True if some location is marked `internal`. Requests that are redirected internally then get the variable `internal`. */
	readonly hasInternalLocation: boolean;
}
