/** How clients are verified: read for a document, and read again while it is served, since files and what other sources give may change. */
import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { TrustPool } from '../../compiler/providers/trust-pools/trust-pool.ts';
import type { ClientAuth } from '../../compiler/tls/site-tls.ts';
import type { LogLevel } from '../threads/messages.ts';
import { clientTrust, type TrustSurroundings } from './client-trust.ts';
import type { ClientTrust } from './tls-update.ts';

/** Milliseconds between two looks at files; more where there are many. */
const LOOK_INTERVAL = 1000;
/** Milliseconds after which what is in no file (stores, addresses, internal authorities) is asked for again. */
const ASK_INTERVAL = 60_000;

/** One `client_auth`. */
interface Watched {
	readonly auth: ClientAuth;
	readonly trust: ClientTrust;
	/** Sizes and times of its files. */
	readonly state: string;
	/** When it was read, in milliseconds of the monotonic clock. */
	readonly readAt: number;
}

/** What a watch works with. */
export interface TrustWatchHost {
	readonly surroundings: TrustSurroundings;
	/** What is served has changed. */
	changed(): void;
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
}

/** The trust of the document that is served, and of the one that may follow. */
export class TrustWatch {
	readonly #host: TrustWatchHost;
	#served = new Map<string, Watched>();
	#prepared: Map<string, Watched> | undefined;
	#timer: NodeJS.Timeout | undefined;
	#looking: Promise<void> = Promise.resolve();
	/** Changes that were found bad, so that each is logged once. */
	readonly #told = new Map<string, string>();
	#closed = false;

	constructor(host: TrustWatchHost) {
		this.#host = host;
	}

	/** What threads are to know: of what is served and of what has been prepared, the latter where both have it. */
	get trust(): readonly ClientTrust[] {
		const both = new Map([...this.#served, ...(this.#prepared ?? [])]);
		return [...both.values()].map(({ trust }) => trust);
	}

	/** Reads what a document wants. Rejects with TrustError. */
	async prepare(wanted: readonly ClientAuth[]): Promise<void> {
		const read = await Promise.all(wanted.map(auth => this.#read(auth)));
		this.#prepared = new Map(read.map(one => [one.trust.key, one]));
	}

	/** The document prepared last is served. */
	activate(): void {
		this.#served = this.#prepared ?? this.#served;
		this.#prepared = undefined;
		this.#told.clear();
		this.#lookLater();
	}

	/** The document prepared last is not served. */
	discard(): void {
		this.#prepared = undefined;
	}

	close(): void {
		this.#closed = true;
		clearTimeout(this.#timer);
	}

	async #read(auth: ClientAuth): Promise<Watched> {
		const { surroundings } = this.#host;
		// Before reading: a change in between is found by the next look.
		const state = stateOf(filesOf(auth, surroundings.workingDirectory));
		const trust = await clientTrust(auth, surroundings);
		return { auth, trust, state, readAt: performance.now() };
	}

	#lookLater(): void {
		if (this.#closed || this.#served.size === 0) return;
		const wait = Math.max(LOOK_INTERVAL, this.#served.size);
		this.#timer ??= setTimeout(() => {
			void this.look().finally(() => {
				this.#timer = undefined;
				this.#lookLater();
			});
		}, wait).unref();
	}

	/** Reads again what has changed; what cannot be used is logged, and what was there stays. Never rejects. */
	async look(): Promise<void> {
		this.#looking = this.#looking.then(() => this.#look());
		await this.#looking;
	}

	async #look(): Promise<void> {
		const served = this.#served;
		let lost = false;
		for (const [key, before] of served) {
			const state = stateOf(filesOf(before.auth, this.#host.surroundings.workingDirectory));
			const due = asks(before.auth.trust_pool) && performance.now() - before.readAt >= ASK_INTERVAL;
			if (!due && (state === before.state || state === this.#told.get(key))) continue;
			const fields = { sources: sourcesOf(before.auth) };
			try {
				const now = await this.#read(before.auth);
				// A load that came meanwhile has read it too.
				if (this.#served !== served || this.#prepared) break;
				served.set(key, now);
				this.#told.delete(key);
				if (JSON.stringify(now.trust) === JSON.stringify(before.trust)) continue;
				lost = true;
				this.#host.log('info', 'tls', 'the certificates that clients are verified with have changed', fields);
			} catch (error) {
				const cause = (error as Error).message;
				const known = this.#told.get(key);
				this.#told.set(key, state);
				served.set(key, { ...before, readAt: performance.now() });
				if (known === state) continue;
				const message =
					'the certificates that clients are verified with cannot be read again; those of before are used on';
				this.#host.log('error', 'tls', message, { ...fields, cause });
			}
		}
		if (lost) this.#host.changed();
	}
}

/** Paths of the files that a `client_auth` names, and of those in folders that it names. */
function filesOf({ trust_pool: pool, trusted_leaves: leaves }: ClientAuth, workingDirectory: string): string[] {
	const named = [...(pool ? poolFiles(pool) : []), ...(leaves?.files ?? [])];
	const inFolders = (leaves?.folders ?? []).flatMap(folder => pemFiles(resolve(workingDirectory, folder)));
	return [...named.map(file => resolve(workingDirectory, file)), ...inFolders];
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

function stateOf(files: readonly string[]): string {
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

/** Whether a pool has sources that are no files and may change. */
function asks(pool: TrustPool | undefined): boolean {
	switch (pool?.source) {
		case 'storage':
		case 'http':
		case 'pki_root':
		case 'pki_intermediate':
			return true;
		case 'combined':
			return pool.of.some(asks);
		default:
			return false;
	}
}

/** What a log entry names. */
function sourcesOf({ trust_pool: pool, trusted_leaves: leaves }: ClientAuth): string[] {
	const files = [...(pool ? poolFiles(pool) : []), ...(leaves?.files ?? []), ...(leaves?.folders ?? [])];
	return pool && asks(pool) ? [pool.source, ...files] : files;
}
