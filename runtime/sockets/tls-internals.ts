/** Access to undocumented properties of Node's TLS objects. If one is missing, these functions do nothing or return undefined. */
import type { Socket } from 'node:net';
import type { SecureContext, Server, TLSSocket } from 'node:tls';

/** Returns the connection below a TLS stream. */
export function underlyingConnection(socket: TLSSocket): Socket | undefined {
	return (socket as TLSSocket & { readonly _parent?: Socket })._parent;
}

/** Copies the peer address of a connection to its TLS stream, which saves a system call. */
export function copyPeerAddress(socket: TLSSocket, connection: Socket): void {
	type WithPeer = Socket & { _peername?: object | undefined };
	(socket as WithPeer)._peername = (connection as WithPeer)._peername;
}

/** Makes the owner of a TLS stream responsible for its errors, as `tls.Server` does after a handshake. */
export function releaseControl(socket: TLSSocket): void {
	(socket as TLSSocket & { readonly _releaseControl?: () => void })._releaseControl?.();
}

/** Returns the context that a server shares between its connections. */
export function sharedContextOf(server: Server): SecureContext | undefined {
	return (server as Server & { readonly _sharedCreds?: SecureContext })._sharedCreds;
}

/** Frees a context's native memory. Open connections hold their own references to OpenSSL's objects. */
export function closeContext(context: SecureContext): void {
	const { context: internalContext } = context as SecureContext & { readonly context?: { close?: () => void } };
	internalContext?.close?.();
}
