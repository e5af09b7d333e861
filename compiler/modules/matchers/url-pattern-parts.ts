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
const SEPARATOR_BY_COMPONENT: { readonly [component: string]: Separator | undefined } = {
	hostname: { delimiter: '.', prefix: '' },
	pathname: { delimiter: '/', prefix: '/' },
};

const NAME_START = /[\p{ID_Start}$_]/u;
const NAME_PART = /[\p{ID_Continue}$\u200c\u200d]/u;

/** Translates a component to an expression. `pattern` must be normalized by `URLPattern`, and is therefore valid. */
export function translateComponent(componentName: string, pattern: string): ComponentExpression {
	return new ComponentTranslator(pattern, SEPARATOR_BY_COMPONENT[componentName] ?? NO_SEPARATOR).translate();
}

/** Translates a pattern string to an expression (URL Pattern standard, §2.1.5 and §2.1.7). */
class ComponentTranslator {
	readonly #pattern: string;
	readonly #separator: Separator;
	readonly #groupNames: string[] = [];
	readonly #expressions: string[] = [];
	#position = 0;
	#unnamedGroupCount = 0;

	constructor(pattern: string, separator: Separator) {
		this.#pattern = pattern;
		this.#separator = separator;
	}

	translate(): ComponentExpression {
		let expressionSource = '';
		while (this.#position < this.#pattern.length) expressionSource += this.#translatePart();
		return { source: `^(?:${expressionSource})$`, groupNames: this.#groupNames, expressions: this.#expressions };
	}

	#translatePart(): string {
		if (this.#tryConsume('{')) {
			const prefix = this.#parseText();
			const groupExpression = this.#parseGroup();
			const suffix = this.#parseText();
			this.#tryConsume('}');
			return this.#applyModifier(prefix, groupExpression, suffix);
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
	#applyModifier(prefix: string, groupExpression: string | undefined, suffix: string): string {
		const modifier = ['?', '*', '+'].find(symbol => this.#tryConsume(symbol)) ?? '';
		const [literalPrefix, literalSuffix] = [escapeLiteral(prefix), escapeLiteral(suffix)];
		if (groupExpression === undefined)
			return modifier === '' ? literalPrefix + literalSuffix : `(?:${literalPrefix}${literalSuffix})${modifier}`;
		const isRepeated = modifier === '*' || modifier === '+';
		if (literalPrefix + literalSuffix === '')
			return isRepeated ? `((?:${groupExpression})${modifier})` : `(${groupExpression})${modifier}`;
		if (!isRepeated) return `(?:${literalPrefix}(${groupExpression})${literalSuffix})${modifier}`;
		const repetition = `(?:${literalPrefix}((?:${groupExpression})(?:${literalSuffix}${literalPrefix}(?:${groupExpression}))*)${literalSuffix})`;
		return modifier === '*' ? `${repetition}?` : repetition;
	}

	/** Parses a group: `:name`, `:name(…)`, `(…)` or `*`. Returns its expression; undefined if there is no group here. */
	#parseGroup(): string | undefined {
		const name = this.#parseName();
		const expression = this.#parseExpression();
		if (name === undefined && expression === undefined && !this.#tryConsume('*')) return undefined;
		this.#groupNames.push(name ?? String(this.#unnamedGroupCount++));
		if (expression !== undefined) return expression;
		if (name === undefined) return '.*';
		return this.#separator.delimiter === '' ? '(?s:.)+?' : `[^${escapeLiteral(this.#separator.delimiter)}]+?`;
	}

	#parseName(): string | undefined {
		if (this.#pattern[this.#position] !== ':') return undefined;
		let nameEnd = this.#position + 1;
		for (const c of this.#pattern.slice(nameEnd)) {
			if (!(nameEnd === this.#position + 1 ? NAME_START : NAME_PART).test(c)) break;
			nameEnd += c.length;
		}
		const name = this.#pattern.slice(this.#position + 1, nameEnd);
		if (name === '') return undefined;
		this.#position = nameEnd;
		return name;
	}

	#parseExpression(): string | undefined {
		if (this.#pattern[this.#position] !== '(') return undefined;
		const expressionStart = this.#position + 1;
		let depth = 0;
		for (; this.#position < this.#pattern.length; this.#position++) {
			const c = this.#pattern[this.#position];
			if (c === '\\') this.#position++;
			else if (c === '(') depth++;
			else if (c === ')' && --depth === 0) break;
		}
		const expression = this.#pattern.slice(expressionStart, this.#position++);
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
		this.#tryConsume('\\');
		const c = String.fromCodePoint(this.#pattern.codePointAt(this.#position) ?? 0);
		this.#position += c.length;
		return c;
	}

	#tryConsume(symbol: string): boolean {
		if (this.#pattern[this.#position] !== symbol) return false;
		this.#position++;
		return true;
	}
}

function escapeLiteral(text: string): string {
	return Array.from(text, c => (/[A-Za-z0-9]/.test(c) ? c : `\\x{${c.codePointAt(0)!.toString(16)}}`)).join('');
}
