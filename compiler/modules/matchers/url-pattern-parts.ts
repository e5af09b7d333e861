/**
 * Converts a component of a URL pattern, such as its host name or path, to a regular expression in RE2 syntax. The built-in
 * `URLPattern` matches by backtracking, which can take very long for texts that clients choose.
 */

/** A component as an RE2 expression, with the names of its groups in order. */
export interface ComponentExpression {
	readonly source: string;
	readonly groupNames: readonly string[];
	/** The regular expressions that the pattern contains in parentheses. */
	readonly expressions: readonly string[];
}

/**
 * The separator of a component. `:name` matches up to the next `delimiter`. A `prefix` before a group is optional or repeated
 * together with the group (URL Pattern standard, §2.1 "options").
 */
interface Separator {
	readonly delimiter: string;
	readonly prefix: string;
}

const NO_SEPARATOR: Separator = { delimiter: '', prefix: '' };
const SEPARATORS: { readonly [component: string]: Separator | undefined } = {
	hostname: { delimiter: '.', prefix: '' },
	pathname: { delimiter: '/', prefix: '/' },
};

const NAME_START = /[\p{ID_Start}$_]/u;
const NAME_PART = /[\p{ID_Continue}$\u200c\u200d]/u;

/** Translates a component to an expression. `pattern` must be normalized by `URLPattern`, and is therefore valid. */
export function componentExpression(component: string, pattern: string): ComponentExpression {
	return new ComponentTranslator(pattern, SEPARATORS[component] ?? NO_SEPARATOR).translate();
}

/** Translates a pattern string to an expression (URL Pattern standard, §2.1.5 and §2.1.7). */
class ComponentTranslator {
	readonly #pattern: string;
	readonly #separator: Separator;
	readonly #groupNames: string[] = [];
	readonly #expressions: string[] = [];
	#position = 0;
	#unnamedCount = 0;

	constructor(pattern: string, separator: Separator) {
		this.#pattern = pattern;
		this.#separator = separator;
	}

	translate(): ComponentExpression {
		let source = '';
		while (this.#position < this.#pattern.length) source += this.#translatePart();
		return { source: `^(?:${source})$`, groupNames: this.#groupNames, expressions: this.#expressions };
	}

	#translatePart(): string {
		if (this.#consume('{')) {
			const prefix = this.#parseText();
			const group = this.#parseGroup();
			const suffix = this.#parseText();
			this.#consume('}');
			return this.#applyModifier(prefix, group, suffix);
		}
		if (this.#pattern[this.#position] === '\\') return escapeLiteral(this.#parseCharacter());
		const directGroup = this.#parseGroup();
		if (directGroup !== undefined) return this.#applyModifier('', directGroup, '');
		const character = this.#parseCharacter();
		if (character !== this.#separator.prefix) return escapeLiteral(character);
		const group = this.#parseGroup();
		return group === undefined ? escapeLiteral(character) : this.#applyModifier(character, group, '');
	}

	/** Returns the expression of a part: prefix, group and suffix, with the modifier `?`, `*` or `+` that applies to them together. */
	#applyModifier(prefix: string, group: string | undefined, suffix: string): string {
		const modifier = ['?', '*', '+'].find(symbol => this.#consume(symbol)) ?? '';
		const [literalPrefix, literalSuffix] = [escapeLiteral(prefix), escapeLiteral(suffix)];
		if (group === undefined)
			return modifier === '' ? literalPrefix + literalSuffix : `(?:${literalPrefix}${literalSuffix})${modifier}`;
		const isRepeated = modifier === '*' || modifier === '+';
		if (literalPrefix + literalSuffix === '') return isRepeated ? `((?:${group})${modifier})` : `(${group})${modifier}`;
		if (!isRepeated) return `(?:${literalPrefix}(${group})${literalSuffix})${modifier}`;
		const repetition = `(?:${literalPrefix}((?:${group})(?:${literalSuffix}${literalPrefix}(?:${group}))*)${literalSuffix})`;
		return modifier === '*' ? `${repetition}?` : repetition;
	}

	/** Parses a group: `:name`, `:name(…)`, `(…)` or `*`. Returns its expression; undefined if there is no group here. */
	#parseGroup(): string | undefined {
		const name = this.#parseName();
		const expression = this.#parseExpression();
		if (name === undefined && expression === undefined && !this.#consume('*')) return undefined;
		this.#groupNames.push(name ?? String(this.#unnamedCount++));
		if (expression !== undefined) return expression;
		if (name === undefined) return '.*';
		return this.#separator.delimiter === '' ? '(?s:.)+?' : `[^${escapeLiteral(this.#separator.delimiter)}]+?`;
	}

	#parseName(): string | undefined {
		if (this.#pattern[this.#position] !== ':') return undefined;
		let end = this.#position + 1;
		for (const c of this.#pattern.slice(end)) {
			if (!(end === this.#position + 1 ? NAME_START : NAME_PART).test(c)) break;
			end += c.length;
		}
		const name = this.#pattern.slice(this.#position + 1, end);
		if (name === '') return undefined;
		this.#position = end;
		return name;
	}

	#parseExpression(): string | undefined {
		if (this.#pattern[this.#position] !== '(') return undefined;
		const start = this.#position + 1;
		let depth = 0;
		for (; this.#position < this.#pattern.length; this.#position++) {
			const c = this.#pattern[this.#position];
			if (c === '\\') this.#position++;
			else if (c === '(') depth++;
			else if (c === ')' && --depth === 0) break;
		}
		const expression = this.#pattern.slice(start, this.#position++);
		this.#expressions.push(expression);
		return expression;
	}

	#parseText(): string {
		let text = '';
		while (this.#position < this.#pattern.length && !/[{}(*]/.test(this.#pattern[this.#position]!)) {
			if (this.#pattern[this.#position] === ':' && NAME_START.test(this.#pattern[this.#position + 1] ?? '')) break;
			text += this.#parseCharacter();
		}
		return text;
	}

	/** Parses one character, which may be escaped. */
	#parseCharacter(): string {
		this.#consume('\\');
		const c = String.fromCodePoint(this.#pattern.codePointAt(this.#position) ?? 0);
		this.#position += c.length;
		return c;
	}

	#consume(symbol: string): boolean {
		if (this.#pattern[this.#position] !== symbol) return false;
		this.#position++;
		return true;
	}
}

function escapeLiteral(text: string): string {
	return Array.from(text, c => (/[A-Za-z0-9]/.test(c) ? c : `\\x{${c.codePointAt(0)!.toString(16)}}`)).join('');
}
