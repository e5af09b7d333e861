/**
 * A model of the data of Redis, and of the commands and scripts that a cluster sends for limits, members and purges.
 * test/peers/redis-model.test.ts compares it with a real redis-server. The model recognizes scripts by their hashes, so it does not
 * know a changed script.
 */
import { createHash } from 'node:crypto';
import { HEARTBEAT_SCRIPT } from '../../runtime/cluster/cluster-members.ts';
import type { RedisReply } from '../../runtime/cluster/redis-connection.ts';
import { REPORT_SCRIPT } from '../../runtime/cluster/shared-limits.ts';
import { CONFIRM_SCRIPT, PUBLISH_SCRIPT } from '../../runtime/cluster/shared-purges.ts';
import { SortedSet } from './sorted-set.ts';

/** The kinds of commands, each of which has its own measured cost. */
export type CommandKind = 'report' | 'heartbeat' | 'publish' | 'confirm' | 'read' | 'range';

/** The result of a read that found nothing and waits. */
export const WAITING = Symbol('waiting');

/** An error reply, such as `NOSCRIPT`. */
export class RedisErrorReply extends Error {
	readonly code: string;

	constructor(code: string) {
		super(code);
		this.code = code;
	}
}

interface StreamEntry {
	readonly milliseconds: number;
	readonly sequence: number;
	/** Alternating names and values. */
	readonly fields: readonly Buffer[];
}

interface Stream {
	entries: StreamEntry[];
}

type Value = SortedSet | Stream | Map<string, Buffer> | { readonly text: string };
type Script = (keys: readonly string[], args: readonly (string | Buffer)[]) => RedisReply;

/**
 * Number of entries by which a stream may exceed its maximum length. Redis removes only whole blocks of at most that many entries.
 */
const MAX_SURPLUS_ENTRIES = 100;

/** The data of one Redis server. */
export class RedisModel {
	readonly #nowMicroseconds: () => number;
	readonly #values = new Map<string, Value>();
	/** Times in microseconds at which keys expire. */
	readonly #expiryTimes = new Map<string, number>();
	/** Hashes of the scripts that clients have sent. */
	readonly #loadedScripts = new Set<string>();
	readonly #scripts: ReadonlyMap<string, { readonly kind: CommandKind; readonly run: Script }>;
	/** Streams to which entries have been added since {@link takeExtendedStreams}. */
	#extendedStreams = new Set<string>();

	constructor(nowMicroseconds: () => number) {
		this.#nowMicroseconds = nowMicroseconds;
		this.#scripts = new Map([
			[REPORT_SCRIPT.hash, { kind: 'report', run: (keys, args) => this.#report(keys, args) }],
			[hashOf(HEARTBEAT_SCRIPT), { kind: 'heartbeat', run: (keys, args) => this.#heartbeat(keys, args) }],
			[hashOf(PUBLISH_SCRIPT), { kind: 'publish', run: (keys, args) => this.#publish(keys, args) }],
			[hashOf(CONFIRM_SCRIPT), { kind: 'confirm', run: (keys, args) => this.#confirm(keys, args) }],
		]);
	}

	kindOf(args: readonly (string | Buffer)[]): CommandKind {
		const name = String(args[0]);
		if (name === 'XREAD') return 'read';
		if (name === 'XRANGE' || name === 'XREVRANGE') return 'range';
		const script = this.#scripts.get(scriptHashOf(args));
		if (!script) throw new Error(`the model does not know the script of ${name}: ${String(args[1]).slice(0, 200)}`);
		return script.kind;
	}

	/** Executes a command. Throws RedisErrorReply. */
	execute(args: readonly (string | Buffer)[]): RedisReply | typeof WAITING {
		const name = String(args[0]);
		if (name === 'XREAD') return this.read(args) ?? WAITING;
		if (name === 'XRANGE') return this.#range(String(args[1]), String(args[2]));
		if (name === 'XREVRANGE') return repliesOf(this.#stream(String(args[1]))?.entries.slice(-1) ?? []);
		const hash = scriptHashOf(args);
		const script = this.#scripts.get(hash);
		if (name === 'EVAL') this.#loadedScripts.add(hash);
		else if (!this.#loadedScripts.has(hash)) throw new RedisErrorReply('NOSCRIPT');
		if (!script) throw new Error(`the model does not know the command ${name}`);
		const keyCount = Number(args[2]);
		return script.run(args.slice(3, 3 + keyCount).map(String), args.slice(3 + keyCount));
	}

	/** Returns the entries that an `XREAD` gets now; undefined if there are none. */
	read(args: readonly (string | Buffer)[]): RedisReply | undefined {
		const names = streamsOf(args);
		const maxEntries = Number(args[args.findIndex(arg => String(arg) === 'COUNT') + 1]);
		const found = names.flatMap((name, index) => {
			const entries = this.#entriesAfter(name, String(args[args.length - names.length + index]), maxEntries);
			return entries.length === 0 ? [] : [[Buffer.from(name), repliesOf(entries)]];
		});
		return found.length === 0 ? undefined : found;
	}

	/** Returns the streams to which entries have been added since the last call. */
	takeExtendedStreams(): ReadonlySet<string> {
		const streams = this.#extendedStreams;
		if (streams.size > 0) this.#extendedStreams = new Set();
		return streams;
	}

	/** Loses all data, as a restart without persistence does. */
	clear(): void {
		this.#values.clear();
		this.#expiryTimes.clear();
		this.#loadedScripts.clear();
	}

	/** Deletes keys that have expired, and returns their names. */
	deleteExpired(): string[] {
		const expired = [...this.#expiryTimes.keys()].filter(key => this.#expiryTimes.get(key)! <= this.#nowMicroseconds());
		for (const key of expired) this.#delete(key);
		return expired;
	}

	/** Returns the scores of a sorted set by member. */
	scoresOf(key: string): ReadonlyMap<string, number> {
		const value = this.#get(key);
		return value instanceof SortedSet ? value.scores : new Map();
	}

	/** Returns the milliseconds until a key expires; −1 if it does not, −2 if there is none. */
	remainingMs(key: string): number {
		if (this.#get(key) === undefined) return -2;
		const expiry = this.#expiryTimes.get(key);
		return expiry === undefined ? -1 : (expiry - this.#nowMicroseconds()) / 1000;
	}

	#report([zone, lastReport]: readonly string[], args: readonly (string | Buffer)[]): RedisReply {
		const now = this.#nowMicroseconds();
		const [reportNumber, maxKeys] = [String(args[0]), Number(args[1])];
		const last = this.#get(lastReport!);
		const isRepeated = last !== undefined && 'text' in last && last.text === reportNumber;
		this.#values.set(lastReport!, { text: reportNumber });
		this.#expiryTimes.set(lastReport!, now + 600_000_000);
		const found = this.#get(zone!);
		const times = found instanceof SortedSet ? found : new SortedSet();
		times.removeUpTo(now);
		let longest = 0;
		const usages: number[] = [];
		for (let index = 2; index < args.length; index += 4) {
			const name = latin1Of(args[index]!);
			const [amount, capacity] = [Number(args[index + 1]), Number(args[index + 2])];
			let full = times.scores.get(name) ?? now;
			if (!isRepeated) {
				if (full === now && times.scores.size >= maxKeys)
					full = Math.min(times.popLeast()!.score, Math.max(now, now + capacity - amount));
				let counted = full + amount;
				if (String(args[index + 3]) === '1') counted = Math.min(counted, Math.max(full, now + capacity));
				full = Math.min(counted, now + 4e15);
				if (full > now) times.add(name, full);
				else times.remove(name);
			}
			const used = Math.max(0, full - now);
			longest = Math.max(longest, used);
			usages.push(Math.trunc(used));
		}
		if (times.scores.size === 0) this.#delete(zone!);
		else {
			this.#values.set(zone!, times);
			const expiry = Math.ceil(longest / 1000);
			if (expiry > this.remainingMs(zone!)) this.#expiryTimes.set(zone!, now + expiry * 1000);
		}
		return usages;
	}

	#heartbeat(
		[expiries, facts, missing]: readonly string[],
		[id, lifetime, description, missingLifetime]: readonly (string | Buffer)[],
	): RedisReply {
		const now = this.#nowMilliseconds();
		const members = this.#sortedSet(expiries!);
		const found = this.#get(facts!);
		const descriptions = found instanceof Map ? found : new Map<string, Buffer>();
		members.add(String(id), now + Number(lifetime));
		descriptions.set(String(id), Buffer.from(description!));
		const missingMembers = this.#sortedSet(missing!);
		missingMembers.remove(String(id));
		for (const member of members.removeUpTo(now)) {
			descriptions.delete(member);
			missingMembers.add(member, now + Number(missingLifetime));
		}
		missingMembers.removeUpTo(now);
		this.#values.set(facts!, descriptions);
		return members.scores.size;
	}

	#publish(
		[stream, lastNumber, expiries, missing, accepted]: readonly string[],
		[from, selection, maxEntries, acceptedLifetime]: readonly (string | Buffer)[],
	): RedisReply {
		const now = this.#nowMilliseconds();
		const members = this.#sortedSet(expiries!);
		const listed = members.membersAbove(now).map(member => Buffer.from(member));
		const silent = members.membersAbove(Number.NEGATIVE_INFINITY).slice(0, members.scores.size - listed.length);
		const missingMembers = [...this.#sortedSet(missing!).membersAbove(now), ...silent].map(member =>
			Buffer.from(member),
		);
		const earlier = this.#get(accepted!);
		if (earlier !== undefined && 'text' in earlier) {
			const [id, number] = earlier.text.split(' ') as [string, string];
			return [Buffer.from(id), Number(number), listed, missingMembers];
		}
		const last = this.#get(lastNumber!);
		const number = (last !== undefined && 'text' in last ? Number(last.text) : 0) + 1;
		this.#values.set(lastNumber!, { text: String(number) });
		const fields = ['number', String(number), 'from', from!, 'selection', selection!];
		const id = this.#addEntry(stream!, fields, Number(maxEntries));
		this.#values.set(accepted!, { text: `${id} ${number}` });
		this.#expiryTimes.set(accepted!, this.#nowMicroseconds() + Number(acceptedLifetime) * 1000);
		return [id, number, listed, missingMembers];
	}

	#confirm([stream]: readonly string[], [purge, by, lifetime]: readonly (string | Buffer)[]): RedisReply {
		this.#addEntry(stream!, ['purge', purge!, 'by', by!], 10_000);
		this.#expiryTimes.set(stream!, this.#nowMicroseconds() + Number(lifetime) * 1000);
		return 1;
	}

	#addEntry(name: string, fields: readonly (string | Buffer)[], maxEntries: number): Buffer {
		let stream = this.#stream(name);
		if (!stream) {
			stream = { entries: [] };
			this.#values.set(name, stream);
		}
		const last = stream.entries.at(-1);
		const milliseconds = Math.max(this.#nowMilliseconds(), last?.milliseconds ?? 0);
		const sequence = last?.milliseconds === milliseconds ? last.sequence + 1 : 0;
		stream.entries.push({ milliseconds, sequence, fields: fields.map(field => Buffer.from(field)) });
		if (stream.entries.length >= maxEntries + MAX_SURPLUS_ENTRIES) stream.entries = stream.entries.slice(-maxEntries);
		this.#extendedStreams.add(name);
		return Buffer.from(`${milliseconds}-${sequence}`);
	}

	#range(name: string, id: string): RedisReply {
		return repliesOf((this.#stream(name)?.entries ?? []).filter(entry => idOf(entry) === id));
	}

	#entriesAfter(name: string, id: string, maxEntries: number): StreamEntry[] {
		const entries = this.#stream(name)?.entries ?? [];
		const [milliseconds, sequence] = id.split('-').map(Number) as [number, number];
		let [low, high] = [0, entries.length];
		while (low < high) {
			const middle = (low + high) >> 1;
			const entry = entries[middle]!;
			const isAfter =
				entry.milliseconds > milliseconds || (entry.milliseconds === milliseconds && entry.sequence > sequence);
			if (isAfter) high = middle;
			else low = middle + 1;
		}
		return entries.slice(low, low + maxEntries);
	}

	#stream(name: string): Stream | undefined {
		const value = this.#get(name);
		return value !== undefined && 'entries' in value && Array.isArray(value.entries) ? (value as Stream) : undefined;
	}

	#sortedSet(key: string): SortedSet {
		const value = this.#get(key);
		if (value instanceof SortedSet) return value;
		const set = new SortedSet();
		this.#values.set(key, set);
		return set;
	}

	#get(key: string): Value | undefined {
		if ((this.#expiryTimes.get(key) ?? Number.POSITIVE_INFINITY) <= this.#nowMicroseconds()) this.#delete(key);
		return this.#values.get(key);
	}

	#delete(key: string): void {
		this.#values.delete(key);
		this.#expiryTimes.delete(key);
	}

	#nowMilliseconds(): number {
		return Math.floor(this.#nowMicroseconds() / 1000);
	}
}

/** Returns the names of the streams that an `XREAD` reads. */
export function streamsOf(args: readonly (string | Buffer)[]): string[] {
	const first = args.findIndex(arg => String(arg) === 'STREAMS') + 1;
	return args.slice(first, first + (args.length - first) / 2).map(String);
}

/** Returns the number of keys of limits in a report. */
export function reportedKeysOf(args: readonly (string | Buffer)[]): number {
	const keyCount = Number(args[2]);
	return (args.length - 3 - keyCount - 2) / 4;
}

function scriptHashOf(args: readonly (string | Buffer)[]): string {
	return String(args[0]) === 'EVAL' ? hashOf(String(args[1])) : String(args[1]);
}

const hashesBySource = new Map<string, string>();

function hashOf(source: string): string {
	let hash = hashesBySource.get(source);
	if (hash === undefined) {
		hash = createHash('sha1').update(source).digest('hex');
		hashesBySource.set(source, hash);
	}
	return hash;
}

function latin1Of(text: string | Buffer): string {
	return typeof text === 'string' ? text : text.toString('latin1');
}

function idOf({ milliseconds, sequence }: StreamEntry): string {
	return `${milliseconds}-${sequence}`;
}

function repliesOf(entries: readonly StreamEntry[]): RedisReply {
	return entries.map(entry => [Buffer.from(idOf(entry)), entry.fields]);
}
