/** Loads the certificates that verify clients and reloads them when files or other sources change. */
import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { ClientAuth, TrustPool } from '../../compiler/document/tls-settings.ts';
import type { LogLevel } from '../logs/log-entry.ts';
import { loadClientTrust, type TrustDeps } from './client-trust.ts';
import type { ClientTrust } from './tls-update.ts';

/**
 * Minimum milliseconds between two checks of all files. With more than 1000 `client_auth`s, it is one millisecond per
 * `client_auth`.
 */
const CHECK_INTERVAL_MS = 1000;
/** Milliseconds after which sources other than files (stores, URLs, internal CAs) are loaded again. */
const RELOAD_INTERVAL_MS = 60_000;

/** The trusted certificates of one `client_auth`, and what is needed to notice a change. */
interface WatchedTrust {
	readonly auth: ClientAuth;
	readonly trust: ClientTrust;
	/** Paths, inodes, sizes and modification times of the files, as text. */
	readonly state: string;
	/** Time of loading, by `performance.now()`. */
	readonly readAt: number;
}

export interface TrustWatchDeps {
	readonly trustDeps: TrustDeps;
	/** Called when the trusted certificates of the active document have changed. */
	onChanged(): void;
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
}

/**
 * Loads the CA certificates that verify clients, for the active and for the prepared document, and reloads the active document's
 * certificates when their sources change.
 */
export class TrustWatch {
	readonly #deps: TrustWatchDeps;
	#activeTrust = new Map<string, WatchedTrust>();
	#preparedTrust: Map<string, WatchedTrust> | undefined;
	#timer: NodeJS.Timeout | undefined;
	#checkInProgress: Promise<void> = Promise.resolve();
	/** The states of the files whose loading failed, by {@link ClientTrust.key}, so that each failure is logged only once. */
	readonly #reportedStates = new Map<string, string>();
	#isClosed = false;

	constructor(deps: TrustWatchDeps) {
		this.#deps = deps;
	}

	/**
	 * The trusted certificates of the active and of the prepared document. If both have an entry with the same key, the prepared
	 * document's entry is used.
	 */
	get trust(): readonly ClientTrust[] {
		const watchedByKey = new Map([...this.#activeTrust, ...(this.#preparedTrust ?? [])]);
		return [...watchedByKey.values()].map(({ trust }) => trust);
	}

	/** Loads the trusted certificates that a document needs. Rejects with TrustError. */
	async prepare(auths: readonly ClientAuth[]): Promise<void> {
		const watchedTrusts = await Promise.all(auths.map(auth => this.#loadTrust(auth)));
		this.#preparedTrust = new Map(watchedTrusts.map(watched => [watched.trust.key, watched]));
	}

	/** Makes the trusted certificates of the last prepared document the active ones. */
	activate(): void {
		this.#activeTrust = this.#preparedTrust ?? this.#activeTrust;
		this.#preparedTrust = undefined;
		this.#reportedStates.clear();
		this.#scheduleCheck();
	}

	/** Discards the trusted certificates that were loaded for the last prepared document. */
	discard(): void {
		this.#preparedTrust = undefined;
	}

	close(): void {
		this.#isClosed = true;
		clearTimeout(this.#timer);
	}

	async #loadTrust(auth: ClientAuth): Promise<WatchedTrust> {
		const { trustDeps } = this.#deps;
		// The files' state is recorded before they are read, so that a change during the reading is noticed at the next check.
		const state = fileStatesOf(filesOf(auth, trustDeps.workingDirectory));
		const trust = await loadClientTrust(auth, trustDeps);
		return { auth, trust, state, readAt: performance.now() };
	}

	#scheduleCheck(): void {
		if (this.#isClosed || this.#activeTrust.size === 0) return;
		const delayMs = Math.max(CHECK_INTERVAL_MS, this.#activeTrust.size);
		this.#timer ??= setTimeout(() => {
			void this.checkNow().finally(() => {
				this.#timer = undefined;
				this.#scheduleCheck();
			});
		}, delayMs).unref();
	}

	/** Reloads changed trust pools. Failures are logged and leave the previous pool in place. Never rejects. */
	async checkNow(): Promise<void> {
		this.#checkInProgress = this.#checkInProgress.then(() => this.#checkSources());
		await this.#checkInProgress;
	}

	async #checkSources(): Promise<void> {
		const activeTrust = this.#activeTrust;
		let hasChanged = false;
		for (const [key, previous] of activeTrust) {
			const state = fileStatesOf(filesOf(previous.auth, this.#deps.trustDeps.workingDirectory));
			const isReloadDue =
				reloadsPeriodically(previous.auth.trust_pool) && performance.now() - previous.readAt >= RELOAD_INTERVAL_MS;
			if (!isReloadDue && (state === previous.state || state === this.#reportedStates.get(key))) continue;
			const fields = { sources: sourcesOf(previous.auth) };
			try {
				const reloaded = await this.#loadTrust(previous.auth);
				// If a configuration was loaded meanwhile, everything has been read again, so the rest of this check is skipped.
				if (this.#activeTrust !== activeTrust || this.#preparedTrust) break;
				activeTrust.set(key, reloaded);
				this.#reportedStates.delete(key);
				if (JSON.stringify(reloaded.trust) === JSON.stringify(previous.trust)) continue;
				hasChanged = true;
				this.#deps.log('info', 'tls', 'trusted client certificates reloaded', fields);
			} catch (error) {
				const cause = (error as Error).message;
				const reportedState = this.#reportedStates.get(key);
				this.#reportedStates.set(key, state);
				activeTrust.set(key, { ...previous, readAt: performance.now() });
				if (reportedState === state) continue;
				const message = 'trusted client certificates cannot be reloaded; the previous ones stay in use';
				this.#deps.log('error', 'tls', message, { ...fields, cause });
			}
		}
		if (hasChanged) this.#deps.onChanged();
	}
}

/** Returns the paths of the files that a `client_auth` names, directly or through a folder. */
function filesOf({ trust_pool: pool, trusted_leaves: leaves }: ClientAuth, workingDirectory: string): string[] {
	const namedFiles = [...(pool ? poolFiles(pool) : []), ...(leaves?.files ?? [])];
	const folderFiles = (leaves?.folders ?? []).flatMap(folder => pemFiles(resolve(workingDirectory, folder)));
	return [...namedFiles.map(file => resolve(workingDirectory, file)), ...folderFiles];
}

function poolFiles(pool: TrustPool): readonly string[] {
	if (pool.source === 'file') return pool.files;
	return pool.source === 'combined' ? pool.of.flatMap(poolFiles) : [];
}

function pemFiles(folder: string): string[] {
	try {
		const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
		return entries.filter(({ name }) => name.endsWith('.pem')).map(({ parentPath, name }) => join(parentPath, name));
	} catch {
		return [folder];
	}
}

function fileStatesOf(files: readonly string[]): string {
	const states = files.map(file => {
		try {
			const { ino, size, mtimeMs } = statSync(file);
			return `${file} ${ino} ${size} ${mtimeMs}`;
		} catch (error) {
			return `${file} ${(error as NodeJS.ErrnoException).code}`;
		}
	});
	return states.sort().join('\n');
}

/** Reports whether a pool has sources that may change and are not files. */
function reloadsPeriodically(pool: TrustPool | undefined): boolean {
	switch (pool?.source) {
		case 'storage':
		case 'http':
		case 'pki_root':
		case 'pki_intermediate':
			return true;
		case 'combined':
			return pool.of.some(reloadsPeriodically);
		default:
			return false;
	}
}

/** Returns the sources of trusted certificates (files, folders, URLs, …) that a log entry names. */
function sourcesOf({ trust_pool: pool, trusted_leaves: leaves }: ClientAuth): string[] {
	const files = [...(pool ? poolFiles(pool) : []), ...(leaves?.files ?? []), ...(leaves?.folders ?? [])];
	return pool && reloadsPeriodically(pool) ? [pool.source, ...files] : files;
}
