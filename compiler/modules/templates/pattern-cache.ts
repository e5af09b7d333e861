/** Regular expressions of templates, compiled once and kept while there are few. */
import { compileRegexp, REQUESTED, RegexpError } from '../../codegen/regexp.ts';
import { FunctionError } from './template-error.ts';

/** Expressions kept; a template that makes them from data does not fill the memory. */
const MOST = 200;

/** A bounded memory of expressions, with the flag `g`. */
export class PatternCache {
	readonly #compiled = new Map<string, RegExp>();

	/** The expression of a source. Throws FunctionError. */
	get(source: string): RegExp {
		const known = this.#compiled.get(source);
		if (known) {
			known.lastIndex = 0;
			return known;
		}
		try {
			const compiled = compileRegexp(source, 'g', REQUESTED);
			if (this.#compiled.size >= MOST) this.#compiled.clear();
			this.#compiled.set(source, compiled);
			return compiled;
		} catch (error) {
			if (error instanceof RegexpError) throw new FunctionError(error.message);
			throw error;
		}
	}
}
