/** Access to functions of the C library, for system calls that Node does not offer. */

/** Returns the module `node:ffi`, or undefined if this Node does not have it. */
export function foreignFunctions(): typeof import('node:ffi') | undefined {
	return process.getBuiltinModule('node:ffi');
}

/** The types of the parameters and of the result of a C function, named as in `node:ffi`. */
export interface ForeignSignature {
	readonly return: string;
	readonly arguments: readonly string[];
}

/** A C function. Values of up to 32 bits are numbers; wider values are BigInts. */
export type ForeignFunction = (...values: (number | bigint)[]) => number | bigint;

/** The loaded libraries, kept here because their functions would stop working if they were garbage-collected. */
const LIBRARIES: unknown[] = [];

/** Returns functions of the C library, or of this executable, by name. Throws if one does not exist. */
export function loadForeignFunctions<Names extends string>(
	ffi: typeof import('node:ffi'),
	signatures: { readonly [Name in Names]: ForeignSignature },
): { readonly [Name in Names]: ForeignFunction } {
	const library = ffi.dlopen(null, signatures as never);
	LIBRARIES.push(library);
	return library.functions as { readonly [Name in Names]: ForeignFunction };
}
