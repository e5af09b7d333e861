/** Functions of the C library, for what the system can do and Node has no way to ask for. */

/**
 * Returns `node:ffi`; undefined where Node has no such module. The module warns on standard error that it is
 * an experiment: users can do nothing about that, so it does not.
 */
export function foreignFunctions(): typeof import('node:ffi') | undefined {
	const { emitWarning } = process;
	process.emitWarning = () => {};
	try {
		return process.getBuiltinModule('node:ffi');
	} finally {
		process.emitWarning = emitWarning;
	}
}

/** What a function of C takes and gives, in `node:ffi`'s names of types. */
export interface ForeignSignature {
	readonly return: string;
	readonly arguments: readonly string[];
}

/** A function of C: numbers for what has up to 32 bits, BigInts for what has more, as its signature says. */
export type ForeignFunction = (...values: (number | bigint)[]) => number | bigint;

/** What functions are found in; they are usable as long as it is there. */
const LIBRARIES: unknown[] = [];

/**
 * Functions of the C library, or of this program, by name. Node looks at every value of a call anew, which takes longer than
 * most of these functions do; the function that it calls when it has looked is what this gives, where it can be had, and else
 * the one that looks. So callers pass whole numbers that fit their types and addresses as BigInts, and nothing else.
 * Throws where there is no such function.
 */
export function foreignFunctionsOf<Names extends string>(
	ffi: typeof import('node:ffi'),
	signatures: { readonly [Name in Names]: ForeignSignature },
): { readonly [Name in Names]: ForeignFunction } {
	const unchecked = new Map<string, ForeignFunction>();
	// Node asks each of its functions for properties that only some have, and so asks what stands behind all functions.
	const behind = Object.getPrototypeOf(Function.prototype);
	const spy = new Proxy(behind, {
		get(target, key, asked) {
			if (typeof key === 'symbol' && typeof asked === 'function') unchecked.set(asked.name, asked);
			return Reflect.get(target, key, asked);
		},
	});
	let library: { readonly functions: object };
	Object.setPrototypeOf(Function.prototype, spy);
	try {
		library = ffi.dlopen(null, signatures as never);
	} finally {
		Object.setPrototypeOf(Function.prototype, behind);
	}
	LIBRARIES.push(library);
	const checked = library.functions as { readonly [Name in Names]: ForeignFunction };
	const found: Partial<Record<Names, ForeignFunction>> = {};
	for (const name of Object.keys(signatures) as Names[]) found[name] = unchecked.get(name) ?? checked[name];
	return found as { readonly [Name in Names]: ForeignFunction };
}
