/** The addresses of sites on TLS listeners, from which automatic HTTPS is planned. */
import type { SiteTls } from '../../document/tls-settings.ts';

/** One address of a site on a TLS listener. */
export interface TlsAddress {
	/** Index of the site in `document.sites`. */
	readonly site: number;
	/** The name that clients request; '' for any name. */
	readonly host: string;
	readonly tls: SiteTls | undefined;
	/** Host to which the listener is bound. */
	readonly boundHost: string;
	readonly port: number;
	/** JSON pointer of the address. */
	readonly pointer: string;
}
