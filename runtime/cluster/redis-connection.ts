/** A connection to Redis that reconnects by itself, and completes or rejects every command within a time limit. */
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import { ClusterError } from './cluster-error.ts';
import {
	connectRedisClient,
	plainCause,
	REPLIES_AS_BYTES,
	type RedisClient,
	replyCause,
	replyCodeOf,
	startLimit,
	unavailableError,
	withinLimit,
} from './redis-client.ts';

/** A reply, with strings as bytes. */
export type RedisReply = Buffer | number | null | readonly RedisReply[];

export interface RedisConnectionDeps {
	onConnected(): void;
	/** Called when the connection has failed or could not be established. The cause contains no credential. */
	onFailed(cause: string): void;
}

/** Finds the master to connect to, where another server can become the master. */
export interface MasterLocator {
	/** Returns addresses that may be the master's, the most likely one first. Rejects with ClusterError. */
	locate(): Promise<readonly string[]>;
	/** Calls `onLocated` whenever it has learned which addresses may be the master's. Returns a function that stops this. */
	watch(onLocated: (addresses: readonly string[]) => void): () => void;
}

/** Milliseconds for connecting, including the TLS handshake and authentication. */
const CONNECT_TIMEOUT_MS = 3000;
/** Milliseconds before the next attempt to connect: after the first failure, and the maximum. */
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 2000;
/** The connection is replaced if a reply is due and nothing has arrived for this many milliseconds. */
const MAX_SILENCE_MS = 3000;
/** Maximum number of commands that wait for a reply. */
const MAX_PENDING_COMMANDS = 10_000;

/** One connection to Redis. It connects at once, and reconnects until it is closed. */
export class RedisConnection {
	readonly #settings: ClusterSettings;
	readonly #deps: RedisConnectionDeps;
	readonly #locator: MasterLocator | undefined;
	readonly #endWatch: (() => void) | undefined;
	#client: RedisClient | undefined;
	/** Address of the server that {@link #client} is connected to. */
	#connectedAddress = '';
	/** Number of connections that have been established. Each may be to a different server than the previous one. */
	connectionNumber = 0;
	/** The attempt to connect in progress. Resolves to false if it failed. */
	#connectAttempt: Promise<boolean> | undefined;
	#retryTimer: NodeJS.Timeout | undefined;
	#retryDelayMs = FIRST_RETRY_MS;
	/** Time, by `performance.now()`, at which the connection was established. */
	#connectedAt = 0;
	#failureCause = 'not connected yet';
	#isClosed = false;
	#pendingCommandCount = 0;
	/** Time, by `performance.now()`, of the last reply, or of a later command that was sent while no reply was due. */
	#lastReplyAt = 0;

	/** @param locator Finds the server; undefined for the address in the settings. */
	constructor(settings: ClusterSettings, deps: RedisConnectionDeps, locator?: MasterLocator) {
		this.#settings = settings;
		this.#deps = deps;
		this.#locator = locator;
		this.#endWatch = locator?.watch(addresses => {
			if (this.#client && !addresses.includes(this.#connectedAddress))
				this.#handleFailure(this.#client, 'another server has become the master');
		});
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
		if (this.#pendingCommandCount >= MAX_PENDING_COMMANDS) throw unavailableError('too many commands wait for a reply');
		const limit = startLimit(limitMs, `no answer within ${limitMs} ms`);
		try {
			if (!this.#client) await Promise.race([this.#connectAttempt, limit.exceeded]);
			const client = this.#client;
			if (!client) throw unavailableError(this.#failureCause);
			return await Promise.race([this.#sendToClient(client, args), limit.exceeded]);
		} catch (error) {
			if (this.#client && this.#pendingCommandCount > 0 && performance.now() - this.#lastReplyAt > MAX_SILENCE_MS) {
				this.#handleFailure(this.#client, `no answer for ${MAX_SILENCE_MS / 1000} seconds`);
			}
			throw error;
		} finally {
			limit.cancel();
		}
	}

	close(): void {
		this.#isClosed = true;
		this.#endWatch?.();
		clearTimeout(this.#retryTimer);
		const client = this.#client;
		this.#client = undefined;
		if (client?.isOpen) client.destroy();
	}

	async #sendToClient(client: RedisClient, args: readonly (string | Buffer)[]): Promise<RedisReply> {
		if (this.#pendingCommandCount++ === 0) this.#lastReplyAt = performance.now();
		try {
			const reply = (await client.sendCommand(args, REPLIES_AS_BYTES)) as RedisReply;
			this.#lastReplyAt = performance.now();
			return reply;
		} catch (error) {
			const replyCode = replyCodeOf(error);
			if (replyCode === undefined)
				throw unavailableError(this.#client === client ? plainCause(error) : this.#failureCause);
			this.#lastReplyAt = performance.now();
			// This master has become a replica of a new master. Without Sentinels, the host name may resolve to the new master by now.
			if (replyCode === 'READONLY' && (this.#locator || performance.now() - this.#connectedAt >= MAX_RETRY_MS))
				this.#handleFailure(client, replyCause(replyCode));
			const [, redirectAddress] = /^-?(?:MOVED|ASK) \d+ (\S*:\d+)$/.exec((error as Error).message) ?? [];
			throw new ClusterError('cluster/refused', replyCause(replyCode), replyCode, redirectAddress);
		} finally {
			this.#pendingCommandCount--;
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
				this.connectionNumber++;
				this.#connectedAt = performance.now();
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
		const addresses = this.#locator ? await this.#locator.locate() : [this.#settings.address];
		let failure: unknown = unavailableError('no address of Redis is known');
		for (const address of addresses) {
			try {
				const client = await connectRedisClient(address, this.#settings, CONNECT_TIMEOUT_MS, (failed, cause) =>
					this.#handleFailure(failed, cause),
				);
				if (this.#locator) await assertMaster(client);
				this.#connectedAddress = address;
				return client;
			} catch (error) {
				failure = error;
			}
		}
		throw failure;
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

/** Checks that a client's server is a master. If it is not, destroys the client and rejects. */
async function assertMaster(client: RedisClient): Promise<void> {
	try {
		const reply = client.sendCommand(['ROLE'], REPLIES_AS_BYTES);
		const role = await withinLimit(reply, CONNECT_TIMEOUT_MS, 'no answer from the master');
		if (String((role as readonly unknown[])[0]) !== 'master') throw unavailableError(replyCause('READONLY'));
	} catch (error) {
		// If the user may not ask for the role, the first write shows whether the server is a master.
		if (replyCodeOf(error) === 'NOPERM') return;
		if (client.isOpen) client.destroy();
		throw error;
	}
}
