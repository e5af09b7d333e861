/** Reads the placeholders that `map` defines in an exchange. */
import type { Exchange } from '../../exchange/exchange.ts';

/** Prefix of the variables with the values of placeholders that `map` defines. Their values are {@link MappedValue}s. */
export const MAPPED_VARIABLE_PREFIX = 'svc.map.';

/** Computes the value of a placeholder that `map` defines, each time the placeholder is read. */
export type MappedValue = (x: Exchange) => unknown;

/**
 * Returns a function that reads a placeholder that `map` defines. Its result is undefined if no `map` that defines the placeholder
 * has run. `key` is the name of the variable.
 */
export function compileMappedValue(key: string): (x: Exchange) => unknown {
	return x => (x.variable(key) as MappedValue | undefined)?.(x);
}
