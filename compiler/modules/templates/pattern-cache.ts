/** A cache of compiled regular expressions for templates. */
import { compileRegexp } from '../../codegen/regexp/regexp.ts';
import { REQUEST_REGEXP_BOUNDS } from '../../codegen/regexp/regexp-bounds.ts';
import { RegexpError } from '../../codegen/regexp/regexp-error.ts';
import { FunctionError } from './template-error.ts';

/** Maximum number of cached expressions. Without a maximum, templates that build expressions from data could exhaust memory. */
const MAX_CACHED_EXPRESSIONS = 200;

/** A bounded cache of regular expressions, compiled with the flag `g`. */
export class PatternCache {
	readonly #regexpBySource = new Map<string, RegExp>();

	/** Returns the compiled form of a regular expression. Throws FunctionError if it is invalid. */
	get(source: string): RegExp {
		const cachedRegexp = this.#regexpBySource.get(source);
		if (cachedRegexp) {
			cachedRegexp.lastIndex = 0;
			return cachedRegexp;
		}
		try {
			const regexp = compileRegexp(source, 'g', REQUEST_REGEXP_BOUNDS);
			if (this.#regexpBySource.size >= MAX_CACHED_EXPRESSIONS) this.#regexpBySource.clear();
			this.#regexpBySource.set(source, regexp);
			return regexp;
		} catch (error) {
			if (error instanceof RegexpError) throw new FunctionError(error.message);
			throw error;
		}
	}
}
