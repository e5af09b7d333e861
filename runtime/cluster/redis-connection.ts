/** A connection to Redis that reconnects by itself, and completes or rejects every command within a time limit. */
import { readFile } from 'node:fs/promises';
import { createClient, RESP_TYPES } from '@redis/client';
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import { ClusterError } from './cluster-error.ts';

/** A reply, with strings as bytes. */
export type RedisReply = Buffer | number | null | readonly RedisReply[];

export interface RedisConnectionDeps {
	/** Called when the connection is established. */
	onConnected(): void;
	/** Called when the connection has failed or could not be established. The cause contains no credential. */
	onFailed(cause: string): void;
}

/** Milliseconds for connecting, including the TLS handshake and authentication. */
const CONNECT_TIMEOUT_MS = 3000;
/** Milliseconds until the next attempt to connect: initially, and at most. */
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 2000;
/** The connection is replaced if a reply is due and nothing has arrived for this many milliseconds. */
const MAX_SILENCE_MS = 3000;
/** Maximum number of commands that wait for a reply. */
const MAX_PENDING_COMMANDS = 10_000;

const REPLIES_AS_BYTES = {
	typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.SIMPLE_STRING]: Buffer },
} as const;

interface RedisClient {
	sendCommand(args: readonly (string | Buffer)[], options: typeof REPLIES_AS_BYTES): Promise<unknown>;
	connect(): Promise<unknown>;
	destroy(): void;
	readonly isOpen: boolean;
}

/** One connection to Redis. It connects at once, and reconnects until it is closed. */
export class RedisConnection {
	readonly #settings: ClusterSettings;
	readonly #deps: RedisConnectionDeps;
	#client: RedisClient | undefined;
	/** The attempt to connect in progress. Resolves to false if it failed. */
	#connectAttempt: Promise<boolean> | undefined;
	#retryTimer: NodeJS.Timeout | undefined;
	#retryDelayMs = FIRST_RETRY_MS;
	#failureCause = 'not connected yet';
	#isClosed = false;
	#pendingCommands = 0;
	/** Time, by `performance.now()`, of the last reply, or of a later command that was sent while no reply was due. */
	#lastReplyAt = 0;

	constructor(settings: ClusterSettings, deps: RedisConnectionDeps) {
		this.#settings = settings;
		this.#deps = deps;
		this.#startConnecting();
	}

	get isConnected(): boolean {
		return this.#client !== undefined;
	}

	/** Why the last connection failed or could not be established. */
	get cause(): string {
		return this.#failureCause;
	}

	/**
	 * Sends a command. Waits for an attempt to connect that is in progress, but not for the next one. Rejects with ClusterError
	 * after at most `limitMs` milliseconds; Redis may still execute the command.
	 */
	async sendCommand(args: readonly (string | Buffer)[], limitMs: number): Promise<RedisReply> {
		if (this.#pendingCommands >= MAX_PENDING_COMMANDS) throw unavailableError('too many commands wait for a reply');
		let timer: NodeJS.Timeout | undefined;
		const timeoutPromise = new Promise<never>((_, reject) => {
			timer = setTimeout(() => reject(unavailableError(`no answer within ${limitMs} ms`)), limitMs);
		});
		try {
			if (!this.#client) await Promise.race([this.#connectAttempt, timeoutPromise]);
			const client = this.#client;
			if (!client) throw unavailableError(this.#failureCause);
			return await Promise.race([this.#sendToClient(client, args), timeoutPromise]);
		} catch (error) {
			if (this.#client && this.#pendingCommands > 0 && performance.now() - this.#lastReplyAt > MAX_SILENCE_MS) {
				this.#handleFailure(this.#client, `no answer for ${MAX_SILENCE_MS / 1000} seconds`);
			}
			throw error;
		} finally {
			clearTimeout(timer);
		}
	}

	close(): void {
		this.#isClosed = true;
		clearTimeout(this.#retryTimer);
		const client = this.#client;
		this.#client = undefined;
		if (client?.isOpen) client.destroy();
	}

	async #sendToClient(client: RedisClient, args: readonly (string | Buffer)[]): Promise<RedisReply> {
		if (this.#pendingCommands++ === 0) this.#lastReplyAt = performance.now();
		try {
			const reply = (await client.sendCommand(args, REPLIES_AS_BYTES)) as RedisReply;
			this.#lastReplyAt = performance.now();
			return reply;
		} catch (error) {
			const errorMessage = (error as Error).message;
			const [, replyCode] = /^(?:-)?([A-Z][A-Z0-9]{2,})\b/.exec(errorMessage) ?? [];
			if (replyCode === undefined)
				throw unavailableError(this.#client === client ? plainCause(error) : this.#failureCause);
			this.#lastReplyAt = performance.now();
			throw new ClusterError('cluster/refused', replyCause(replyCode), replyCode);
		} finally {
			this.#pendingCommands--;
		}
	}

	#startConnecting(): void {
		this.#connectAttempt = this.#openClient().then(
			client => {
				if (this.#isClosed) {
					client.destroy();
					return false;
				}
				this.#client = client;
				this.#retryDelayMs = FIRST_RETRY_MS;
				this.#deps.onConnected();
				return true;
			},
			error => {
				this.#handleFailure(undefined, plainCause(error));
				return false;
			},
		);
	}

	async #openClient(): Promise<RedisClient> {
		const { address, tls, user, password, database } = this.#settings;
		const [, host = '', port = ''] = /^\[?([^\]]+)\]?:(\d+)$/.exec(address) ?? [];
		const baseOptions = {
			host,
			port: Number(port),
			connectTimeout: CONNECT_TIMEOUT_MS,
			reconnectStrategy: false as const,
		};
		const socketOptions = tls ? { ...baseOptions, tls: true as const, ...(await this.#tlsOptions(host)) } : baseOptions;
		const client = createClient({
			RESP: 2,
			socket: socketOptions,
			...(user === undefined ? {} : { username: user }),
			...(password === undefined ? {} : { password }),
			...(database === undefined ? {} : { database }),
			disableOfflineQueue: true,
		});
		// A client without a listener would end the process.
		client.on('error', error => this.#handleFailure(client as unknown as RedisClient, plainCause(error)));
		let timer: NodeJS.Timeout | undefined;
		const timeoutPromise = new Promise<never>((_, reject) => {
			timer = setTimeout(
				() => reject(unavailableError(`no connection within ${CONNECT_TIMEOUT_MS} ms`)),
				CONNECT_TIMEOUT_MS,
			);
		});
		try {
			const connecting = client.connect();
			connecting.catch(() => {});
			await Promise.race([connecting, timeoutPromise]);
			return client as unknown as RedisClient;
		} catch (error) {
			if (client.isOpen) client.destroy();
			throw error;
		} finally {
			clearTimeout(timer);
		}
	}

	async #tlsOptions(host: string) {
		const { ca, server_name: serverName, client } = this.#settings.tls!;
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

	/** Gives up a client and schedules the next attempt. */
	#handleFailure(client: RedisClient | undefined, cause: string): void {
		if (this.#isClosed || client !== this.#client) return;
		this.#client = undefined;
		this.#failureCause = cause;
		this.#connectAttempt = undefined;
		if (client?.isOpen) client.destroy();
		this.#deps.onFailed(cause);
		clearTimeout(this.#retryTimer);
		this.#retryTimer = setTimeout(() => this.#startConnecting(), this.#retryDelayMs * (0.75 + Math.random() / 2));
		this.#retryTimer.unref();
		this.#retryDelayMs = Math.min(this.#retryDelayMs * 2, MAX_RETRY_MS);
	}
}

function unavailableError(cause: string): ClusterError {
	return new ClusterError('cluster/unavailable', cause);
}

/** Describes an error without quoting Redis, whose messages can contain arguments of commands. */
function plainCause(error: unknown): string {
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
	};
	return causes[code ?? ''] ?? code ?? 'connection closed';
}

/** Describes an error reply of Redis by its first word. */
function replyCause(code: string): string {
	const causes: { readonly [code: string]: string } = {
		OOM: 'Redis is out of memory',
		MISCONF: 'Redis cannot save its data and refuses writes',
		READONLY: 'this Redis server is a read-only replica',
		LOADING: 'Redis is loading its data',
		BUSY: 'Redis is busy with a script',
		NOAUTH: 'Redis requires a password',
		WRONGPASS: 'Redis rejects the user or password',
		NOPERM: 'the Redis user lacks a permission',
		DENIED: 'Redis is in protected mode and accepts only its own machine',
		CLUSTERDOWN: 'the Redis Cluster is down',
	};
	return causes[code] ?? `Redis answered ${code}`;
}
