/** Lock files. The process that creates the file holds the lock, and touches it regularly as a heartbeat. */
import { randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { link, open, readdir, readFile, rename, stat, unlink, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type StoreLock, toKeySegment } from './store.ts';

/** Milliseconds between two heartbeats of a lock's holder. */
const HEARTBEAT_INTERVAL_MS = 5000;
/** Milliseconds without a heartbeat after which a holder is presumed dead. Network file systems may show heartbeats late. */
const DEAD_AFTER_MS = 30_000;
/** The first wait between two attempts to take a lock that is held, in milliseconds. */
const FIRST_POLL_MS = 100;
/** Maximum wait between two attempts to take a lock that is held, in milliseconds. */
const MAX_POLL_MS = 1000;

/** The contents of a lock file as JSON. */
interface LockHolder {
	readonly id: string;
	readonly machine: string;
	readonly pid: number;
	/** Start time of the process, in clock ticks since boot. It distinguishes the process from a later one with the same PID. */
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
		for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(pauseMs * 1.3, MAX_POLL_MS)) {
			signal?.throwIfAborted();
			const lock = await this.tryTake(name);
			if (lock) return lock;
			await sleep(pauseMs * (0.75 + Math.random() / 2), undefined, signal ? { signal } : {}).catch(error => {
				throw signal?.aborted ? signal.reason : error;
			});
		}
	}

	/** Takes the lock if it is free or its holder is dead. Resolves to undefined otherwise. */
	async tryTake(name: string): Promise<StoreLock | undefined> {
		const file = path.join(this.#folder, `${toKeySegment(name)}.lock`);
		const holder: LockHolder = { id: randomBytes(12).toString('hex'), ...currentHolder() };
		if (await this.#createLockFile(file, holder)) return new FileLock(file, holder.id);
		if (!(await clearIfDead(file))) return undefined;
		return (await this.#createLockFile(file, holder)) ? new FileLock(file, holder.id) : undefined;
	}

	/** Deletes temporary files of dead processes that were taking a lock. Never rejects. */
	async removeAbandoned(): Promise<void> {
		const names = await readdir(this.#folder).catch(() => []);
		for (const name of names.filter(entry => /\.lock\.[0-9a-f]+$/.test(entry))) {
			const file = path.join(this.#folder, name);
			const [holder, stats] = await Promise.all([
				readHolder(file).catch(() => undefined),
				stat(file).catch(() => undefined),
			]);
			if (stats && isDead(holder, stats.mtimeMs)) await unlink(file).catch(() => {});
		}
	}

	/** Creates the lock file together with its contents, by linking a complete file, so that nobody reads a partial one. */
	async #createLockFile(file: string, holder: LockHolder): Promise<boolean> {
		const temporaryFile = `${file}.${holder.id}`;
		const write = async () => {
			const handle = await open(temporaryFile, 'wx', 0o600);
			try {
				await handle.writeFile(JSON.stringify(holder)).finally(() => handle.close());
			} catch (error) {
				// On a full disk, each attempt would leave an empty file.
				await unlink(temporaryFile).catch(() => {});
				throw error;
			}
		};
		await write().catch(async error => {
			if (error.code !== 'ENOENT') throw error;
			await this.#makeFolder(this.#folder);
			await write();
		});
		try {
			await link(temporaryFile, file);
			return true;
		} catch (error) {
			if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
			throw error;
		} finally {
			await unlink(temporaryFile).catch(() => {});
		}
	}
}

class FileLock implements StoreLock {
	readonly #file: string;
	readonly #holderId: string;
	readonly #lostController = new AbortController();
	readonly #heartbeatTimer: NodeJS.Timeout;

	constructor(file: string, id: string) {
		this.#file = file;
		this.#holderId = id;
		this.#heartbeatTimer = setInterval(() => void this.#sendHeartbeat(), HEARTBEAT_INTERVAL_MS);
		this.#heartbeatTimer.unref();
	}

	get lost(): AbortSignal {
		return this.#lostController.signal;
	}

	async release(): Promise<void> {
		clearInterval(this.#heartbeatTimer);
		if (this.#lostController.signal.aborted) return;
		const holder = await readHolder(this.#file).catch(() => undefined);
		if (holder?.id === this.#holderId) await unlink(this.#file).catch(() => {});
	}

	async #sendHeartbeat(): Promise<void> {
		try {
			const holder = await readHolder(this.#file);
			if (holder?.id === this.#holderId) {
				const now = new Date();
				await utimes(this.#file, now, now);
				return;
			}
		} catch (error) {
			if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return;
		}
		clearInterval(this.#heartbeatTimer);
		this.#lostController.abort(new Error('Another process took over the lock.'));
	}
}

/**
 * Removes the lock file of a dead holder, and reports whether it did. If two processes find the same dead holder, only one of
 * them can rename the file. A process that by mistake has renamed the file of a new, living holder puts it back.
 */
async function clearIfDead(file: string): Promise<boolean> {
	const oldHolder = await readHolder(file).catch(() => undefined);
	let modifiedMs: number;
	try {
		modifiedMs = (await stat(file)).mtimeMs;
	} catch {
		return true;
	}
	if (!isDead(oldHolder, modifiedMs)) return false;
	const temporaryFile = `${file}.${randomBytes(8).toString('hex')}`;
	try {
		await rename(file, temporaryFile);
	} catch {
		return true;
	}
	const renamedHolder = await readHolder(temporaryFile).catch(() => undefined);
	if (renamedHolder?.id !== oldHolder?.id) await link(temporaryFile, file).catch(() => {});
	await unlink(temporaryFile).catch(() => {});
	return renamedHolder?.id === oldHolder?.id;
}

function isDead(holder: LockHolder | undefined, modifiedMs: number): boolean {
	if (Date.now() - modifiedMs > DEAD_AFTER_MS) return true;
	const currentProcess = currentHolder();
	if (holder === undefined || holder.machine !== currentProcess.machine) return false;
	return processStartTime(holder.pid) !== holder.started;
}

async function readHolder(file: string): Promise<LockHolder | undefined> {
	const holderJson = await readFile(file, 'utf8');
	try {
		const value = JSON.parse(holderJson) as Partial<LockHolder> | null;
		const { id, machine, pid, started } = value ?? {};
		if (typeof id !== 'string' || typeof machine !== 'string') return undefined;
		if (typeof pid !== 'number' || typeof started !== 'string') return undefined;
		return { id, machine, pid, started };
	} catch {
		return undefined;
	}
}

function currentHolder(): Omit<LockHolder, 'id'> {
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
		const statText = readFileSync(`/proc/${pid}/stat`, 'utf8');
		// The process name in parentheses may contain anything; the start time is the twentieth field after it.
		return statText.slice(statText.lastIndexOf(')') + 2).split(' ')[19] ?? '';
	} catch {
		return '';
	}
}
