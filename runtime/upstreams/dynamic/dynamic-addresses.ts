/** A pool's dynamically resolved addresses: cached while fresh, and refreshed in the background. */
import type { DynamicSource } from '../../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { SourceLookup } from './source-lookup.ts';

/** Maximum number of cached lists of names. Names may contain placeholders, whose values come from the client. */
const MAX_NAMES = 256;

/** Maximum addresses reported for one pool. */
const MAX_REPORTED = 1024;

/** A pool's dynamic source on one thread. */
export class DynamicAddresses {
	readonly #leaves: readonly Exclude<DynamicSource, { source: 'multi' }>[];
	readonly #lookups = new Map<string, SourceLookup>();
	/**
	 * The combined addresses for each list of names, with the lists of addresses from which they were combined. A combination is
	 * reused as long as those lists are the same.
	 */
	readonly #combined = new Map<
		string,
		{ readonly parts: readonly (readonly string[])[]; readonly all: readonly string[] }
	>();

	/** The last reported addresses. */
	#reported: readonly string[] = [];
	readonly #report: ((addresses: readonly string[]) => void) | undefined;

	/** @param report Called with all known addresses whenever they have changed, those of the most recent names first. */
	constructor(source: DynamicSource, report?: (addresses: readonly string[]) => void) {
		this.#leaves = leavesOf(source);
		this.#report = report;
	}

	/**
	 * Returns the addresses for a list of names, which has one name for each source in the order of the configuration (see
	 * dynamicNames). Returns undefined if no source has any addresses, and the same array as before if nothing has changed.
	 */
	lookUp(names: readonly string[]): readonly string[] | undefined | Promise<readonly string[] | undefined> {
		const waiting: Promise<unknown>[] = [];
		for (let i = 0; i < this.#leaves.length; i++) {
			const pending = this.#lookup(i, names[i] ?? '').refresh();
			if (pending) waiting.push(pending);
		}
		return waiting.length > 0 ? Promise.all(waiting).then(() => this.#collect(names)) : this.#collect(names);
	}

	close(): void {
		this.#lookups.clear();
		this.#combined.clear();
	}

	#collect(names: readonly string[]): readonly string[] | undefined {
		const parts = this.#leaves.map((_leaf, i) => this.#lookup(i, names[i] ?? '').addresses);
		const key = names.join('\n');
		const cached = this.#combined.get(key);
		if (cached?.parts.every((part, i) => part === parts[i])) return cached.all.length === 0 ? undefined : cached.all;
		const all = [...new Set(parts.flat())];
		if (this.#combined.size >= MAX_NAMES) this.#combined.clear();
		this.#combined.delete(key);
		this.#combined.set(key, { parts, all });
		this.#reportChange();
		return all.length === 0 ? undefined : all;
	}

	#reportChange(): void {
		if (!this.#report) return;
		const known = new Set<string>();
		for (const { all } of [...this.#combined.values()].reverse()) for (const address of all) known.add(address);
		const addresses = [...known].slice(0, MAX_REPORTED);
		const before = this.#reported;
		if (addresses.length === before.length && addresses.every((address, i) => address === before[i])) return;
		this.#reported = addresses;
		this.#report(addresses);
	}

	#lookup(leaf: number, name: string): SourceLookup {
		const key = `${leaf} ${name}`;
		let lookup = this.#lookups.get(key);
		if (!lookup) {
			if (this.#lookups.size >= MAX_NAMES) this.#lookups.delete(this.#lookups.keys().next().value!);
			lookup = new SourceLookup(this.#leaves[leaf]!, name);
			this.#lookups.set(key, lookup);
		}
		return lookup;
	}
}

function leavesOf(source: DynamicSource): Exclude<DynamicSource, { source: 'multi' }>[] {
	return source.source === 'multi' ? source.sources.flatMap(leavesOf) : [source];
}
