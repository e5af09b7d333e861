/** Connects a client to one Redis server, Sentinel or node of a Redis Cluster, and describes errors without secrets. */
import { readFile } from 'node:fs/promises';
import { createClient, RESP_TYPES } from '@redis/client';
import type { ClusterTls } from '../../compiler/document/cluster-settings.ts';
import { ClusterError } from './cluster-error.ts';

const UNTRUSTED_CERTIFICATE = 'the certificate of Redis was not issued by a trusted authority';

/** The settings of a connection, besides the address. */
export interface RedisLogin {
	/** Present if the connection uses TLS. */
	readonly tls?: ClusterTls;
	readonly user?: string;
	readonly password?: string;
	readonly database?: number;
}

/** A connected client. It does not reconnect. */
export interface RedisClient {
	sendCommand(args: readonly (string | Buffer)[], options: typeof REPLIES_AS_BYTES): Promise<unknown>;
	destroy(): void;
	readonly isOpen: boolean;
}

export const REPLIES_AS_BYTES = {
	typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.SIMPLE_STRING]: Buffer },
} as const;

/**
 * Connects within `limitMs` milliseconds, including the TLS handshake and authentication. Rejects if that fails.
 * @param address `host:port`
 * @param onError Called when the connection fails later. The cause contains no credential.
 */
export async function connectRedisClient(
	address: string,
	{ tls, user, password, database }: RedisLogin,
	limitMs: number,
	onError: (client: RedisClient, cause: string) => void,
): Promise<RedisClient> {
	const { host, port } = splitAddress(address);
	const baseOptions = { host, port, connectTimeout: limitMs, reconnectStrategy: false as const };
	const socketOptions = tls ? { ...baseOptions, tls: true as const, ...(await tlsOptions(tls, host)) } : baseOptions;
	const client = createClient({
		RESP: 2,
		socket: socketOptions,
		...(user === undefined ? {} : { username: user }),
		...(password === undefined ? {} : { password }),
		...(database === undefined ? {} : { database }),
		disableOfflineQueue: true,
	});
	// Without a listener, an error of the client would end the process.
	client.on('error', error => onError(client as unknown as RedisClient, plainCause(error)));
	try {
		await withinLimit(client.connect(), limitMs, `no connection within ${limitMs} ms`);
		return client as unknown as RedisClient;
	} catch (error) {
		if (client.isOpen) client.destroy();
		throw error;
	}
}

/** Settles like `promise`, but rejects with a ClusterError with this `cause` if that takes longer than `limitMs` milliseconds. */
export async function withinLimit<T>(promise: Promise<T>, limitMs: number, cause: string): Promise<T> {
	const limit = startLimit(limitMs, cause);
	try {
		return await Promise.race([promise, limit.exceeded]);
	} finally {
		limit.cancel();
	}
}

/**
 * Starts a time limit, after which `exceeded` rejects with a ClusterError with this `cause`. A reply that has arrived by then is still
 * read first, because a process that was busy or suspended has not read replies that arrived in time. The caller must handle the
 * rejection, which can also follow soon after `cancel`.
 */
export function startLimit(
	limitMs: number,
	cause: string,
): { readonly exceeded: Promise<never>; readonly cancel: () => void } {
	const { promise: exceeded, reject } = Promise.withResolvers<never>();
	const timer = setTimeout(() => setImmediate(() => reject(unavailableError(cause))), limitMs);
	return { exceeded, cancel: () => clearTimeout(timer) };
}

async function tlsOptions({ ca, server_name: serverName, client }: ClusterTls, host: string) {
	const readTlsFile = (file: string): Promise<Buffer> =>
		readFile(file).catch(error => {
			throw unavailableError(`${file} cannot be read: ${error.code}`);
		});
	const servername = serverName ?? (/^[\d.]+$|:/.test(host) ? undefined : host);
	return {
		...(servername === undefined ? {} : { servername }),
		...(ca === undefined ? {} : { ca: await readTlsFile(ca) }),
		...(client ? { cert: await readTlsFile(client.cert), key: await readTlsFile(client.key) } : {}),
	};
}

/** Splits `host:port`, where an IPv6 address is in brackets. */
export function splitAddress(address: string): { readonly host: string; readonly port: number } {
	const [, host = '', port = ''] = /^\[?([^\]]*)\]?:(\d+)$/.exec(address) ?? [];
	return { host, port: Number(port) };
}

/** Joins a host and a port. An IPv6 address gets brackets. */
export function joinAddress(host: string, port: number | string): string {
	return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

export function unavailableError(cause: string): ClusterError {
	return new ClusterError('cluster/unavailable', cause);
}

/** Returns the first word of an error reply of Redis, for example `OOM`; undefined if the error is not a reply. */
export function replyCodeOf(error: unknown): string | undefined {
	return /^-?([A-Z][A-Z0-9]{2,})\b/.exec((error as Error).message)?.[1];
}

/** Describes an error without quoting Redis, whose messages can contain arguments of commands. */
export function plainCause(error: unknown): string {
	if (error instanceof ClusterError) return error.message;
	const { code, message } = error as NodeJS.ErrnoException;
	const [, reply] = /^([A-Z][A-Z0-9]{2,})\b/.exec(message) ?? [];
	if (code === undefined && reply !== undefined && !/^E[A-Z]+$/.test(reply)) return replyCause(reply);
	const causes: { readonly [code: string]: string } = {
		ECONNREFUSED: 'connection refused',
		ECONNRESET: 'connection reset',
		ETIMEDOUT: 'connection timed out',
		EHOSTUNREACH: 'host unreachable',
		ENOTFOUND: 'host not found',
		EAI_AGAIN: 'host not found',
		ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of Redis has another name',
		CERT_HAS_EXPIRED: 'the certificate of Redis has expired',
		DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED_CERTIFICATE,
		SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED_CERTIFICATE,
		UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED_CERTIFICATE,
		UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED_CERTIFICATE,
		UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED_CERTIFICATE,
		CERT_SIGNATURE_FAILURE: UNTRUSTED_CERTIFICATE,
	};
	return causes[code ?? ''] ?? code ?? 'connection closed';
}

/** Describes an error reply of Redis by its first word. */
export function replyCause(code: string): string {
	const causes: { readonly [code: string]: string } = {
		OOM: 'Redis is out of memory',
		MISCONF: 'Redis cannot save its data and refuses writes',
		READONLY: 'this Redis server is a read-only replica',
		LOADING: 'Redis is loading its data',
		BUSY: 'Redis is busy with a script',
		NOAUTH: 'Redis requires a password',
		WRONGPASS: 'Redis rejects the user or password',
		NOPERM: 'the Redis user lacks a permission',
		NOREPLICAS: 'Redis has too few replicas and refuses writes',
		DENIED: 'Redis is in protected mode and accepts only its own machine',
		CLUSTERDOWN: 'the Redis Cluster is down',
		TRYAGAIN: 'keys are being moved to another node of the Redis Cluster',
		MOVED: 'this Redis server is a node of a Redis Cluster, which needs `mode cluster`',
	};
	return causes[code] ?? `Redis answered ${code}`;
}
