/**
 * Finds out whether the peer of a TLS connection has announced its end with `close_notify` (RFC 8446 §6.1). Anyone on the network
 * path can forge an end without it. Node reports both in the same way, so this asks OpenSSL.
 */
import type { SecureContext } from 'node:tls';
import { contextAddress } from './context-address.ts';
import { directIoProblem, type ForeignLibrary, findOpenssl, foreignSignature } from './foreign-library.ts';
import { MAX_READ_BYTES } from './openssl-thread.ts';

const POINTER = 'pointer';
const SIGNATURES = {
	SSL_CTX_set_msg_callback: foreignSignature('void', POINTER, POINTER),
	SSL_CTX_set_default_read_buffer_len: foreignSignature('void', POINTER, 'uint64'),
	SSL_set_msg_callback: foreignSignature('void', POINTER, POINTER),
	SSL_get_shutdown: foreignSignature('int32', POINTER),
} as const;
/** Types of the parameters of a message callback: direction, version, type, bytes, their number, connection, and argument. */
const MESSAGE_CALLBACK_TYPES = ['int32', 'int32', 'int32', POINTER, 'uint64', POINTER, POINTER];
/** Flag of `SSL_get_shutdown`. */
const RECEIVED_SHUTDOWN = 2;

/** The address of OpenSSL's object for a connection of Node. It is valid until Node closes the connection. */
export type TlsConnectionAddress = bigint & { readonly tlsConnection: true };

/** Learns the addresses of a thread's TLS connections. */
class CloseNotifyWatcher {
	readonly #functions: ForeignLibrary<keyof typeof SIGNATURES>['functions'];
	readonly #callback: bigint;
	readonly #watchedContexts = new WeakSet<SecureContext>();
	/** The connection whose handshake has begun last, until it is taken. */
	#startedConnection: TlsConnectionAddress | undefined = undefined;

	constructor(library: ForeignLibrary<keyof typeof SIGNATURES>) {
		const { functions } = library;
		this.#functions = functions;
		// OpenSSL calls this with the first message of each handshake, which Node sends from JavaScript. Later messages are not
		// interesting, so the connection's callback is removed at once. It must not throw.
		this.#callback = library.registerCallback('void', MESSAGE_CALLBACK_TYPES, (...parameters: unknown[]) => {
			const connection = parameters[5] as TlsConnectionAddress;
			this.#startedConnection = connection;
			functions.SSL_set_msg_callback(connection, 0n);
		});
	}

	/** Watches the connections that use a context from now on. Returns false if that is not possible. */
	watch(context: SecureContext): boolean {
		if (this.#watchedContexts.has(context)) return true;
		try {
			const address = contextAddress(context);
			this.#functions.SSL_CTX_set_msg_callback(address, this.#callback);
			// For connections that are taken from Node later (taken-tls.ts): the size cannot be changed after the handshake.
			this.#functions.SSL_CTX_set_default_read_buffer_len(address, BigInt(MAX_READ_BYTES));
		} catch {
			return false;
		}
		this.#watchedContexts.add(context);
		return true;
	}

	takeStartedConnection(): TlsConnectionAddress | undefined {
		const connection = this.#startedConnection;
		this.#startedConnection = undefined;
		return connection;
	}

	hasCloseNotify(connection: TlsConnectionAddress): boolean {
		return ((this.#functions.SSL_get_shutdown(connection) as number) & RECEIVED_SHUTDOWN) !== 0;
	}
}

let threadWatcher: CloseNotifyWatcher | undefined | null = null;

/** Returns the watcher of this thread; undefined if OpenSSL cannot be called. */
function closeNotifyWatcher(): CloseNotifyWatcher | undefined {
	if (directIoProblem()) return undefined;
	if (threadWatcher === null) {
		const { library } = findOpenssl(SIGNATURES, ['SSL_CTX_set_msg_callback']);
		threadWatcher = library && new CloseNotifyWatcher(library);
	}
	return threadWatcher;
}

/**
 * Prepares a context for {@link takeStartedConnection}. Must be called before the handshake. Returns false if connections with
 * this context cannot be observed.
 */
export function watchCloseNotify(context: SecureContext): boolean {
	return closeNotifyWatcher()?.watch(context) === true;
}

/**
 * Returns the TLS connection whose handshake has begun last, only once. Must be called in the same synchronous task in which Node
 * has begun the handshake, and only if {@link watchCloseNotify} has returned true for its context.
 */
export function takeStartedConnection(): TlsConnectionAddress | undefined {
	return closeNotifyWatcher()?.takeStartedConnection();
}

/** Reports whether the peer has sent `close_notify`. Must not be called once Node has closed the connection. */
export function hasCloseNotify(connection: TlsConnectionAddress): boolean {
	return closeNotifyWatcher()?.hasCloseNotify(connection) === true;
}
