/** The input of automatic HTTPS: the sites of a document as served by its TLS listeners. */
import type { SiteTls } from './site-tls.ts';

/** One address of a site on a TLS listener. */
export interface TlsAddress {
	/** Index in `document.sites`. */
	readonly site: number;
	/** '' is any name. */
	readonly host: string;
	readonly tls: SiteTls | undefined;
	/** Host to which the listener is bound. */
	readonly bound: string;
	readonly port: number;
	/** JSON pointer of the address. */
	readonly pointer: string;
}
