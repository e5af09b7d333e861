/** Values of the placeholders that `map` makes, in an exchange. */
import type { Exchange } from '../exchange/exchange.ts';

/** Prefix of the variables that hold such placeholders; the value is a {@link MappedValue}. */
export const MAPPED = 'svc.map.';

/** Computes the value on demand. */
export type MappedValue = (x: Exchange) => unknown;

/** Returns the value of a placeholder defined by `map`; undefined if no `map` that defines it has run. */
export function mappedValue(key: string): (x: Exchange) => unknown {
	return x => (x.variable(key) as MappedValue | undefined)?.(x);
}
