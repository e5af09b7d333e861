/** Request fields with `_` or `.` in their names that a listener keeps; all other such fields are dropped. */
import { isSameFieldName } from '../../../compiler/exchange/header-list.ts';
import type { ProtocolLimits } from '../protocol.ts';

/** Names as configured. A trailing `*` makes a name a prefix. */
export interface ExpectedHeaders {
	readonly underscore: readonly string[];
	readonly dot: readonly string[];
}

/**
 * Compiles the lists in a listener's limits. Returns undefined if there are none, which means that all fields with `_` or `.` are
 * dropped.
 */
export function expectedNames({ expectedHeaders }: ProtocolLimits): ExpectedNames | undefined {
	return expectedHeaders && new ExpectedNames(expectedHeaders);
}

/** The compiled lists of one listener. */
export class ExpectedNames {
	readonly #exactNames = new Set<string>();
	/** The listed names with `-` in place of `_` or `.`. Backends could confuse fields of these names with the listed ones. */
	readonly #hyphenatedNames = new Set<string>();
	readonly #underscorePrefixes: string[] = [];
	readonly #dotPrefixes: string[] = [];
	readonly #hyphenPrefixes: string[] = [];

	constructor({ underscore, dot }: ExpectedHeaders) {
		for (const [names, prefixes] of [
			[underscore, this.#underscorePrefixes],
			[dot, this.#dotPrefixes],
		] as const) {
			for (const configuredName of names) {
				const name = configuredName.toLowerCase();
				if (name.endsWith('*')) {
					prefixes.push(name.slice(0, -1));
					this.#hyphenPrefixes.push(withHyphens(name.slice(0, -1)));
				} else {
					this.#exactNames.add(name);
					this.#hyphenatedNames.add(withHyphens(name));
				}
			}
		}
	}

	/** Reports whether a name that contains `_` or `.` is listed. */
	isExpected(receivedName: string): boolean {
		const name = receivedName.toLowerCase();
		if (this.#exactNames.has(name)) return true;
		const hasUnderscore = name.includes('_');
		// Prefixes never match a name with both `_` and `.`, because it would be ambiguous whether a prefix for `_` or one for `.`
		// applies.
		if (hasUnderscore && name.includes('.')) return false;
		return (hasUnderscore ? this.#underscorePrefixes : this.#dotPrefixes).some(prefix => name.startsWith(prefix));
	}

	/**
	 * Returns `items` (alternating names and values) without listed fields that occur twice, and without fields that
	 * backends could confuse with listed ones.
	 */
	withoutAmbiguous(items: readonly string[]): string[] {
		const keptItems: string[] = [];
		for (let i = 0; i < items.length; i += 2) {
			const name = items[i]!;
			if (/[_.]/.test(name) ? occursTwice(items, i) : this.#isConfusable(name.toLowerCase())) continue;
			keptItems.push(name, items[i + 1]!);
		}
		return keptItems;
	}

	#isConfusable(name: string): boolean {
		if (!name.includes('-')) return false;
		return this.#hyphenatedNames.has(name) || this.#hyphenPrefixes.some(prefix => name.startsWith(prefix));
	}
}

function occursTwice(items: readonly string[], index: number): boolean {
	const name = withHyphens(items[index]!.toLowerCase());
	for (let i = 0; i < items.length; i += 2) {
		if (i !== index && /[_.]/.test(items[i]!) && isSameFieldName(withHyphens(items[i]!), name)) return true;
	}
	return false;
}

function withHyphens(name: string): string {
	return name.replace(/[_.]/g, '-');
}
