/** A socket to listen on, as the main thread describes it to worker threads. */
import type { Http3Request } from '../../compiler/codegen/plan/http3-request.ts';
import type { PlannedSocket } from '../../compiler/codegen/plan/planned-socket.ts';
import type { InheritedDatagrams } from '../sockets/bequeathed-sockets.ts';

/** A socket to listen on. `port` is 0 until the main thread has chosen one. */
export interface ListenerAddress extends PlannedSocket {
	readonly scheme: 'http' | 'https';
	/**
	 * Descriptor of a socket that the main thread holds. Each thread listens on a duplicate of it. Undefined if each thread binds
	 * its own socket.
	 */
	readonly descriptor?: number;
	/** Descriptors of the predecessor's TCP sockets. The thread listens on duplicates of them; see runtime/main/handover. */
	readonly inherited?: readonly number[];
	/** The predecessor's UDP sockets, for HTTP/3. Undefined if each thread binds its own. */
	readonly datagrams?: readonly InheritedDatagrams[] | undefined;
	/**
	 * Set if the thread must not bind the address until it is told to accept connections, because the predecessor still serves it.
	 */
	readonly deferred?: true;
	/**
	 * How HTTP/3 was requested; undefined if UDP is not bound beside TCP. A listener for which the configuration names HTTP/3 is not
	 * served at all if UDP cannot be bound.
	 */
	readonly http3?: Http3Request;
}
