/** Access to `malloc_trim` of the GNU C library, which Node does not offer. */
import { foreignFunctions } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';

/**
 * Returns a function that makes the allocator return free memory to the system. Undefined in `node` I/O mode, with another
 * C library, or on a Node without `node:ffi`.
 */
export function memoryTrim(): (() => void) | undefined {
	if (!isDirectIo()) return undefined;
	try {
		const { functions } = foreignFunctions()!.dlopen(null, { malloc_trim: { return: 'int32', arguments: ['uint64'] } });
		return () => void functions.malloc_trim(0n);
	} catch {
		return undefined;
	}
}
