/**
 * A component of a URL pattern as a regular expression. The expressions that the built-in `URLPattern` makes backtrack, and a
 * client chooses the subject.
 */

/** A component as an expression in the syntax of RE2, and the names of its groups in order. */
export interface ComponentExpression {
	readonly source: string;
	readonly names: readonly string[];
	/** Expressions that stood in parentheses. */
	readonly expressions: readonly string[];
}

/** What a component is divided by: `:name` stops there, and belongs to the part after it (URL Pattern standard, §2.1 "options"). */
interface Division {
	readonly delimiter: string;
	readonly prefix: string;
}

const WHOLE: Division = { delimiter: '', prefix: '' };
const DIVISIONS: { readonly [component: string]: Division | undefined } = {
	hostname: { delimiter: '.', prefix: '' },
	pathname: { delimiter: '/', prefix: '/' },
};

const NAME_START = /[\p{ID_Start}$_]/u;
const NAME_PART = /[\p{ID_Continue}$\u200c\u200d]/u;

/** Translates a component as `URLPattern` writes it, which is a valid pattern. */
export function componentExpression(component: string, pattern: string): ComponentExpression {
	return new Translator(pattern, DIVISIONS[component] ?? WHOLE).translate();
}

/** Parses a pattern string and writes an expression (URL Pattern standard, §2.1.5 and §2.1.7). */
class Translator {
	readonly #pattern: string;
	readonly #division: Division;
	readonly #names: string[] = [];
	readonly #expressions: string[] = [];
	#at = 0;
	#unnamed = 0;

	constructor(pattern: string, division: Division) {
		this.#pattern = pattern;
		this.#division = division;
	}

	translate(): ComponentExpression {
		let source = '';
		while (this.#at < this.#pattern.length) source += this.#part();
		return { source: `^(?:${source})$`, names: this.#names, expressions: this.#expressions };
	}

	#part(): string {
		if (this.#take('{')) {
			const prefix = this.#text();
			const group = this.#group();
			const suffix = this.#text();
			this.#take('}');
			return this.#modified(prefix, group, suffix);
		}
		if (this.#pattern[this.#at] === '\\') return literal(this.#character());
		const direct = this.#group();
		if (direct !== undefined) return this.#modified('', direct, '');
		const character = this.#character();
		if (character !== this.#division.prefix) return literal(character);
		const group = this.#group();
		return group === undefined ? literal(character) : this.#modified(character, group, '');
	}

	/** Writes a part with what precedes its group, the group, what follows it, and the `?`, `*` or `+` after all of it. */
	#modified(prefix: string, group: string | undefined, suffix: string): string {
		const modifier = ['?', '*', '+'].find(sign => this.#take(sign)) ?? '';
		const [before, after] = [literal(prefix), literal(suffix)];
		if (group === undefined) return modifier === '' ? before + after : `(?:${before}${after})${modifier}`;
		const repeated = modifier === '*' || modifier === '+';
		if (before + after === '') return repeated ? `((?:${group})${modifier})` : `(${group})${modifier}`;
		if (!repeated) return `(?:${before}(${group})${after})${modifier}`;
		const all = `(?:${before}((?:${group})(?:${after}${before}(?:${group}))*)${after})`;
		return modifier === '*' ? `${all}?` : all;
	}

	/** Parses `:name`, `:name(…)`, `(…)` or `*`, and returns what it matches. */
	#group(): string | undefined {
		const name = this.#name();
		const expression = this.#expression();
		if (name === undefined && expression === undefined && !this.#take('*')) return undefined;
		this.#names.push(name ?? String(this.#unnamed++));
		if (expression !== undefined) return expression;
		if (name === undefined) return '.*';
		return this.#division.delimiter === '' ? '(?s:.)+?' : `[^${literal(this.#division.delimiter)}]+?`;
	}

	#name(): string | undefined {
		if (this.#pattern[this.#at] !== ':') return undefined;
		let end = this.#at + 1;
		for (const c of this.#pattern.slice(end)) {
			if (!(end === this.#at + 1 ? NAME_START : NAME_PART).test(c)) break;
			end += c.length;
		}
		const name = this.#pattern.slice(this.#at + 1, end);
		if (name === '') return undefined;
		this.#at = end;
		return name;
	}

	#expression(): string | undefined {
		if (this.#pattern[this.#at] !== '(') return undefined;
		const from = this.#at + 1;
		let depth = 0;
		for (; this.#at < this.#pattern.length; this.#at++) {
			const c = this.#pattern[this.#at];
			if (c === '\\') this.#at++;
			else if (c === '(') depth++;
			else if (c === ')' && --depth === 0) break;
		}
		const expression = this.#pattern.slice(from, this.#at++);
		this.#expressions.push(expression);
		return expression;
	}

	#text(): string {
		let text = '';
		while (this.#at < this.#pattern.length && !/[{}(*]/.test(this.#pattern[this.#at]!)) {
			if (this.#pattern[this.#at] === ':' && NAME_START.test(this.#pattern[this.#at + 1] ?? '')) break;
			text += this.#character();
		}
		return text;
	}

	/** Parses one character, perhaps escaped. */
	#character(): string {
		this.#take('\\');
		const c = String.fromCodePoint(this.#pattern.codePointAt(this.#at) ?? 0);
		this.#at += c.length;
		return c;
	}

	#take(sign: string): boolean {
		if (this.#pattern[this.#at] !== sign) return false;
		this.#at++;
		return true;
	}
}

function literal(text: string): string {
	return Array.from(text, c => (/[A-Za-z0-9]/.test(c) ? c : `\\x{${c.codePointAt(0)!.toString(16)}}`)).join('');
}
