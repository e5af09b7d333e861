/** Regular expressions. */

/** Refused. */
export class RegexpError extends Error {}

/** Compiles. */
export function compileRegexp(source: string, flags = ''): RegExp {
	return new RegExp(source, flags);
}
