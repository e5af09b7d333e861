/** How a connection to an upstream comes to be: the part that is the same for every protocol. */
import type { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';

/** Who waits for a connection. One of the two is called, once, unless the attempt is abandoned. */
export interface DialOwner {
	/** The wire is ready for the protocol's first byte; its holder is to be replaced at once. */
	dialed(wire: UpstreamSocket): void;
	/** With phase `connect`, or `timeout`; nothing of the request has been sent. */
	dialFailed(error: UpstreamError): void;
}

/** An attempt that is under way. */
export interface Dialing {
	/** Gives it up; the owner is not called any more. */
	abandon(): void;
}

/** Connects to one upstream. */
export interface Dialer {
	dial(owner: DialOwner): Dialing;
}

/** Where to connect. */
export type ClientTarget = { readonly host: string; readonly port: number } | { readonly path: string };
