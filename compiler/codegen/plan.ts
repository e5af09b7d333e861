/** The plan of a document, everything known without a runtime: its listeners, and the sites each serves. */

import type { Document } from '../document/document.ts';
import type { PlannedSocket } from './planned-socket.ts';
import type { PlannedCertificates } from './tls/plan-tls.ts';
import type { ListenerTls } from './tls/site-tls.ts';

/** A listener. Two documents need the same sockets if they have the same set of listener keys. */
export interface ListenerSpec extends PlannedSocket {
	readonly scheme: 'http' | 'https';
	/** Sites served there, in order of precedence: most specific host first, catch-all last. */
	readonly sites: readonly ListenedSite[];
	/** TLS parameters; present if the scheme is `https`. */
	readonly tls?: ListenerTls;
	/** `h1`, `h2`, `h2c`, `h3`: set by sites' `bind`s instead of `settings.servers`. */
	readonly protocols?: readonly string[];
}

/** A site as served by one listener. */
export interface ListenedSite {
	/** Index in `document.sites`; −1 for a redirect. */
	readonly site: number;
	/** Lower-case hosts: exact, or with `*` labels; empty matches every host. */
	readonly hosts: readonly string[];
	/** Deprecated path of a Compatfile address. */
	readonly paths: readonly string[];
	/** The hosts are instead redirected to HTTPS on this port; 0 omits it from the URL. */
	readonly redirect?: number;
}

/** The contents of files that a document names and that are read at load time, as texts that are equal if the contents are. */
export interface NamedFiles {
	/** All of them: two equal documents are the same configuration only if this is equal too. */
	readonly identity: string;
	/** By site, the files that are read when its handlers are built; '' if none. */
	readonly sites: readonly string[];
	/** The same individually, by path as in the document. */
	readonly contents: { readonly [path: string]: string };
}

/** A checked document with its listeners. */
export interface Plan {
	readonly document: Document;
	readonly listeners: readonly ListenerSpec[];
	/** Absent if there are none. */
	readonly certificates?: PlannedCertificates;
	/** Undefined if it names no files. */
	readonly files?: NamedFiles;
}
