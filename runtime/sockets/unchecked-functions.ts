/**
 * C functions without Node's check of every argument. `node:ffi` wraps each function in another one that checks. The inner
 * function is reached through the prototype of all functions, because Node offers no other way.
 *
 * Reason: `epoll_wait`, `recv` and `send` are called for every request. A keep-alive request that is answered with 14 bytes
 * costs 3.86 µs of CPU time with the checks and 3.56 µs without: 8 %. `epoll_ctl` is called for nearly every connection, and
 * takes 0.49 µs instead of 0.66 (0.78 before V8 has optimized its caller). The calls that open, stat, read and close a file are
 * made for every request of a large folder. With the checks, serving one of 100,000 files of 4 KB costs 11 % more. In Node 26.10,
 * signatures with `int64` instead of `pointer` do not avoid the cost. Functions that are called rarely are checked.
 */
import { type ForeignFunction, type ForeignSignature, loadForeignFunctions } from './foreign-functions.ts';

/**
 * Returns C functions by name. Callers must pass only integers that fit their types, and addresses as BigInts. If the unchecked
 * form of a function cannot be found, returns the checked one. Throws if a function does not exist.
 */
export function uncheckedFunctionsOf<Names extends string>(
	ffi: typeof import('node:ffi'),
	signatures: { readonly [Name in Names]: ForeignSignature },
): { readonly [Name in Names]: ForeignFunction } {
	const uncheckedByName = new Map<string, ForeignFunction>();
	// Node looks up symbols on the inner functions. Most functions lack them, so the lookup reaches the prototype of
	// `Function.prototype`, which is replaced by a proxy that records the function.
	const basePrototype = Object.getPrototypeOf(Function.prototype);
	const recordingPrototype = new Proxy(basePrototype, {
		get(target, key, receiver) {
			if (typeof key === 'symbol' && typeof receiver === 'function') uncheckedByName.set(receiver.name, receiver);
			return Reflect.get(target, key, receiver);
		},
	});
	let checkedFunctions: { readonly [Name in Names]: ForeignFunction };
	Object.setPrototypeOf(Function.prototype, recordingPrototype);
	try {
		checkedFunctions = loadForeignFunctions(ffi, signatures);
	} finally {
		Object.setPrototypeOf(Function.prototype, basePrototype);
	}
	const functions: Partial<Record<Names, ForeignFunction>> = {};
	for (const name of Object.keys(signatures) as Names[])
		functions[name] = uncheckedByName.get(name) ?? checkedFunctions[name];
	return functions as { readonly [Name in Names]: ForeignFunction };
}
