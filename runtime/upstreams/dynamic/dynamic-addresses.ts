/** A pool's dynamically resolved addresses: cached while fresh, and refreshed in the background. */
import type { DynamicSource } from '../../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { SourceLookup } from './source-lookup.ts';

/** Maximum number of cached lists of names. Names may contain placeholders, whose values come from the client. */
const MAX_CACHED_NAMES = 256;

/** Maximum addresses reported for one pool. */
const MAX_REPORTED_ADDRESSES = 1024;

/** Looks up the addresses of a pool's dynamic source, for one thread. */
export class DynamicAddresses {
	readonly #sources: readonly Exclude<DynamicSource, { source: 'multi' }>[];
	readonly #lookupsByKey = new Map<string, SourceLookup>();
	/**
	 * The combined addresses for each list of names, with the lists of addresses from which they were combined. A combination is
	 * reused as long as these lists have not changed.
	 */
	readonly #combinationsByNames = new Map<
		string,
		{ readonly parts: readonly (readonly string[])[]; readonly all: readonly string[] }
	>();

	/** The addresses that were last passed to `onAddressesChanged`. */
	#reportedAddresses: readonly string[] = [];
	readonly #onAddressesChanged: ((addresses: readonly string[]) => void) | undefined;

	/**
	 * @param onAddressesChanged Called with all known addresses whenever they have changed. The addresses of the names that were
	 * looked up last come first.
	 */
	constructor(source: DynamicSource, onAddressesChanged?: (addresses: readonly string[]) => void) {
		this.#sources = flattenSources(source);
		this.#onAddressesChanged = onAddressesChanged;
	}

	/**
	 * Returns the addresses for a list of names, which has one name for each source in the order of the configuration (see
	 * dynamicNames). Returns undefined if no source has any addresses, and the same array as before if nothing has changed.
	 */
	lookUp(names: readonly string[]): readonly string[] | undefined | Promise<readonly string[] | undefined> {
		const pendingLookups: Promise<unknown>[] = [];
		for (let i = 0; i < this.#sources.length; i++) {
			const pending = this.#lookupFor(i, names[i] ?? '').refresh();
			if (pending) pendingLookups.push(pending);
		}
		return pendingLookups.length > 0
			? Promise.all(pendingLookups).then(() => this.#combineAddresses(names))
			: this.#combineAddresses(names);
	}

	close(): void {
		this.#lookupsByKey.clear();
		this.#combinationsByNames.clear();
	}

	#combineAddresses(names: readonly string[]): readonly string[] | undefined {
		const parts = this.#sources.map((_leaf, i) => this.#lookupFor(i, names[i] ?? '').addresses);
		const key = names.join('\n');
		const cachedCombination = this.#combinationsByNames.get(key);
		if (cachedCombination?.parts.every((part, i) => part === parts[i]))
			return cachedCombination.all.length === 0 ? undefined : cachedCombination.all;
		const all = [...new Set(parts.flat())];
		if (this.#combinationsByNames.size >= MAX_CACHED_NAMES) this.#combinationsByNames.clear();
		this.#combinationsByNames.delete(key);
		this.#combinationsByNames.set(key, { parts, all });
		this.#reportChange();
		return all.length === 0 ? undefined : all;
	}

	#reportChange(): void {
		if (!this.#onAddressesChanged) return;
		const knownAddresses = new Set<string>();
		for (const { all } of [...this.#combinationsByNames.values()].reverse())
			for (const address of all) knownAddresses.add(address);
		const addresses = [...knownAddresses].slice(0, MAX_REPORTED_ADDRESSES);
		const previous = this.#reportedAddresses;
		if (addresses.length === previous.length && addresses.every((address, i) => address === previous[i])) return;
		this.#reportedAddresses = addresses;
		this.#onAddressesChanged(addresses);
	}

	#lookupFor(sourceIndex: number, name: string): SourceLookup {
		const key = `${sourceIndex} ${name}`;
		let lookup = this.#lookupsByKey.get(key);
		if (!lookup) {
			if (this.#lookupsByKey.size >= MAX_CACHED_NAMES)
				this.#lookupsByKey.delete(this.#lookupsByKey.keys().next().value!);
			lookup = new SourceLookup(this.#sources[sourceIndex]!, name);
			this.#lookupsByKey.set(key, lookup);
		}
		return lookup;
	}
}

function flattenSources(source: DynamicSource): Exclude<DynamicSource, { source: 'multi' }>[] {
	return source.source === 'multi' ? source.sources.flatMap(flattenSources) : [source];
}
