/** The plan of a document: what is known about it before it runs, such as its listeners and the sites of each. */

import type { Document } from '../../document/document.ts';
import type { PlannedCertificates } from './plan-tls.ts';
import type { PlannedSocket } from './planned-socket.ts';
import type { ListenerTls } from './site-tls.ts';

/** A listener. Two documents need the same sockets if they have the same listener keys. */
export interface ListenerSpec extends PlannedSocket {
	readonly scheme: 'http' | 'https';
	/** Sites that the listener serves, in order of precedence: most specific host first, catch-all last. */
	readonly sites: readonly ListenedSite[];
	/** TLS parameters; present if the scheme is `https`. */
	readonly tls?: ListenerTls;
	/** Protocols (`h1`, `h2`, `h2c`, `h3`) named in the sites' `bind` entries; they override those of `settings.servers`. */
	readonly protocols?: readonly string[];
}

/** A site as served by one listener. */
export interface ListenedSite {
	/** Index in `document.sites`; −1 for a redirect. */
	readonly site: number;
	/** Lower-case hosts: exact, or with `*` labels; empty matches every host. */
	readonly hosts: readonly string[];
	/** Paths in the site's addresses, such as `/a` in `example.com/a`. They are a deprecated feature of Compatfiles. */
	readonly paths: readonly string[];
	/** Port of the HTTPS URL to which requests for the hosts are redirected; 0 omits it. Undefined for an ordinary site. */
	readonly redirect?: number;
}

/**
 * The identities of the files that a document names and that are read when the configuration is loaded. An identity is a string
 * that is the same if and only if the contents are the same.
 */
export interface FileIdentities {
	/**
	 * The identity of all files together. Two equal documents are the same configuration only if their file identities are equal as
	 * well.
	 */
	readonly identity: string;
	/** For each site, the identity of the files that are read when its handlers are built; '' if there are none. */
	readonly sites: readonly string[];
	/** The identity of each file, by its path as written in the document. */
	readonly contents: { readonly [path: string]: string };
}

/** A checked document with its listeners. */
export interface Plan {
	readonly document: Document;
	readonly listeners: readonly ListenerSpec[];
	/** The certificates that the document requires; absent if it requires none. */
	readonly certificates?: PlannedCertificates;
	/** Identities of the files that the document names; undefined if it names none. */
	readonly files?: FileIdentities;
}
