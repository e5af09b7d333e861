/** Parses regular expressions in RE2's syntax. Rejects what RE2 does not have (lookaround, backreferences, atomic groups). */
import {
	ANY_CHARACTER,
	type CharacterSet,
	complementOfSet,
	DIGIT,
	NOT_NEWLINE,
	posixClass,
	unicodePropertySet,
	unionOfSets,
	WHITE_SPACE,
	WORD_CHARACTERS,
	withBothCases,
	wordComplement,
} from './character-sets.ts';
import { CONFIGURED_REGEXP_BOUNDS, type RegexpBounds } from './regexp-bounds.ts';
import { RegexpError, RegexpTooLarge } from './regexp-error.ts';
import type { ParsedRegexp, RegexpAssertion, RegexpNode } from './regexp-node.ts';

const MAX_DEPTH = 100;
const MAX_REPEAT = 1000;
/** Maximum number of ranges in all bracketed classes of an expression. */
const MAX_RANGES = 20_000;
const ASSERTIONS: { readonly [letter: string]: RegexpAssertion | undefined } = {
	A: 'text-start',
	z: 'text-end',
	b: 'word-boundary',
	B: 'no-word-boundary',
};

/**
 * Parses an expression. `^` and `$` are the ends of the text unless `(?m)` is set, `.` is any character except a line feed
 * unless `(?s)` is set, and `\d \s \w \b` are ASCII. Throws RegexpError.
 */
export function parseRegexp(
	source: string,
	ignoreCase: boolean,
	bounds: RegexpBounds = CONFIGURED_REGEXP_BOUNDS,
): ParsedRegexp {
	const { length } = bounds;
	if (source.length > length) throw new RegexpError(`The expression is longer than ${length} characters.`);
	return new Parser(source, ignoreCase, bounds).whole();
}

interface Flags {
	i: boolean;
	m: boolean;
	s: boolean;
	U: boolean;
}

class Parser {
	readonly #source: string;
	#at = 0;
	#depth = 0;
	#flags: Flags;
	#groups = 0;
	readonly #names = new Map<string, number>();
	readonly #properties = new Set<string>();
	readonly #maxProperties: number;
	/** The sets of bracketed classes, by their source text. */
	readonly #sets = new Map<string, CharacterSet>();
	#ranges = 0;

	constructor(source: string, ignoreCase: boolean, { properties }: RegexpBounds) {
		this.#source = source;
		this.#maxProperties = properties;
		this.#flags = { i: ignoreCase, m: false, s: false, U: false };
	}

	whole(): ParsedRegexp {
		const root = this.#alternatives();
		if (this.#at < this.#source.length) this.#fail('unexpected `)`');
		return { root, groups: this.#groups, names: this.#names };
	}

	#fail(what: string): never {
		throw new RegexpError(`\`${this.#source}\` is not a regular expression: ${what}.`);
	}

	#take(text: string): boolean {
		if (!this.#source.startsWith(text, this.#at)) return false;
		this.#at += text.length;
		return true;
	}

	/** Parses up to a `)` or the end. Flags set inside apply until the end of the group, also in later alternatives. */
	#alternatives(): RegexpNode {
		if (++this.#depth > MAX_DEPTH) this.#fail('it is nested too deeply');
		const outer = this.#flags;
		const nodes: RegexpNode[] = [];
		do nodes.push(this.#sequence());
		while (this.#take('|'));
		this.#flags = outer;
		this.#depth--;
		if (nodes.length === 1) return nodes[0]!;
		// `a|b` is compiled like `[ab]`.
		const sets = nodes.flatMap(node => (node.kind === 'set' ? [node.ranges] : []));
		if (sets.length === nodes.length) return { kind: 'set', ranges: unionOfSets(sets.flat()) };
		return { kind: 'alt', of: nodes };
	}

	#sequence(): RegexpNode {
		const nodes: RegexpNode[] = [];
		while (this.#at < this.#source.length && !/[|)]/.test(this.#source[this.#at]!)) {
			const groupsBefore = this.#groups;
			const atom = this.#atom();
			if (atom) nodes.push(this.#quantified(atom, groupsBefore));
		}
		return nodes.length === 1 ? nodes[0]! : { kind: 'cat', of: nodes };
	}

	/** Parses one atom. Returns undefined after `(?flags)`. */
	#atom(): RegexpNode | undefined {
		const c = this.#next();
		switch (c) {
			case '(':
				return this.#group();
			case '[':
				return this.#bracketed();
			case '\\':
				return this.#escape();
			case '.':
				return { kind: 'set', ranges: this.#flags.s ? ANY_CHARACTER : NOT_NEWLINE };
			case '^':
				return { kind: 'assert', assertion: this.#flags.m ? 'line-start' : 'text-start' };
			case '$':
				return { kind: 'assert', assertion: this.#flags.m ? 'line-end' : 'text-end' };
			case '*':
			case '+':
			case '?':
				return this.#fail(`nothing stands before \`${c}\``);
			default:
				return this.#set(one(c.codePointAt(0)!));
		}
	}

	#next(): string {
		const c = String.fromCodePoint(this.#source.codePointAt(this.#at)!);
		this.#at += c.length;
		return c;
	}

	#set(ranges: CharacterSet): RegexpNode {
		return { kind: 'set', ranges: this.#inBothCases(ranges) };
	}

	#inBothCases(ranges: CharacterSet): CharacterSet {
		return this.#flags.i ? withBothCases(ranges) : ranges;
	}

	#group(): RegexpNode | undefined {
		if (!this.#take('?')) return this.#capturing();
		if (this.#take(':')) return this.#closed();
		for (const look of ['=', '!', '<=', '<!']) {
			if (this.#source.startsWith(look, this.#at)) this.#fail(`lookaround \`(?${look}\` is not part of the language`);
		}
		if (this.#take('>')) this.#fail('atomic groups `(?>` are not part of the language');
		const name = /^P?<([^>]*)>/.exec(this.#source.slice(this.#at));
		if (name) {
			this.#at += name[0].length;
			if (!/^[A-Za-z_]\w*$/.test(name[1]!)) this.#fail(`\`${name[1]}\` cannot name a group`);
			if (this.#names.has(name[1]!)) this.#fail(`two groups are named \`${name[1]}\``);
			this.#names.set(name[1]!, this.#groups + 1);
			return this.#capturing();
		}
		const flags = /^([imsU]*)(?:-([imsU]+))?([:)])/.exec(this.#source.slice(this.#at));
		if (!flags || flags[0] === ')')
			return this.#fail(`\`(?${this.#source.slice(this.#at, this.#at + 3)}\` is not known`);
		this.#at += flags[0].length;
		const changed = { ...this.#flags };
		for (const flag of flags[1]!) changed[flag as keyof Flags] = true;
		for (const flag of flags[2] ?? '') changed[flag as keyof Flags] = false;
		if (flags[3] === ')') {
			this.#flags = changed;
			return undefined;
		}
		const outer = this.#flags;
		this.#flags = changed;
		const inner = this.#closed();
		this.#flags = outer;
		return inner;
	}

	#capturing(): RegexpNode {
		const index = ++this.#groups;
		return { kind: 'group', of: this.#closed(), index };
	}

	#closed(): RegexpNode {
		const inner = this.#alternatives();
		if (!this.#take(')')) this.#fail('a `(` is not closed');
		return inner;
	}

	/** Parses a quantifier after an atom whose capturing groups are those after `groupsBefore`. */
	#quantified(of: RegexpNode, groupsBefore: number): RegexpNode {
		const found = /^(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})(\??)/.exec(this.#source.slice(this.#at, this.#at + 24));
		if (!found) return of;
		this.#at += found[0].length;
		if (/^(?:[*+?]|\{\d+(?:,\d*)?\})/.test(this.#source.slice(this.#at, this.#at + 16))) {
			this.#fail(`\`${found[0]}${this.#source[this.#at]}\` repeats a repetition`);
		}
		const [, sign, least, comma, most, lazy] = found;
		const min = sign ? (sign === '+' ? 1 : 0) : Number(least);
		const max = sign ? (sign === '?' ? 1 : Infinity) : comma ? (most === '' ? Infinity : Number(most)) : min;
		if (min > max || min > MAX_REPEAT || (max !== Infinity && max > MAX_REPEAT)) {
			this.#fail(`\`${found[0]}\` is not a repeat count (at most ${MAX_REPEAT})`);
		}
		const groups = [groupsBefore + 1, this.#groups + 1] as const;
		return { kind: 'repeat', of, min, max, lazy: (lazy === '?') !== this.#flags.U, groups };
	}

	#escape(): RegexpNode {
		if (this.#at >= this.#source.length) this.#fail('it ends in a backslash');
		const assertion = ASSERTIONS[this.#source[this.#at]!];
		if (assertion) {
			this.#at++;
			return { kind: 'assert', assertion };
		}
		return this.#take('Q') ? this.#quoted() : this.#set(this.#classEscape());
	}

	#quoted(): RegexpNode {
		const end = this.#source.indexOf('\\E', this.#at);
		const text = this.#source.slice(this.#at, end === -1 ? undefined : end);
		this.#at = end === -1 ? this.#source.length : end + 2;
		const nodes = Array.from(text, c => this.#set(one(c.codePointAt(0)!)));
		// A quantifier after `\Q…\E` belongs to the last character.
		const last = nodes.pop();
		if (last) nodes.push(this.#quantified(last, this.#groups));
		return { kind: 'cat', of: nodes };
	}

	/** Parses what follows a backslash, in a class or outside. */
	#classEscape(): CharacterSet {
		const c = this.#next();
		switch (c) {
			case 'd':
				return DIGIT;
			case 'D':
				return complementOfSet(DIGIT);
			case 's':
				return WHITE_SPACE;
			case 'S':
				return complementOfSet(WHITE_SPACE);
			case 'w':
				return WORD_CHARACTERS;
			case 'W':
				return wordComplement(this.#flags.i);
			case 'p':
			case 'P':
				return this.#property(c === 'P');
			case 'x':
				return this.#hex();
			default:
				return one(this.#simpleEscape(c));
		}
	}

	#simpleEscape(c: string): number {
		const control = 'afnrtv'.indexOf(c);
		if (control !== -1) return [7, 12, 10, 13, 9, 11][control]!;
		if (/[0-7]/.test(c)) {
			const octal = /^[0-7]{1,3}/.exec(this.#source.slice(this.#at - 1, this.#at + 2))![0];
			if (c !== '0' && octal.length === 1) this.#fail(`backreferences such as \`\\${c}\` are not part of the language`);
			this.#at += octal.length - 1;
			return Number.parseInt(octal, 8);
		}
		if (/[89k]/.test(c)) this.#fail(`backreferences such as \`\\${c}\` are not part of the language`);
		if (/[A-Za-z]/.test(c) || c.codePointAt(0)! > 127) this.#fail(`\`\\${c}\` is not an escape`);
		return c.charCodeAt(0);
	}

	#hex(): CharacterSet {
		const found = /^(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2}))/.exec(this.#source.slice(this.#at, this.#at + 10));
		const code = found ? Number.parseInt((found[1] ?? found[2])!, 16) : Number.POSITIVE_INFINITY;
		if (code > 0x10ffff) this.#fail('`\\x` needs two hex digits, or braces around some');
		this.#at += found![0].length;
		return one(code);
	}

	#property(negated: boolean): CharacterSet {
		const found = /^(?:\{(\^?)(\w+)\}|([A-Z]))/.exec(this.#source.slice(this.#at, this.#at + 40));
		if (!found) return this.#fail('`\\p` needs the name of a class');
		this.#at += found[0].length;
		const name = (found[2] ?? found[3])!;
		const negate = negated !== (found[1] === '^');
		for (const property of [name, `Script=${name}`]) {
			const js = `\\${negate ? 'P' : 'p'}{${property}}`;
			if (!isProperty(js)) continue;
			this.#properties.add(js);
			const most = this.#maxProperties;
			if (this.#properties.size > most) this.#fail(`it has more than ${most} Unicode classes`);
			return unicodePropertySet(js);
		}
		return this.#fail(`\`${name}\` is not the name of a class`);
	}

	/** Parses a class after its `[`. */
	#bracketed(): RegexpNode {
		const from = this.#at;
		const negated = this.#take('^');
		const items = this.#items();
		const text = this.#source.slice(from, this.#at) + this.#flags.i;
		let ranges = this.#sets.get(text);
		if (!ranges) {
			ranges = this.#inBothCases(unionOfSets(items));
			if (negated) ranges = complementOfSet(ranges);
			this.#sets.set(text, ranges);
			this.#ranges += ranges.length;
			if (this.#ranges > MAX_RANGES) throw new RegexpTooLarge();
		}
		return { kind: 'set', ranges };
	}

	#items(): CharacterSet {
		const ranges: (readonly [number, number])[] = [];
		for (let first = true; ; first = false) {
			if (this.#at >= this.#source.length) this.#fail('a `[` is not closed');
			if (!first && this.#take(']')) return ranges;
			const posix = /^\[:(\^?)(\w+):\]/.exec(this.#source.slice(this.#at, this.#at + 16));
			if (posix) {
				const named = posixClass(posix[2]!);
				if (!named) return this.#fail(`\`${posix[0]}\` is not the name of a class`);
				this.#at += posix[0].length;
				ranges.push(...(posix[1] === '^' ? complementOfSet(named) : named));
				continue;
			}
			const low = this.#setItem();
			if (!isOne(low) || !/^-[^\]]/s.test(this.#source.slice(this.#at, this.#at + 2))) {
				ranges.push(...low);
				continue;
			}
			this.#at++;
			const high = this.#setItem();
			if (!isOne(high) || high[0]![0] < low[0]![0]) this.#fail('a range in `[ ]` is upside down');
			ranges.push([low[0]![0], high[0]![0]]);
		}
	}

	#setItem(): CharacterSet {
		return this.#take('\\') ? this.#classEscape() : one(this.#next().codePointAt(0)!);
	}
}

function one(code: number): CharacterSet {
	return [[code, code]];
}

function isOne(ranges: CharacterSet): boolean {
	return ranges.length === 1 && ranges[0]![0] === ranges[0]![1];
}

function isProperty(js: string): boolean {
	try {
		new RegExp(js, 'u');
		return true;
	} catch {
		return false;
	}
}
