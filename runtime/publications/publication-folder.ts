/**
 * What a machine keeps on its disk about publications: its ID, the last publication that proved good, and which one is on trial,
 * that is, served but not yet known to be good. The stored publication is encrypted, as it is in Redis.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { PublicationReference } from '../cluster/rollout-decision.ts';
import { openFileStore } from '../storage/file-store.ts';
import type { Store } from '../storage/store.ts';

/** A publication on the disk. */
export interface StoredPublication extends PublicationReference {
	readonly sealed: Buffer;
}

/** The ID of a machine. */
export interface MachineIdentity {
	readonly id: string;
	/**
	 * The ID that was on the disk until now, because the machine had another host name or its disk was copied from another machine.
	 */
	readonly replacedId?: string;
}

const MACHINE_ID_KEY = 'machine-id';
const LAST_GOOD_KEY = 'last-good.json';
const TRIAL_KEY = 'on-trial.json';

/** The folder of a machine. Every method rejects with StoreError if the disk fails. */
export class PublicationFolder {
	readonly #store: Store;
	readonly #hostName: string;

	/** @param folder Path of the folder. It is created by the first write. */
	constructor(folder: string, hostName: string = hostname()) {
		this.#store = openFileStore(folder);
		this.#hostName = hostName;
	}

	/**
	 * Returns the ID of this machine. Creates one if the folder has none, or if the stored one has another host name: then the disk
	 * was copied from another machine, or this machine was renamed. `replacedId` is then the stored one.
	 */
	async machineId(): Promise<MachineIdentity> {
		const stored = (await this.#store.read(MACHINE_ID_KEY))?.toString().trim();
		if (stored && isMachineIdOf(this.#hostName, stored)) return { id: stored };
		// If a trial is recorded, it was interrupted on the other machine, so this machine must not report it as failed.
		if (stored) await this.endTrial();
		const id = newMachineId(this.#hostName);
		await this.#store.write(MACHINE_ID_KEY, `${id}\n`);
		return stored ? { id, replacedId: stored } : { id };
	}

	/** Returns the last publication that proved good; undefined if there is none. */
	async lastGood(): Promise<StoredPublication | undefined> {
		const bytes = await this.#store.read(LAST_GOOD_KEY);
		const parsed = bytes && parseObject(bytes);
		const { sealed } = parsed ?? {};
		const reference = referenceIn(parsed);
		if (!reference || typeof sealed !== 'string') return undefined;
		return { ...reference, sealed: Buffer.from(sealed, 'base64') };
	}

	async saveLastGood({ number, identity, sealed }: StoredPublication): Promise<void> {
		await this.#store.write(LAST_GOOD_KEY, JSON.stringify({ number, identity, sealed: sealed.toString('base64') }));
	}

	/** Returns the publication that was on trial when the machine's last process ended unexpectedly; undefined if there was none. */
	async unfinishedTrial(): Promise<PublicationReference | undefined> {
		const bytes = await this.#store.read(TRIAL_KEY);
		return bytes && referenceIn(parseObject(bytes));
	}

	/** Records that a publication is about to be loaded on trial. */
	async beginTrial({ number, identity }: PublicationReference): Promise<void> {
		await this.#store.write(TRIAL_KEY, JSON.stringify({ number, identity }));
	}

	async endTrial(): Promise<void> {
		await this.#store.remove(TRIAL_KEY);
	}
}

/** Returns an ID that no other machine has. */
export function newMachineId(hostName: string = hostname()): string {
	return `${hostName}-${randomBytes(4).toString('hex')}`;
}

function isMachineIdOf(hostName: string, id: string): boolean {
	return id.startsWith(`${hostName}-`) && /^[0-9a-f]{8}$/.test(id.slice(hostName.length + 1));
}

function referenceIn(object: { readonly [name: string]: unknown } | undefined): PublicationReference | undefined {
	const { number, identity } = object ?? {};
	if (typeof number !== 'number') return undefined;
	return typeof identity === 'string' ? { number, identity } : { number };
}

function parseObject(bytes: Buffer): { readonly [name: string]: unknown } | undefined {
	try {
		const value: unknown = JSON.parse(bytes.toString());
		return typeof value === 'object' && value !== null ? (value as { [name: string]: unknown }) : undefined;
	} catch {
		return undefined;
	}
}
