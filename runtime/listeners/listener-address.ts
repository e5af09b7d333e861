/** A socket to listen on, as the main thread describes it to worker threads. */
import type { Http3Request } from '../../compiler/codegen/plan/http3-at.ts';
import type { PlannedSocket } from '../../compiler/codegen/plan/planned-socket.ts';
import type { InheritedDatagrams } from '../sockets/bequeathed-sockets.ts';

/** A socket to listen on. `port` is 0 until the main thread has chosen one. */
export interface ListenerAddress extends PlannedSocket {
	readonly scheme: 'http' | 'https';
	/** The socket held by the main thread, of which each thread listens on a duplicate; undefined if each thread binds its own. */
	readonly descriptor?: number;
	/** Sockets of the process that this one succeeds, of which the thread listens on duplicates; see runtime/main/handover. */
	readonly inherited?: readonly number[];
	/** Their UDP sockets. Undefined if each thread binds its own. */
	readonly datagrams?: readonly InheritedDatagrams[] | undefined;
	/** The thread binds it only once it is told to accept, because the process that this one succeeds still serves the address. */
	readonly deferred?: true;
	/** Set if UDP is bound beside TCP. Without UDP, a listener whose HTTP/3 is `named` is not served at all. */
	readonly http3?: Http3Request;
}
