/**
 * Takes TLS connections to upstreams from Node after the handshake. Node makes the handshake and verifies the certificate. What
 * follows is then read and written by OpenSSL directly (openssl-handle.ts): Node's objects and streams copy every record through
 * memory, and complete each write in a later turn of the event loop, which costs as much as the proxy's own work on a small request.
 *
 * While Node owns the SSL object, OpenSSL may call functions of Node that call JavaScript, which is not allowed during the calls of
 * openssl-handle.ts. Therefore, the owner must not listen for `session` on the stream of a connection that is to be taken.
 */
import { TLSSocket } from 'node:tls';
import type { TlsConnectionAddress } from './close-notify.ts';
import { DirectSocket } from './direct-socket.ts';
import { CTRL_MODE, SSL_MODES } from './openssl-context.ts';
import { OpensslHandle } from './openssl-handle.ts';
import { BIO_CTRL_PENDING } from './openssl-thread.ts';
import { threadPoller } from './socket-poller.ts';
import { directTlsThread } from './start-tls.ts';
import { isDirectHandle, type StreamHandle } from './stream-handle.ts';

const CTRL_CLEAR_MODE = 78;
/** A mode that Node sets. The thread frees buffers when connections are idle, instead of after each read. */
const MODE_RELEASE_BUFFERS = 16n;
/** Upstreams may not start a renegotiation. */
const SSL_OP_NO_RENEGOTIATION = 1n << 30n;

/** The members of Node's object for a TLS connection that are used here. */
interface TlsWrap {
	/** The handle of the TCP connection. */
	readonly _parent?: object | null;
	/** The stream of the TCP connection, if it has one. */
	readonly _parentWrap?: object | null;
	readStart(): number;
	readStop(): number;
	destroySSL(): void;
}

/** The members of a `tls.TLSSocket` that are used here. */
interface TlsSocketInternals {
	/** Null once the stream has ended. */
	_handle: TlsWrap | null;
	ssl: object | null;
}

/** Node's objects for the connections that were taken. OpenSSL's callbacks refer to them as long as the SSL object exists. */
const nodeObjects = new WeakMap<OpensslHandle, TlsWrap>();

/** Reports whether this thread can read and write TLS connections without Node. */
export function canTakeTlsConnections(): boolean {
	return threadPoller() !== undefined && directTlsThread() !== undefined;
}

/**
 * Takes the connection out of a client's stream, which must then be destroyed. Returns undefined, and leaves the stream as it is, if bytes
 * are waiting in the stream to be read or written, if it is built on another stream, or if Node's objects are not as expected. Must
 * not be called during an event of the stream, because OpenSSL is running then.
 * @param onSession Receives the session once, if a later connection can resume it.
 */
export function takeTlsConnection(
	socket: TLSSocket,
	connection: TlsConnectionAddress,
	onSession: (session: Buffer) => void,
): DirectSocket | undefined {
	const poller = threadPoller();
	const thread = directTlsThread();
	if (!poller || !thread || Object.getPrototypeOf(socket) !== TLSSocket.prototype) return undefined;
	if (socket.destroyed || socket.readableLength > 0 || socket.writableLength > 0 || socket.readableEnded)
		return undefined;
	const internals = socket as unknown as TlsSocketInternals;
	const tls = internals._handle;
	const tcpHandle = tls?._parent;
	if (!tls || !tcpHandle || tls._parentWrap || typeof tls.destroySSL !== 'function' || !canPoll(tcpHandle))
		return undefined;
	const { functions } = thread;
	if (pendingBytes(functions.SSL_get_wbio(connection) as bigint) !== 0n) return undefined;
	const input = functions.SSL_get_rbio(connection) as bigint;
	const hasInput = pendingBytes(input) !== 0n;
	tls.readStop();
	functions.SSL_up_ref(connection);
	if (hasInput) functions.BIO_up_ref(input);
	const { onread } = tcpHandle;
	const taken = new DirectSocket(tcpHandle);
	const prefix = sessionPrefix(socket, thread.sessionOf(connection));
	const offerSession = (): void => {
		if (prefix === undefined || !thread.hasResumableSession(connection)) return;
		const session = thread.sessionOf(connection);
		if (session !== undefined) onSession(Buffer.concat([prefix, session]));
	};
	const handle = OpensslHandle.continue(taken, poller, thread, connection, hasInput ? input : 0n, offerSession);
	if (handle === undefined) {
		tcpHandle.onread = onread;
		tls.readStart();
		return undefined;
	}
	nodeObjects.set(handle, tls);
	// Node releases its reference to the SSL object, and no longer reads the TCP connection.
	tls.destroySSL();
	functions.SSL_set_info_callback(connection, 0n);
	functions.SSL_ctrl(connection, CTRL_CLEAR_MODE, MODE_RELEASE_BUFFERS, 0n);
	functions.SSL_ctrl(connection, CTRL_MODE, SSL_MODES, 0n);
	functions.SSL_set_read_ahead(connection, 1);
	functions.SSL_set_options(connection, SSL_OP_NO_RENEGOTIATION);
	taken.switchHandle(handle);
	internals._handle = null;
	internals.ssl = null;
	return taken;

	function pendingBytes(bio: bigint): bigint {
		return functions.BIO_ctrl(bio, BIO_CTRL_PENDING, 0n, 0n) as bigint;
	}
}

/**
 * Returns what Node writes before a session in DER, such as the server's name: Node resumes only sessions that begin with it. Returns
 * undefined if Node's session has another form.
 */
function sessionPrefix(socket: TLSSocket, session: Buffer | undefined): Buffer | undefined {
	const nodeSession = socket.getSession();
	if (session === undefined || nodeSession === undefined) return undefined;
	const prefixBytes = nodeSession.length - session.length;
	return prefixBytes >= 0 && nodeSession.subarray(prefixBytes).equals(session)
		? nodeSession.subarray(0, prefixBytes)
		: undefined;
}

/** Reports whether the poller can read the connection of a handle, and nothing is waiting to be sent. */
function canPoll(handle: object): handle is StreamHandle {
	return isDirectHandle(handle) && handle.writeQueueSize === 0 && handle.fd !== undefined && handle.fd >= 0;
}
