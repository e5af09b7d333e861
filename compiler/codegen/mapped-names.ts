/** Values of the placeholders that `map` makes, in an exchange. */
import type { Exchange } from '../exchange/exchange.ts';

/** Before the name of such a placeholder among the variables; the value is a {@link MappedValue}. */
export const MAPPED = 'svc.map.';

/** Finds the value when it is asked for. */
export type MappedValue = (x: Exchange) => unknown;

/** The value of a placeholder that `map` makes; undefined when no `map` has run that makes it. */
export function mappedValue(key: string): (x: Exchange) => unknown {
	return x => (x.variable(key) as MappedValue | undefined)?.(x);
}
