/** Addresses of a pool that are looked up: kept while fresh, looked up again behind the requests' backs. */
import type { DynamicSource } from '../../../compiler/exchange/leases.ts';
import { SourceLookup } from './source-lookup.ts';

/** Name lists that are remembered; names may hold placeholders that a client fills in. */
const MOST_NAMES = 256;

/** The dynamic source of one pool on one thread. */
export class DynamicAddresses {
	readonly #leaves: readonly Exclude<DynamicSource, { source: 'multi' }>[];
	readonly #lookups = new Map<string, SourceLookup>();
	/** The joined list for one list of names, while its parts are the same. */
	readonly #joined = new Map<
		string,
		{ readonly parts: readonly (readonly string[])[]; readonly all: readonly string[] }
	>();

	constructor(source: DynamicSource) {
		this.#leaves = leavesOf(source);
	}

	/**
	 * The addresses for names, one for each source in the order written (see dynamicNames); undefined when no source has
	 * any. The same list is the same object while nothing has changed.
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
		this.#joined.clear();
	}

	#collect(names: readonly string[]): readonly string[] | undefined {
		const parts = this.#leaves.map((_leaf, i) => this.#lookup(i, names[i] ?? '').addresses);
		const key = names.join('\n');
		const known = this.#joined.get(key);
		if (known?.parts.every((part, i) => part === parts[i])) return known.all.length === 0 ? undefined : known.all;
		const all = [...new Set(parts.flat())];
		if (this.#joined.size >= MOST_NAMES) this.#joined.clear();
		this.#joined.set(key, { parts, all });
		return all.length === 0 ? undefined : all;
	}

	#lookup(leaf: number, name: string): SourceLookup {
		const key = `${leaf} ${name}`;
		let lookup = this.#lookups.get(key);
		if (!lookup) {
			if (this.#lookups.size >= MOST_NAMES) this.#lookups.delete(this.#lookups.keys().next().value!);
			lookup = new SourceLookup(this.#leaves[leaf]!, name);
			this.#lookups.set(key, lookup);
		}
		return lookup;
	}
}

function leavesOf(source: DynamicSource): Exclude<DynamicSource, { source: 'multi' }>[] {
	return source.source === 'multi' ? source.sources.flatMap(leavesOf) : [source];
}
