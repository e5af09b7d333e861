/** Lock files. The process that creates the file holds the lock, and touches it regularly as a heartbeat. */
import { randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { link, open, readdir, readFile, rename, stat, unlink, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type StoreLock, toKeySegment } from './store.ts';

/** Milliseconds between two heartbeats. */
const HEARTBEAT = 5000;
/** Milliseconds without a heartbeat after which a holder is presumed dead. Network file systems may show heartbeats late. */
const DEAD_AFTER = 30_000;
/** The first wait between two attempts to take a lock that is held, in milliseconds. */
const POLL = 100;
/** Maximum wait between two such attempts, in milliseconds. */
const SLOWEST_POLL = 1000;

/** The contents of a lock file. */
interface Holder {
	readonly id: string;
	readonly machine: string;
	readonly pid: number;
	/** Start time of the process, in clock ticks since boot. Distinguishes it from a later process with the same PID. */
	readonly started: string;
}

/** The locks in one folder. */
export class FileLocks {
	readonly #folder: string;
	readonly #makeFolder: (folder: string) => Promise<void>;

	constructor(folder: string, makeFolder: (folder: string) => Promise<void>) {
		this.#folder = folder;
		this.#makeFolder = makeFolder;
	}

	/** Takes the lock as soon as it is free. Rejects with the signal's reason if it aborts first. */
	async take(name: string, signal?: AbortSignal): Promise<StoreLock> {
		for (let pause = POLL; ; pause = Math.min(pause * 1.3, SLOWEST_POLL)) {
			signal?.throwIfAborted();
			const lock = await this.tryTake(name);
			if (lock) return lock;
			await sleep(pause * (0.75 + Math.random() / 2), undefined, signal ? { signal } : {}).catch(error => {
				throw signal?.aborted ? signal.reason : error;
			});
		}
	}

	/** Takes the lock if it is free or its holder is dead. Resolves to undefined otherwise. */
	async tryTake(name: string): Promise<StoreLock | undefined> {
		const file = path.join(this.#folder, `${toKeySegment(name)}.lock`);
		const holder: Holder = { id: randomBytes(12).toString('hex'), ...self() };
		if (await this.#create(file, holder)) return new FileLock(file, holder.id);
		if (!(await clearIfDead(file))) return undefined;
		return (await this.#create(file, holder)) ? new FileLock(file, holder.id) : undefined;
	}

	/** Deletes temporary files of dead processes that were taking a lock. Never rejects. */
	async clean(): Promise<void> {
		const names = await readdir(this.#folder).catch(() => []);
		for (const name of names.filter(one => /\.lock\.[0-9a-f]+$/.test(one))) {
			const file = path.join(this.#folder, name);
			const [holder, facts] = await Promise.all([
				readHolder(file).catch(() => undefined),
				stat(file).catch(() => undefined),
			]);
			if (facts && isDead(holder, facts.mtimeMs)) await unlink(file).catch(() => {});
		}
	}

	/** Creates the lock file together with its contents, by linking a complete file, so that nobody reads a partial one. */
	async #create(file: string, holder: Holder): Promise<boolean> {
		const aside = `${file}.${holder.id}`;
		const write = async () => {
			const handle = await open(aside, 'wx', 0o600);
			await handle.writeFile(JSON.stringify(holder)).finally(() => handle.close());
		};
		await write().catch(async error => {
			if (error.code !== 'ENOENT') throw error;
			await this.#makeFolder(this.#folder);
			await write();
		});
		try {
			await link(aside, file);
			return true;
		} catch (error) {
			if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
			throw error;
		} finally {
			await unlink(aside).catch(() => {});
		}
	}
}

class FileLock implements StoreLock {
	readonly #file: string;
	readonly #id: string;
	readonly #lost = new AbortController();
	readonly #timer: NodeJS.Timeout;

	constructor(file: string, id: string) {
		this.#file = file;
		this.#id = id;
		this.#timer = setInterval(() => void this.#beat(), HEARTBEAT);
		this.#timer.unref();
	}

	get lost(): AbortSignal {
		return this.#lost.signal;
	}

	async release(): Promise<void> {
		clearInterval(this.#timer);
		if (this.#lost.signal.aborted) return;
		const holder = await readHolder(this.#file).catch(() => undefined);
		if (holder?.id === this.#id) await unlink(this.#file).catch(() => {});
	}

	async #beat(): Promise<void> {
		try {
			const holder = await readHolder(this.#file);
			if (holder?.id === this.#id) {
				const now = new Date();
				await utimes(this.#file, now, now);
				return;
			}
		} catch (error) {
			if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return;
		}
		clearInterval(this.#timer);
		this.#lost.abort(new Error('Another process took over the lock.'));
	}
}

/**
 * Removes the lock file of a dead holder and reports whether it did. If two processes find the same dead holder, only one can
 * rename its file. A process that has renamed the file of a live successor by mistake puts it back.
 */
async function clearIfDead(file: string): Promise<boolean> {
	const before = await readHolder(file).catch(() => undefined);
	let modified: number;
	try {
		modified = (await stat(file)).mtimeMs;
	} catch {
		return true;
	}
	if (!isDead(before, modified)) return false;
	const aside = `${file}.${randomBytes(8).toString('hex')}`;
	try {
		await rename(file, aside);
	} catch {
		return true;
	}
	const taken = await readHolder(aside).catch(() => undefined);
	if (taken?.id !== before?.id) await link(aside, file).catch(() => {});
	await unlink(aside).catch(() => {});
	return taken?.id === before?.id;
}

function isDead(holder: Holder | undefined, modified: number): boolean {
	if (Date.now() - modified > DEAD_AFTER) return true;
	const own = self();
	if (holder === undefined || holder.machine !== own.machine) return false;
	return processStartTime(holder.pid) !== holder.started;
}

async function readHolder(file: string): Promise<Holder | undefined> {
	const text = await readFile(file, 'utf8');
	try {
		const value = JSON.parse(text) as Partial<Holder> | null;
		const { id, machine, pid, started } = value ?? {};
		if (typeof id !== 'string' || typeof machine !== 'string') return undefined;
		if (typeof pid !== 'number' || typeof started !== 'string') return undefined;
		return { id, machine, pid, started };
	} catch {
		return undefined;
	}
}

function self(): Omit<Holder, 'id'> {
	return { machine: machineId(), pid: process.pid, started: processStartTime(process.pid) };
}

/**
 * Identifies the host, its boot and its PID namespace, within which PIDs are comparable. If the system does not provide them,
 * the result is random, and holders are presumed dead only by their heartbeat.
 */
export function machineId(): string {
	try {
		const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
		return `${hostname()} ${boot} ${readlinkSync('/proc/self/ns/pid')}`;
	} catch {
		return `${hostname()} ${randomBytes(8).toString('hex')}`;
	}
}

/**
 * Returns the start time of a process, in clock ticks since boot; empty if there is no such process or the system does not report
 * it.
 */
export function processStartTime(pid: number): string {
	try {
		const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
		// The process name in parentheses may contain anything; the start time is the twentieth field after it.
		return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
	} catch {
		return '';
	}
}
