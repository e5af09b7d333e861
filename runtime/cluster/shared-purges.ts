/**
 * Purges that reach the response caches of all machines of a cluster.
 *
 * Purges are entries of a stream in Redis, numbered without gaps. Every process reads the stream from its own position, so that a
 * process that was cut off receives the purges that it missed. If Redis has dropped or lost entries that a process has not read,
 * the process purges everything.
 * Disk caches outlive a process, so their folders keep the position up to which purges have been applied to them. Each process
 * confirms a purge by an entry in the confirmation stream of the process that began it.
 *
 * After a failover, the stream can lack its last entries. A process whose position is missing purges everything, and the process that
 * added a missing entry adds it again, for the processes that had not read it. It also does so if an entry that Redis has accepted does
 * not arrive over the connection that reads the stream: the connection for commands then still leads to the old server.
 */
import { PurgeNotRecorded, type PurgeSelection } from '../cache/purging.ts';
import { type Clock, SYSTEM_CLOCK } from '../clock/clock.ts';
import { ClusterError, PurgeNotShared } from './cluster-error.ts';
import { type ClusterMembers, LUA_SET_NOW } from './cluster-members.ts';
import { PublishedPurges } from './published-purges.ts';
import type { RedisAccess, WaitingConnection } from './redis-access.ts';
import type { RedisReply } from './redis-connection.ts';
import type { SealedValues } from './sealed-values.ts';

/** The response caches of this process. */
export interface PurgeableCaches {
	/** Removes responses. Resolves to their number once no thread serves them. Rejects with PurgeNotRecorded. */
	purge(selection: PurgeSelection): Promise<number>;
	/** Returns the recorded position of each disk cache that holds responses; undefined for one without a position. */
	purgePositions(): Promise<readonly (string | undefined)[]>;
	/** Records, for all disk caches, the position up to which purges have been applied. */
	recordPurgePosition(position: string): void;
}

export interface PurgeOutcome {
	/** Number of responses removed on this machine. */
	readonly purged: number;
	/** IDs of the other members that have confirmed the purge, and of the members that have not. */
	readonly confirmed: readonly string[];
	readonly unconfirmed: readonly string[];
}

/** Counters since the process started. */
export interface PurgeCounts {
	/** Number of purges that this machine began and added to the stream. */
	readonly sent: number;
	/** Number of purges of other machines that were applied here. */
	readonly received: number;
	/** Number of confirmations that did not arrive in time. */
	readonly unconfirmed: number;
	/** Number of times that everything was purged, because purges could have been missed. */
	readonly complete: number;
}

/** Number of purges that the stream keeps for machines that are cut off. */
const MAX_STREAM_ENTRIES = 10_000;
/** Milliseconds to wait for the confirmations of the other machines. */
const CONFIRMATION_TIMEOUT_MS = 1000;
/** Milliseconds for which a read blocks in Redis until there are new entries, and for which its answer is awaited. */
export const READ_BLOCK_MS = 1000;
const READ_TIMEOUT_MS = READ_BLOCK_MS + 3000;
/** Milliseconds before the next read if a read failed, or if Redis returned an empty result before the blocking time was over. */
const RETRY_DELAY_MS = 200;
/** Milliseconds before the next read if a read failed because of a bug in this program. */
const BUG_RETRY_MS = 5000;
const MAX_READ_ENTRIES = 100;
/** Maximum number of purges that wait until Redis is available. If there are more, one purge of everything replaces them. */
const MAX_UNSENT = 1000;
/** Maximum number of purges that are sent at the same time. */
const MAX_SENDING = 100;
/** Milliseconds for which Redis remembers that it has accepted a purge, in case it is sent again because the answer was lost. */
const ACCEPTED_LIFETIME_MS = 600_000;
/** Maximum number of own purges whose confirmations are remembered. */
const MAX_AWAITED_PURGES = 1000;
/** Milliseconds after which Redis deletes the confirmations to a process that no longer reads them. */
const CONFIRMATION_LIFETIME_MS = 60_000;

/** A selection of all responses. */
const EVERYTHING: PurgeSelection = { prefix: '/' };
/** Name under which the selections of purges are sealed. */
const SEALED_NAME = 'purge';

export const PUBLISH_SCRIPT: string = `${LUA_SET_NOW}
local members = redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. now, '+inf')
local missing = redis.call('ZRANGEBYSCORE', KEYS[4], '(' .. now, '+inf')
local silent = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)
for _, id in ipairs(silent) do missing[#missing + 1] = id end
local accepted = redis.call('GET', KEYS[5])
if accepted then
	local id, number = string.match(accepted, '(.+) (.+)')
	return {id, tonumber(number), members, missing}
end
local number = redis.call('INCR', KEYS[2])
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', 'number', number, 'from', ARGV[1], 'selection', ARGV[2])
redis.call('SET', KEYS[5], id .. ' ' .. number, 'PX', ARGV[4])
return {id, number, members, missing}`;
export const CONFIRM_SCRIPT: string = `redis.call('XADD', KEYS[1], 'MAXLEN', '~', '10000', '*', 'purge', ARGV[1], 'by', ARGV[2])
return redis.call('PEXPIRE', KEYS[1], ARGV[3])`;

/** The position of an entry in the stream. */
interface Position {
	readonly id: string;
	readonly number: number;
}

/** The ID and number of an added entry, the IDs of all members, and the IDs of processes that stopped announcing themselves. */
type AddedEntry = readonly [id: Buffer, number: number, members: readonly Buffer[], missing?: readonly Buffer[]];

interface PurgeEntry extends Position {
	/** ID of the member that began the purge. */
	readonly from: string;
	/** The responses to purge; undefined for an entry that only marks a position. */
	readonly selection: PurgeSelection | undefined;
}

/** A purge of this process that Redis has not accepted, or for which Redis' answer was lost. */
interface UnsentPurge {
	readonly selection: PurgeSelection;
	/** The purge's number among the purges of this process, by which Redis recognizes it if it is sent again. */
	readonly ownNumber: number;
}

/** Sends and receives purges. */
export class SharedPurges {
	readonly #redis: RedisAccess;
	readonly #members: ClusterMembers;
	readonly #caches: PurgeableCaches;
	readonly #log: (level: 'info' | 'warn' | 'error', logger: string, message: string) => void;
	readonly #clock: Clock;
	#connection: WaitingConnection | undefined;
	/** The last entry that was applied; undefined until it is known. */
	#position: Position | undefined;
	/** The highest number of an entry that was read. An own purge with a higher number is applied here by {@link purge} itself. */
	#newestNumber = 0;
	/** Own purges that are being applied to the caches of this machine. */
	readonly #localPurges = new Set<Promise<number>>();
	/** True while {@link #position} is known to be in the stream, so that reading continues after it. */
	#isLocated = false;
	/** The number of the connection over which {@link #position} was found. */
	#locatedConnection: number | undefined;
	readonly #publishedPurges = new PublishedPurges<UnsentPurge>();
	/** When the stream was last read. */
	#lastReadAt = Number.NEGATIVE_INFINITY;
	/** True if a disk cache has been opened and the position recorded in its folder has not been read yet. */
	#hasNewDisk = false;
	/** True until the first attempt to join has ended. The caches in memory are empty until then. */
	#isFirstAttempt = true;
	/**
	 * False after a disk cache could not record a purge. The position is then no longer recorded, so that a restart applies it
	 * again.
	 */
	#recordsPositions = true;
	/** Position in the stream of confirmations to this process. */
	#confirmationPosition = '0-0';
	/** Purges of this process that have not been sent to Redis yet. */
	#unsentPurges: UnsentPurge[] = [];
	#isSending = false;
	/** Purges of this process that have been sent to Redis, which has not answered yet. */
	readonly #unansweredPurges = new Set<PurgeSelection>();
	/** Number of purges that this process has begun. */
	#ownCount = 0;
	/**
	 * For each purge of this process: the IDs of the members that have confirmed it, and a function to call after each confirmation.
	 */
	readonly #awaitedConfirmations = new Map<string, { readonly confirmed: Set<string>; onConfirmed: () => void }>();
	readonly #counts = { sent: 0, received: 0, unconfirmed: 0, complete: 0 };
	#isClosed = false;

	constructor(
		redis: RedisAccess,
		members: ClusterMembers,
		caches: PurgeableCaches,
		log: (level: 'info' | 'warn' | 'error', logger: string, message: string) => void,
		clock: Clock = SYSTEM_CLOCK,
	) {
		this.#redis = redis;
		this.#clock = clock;
		this.#members = members;
		this.#caches = caches;
		this.#log = log;
	}

	get counts(): PurgeCounts {
		return this.#counts;
	}

	/** Receives purges until {@link close}. */
	async start(): Promise<void> {
		this.#connection = await this.#redis.openConnection();
		if (this.#isClosed) this.#connection.close();
		while (!this.#isClosed) {
			try {
				// Another connection may lead to another server, whose stream lacks the last entries.
				if (this.#connection.connectionNumber !== this.#locatedConnection) this.#isLocated = false;
				if (!this.#isLocated) await this.#locatePosition();
				void this.#sendUnsent();
				await this.#readOnce();
			} catch (error) {
				this.#isLocated = false;
				const isExpected = error instanceof ClusterError;
				if (!isExpected) this.#log('error', 'cluster', `receiving purges failed: ${(error as Error).message}`);
				if (!this.#isClosed) await this.#pause(isExpected ? RETRY_DELAY_MS : BUG_RETRY_MS);
			}
			this.#isFirstAttempt = false;
		}
	}

	close(): void {
		this.#isClosed = true;
		this.#connection?.close();
	}

	/** Must be called when a disk cache has been opened. The next read then starts with the purges that the cache has missed. */
	onDiskOpened(): void {
		this.#hasNewDisk = true;
		this.#isLocated = false;
	}

	/**
	 * Purges responses on all machines. Resolves once every other member has confirmed the purge, or after
	 * {@link CONFIRMATION_TIMEOUT_MS}. Rejects with PurgeNotRecorded, and with PurgeNotShared if Redis does not accept it in time.
	 */
	async purge(selection: PurgeSelection): Promise<PurgeOutcome> {
		// The purge is sent to Redis before it has ended on this machine, so that all machines purge at the same time.
		const ownNumber = ++this.#ownCount;
		const sending = this.#publishPurge({ selection, ownNumber }).catch(error => {
			if (!(error instanceof ClusterError)) throw error;
			this.#queueUnsent({ selection, ownNumber });
			return error;
		});
		const localPurge = this.#caches.purge(selection);
		this.#localPurges.add(localPurge);
		const [localResult, sendResult] = await Promise.allSettled([localPurge, sending]);
		this.#localPurges.delete(localPurge);
		if (localResult.status === 'rejected' && localResult.reason instanceof PurgeNotRecorded)
			this.#recordsPositions = false;
		if (sendResult.status === 'rejected') throw sendResult.reason;
		if (sendResult.value instanceof ClusterError) {
			if (localResult.status === 'rejected') throw localResult.reason;
			throw new PurgeNotShared(sendResult.value);
		}
		const { id, otherMembers, missingMembers } = sendResult.value;
		const confirmed = await this.#awaitConfirmations(id, otherMembers);
		if (localResult.status === 'rejected') throw localResult.reason;
		const unconfirmed = otherMembers.filter(member => !confirmed.has(member));
		this.#counts.unconfirmed += unconfirmed.length;
		return { purged: localResult.value, confirmed: [...confirmed], unconfirmed: [...unconfirmed, ...missingMembers] };
	}

	/** Purges of this process that may not be in the stream yet. */
	get unsharedSelections(): readonly PurgeSelection[] {
		return [...this.#unansweredPurges, ...this.#unsentPurges.map(({ selection }) => selection)];
	}

	/** Sends a purge, which this machine has already carried out, to the other machines as soon as Redis is available. */
	purgeElsewhereLater(selection: PurgeSelection): void {
		this.#queueUnsent({ selection, ownNumber: ++this.#ownCount });
	}

	/**
	 * Adds a purge to the stream, unless it is already there. Resolves to the entry's ID, the IDs of the other members, and the IDs
	 * of processes that may serve although they are no longer members. Rejects with ClusterError.
	 * @param reader The connection that reads the stream, to use it instead of the one for commands.
	 */
	async #publishPurge(
		{ selection, ownNumber }: UnsentPurge,
		reader?: WaitingConnection,
	): Promise<{ id: string; otherMembers: string[]; missingMembers: string[] }> {
		const selectionBytes = Buffer.from(JSON.stringify(selection));
		const sealedSelection = this.#redis.sealedValues?.seal(SEALED_NAME, selectionBytes) ?? selectionBytes;
		this.#unansweredPurges.add(selection);
		const connectionNumber = reader?.connectionNumber;
		const [id, , members, missing = []] = await this.#addEntry(sealedSelection, ownNumber, reader).finally(() =>
			this.#unansweredPurges.delete(selection),
		);
		this.#counts.sent++;
		const isInStream = reader !== undefined && reader.connectionNumber === connectionNumber;
		const published = { id: String(id), purge: { selection, ownNumber }, at: this.#clock.threadNow() };
		this.#publishedPurges.add(published, isInStream);
		const othersOf = (ids: readonly Buffer[]) => ids.map(String).filter(member => member !== this.#members.ownId);
		return { id: String(id), otherMembers: othersOf(members), missingMembers: othersOf(missing) };
	}

	/** Adds an entry to the stream; see {@link AddedEntry} for the result. Rejects with ClusterError. */
	async #addEntry(selection: string | Buffer, ownNumber: number, reader?: WaitingConnection): Promise<AddedEntry> {
		const [members, , missing] = this.#members.redisKeys;
		const accepted = this.#redis.redisKey(`purges:accepted:${this.#members.ownId}:${ownNumber}`);
		const keys = [this.#streamKey, this.#lastNumberKey, members, missing, accepted];
		const args = [this.#members.ownId, selection, String(MAX_STREAM_ENTRIES), String(ACCEPTED_LIFETIME_MS)];
		const reply = await (reader
			? reader.sendCommand(['EVAL', PUBLISH_SCRIPT, String(keys.length), ...keys, ...args], READ_TIMEOUT_MS)
			: this.#redis.runScript(PUBLISH_SCRIPT, keys, args));
		const [id, number, memberIds] = Array.isArray(reply) ? (reply as readonly RedisReply[]) : [];
		if (!Buffer.isBuffer(id) || typeof number !== 'number' || !Array.isArray(memberIds))
			throw new ClusterError('cluster/unavailable', 'the reply about a purge is not valid');
		return reply as unknown as AddedEntry;
	}

	#queueUnsent(purge: UnsentPurge): void {
		this.#unsentPurges.push(purge);
		if (this.#unsentPurges.length > MAX_UNSENT)
			this.#unsentPurges = [{ selection: EVERYTHING, ownNumber: ++this.#ownCount }];
	}

	/**
	 * Sends the unsent purges over the connection that reads the stream, because the one for commands may lead to another server.
	 * Must be called before a read, which blocks the connection. The read does not wait for this, because other machines may be able
	 * to add purges when this machine is not. Never rejects.
	 */
	async #sendUnsent(): Promise<void> {
		if (this.#isSending) return;
		this.#isSending = true;
		let isAccepted = true;
		while (isAccepted && this.#unsentPurges.length > 0) {
			const sending = this.#unsentPurges.slice(0, MAX_SENDING);
			const results = await Promise.allSettled(sending.map(purge => this.#publishPurge(purge, this.#connection)));
			const isSent = new Set(sending.filter((_, index) => results[index]!.status === 'fulfilled'));
			// In the meantime, a single purge of everything may have replaced the list, so it is filtered, not shortened.
			this.#unsentPurges = this.#unsentPurges.filter(purge => !isSent.has(purge));
			isAccepted = isSent.size === sending.length;
		}
		this.#isSending = false;
	}

	/** Resolves to the members that have confirmed a purge, once all `otherMembers` have confirmed it or the time limit has expired. */
	async #awaitConfirmations(purge: string, otherMembers: readonly string[]): Promise<ReadonlySet<string>> {
		const awaited = this.#confirmationsFor(purge);
		const { promise, resolve } = Promise.withResolvers<void>();
		awaited.onConfirmed = () => {
			if (otherMembers.every(member => awaited.confirmed.has(member))) resolve();
		};
		awaited.onConfirmed();
		const stopTimer = this.#clock.startTimer(resolve, CONFIRMATION_TIMEOUT_MS);
		await promise;
		stopTimer();
		this.#awaitedConfirmations.delete(purge);
		return awaited.confirmed;
	}

	/** Returns the confirmations of a purge. They can arrive before the answer with the purge's ID. */
	#confirmationsFor(purge: string): { readonly confirmed: Set<string>; onConfirmed: () => void } {
		let awaited = this.#awaitedConfirmations.get(purge);
		if (awaited) return awaited;
		awaited = { confirmed: new Set<string>(), onConfirmed: () => {} };
		this.#awaitedConfirmations.set(purge, awaited);
		// A confirmation that arrives too late creates a map entry that nobody uses, so the oldest entries are removed.
		if (this.#awaitedConfirmations.size > MAX_AWAITED_PURGES)
			this.#awaitedConfirmations.delete(this.#awaitedConfirmations.keys().next().value!);
		return awaited;
	}

	/** Finds the position in the stream from which to read. Purges everything if purges could have been missed. */
	async #locatePosition(): Promise<void> {
		this.#locatedConnection = this.#connection!.connectionNumber;
		const readsDisks = this.#position === undefined || this.#hasNewDisk;
		this.#hasNewDisk = false;
		this.#isLocated = true;
		const storedPositions = readsDisks ? await this.#caches.purgePositions() : [];
		const positions = storedPositions.map(text => positionFrom(text, this.#streamName));
		if (this.#position) positions.push(this.#position);
		const earliest = earliestOf(positions);
		if (earliest !== undefined && (await this.#streamHas(earliest))) {
			this.#position = earliest;
			await this.#requeueLostPurges();
			return;
		}
		const streamEnd = await this.#streamEnd();
		if (positions.length > 0 || !this.#isFirstAttempt) {
			this.#counts.complete++;
			this.#log('warn', 'cluster', 'purges may have been missed, so all stored responses are purged');
			await this.#applyPurge(EVERYTHING);
		}
		this.#position = streamEnd;
		this.#newestNumber = streamEnd.number;
		this.#recordPosition();
		await this.#requeueLostPurges();
	}

	/** Queues own purges that the stream has lost, to be added again. */
	async #requeueLostPurges(): Promise<void> {
		const firstId = this.#publishedPurges.searchFrom(this.#lastReadAt);
		if (firstId === undefined) return;
		const awaitedIds = this.#publishedPurges.ids;
		const entries = entriesOf(await this.#sendCommand(['XRANGE', this.#streamKey, firstId, '+']));
		const ownEntries = entries.filter(entry => String(fieldOf(entry, 'from')) === this.#members.ownId);
		const lost = this.#publishedPurges.takeLost(awaitedIds, new Set(ownEntries.map(({ id }) => id)));
		if (lost === 'everything') this.#queueUnsent({ selection: EVERYTHING, ownNumber: ++this.#ownCount });
		else for (const purge of lost) this.#queueUnsent(purge);
	}

	/** Reports whether an entry of the stream still exists and has the expected number. */
	async #streamHas({ id, number }: Position): Promise<boolean> {
		const [entry] = entriesOf(await this.#sendCommand(['XRANGE', this.#streamKey, id, id]));
		return entry !== undefined && Number(fieldOf(entry, 'number')) === number;
	}

	/** Returns the last entry of the stream. If the stream is empty, adds an entry first. */
	async #streamEnd(): Promise<Position> {
		const [lastEntry] = entriesOf(await this.#sendCommand(['XREVRANGE', this.#streamKey, '+', '-', 'COUNT', '1']));
		if (lastEntry) return { id: lastEntry.id, number: Number(fieldOf(lastEntry, 'number')) };
		const [id, number] = await this.#addEntry('', ++this.#ownCount, this.#connection);
		return { id: String(id), number };
	}

	/** Waits for new entries, and applies and confirms them. */
	async #readOnce(): Promise<void> {
		const position = this.#position!;
		const [streams, positions] = [
			[this.#streamKey, this.#confirmationsKey(this.#members.ownId)],
			[position.id, this.#confirmationPosition],
		];
		const options = ['COUNT', String(MAX_READ_ENTRIES), 'BLOCK', String(READ_BLOCK_MS)];
		const awaitedIds = this.#publishedPurges.unreadIds;
		const sentAt = this.#clock.threadNow();
		const reply = await this.#sendCommand(['XREAD', ...options, 'STREAMS', ...streams, ...positions]);
		this.#lastReadAt = this.#clock.threadNow();
		// Without the pause, a Redis that ignores BLOCK would be read in a busy loop.
		if (isEarlyEmptyAnswer(reply, this.#clock.threadNow() - sentAt)) await this.#pause(RETRY_DELAY_MS);
		if (!this.#isLocated) return;
		let readCount = 0;
		for (const [name, entries] of (reply ?? []) as readonly (readonly [Buffer, RedisReply])[]) {
			if (String(name) === this.#streamKey) {
				const purges = entriesOf(entries).map(entry => this.#purgeOf(entry));
				readCount = purges.length;
				await this.#applyPurges(purges);
			} else this.#takeConfirmations(entriesOf(entries));
		}
		// A purge that Redis accepted before it returned the rest of the stream is in the stream of another server.
		if (this.#isLocated && readCount < MAX_READ_ENTRIES)
			for (const purge of this.#publishedPurges.takeUnread(awaitedIds)) this.#queueUnsent(purge);
	}

	async #applyPurges(purges: readonly PurgeEntry[]): Promise<void> {
		for (const purge of purges) {
			if (purge.number !== this.#position!.number + 1) {
				// Redis dropped entries before they were read.
				this.#isLocated = false;
				this.#position = { id: '0-0', number: 0 };
				return;
			}
			const isOwn = purge.from === this.#members.ownId;
			const isNew = purge.number > this.#newestNumber;
			if (isOwn && purge.selection !== undefined) this.#publishedPurges.onRead(purge.id);
			// Applying an own purge a second time would remove responses that were stored after it.
			if (isOwn && isNew) await Promise.allSettled(this.#localPurges);
			else if (purge.selection !== undefined) {
				const isRecorded = await this.#applyPurge(purge.selection);
				if (!isOwn) {
					this.#counts.received++;
					if (isRecorded) this.#confirmPurge(purge);
				}
			}
			this.#newestNumber = Math.max(this.#newestNumber, purge.number);
			this.#position = { id: purge.id, number: purge.number };
		}
		this.#recordPosition();
	}

	/** Applies a purge. Resolves to false if the purged responses may reappear after a restart. */
	async #applyPurge(selection: PurgeSelection): Promise<boolean> {
		try {
			await this.#caches.purge(selection);
			return true;
		} catch (error) {
			if (!(error instanceof PurgeNotRecorded)) throw error;
			this.#recordsPositions = false;
			this.#log('error', 'cluster', error.message);
			return false;
		}
	}

	#confirmPurge({ id, from }: PurgeEntry): void {
		const args = [id, this.#members.ownId, String(CONFIRMATION_LIFETIME_MS)];
		// If the confirmation fails, the purging process reports this one as unconfirmed, although the purge has taken effect here.
		this.#redis.runScript(CONFIRM_SCRIPT, [this.#confirmationsKey(from)], args).catch(() => {});
	}

	#takeConfirmations(entries: readonly StreamEntry[]): void {
		for (const entry of entries) {
			this.#confirmationPosition = entry.id;
			const awaited = this.#confirmationsFor(String(fieldOf(entry, 'purge')));
			awaited.confirmed.add(String(fieldOf(entry, 'by')));
			awaited.onConfirmed();
		}
	}

	#recordPosition(): void {
		if (!this.#recordsPositions || !this.#isLocated || this.#position === undefined) return;
		this.#caches.recordPurgePosition(JSON.stringify({ log: this.#streamName, ...this.#position }));
	}

	#purgeOf(entry: StreamEntry): PurgeEntry {
		const [number, from, value] = (['number', 'from', 'selection'] as const).map(name => fieldOf(entry, name));
		const selection = purgeSelectionOf(value, this.#redis.sealedValues);
		return { id: entry.id, number: Number(number), from: String(from), selection };
	}

	#pause(milliseconds: number): Promise<void> {
		return new Promise(resolve => void this.#clock.startTimer(resolve, milliseconds, false));
	}

	#sendCommand(args: readonly string[]): Promise<RedisReply> {
		return this.#connection!.sendCommand(args, READ_TIMEOUT_MS);
	}

	get #streamKey(): string {
		return purgeStreamKey(this.#redis);
	}

	/** Name of the key with the number of the last purge. */
	get #lastNumberKey(): string {
		return this.#redis.redisKey('purges:last');
	}

	#confirmationsKey(member: string): string {
		return this.#redis.redisKey(`purges:confirmed:${member}`);
	}

	/** Identifies the stream in the folders of disk caches. */
	get #streamName(): string {
		return `${this.#redis.address} ${this.#streamKey}`;
	}
}

/** Returns the name of the stream in Redis. */
export function purgeStreamKey(redis: Pick<RedisAccess, 'redisKey'>): string {
	return redis.redisKey('purges');
}

/**
 * Returns the selection of an entry; undefined for an entry that only marks a position. A selection that cannot be read selects
 * everything.
 */
export function purgeSelectionOf(
	value: Buffer | undefined,
	sealedValues: SealedValues | undefined,
): PurgeSelection | undefined {
	if (value === undefined || value.length === 0) return undefined;
	const selectionText = sealedValues ? sealedValues.open(SEALED_NAME, value) : value;
	try {
		return selectionFrom(JSON.parse(String(selectionText))) ?? EVERYTHING;
	} catch {
		return EVERYTHING;
	}
}

/** An entry of a stream: its ID, and alternating names and values. */
export interface StreamEntry {
	readonly id: string;
	readonly fields: readonly Buffer[];
}

/** Returns the entries of a reply to XRANGE. */
export function entriesOf(reply: RedisReply): StreamEntry[] {
	const entries = (reply ?? []) as readonly (readonly [Buffer, readonly Buffer[]])[];
	return entries.map(([id, fields]) => ({ id: String(id), fields }));
}

/**
 * Reports whether Redis returned an empty result after `elapsedMs` milliseconds, although it should have waited longer for
 * entries.
 */
export function isEarlyEmptyAnswer(reply: RedisReply, elapsedMs: number): boolean {
	const isEmpty = reply === null || (Array.isArray(reply) && reply.length === 0);
	return isEmpty && elapsedMs < READ_BLOCK_MS / 2;
}

/** Returns the value of a named field; undefined if the entry does not have it. */
export function fieldOf({ fields }: StreamEntry, name: string): Buffer | undefined {
	for (let i = 0; i < fields.length; i += 2) if (String(fields[i]) === name) return fields[i + 1];
	return undefined;
}

/** Returns the earliest of the positions; undefined if there are none, or if one of them is unknown. */
function earliestOf(positions: readonly (Position | undefined)[]): Position | undefined {
	let earliest: Position | undefined;
	for (const position of positions) {
		if (position === undefined) return undefined;
		if (earliest === undefined || position.number < earliest.number) earliest = position;
	}
	return earliest;
}

/** Parses a position recorded by a disk cache. Returns undefined if there is none, or if it belongs to another stream. */
function positionFrom(text: string | undefined, streamName: string): Position | undefined {
	try {
		const { log, id, number } = JSON.parse(text ?? 'null') as { log: unknown; id: unknown; number: unknown };
		const isValid = log === streamName && typeof id === 'string' && /^\d+-\d+$/.test(id) && Number.isInteger(number);
		return isValid ? { id, number: number as number } : undefined;
	} catch {
		return undefined;
	}
}

/** Checks a value parsed from JSON and returns it as a selection; undefined if it does not have the form of one. */
function selectionFrom(value: unknown): PurgeSelection | undefined {
	const { host, path, tag, prefix } = (value ?? {}) as { [name: string]: unknown };
	if (host !== undefined && typeof host !== 'string') return undefined;
	if (typeof tag === 'string') return { tag, host };
	if (typeof prefix === 'string') return { prefix, host };
	return typeof path === 'string' && host !== undefined ? { path, host } : undefined;
}
