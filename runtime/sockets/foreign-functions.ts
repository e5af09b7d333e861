/** Functions of the C library, for what the system can do and Node has no way to ask for. */

/** Returns `node:ffi`; undefined where Node has no such module. */
export function foreignFunctions(): typeof import('node:ffi') | undefined {
	return process.getBuiltinModule('node:ffi');
}

/** The parameters and the result of a C function, in the type names of `node:ffi`. */
export interface ForeignSignature {
	readonly return: string;
	readonly arguments: readonly string[];
}

/** A C function. Values of up to 32 bits are numbers, wider ones are BigInts. */
export type ForeignFunction = (...values: (number | bigint)[]) => number | bigint;

/** Keeps libraries from being collected, because their functions stop working then. */
const LIBRARIES: unknown[] = [];

/** Returns functions of the C library, or of this program, by name. Throws if one does not exist. */
export function foreignFunctionsOf<Names extends string>(
	ffi: typeof import('node:ffi'),
	signatures: { readonly [Name in Names]: ForeignSignature },
): { readonly [Name in Names]: ForeignFunction } {
	const library = ffi.dlopen(null, signatures as never);
	LIBRARIES.push(library);
	return library.functions as { readonly [Name in Names]: ForeignFunction };
}
