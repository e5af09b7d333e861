/** Header fields of a message: ordered, repeatable, with case-insensitive names (RFC 9110 §5). */

/**
 * An ordered list of fields. Lookups take the name in lower case, so that constant names need no conversion. Fields keep the case
 * of their names, for HTTP/1.1.
 */
export class HeaderList {
	/** Alternating names and values in one array, because lists are short and often copied. */
	readonly #namesAndValues: string[];

	constructor(namesAndValues: string[] = []) {
		this.#namesAndValues = namesAndValues;
	}

	/** Number of fields. Fields with the same name are counted separately. */
	get size(): number {
		return this.#namesAndValues.length >> 1;
	}

	/** Returns the value of the first field of that name; undefined if there is none. */
	get(lowerName: string): string | undefined {
		const items = this.#namesAndValues;
		for (let i = 0; i < items.length; i += 2) if (isSameFieldName(items[i]!, lowerName)) return items[i + 1];
		return undefined;
	}

	/** Returns the values of all fields of that name, in order. */
	getAll(lowerName: string): string[] {
		const items = this.#namesAndValues;
		const values: string[] = [];
		for (let i = 0; i < items.length; i += 2) if (isSameFieldName(items[i]!, lowerName)) values.push(items[i + 1]!);
		return values;
	}

	/** Returns the values of all fields of that name, joined by `, ` (RFC 9110 §5.2); undefined if there are none. */
	getCombined(lowerName: string): string | undefined {
		const items = this.#namesAndValues;
		let combinedValue: string | undefined;
		for (let i = 0; i < items.length; i += 2) {
			if (isSameFieldName(items[i]!, lowerName))
				combinedValue = combinedValue === undefined ? items[i + 1] : `${combinedValue}, ${items[i + 1]}`;
		}
		return combinedValue;
	}

	has(lowerName: string): boolean {
		const items = this.#namesAndValues;
		for (let i = 0; i < items.length; i += 2) if (isSameFieldName(items[i]!, lowerName)) return true;
		return false;
	}

	/** Appends a field. The caller must ensure that name and value are valid (see field-syntax.ts). */
	add(name: string, value: string): void {
		this.#namesAndValues.push(name, value);
	}

	/** Replaces all fields of that name with a single field, at the position of the first. */
	set(name: string, value: string): void {
		const items = this.#namesAndValues;
		const lowerName = name.toLowerCase();
		for (let i = 0; i < items.length; i += 2) {
			if (!isSameFieldName(items[i]!, lowerName)) continue;
			items[i] = name;
			items[i + 1] = value;
			this.#removeFrom(i + 2, lowerName);
			return;
		}
		items.push(name, value);
	}

	/** Removes all fields of that name. Returns true if there were any. */
	delete(lowerName: string): boolean {
		return this.#removeFrom(0, lowerName);
	}

	/** Removes the fields for which `shouldKeep` returns false. Names are passed in their original case. */
	filter(shouldKeep: (name: string, value: string) => boolean): void {
		const items = this.#namesAndValues;
		let writeIndex = 0;
		for (let i = 0; i < items.length; i += 2) {
			const name = items[i]!;
			const value = items[i + 1]!;
			if (!shouldKeep(name, value)) continue;
			items[writeIndex++] = name;
			items[writeIndex++] = value;
		}
		items.length = writeIndex;
	}

	/** Replaces each value with what `change` returns for it. */
	map(change: (name: string, value: string) => string): void {
		const items = this.#namesAndValues;
		for (let i = 0; i < items.length; i += 2) items[i + 1] = change(items[i]!, items[i + 1]!);
	}

	clear(): void {
		this.#namesAndValues.length = 0;
	}

	/** Returns the name at an index from 0 to size − 1, in its original case. */
	nameAt(index: number): string {
		return this.#namesAndValues[index * 2]!;
	}

	/** Returns the value at an index from 0 to size − 1. */
	valueAt(index: number): string {
		return this.#namesAndValues[index * 2 + 1]!;
	}

	clone(): HeaderList {
		return new HeaderList(this.#namesAndValues.slice());
	}

	*[Symbol.iterator](): IterableIterator<[name: string, value: string]> {
		for (let i = 0; i < this.#namesAndValues.length; i += 2)
			yield [this.#namesAndValues[i]!, this.#namesAndValues[i + 1]!];
	}

	#removeFrom(startIndex: number, lower: string): boolean {
		const items = this.#namesAndValues;
		let writeIndex = startIndex;
		for (let i = startIndex; i < items.length; i += 2) {
			const name = items[i]!;
			if (isSameFieldName(name, lower)) continue;
			items[writeIndex] = name;
			items[writeIndex + 1] = items[i + 1]!;
			writeIndex += 2;
		}
		const hasRemoved = writeIndex !== items.length;
		// Assigning to `length` would call into the engine's runtime, which is slow.
		while (items.length > writeIndex) items.pop();
		return hasRemoved;
	}
}

/**
 * Reports whether a field name equals a lower-case name, ignoring case. Allocates no string, because it is called several times per
 * request.
 */
export function isSameFieldName(name: string, lower: string): boolean {
	const length = lower.length;
	if (name.length !== length) return false;
	for (let i = 0; i < length; i++) {
		const code = name.charCodeAt(i);
		const lowerCode = lower.charCodeAt(i);
		if (code !== lowerCode && (code < 65 || code > 90 || code + 32 !== lowerCode)) return false;
	}
	return true;
}
