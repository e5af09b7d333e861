/** The input to automatic HTTPS: the sites of a document as its TLS listeners serve them. */
import type { SiteTls } from '../../document/tls-settings.ts';

/** One address of a site on a TLS listener. */
export interface TlsAddress {
	/** Index of the site in `document.sites`. */
	readonly site: number;
	/** Server name; '' stands for any name. */
	readonly host: string;
	readonly tls: SiteTls | undefined;
	/** Host to which the listener is bound. */
	readonly boundHost: string;
	readonly port: number;
	/** JSON pointer of the address. */
	readonly pointer: string;
}
