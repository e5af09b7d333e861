/** A cache of compiled regular expressions for templates. */
import { compileRegexp, REQUEST_REGEXP_BOUNDS, RegexpError } from '../../codegen/regexp/regexp.ts';
import { FunctionError } from './template-error.ts';

/** Maximum number of cached expressions, so that templates which build them from data cannot exhaust memory. */
const MAX_EXPRESSIONS = 200;

/** A bounded cache of regular expressions, compiled with the flag `g`. */
export class PatternCache {
	readonly #compiled = new Map<string, RegExp>();

	/** Returns the compiled regular expression. Throws FunctionError. */
	get(source: string): RegExp {
		const cached = this.#compiled.get(source);
		if (cached) {
			cached.lastIndex = 0;
			return cached;
		}
		try {
			const compiled = compileRegexp(source, 'g', REQUEST_REGEXP_BOUNDS);
			if (this.#compiled.size >= MAX_EXPRESSIONS) this.#compiled.clear();
			this.#compiled.set(source, compiled);
			return compiled;
		} catch (error) {
			if (error instanceof RegexpError) throw new FunctionError(error.message);
			throw error;
		}
	}
}
