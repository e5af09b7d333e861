/** Reads the placeholders that `map` defines in an exchange. */
import type { Exchange } from '../../exchange/exchange.ts';

/** Prefix of the variables that hold placeholders defined by `map`. Their values are {@link MappedValue}s. */
export const MAPPED_VARIABLE_PREFIX = 'svc.map.';

/** Computes the value of a placeholder when it is read. */
export type MappedValue = (x: Exchange) => unknown;

/** Returns the value of a placeholder defined by `map`; undefined if no `map` that defines it has run. */
export function compileMappedValue(key: string): (x: Exchange) => unknown {
	return x => (x.variable(key) as MappedValue | undefined)?.(x);
}
