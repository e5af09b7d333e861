/** What a document compiles to, as far as it can be known without a runtime: listeners, and which sites each serves. */

import type { Document } from '../document/document.ts';
import type { PlannedSocket } from './planned-socket.ts';
import type { PlannedCertificates } from './tls/plan-tls.ts';
import type { ListenerTls } from './tls/site-tls.ts';

/** A place to listen. Two documents need the same sockets when their listener keys are the same set. */
export interface ListenerSpec extends PlannedSocket {
	readonly scheme: 'http' | 'https';
	/** Sites served there, in the order in which they are tried: most specific host first, catch-all last. */
	readonly sites: readonly ListenedSite[];
	/** How it shakes hands; there when the scheme is `https`. */
	readonly tls?: ListenerTls;
	/** `h1`, `h2`, `h2c`: what sites' `bind`s say instead of `settings.servers`. */
	readonly protocols?: readonly string[];
}

/** A site as one listener serves it. */
export interface ListenedSite {
	/** Index in `document.sites`; −1 for a redirect. */
	readonly site: number;
	/** Lower-case hosts: exact, or with `*` labels; empty matches every host. */
	readonly hosts: readonly string[];
	/** Deprecated address path of Compatfile. */
	readonly paths: readonly string[];
	/** The hosts are redirected to HTTPS on this port instead; 0 names none in the URL. */
	readonly redirect?: number;
}

/** What the files hold that a document names and that are read when it is loaded. Equal texts stand for equal contents. */
export interface NamedFiles {
	/** All of them: two equal documents are the same configuration only if this is equal too. */
	readonly identity: string;
	/** By site, those that are read when its handlers are built; '' for none. */
	readonly sites: readonly string[];
	/** The latter one by one, by path as the document has it. */
	readonly contents: { readonly [path: string]: string };
}

/** A document that has been checked, with its listeners. */
export interface Plan {
	readonly document: Document;
	readonly listeners: readonly ListenerSpec[];
	/** None if left out. */
	readonly certificates?: PlannedCertificates;
	/** Undefined when it names no file. */
	readonly files?: NamedFiles;
}
