/**
 * One Redis server and the network between it and the machines of a simulation. The server executes one command at a time, each of
 * which takes as long as was measured on a real one; see redis-costs.ts.
 */
import { ClusterError } from '../../runtime/cluster/cluster-error.ts';
import type { RedisAccess, WaitingConnection } from '../../runtime/cluster/redis-access.ts';
import type { RedisReply } from '../../runtime/cluster/redis-connection.ts';
import { SealedValues } from '../../runtime/cluster/sealed-values.ts';
import type { RedisCosts } from './redis-costs.ts';
import { type CommandKind, RedisErrorReply, RedisModel, reportedKeysOf, streamsOf, WAITING } from './redis-model.ts';
import type { SimulatedTime } from './simulated-time.ts';
import { commandBytes, replyBytes } from './wire-size.ts';

/** The network between a machine and Redis. */
export interface NetworkSettings {
	/** Minimum milliseconds that each message takes, and the mean of the random delay added to it. */
	readonly delayMs: number;
	readonly meanJitterMs: number;
	/** Fraction of messages that are lost and sent again after `retransmissionMs`. */
	readonly lossShare: number;
	readonly retransmissionMs: number;
}

/** What the server has done since the start. */
export interface RedisLoad {
	/** Number of commands by kind; `wake` is the number of clients that were woken. */
	readonly commands: { [kind in CommandKind | 'wake']: number };
	/** Number of keys in reports of limits. */
	keys: number;
	receivedBytes: number;
	sentBytes: number;
	/** Milliseconds for which the server has executed commands. */
	busyMs: number;
	/** Number of commands that waited for the server when the queue was longest. */
	longestQueue: number;
}

interface QueuedCommand {
	readonly args: readonly (string | Buffer)[];
	readonly connection: Connection;
	readonly reply: (reply: RedisReply | RedisErrorReply) => void;
	/** Called when the server has executed the command. */
	readonly onExecuted: () => void;
}

/** A client that waits for an entry of a stream. */
interface WaitingRead extends QueuedCommand {
	readonly cancelTimeout: () => void;
}

/** Milliseconds after which a machine that gets no reply replaces its connection, as `RedisConnection` does. */
const MAX_SILENCE_MS = 3000;
/** Maximum milliseconds until a machine that can reach Redis again has a connection. */
const MAX_RECONNECT_MS = 2500;

/** The server, which executes one command at a time. */
export class SimulatedRedis {
	readonly model: RedisModel;
	readonly load: RedisLoad = {
		commands: { report: 0, heartbeat: 0, publish: 0, confirm: 0, read: 0, range: 0, wake: 0 },
		keys: 0,
		receivedBytes: 0,
		sentBytes: 0,
		busyMs: 0,
		longestQueue: 0,
	};
	readonly #time: SimulatedTime;
	readonly #costs: RedisCosts;
	readonly #queue: QueuedCommand[] = [];
	#queueStart = 0;
	#isBusy = false;
	readonly #waitingReads = new Map<string, Set<WaitingRead>>();

	constructor(time: SimulatedTime, costs: RedisCosts) {
		this.#time = time;
		this.#costs = costs;
		this.model = new RedisModel(() => Math.floor(time.now * 1000));
	}

	/** Handles a command that has arrived. */
	receive(command: QueuedCommand): void {
		this.#queue.push(command);
		this.load.receivedBytes += commandBytes(command.args);
		this.load.longestQueue = Math.max(this.load.longestQueue, this.#queue.length - this.#queueStart);
		if (!this.#isBusy) this.#executeNext();
	}

	#executeNext(): void {
		const command = this.#queue[this.#queueStart];
		if (command === undefined) {
			this.#isBusy = false;
			return;
		}
		this.#isBusy = true;
		if (++this.#queueStart === 10_000) {
			this.#queue.splice(0, this.#queueStart);
			this.#queueStart = 0;
		}
		const replies: (() => void)[] = [];
		let busyMicroseconds = this.#execute(command, replies);
		for (const stream of this.model.takeExtendedStreams()) {
			for (const waiting of [...(this.#waitingReads.get(stream) ?? [])]) {
				const reply = this.model.read(waiting.args);
				if (reply === undefined) continue;
				this.#endWaiting(waiting);
				this.load.commands.wake++;
				busyMicroseconds += this.#costs.wake.each;
				replies.push(() => this.#send(waiting, reply));
			}
		}
		this.load.busyMs += busyMicroseconds / 1000;
		this.#time.after(busyMicroseconds / 1000, () => {
			for (const reply of replies) reply();
			this.#executeNext();
			return false;
		});
	}

	/** Executes a command and returns the microseconds that it takes. Adds its reply to `replies`. */
	#execute(command: QueuedCommand, replies: (() => void)[]): number {
		const kind = this.model.kindOf(command.args);
		this.load.commands[kind]++;
		const cost = this.#costs[kind];
		let units = 0;
		try {
			const reply = this.model.execute(command.args);
			if (reply === WAITING) this.#startWaiting(command);
			else {
				command.onExecuted();
				if (kind === 'report') {
					units = reportedKeysOf(command.args);
					this.load.keys += units;
				} else if (kind === 'publish') units = (reply as readonly [Buffer, number, readonly Buffer[]])[2].length;
				else if (kind === 'read') units = 1;
				replies.push(() => this.#send(command, reply));
			}
		} catch (error) {
			if (!(error instanceof RedisErrorReply)) throw error;
			replies.push(() => command.reply(error));
		}
		return cost.each + cost.perUnit * units;
	}

	#send(command: QueuedCommand, reply: RedisReply): void {
		this.load.sentBytes += replyBytes(reply);
		command.reply(reply);
	}

	#startWaiting(command: QueuedCommand): void {
		if (command.connection.isClosed) return;
		const blockMs = Number(command.args[command.args.findIndex(arg => String(arg) === 'BLOCK') + 1]);
		const waiting: WaitingRead = {
			...command,
			cancelTimeout: this.#time.after(blockMs, () => {
				this.#endWaiting(waiting);
				this.#send(waiting, null);
				return false;
			}),
		};
		for (const stream of streamsOf(command.args)) {
			let reads = this.#waitingReads.get(stream);
			if (!reads) {
				reads = new Set();
				this.#waitingReads.set(stream, reads);
			}
			reads.add(waiting);
		}
		command.connection.onClosed = () => this.#endWaiting(waiting);
	}

	#endWaiting(waiting: WaitingRead): void {
		waiting.cancelTimeout();
		waiting.connection.onClosed = () => {};
		for (const stream of streamsOf(waiting.args)) {
			const reads = this.#waitingReads.get(stream);
			reads?.delete(waiting);
			if (reads?.size === 0) this.#waitingReads.delete(stream);
		}
	}
}

/** A connection of a machine. Messages arrive in the order in which they were sent. */
interface Connection {
	isClosed: boolean;
	onClosed: () => void;
	lastArrival: number;
	lastReply: number;
}

function newConnection(): Connection {
	return { isClosed: false, onClosed: () => {}, lastArrival: 0, lastReply: 0 };
}

/** The network of one process: its connections to Redis. */
export class SimulatedNetwork implements RedisAccess {
	readonly address = 'redis.test:6379';
	readonly sealedValues: SealedValues;
	/** Called when the process sends a command. Returns a function to call when the server has executed it. */
	onCommand: (args: readonly (string | Buffer)[]) => () => void = () => () => {};
	/** Factor by which messages take longer than usual. */
	slowness = 1;
	readonly #redis: SimulatedRedis;
	readonly #time: SimulatedTime;
	readonly #settings: NetworkSettings;
	readonly #random: () => number;
	readonly #connections = new Set<Connection>();
	#commonConnection: Connection;
	#cutOffSince: number | undefined;
	#unavailableUntil = 0;
	#isStopped = false;

	/** @param key The cluster's key, in Base64. */
	constructor(
		redis: SimulatedRedis,
		time: SimulatedTime,
		settings: NetworkSettings,
		key: string,
		random: () => number,
	) {
		this.#redis = redis;
		this.#time = time;
		this.#settings = settings;
		this.#random = random;
		this.sealedValues = new SealedValues([key]);
		this.#commonConnection = this.#connect();
	}

	redisKey(name: string): string {
		return `svc:${name}`;
	}

	sendCommand(args: readonly (string | Buffer)[], limitMs = 200): Promise<RedisReply> {
		return this.#exchange(() => this.#commonConnection, args, limitMs);
	}

	runScript(
		text: string,
		keys: readonly string[],
		args: readonly (string | Buffer)[],
		limitMs?: number,
	): Promise<RedisReply> {
		return this.sendCommand(['EVAL', text, String(keys.length), ...keys, ...args], limitMs);
	}

	async openConnection(): Promise<WaitingConnection> {
		let connection = this.#connect();
		const current = (): Connection => {
			if (connection.isClosed) connection = this.#connect();
			return connection;
		};
		return {
			sendCommand: (args, limitMs) => this.#exchange(current, args, limitMs),
			close: () => this.#disconnect(connection),
		};
	}

	/** Drops all messages from now on. */
	cutOff(): void {
		this.#cutOffSince = this.#time.now;
	}

	/** Delivers messages again. It then takes the process a while to connect. */
	heal(): void {
		if (this.#cutOffSince === undefined) return;
		this.#cutOffSince = undefined;
		this.#unavailableUntil = this.#time.now + this.#random() * MAX_RECONNECT_MS;
		for (const connection of [...this.#connections]) this.#disconnect(connection);
		this.#commonConnection = this.#connect();
	}

	/** Ends the process: its connections close, and nothing that it waits for resolves. */
	stop(): void {
		this.#isStopped = true;
		for (const connection of [...this.#connections]) this.#disconnect(connection);
	}

	#connect(): Connection {
		const connection = newConnection();
		this.#connections.add(connection);
		return connection;
	}

	#disconnect(connection: Connection): void {
		connection.isClosed = true;
		this.#connections.delete(connection);
		connection.onClosed();
	}

	#exchange(current: () => Connection, args: readonly (string | Buffer)[], limitMs: number): Promise<RedisReply> {
		return new Promise((resolve, reject) => {
			if (this.#isStopped) return;
			const cutOffMs = this.#cutOffSince === undefined ? 0 : this.#time.now - this.#cutOffSince;
			if (cutOffMs > MAX_SILENCE_MS || this.#time.now < this.#unavailableUntil) {
				this.#time.after(0, () => reject(new ClusterError('cluster/unavailable', 'connection closed')));
				return;
			}
			const onExecuted = this.onCommand(args);
			const connection = current();
			const cancelLimit = this.#time.after(limitMs, () => {
				if (!this.#isStopped) reject(new ClusterError('cluster/unavailable', `no answer within ${limitMs} ms`));
			});
			if (this.#cutOffSince !== undefined) return;
			connection.lastArrival = Math.max(connection.lastArrival, this.#time.now + this.#messageDelay());
			const deliver = (): false => {
				if (connection.isClosed || this.#cutOffSince !== undefined) return false;
				this.#redis.receive({
					args,
					connection,
					onExecuted,
					reply: reply => {
						if (connection.isClosed || this.#cutOffSince !== undefined) return;
						connection.lastReply = Math.max(connection.lastReply, this.#time.now + this.#messageDelay());
						this.#time.after(connection.lastReply - this.#time.now, () => {
							cancelLimit();
							if (this.#isStopped || connection.isClosed) return;
							if (reply instanceof RedisErrorReply)
								reject(new ClusterError('cluster/refused', reply.message, reply.code));
							else resolve(reply);
						});
					},
				});
				return false;
			};
			this.#time.after(connection.lastArrival - this.#time.now, deliver);
		});
	}

	#messageDelay(): number {
		const { delayMs, meanJitterMs, lossShare, retransmissionMs } = this.#settings;
		const jitter = -Math.log(1 - this.#random()) * meanJitterMs;
		const loss = this.#random() < lossShare ? retransmissionMs : 0;
		return (delayMs + jitter) * this.slowness + loss;
	}
}
