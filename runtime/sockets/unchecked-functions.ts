/**
 * C functions without Node's check of every argument. `node:ffi` wraps each function in one that checks; the function behind it
 * is reached here through the prototype of all functions, because Node offers no other way.
 *
 * Reason: `epoll_wait`, `read` and `write` are called for every request. With checks, a keep-alive request that is answered with
 * 14 bytes costs 3.86 µs of CPU time, without them 3.56 µs: 8 %. The calls that open, stat, read and close a file are made for
 * every request of a large folder; with checks, one of 100,000 files of 4 KB costs 11 % more. Signatures with `int64` instead of
 * `pointer` cost the same as checked ones in Node 26.10. All other calls are checked.
 */
import { type ForeignFunction, type ForeignSignature, loadForeignFunctions } from './foreign-functions.ts';

/**
 * Returns C functions by name. Callers must pass integers that fit their types and addresses as BigInts, and nothing else.
 * Returns the checked function where the other one cannot be found. Throws if a function does not exist.
 */
export function uncheckedFunctionsOf<Names extends string>(
	ffi: typeof import('node:ffi'),
	signatures: { readonly [Name in Names]: ForeignSignature },
): { readonly [Name in Names]: ForeignFunction } {
	const unchecked = new Map<string, ForeignFunction>();
	// Node looks up properties of its functions that most of them lack, so the lookup reaches the prototype's prototype.
	const base = Object.getPrototypeOf(Function.prototype);
	const spy = new Proxy(base, {
		get(target, key, asked) {
			if (typeof key === 'symbol' && typeof asked === 'function') unchecked.set(asked.name, asked);
			return Reflect.get(target, key, asked);
		},
	});
	let checked: { readonly [Name in Names]: ForeignFunction };
	Object.setPrototypeOf(Function.prototype, spy);
	try {
		checked = loadForeignFunctions(ffi, signatures);
	} finally {
		Object.setPrototypeOf(Function.prototype, base);
	}
	const found: Partial<Record<Names, ForeignFunction>> = {};
	for (const name of Object.keys(signatures) as Names[]) found[name] = unchecked.get(name) ?? checked[name];
	return found as { readonly [Name in Names]: ForeignFunction };
}
