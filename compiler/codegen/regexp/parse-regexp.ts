/** Parses regular expressions in RE2's syntax. Rejects what RE2 does not have: lookaround, backreferences and atomic groups. */
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
 * Parses an expression. `^` and `$` match the ends of the text unless `(?m)` is set, `.` matches any character except a line feed
 * unless `(?s)` is set, and `\d \s \w \b` are ASCII. Throws RegexpError.
 */
export function parseRegexp(
	source: string,
	ignoreCase: boolean,
	bounds: RegexpBounds = CONFIGURED_REGEXP_BOUNDS,
): ParsedRegexp {
	const { maxLength } = bounds;
	if (source.length > maxLength) throw new RegexpError(`The expression is longer than ${maxLength} characters.`);
	return new Parser(source, ignoreCase, bounds).parse();
}

interface Flags {
	i: boolean;
	m: boolean;
	s: boolean;
	U: boolean;
}

class Parser {
	readonly #source: string;
	#position = 0;
	#depth = 0;
	#flags: Flags;
	#groupCount = 0;
	readonly #names = new Map<string, number>();
	readonly #properties = new Set<string>();
	readonly #maxProperties: number;
	/** The sets of bracketed classes that have been parsed, by their source text and the flag `i`. */
	readonly #sets = new Map<string, CharacterSet>();
	#rangeCount = 0;

	constructor(source: string, ignoreCase: boolean, { maxProperties: properties }: RegexpBounds) {
		this.#source = source;
		this.#maxProperties = properties;
		this.#flags = { i: ignoreCase, m: false, s: false, U: false };
	}

	parse(): ParsedRegexp {
		const root = this.#alternatives();
		if (this.#position < this.#source.length) this.#fail('unexpected `)`');
		return { root, groups: this.#groupCount, names: this.#names };
	}

	#fail(problem: string): never {
		throw new RegexpError(`\`${this.#source}\` is not a regular expression: ${problem}.`);
	}

	#consume(text: string): boolean {
		if (!this.#source.startsWith(text, this.#position)) return false;
		this.#position += text.length;
		return true;
	}

	/**
	 * Parses alternatives up to a `)` or the end. Flags that are set inside apply until the end of the group, even in later
	 * alternatives.
	 */
	#alternatives(): RegexpNode {
		if (++this.#depth > MAX_DEPTH) this.#fail('it is nested too deeply');
		const outerFlags = this.#flags;
		const nodes: RegexpNode[] = [];
		do nodes.push(this.#sequence());
		while (this.#consume('|'));
		this.#flags = outerFlags;
		this.#depth--;
		if (nodes.length === 1) return nodes[0]!;
		// `a|b` is compiled as `[ab]`.
		const sets = nodes.flatMap(node => (node.kind === 'set' ? [node.ranges] : []));
		if (sets.length === nodes.length) return { kind: 'set', ranges: unionOfSets(sets.flat()) };
		return { kind: 'alt', children: nodes };
	}

	#sequence(): RegexpNode {
		const nodes: RegexpNode[] = [];
		while (this.#position < this.#source.length && !/[|)]/.test(this.#source[this.#position]!)) {
			const groupsBefore = this.#groupCount;
			const atom = this.#atom();
			if (atom) nodes.push(this.#withQuantifier(atom, groupsBefore));
		}
		return nodes.length === 1 ? nodes[0]! : { kind: 'cat', children: nodes };
	}

	/** Parses one atom. Returns undefined after `(?flags)`. */
	#atom(): RegexpNode | undefined {
		const c = this.#nextCharacter();
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
				return this.#set(singleCharacter(c.codePointAt(0)!));
		}
	}

	#nextCharacter(): string {
		const c = String.fromCodePoint(this.#source.codePointAt(this.#position)!);
		this.#position += c.length;
		return c;
	}

	#set(ranges: CharacterSet): RegexpNode {
		return { kind: 'set', ranges: this.#foldCase(ranges) };
	}

	#foldCase(ranges: CharacterSet): CharacterSet {
		return this.#flags.i ? withBothCases(ranges) : ranges;
	}

	#group(): RegexpNode | undefined {
		if (!this.#consume('?')) return this.#capturingGroup();
		if (this.#consume(':')) return this.#groupBody();
		for (const lookaround of ['=', '!', '<=', '<!']) {
			if (this.#source.startsWith(lookaround, this.#position))
				this.#fail(`lookaround \`(?${lookaround}\` is not part of the language`);
		}
		if (this.#consume('>')) this.#fail('atomic groups `(?>` are not part of the language');
		const name = /^P?<([^>]*)>/.exec(this.#source.slice(this.#position));
		if (name) {
			this.#position += name[0].length;
			if (!/^[A-Za-z_]\w*$/.test(name[1]!)) this.#fail(`\`${name[1]}\` cannot name a group`);
			if (this.#names.has(name[1]!)) this.#fail(`two groups are named \`${name[1]}\``);
			this.#names.set(name[1]!, this.#groupCount + 1);
			return this.#capturingGroup();
		}
		const flags = /^([imsU]*)(?:-([imsU]+))?([:)])/.exec(this.#source.slice(this.#position));
		if (!flags || flags[0] === ')')
			return this.#fail(`\`(?${this.#source.slice(this.#position, this.#position + 3)}\` is not known`);
		this.#position += flags[0].length;
		const newFlags = { ...this.#flags };
		for (const flag of flags[1]!) newFlags[flag as keyof Flags] = true;
		for (const flag of flags[2] ?? '') newFlags[flag as keyof Flags] = false;
		if (flags[3] === ')') {
			this.#flags = newFlags;
			return undefined;
		}
		const outerFlags = this.#flags;
		this.#flags = newFlags;
		const inner = this.#groupBody();
		this.#flags = outerFlags;
		return inner;
	}

	#capturingGroup(): RegexpNode {
		const index = ++this.#groupCount;
		return { kind: 'group', child: this.#groupBody(), index };
	}

	#groupBody(): RegexpNode {
		const inner = this.#alternatives();
		if (!this.#consume(')')) this.#fail('a `(` is not closed');
		return inner;
	}

	/** Parses the quantifier after an atom, if there is one. `groupsBefore` is the number of capturing groups before the atom. */
	#withQuantifier(atom: RegexpNode, groupsBefore: number): RegexpNode {
		const match = /^(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})(\??)/.exec(
			this.#source.slice(this.#position, this.#position + 24),
		);
		if (!match) return atom;
		this.#position += match[0].length;
		if (/^(?:[*+?]|\{\d+(?:,\d*)?\})/.test(this.#source.slice(this.#position, this.#position + 16))) {
			this.#fail(`\`${match[0]}${this.#source[this.#position]}\` repeats a repetition`);
		}
		const [, symbol, minDigits, comma, maxDigits, lazy] = match;
		const min = symbol ? (symbol === '+' ? 1 : 0) : Number(minDigits);
		const max = symbol
			? symbol === '?'
				? 1
				: Infinity
			: comma
				? maxDigits === ''
					? Infinity
					: Number(maxDigits)
				: min;
		if (min > max || min > MAX_REPEAT || (max !== Infinity && max > MAX_REPEAT)) {
			this.#fail(`\`${match[0]}\` is not a repeat count (at most ${MAX_REPEAT})`);
		}
		const groups = [groupsBefore + 1, this.#groupCount + 1] as const;
		return { kind: 'repeat', child: atom, min, max, lazy: (lazy === '?') !== this.#flags.U, groups };
	}

	#escape(): RegexpNode {
		if (this.#position >= this.#source.length) this.#fail('it ends in a backslash');
		const assertion = ASSERTIONS[this.#source[this.#position]!];
		if (assertion) {
			this.#position++;
			return { kind: 'assert', assertion };
		}
		return this.#consume('Q') ? this.#quoted() : this.#set(this.#classEscape());
	}

	#quoted(): RegexpNode {
		const end = this.#source.indexOf('\\E', this.#position);
		const text = this.#source.slice(this.#position, end === -1 ? undefined : end);
		this.#position = end === -1 ? this.#source.length : end + 2;
		const nodes = Array.from(text, c => this.#set(singleCharacter(c.codePointAt(0)!)));
		// A quantifier after `\Q…\E` belongs to the last character.
		const lastNode = nodes.pop();
		if (lastNode) nodes.push(this.#withQuantifier(lastNode, this.#groupCount));
		return { kind: 'cat', children: nodes };
	}

	/** Parses an escape after its backslash, inside or outside of a bracketed class. */
	#classEscape(): CharacterSet {
		const c = this.#nextCharacter();
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
				return singleCharacter(this.#simpleEscape(c));
		}
	}

	#simpleEscape(c: string): number {
		const control = 'afnrtv'.indexOf(c);
		if (control !== -1) return [7, 12, 10, 13, 9, 11][control]!;
		if (/[0-7]/.test(c)) {
			const octal = /^[0-7]{1,3}/.exec(this.#source.slice(this.#position - 1, this.#position + 2))![0];
			if (c !== '0' && octal.length === 1) this.#fail(`backreferences such as \`\\${c}\` are not part of the language`);
			this.#position += octal.length - 1;
			return Number.parseInt(octal, 8);
		}
		if (/[89k]/.test(c)) this.#fail(`backreferences such as \`\\${c}\` are not part of the language`);
		if (/[A-Za-z]/.test(c) || c.codePointAt(0)! > 127) this.#fail(`\`\\${c}\` is not an escape`);
		return c.charCodeAt(0);
	}

	#hex(): CharacterSet {
		const match = /^(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2}))/.exec(
			this.#source.slice(this.#position, this.#position + 10),
		);
		const code = match ? Number.parseInt((match[1] ?? match[2])!, 16) : Number.POSITIVE_INFINITY;
		if (code > 0x10ffff) this.#fail('`\\x` needs two hex digits, or braces around some');
		this.#position += match![0].length;
		return singleCharacter(code);
	}

	#property(negated: boolean): CharacterSet {
		const match = /^(?:\{(\^?)(\w+)\}|([A-Z]))/.exec(this.#source.slice(this.#position, this.#position + 40));
		if (!match) return this.#fail('`\\p` needs the name of a class');
		this.#position += match[0].length;
		const name = (match[2] ?? match[3])!;
		const negate = negated !== (match[1] === '^');
		for (const property of [name, `Script=${name}`]) {
			const propertyEscape = `\\${negate ? 'P' : 'p'}{${property}}`;
			if (!isProperty(propertyEscape)) continue;
			this.#properties.add(propertyEscape);
			const maxProperties = this.#maxProperties;
			if (this.#properties.size > maxProperties) this.#fail(`it has more than ${maxProperties} Unicode classes`);
			return unicodePropertySet(propertyEscape);
		}
		return this.#fail(`\`${name}\` is not the name of a class`);
	}

	/** Parses a bracketed class after its `[`. */
	#bracketed(): RegexpNode {
		const start = this.#position;
		const negated = this.#consume('^');
		const items = this.#classItems();
		const text = this.#source.slice(start, this.#position) + this.#flags.i;
		let ranges = this.#sets.get(text);
		if (!ranges) {
			ranges = this.#foldCase(unionOfSets(items));
			if (negated) ranges = complementOfSet(ranges);
			this.#sets.set(text, ranges);
			this.#rangeCount += ranges.length;
			if (this.#rangeCount > MAX_RANGES) throw new RegexpTooLarge();
		}
		return { kind: 'set', ranges };
	}

	#classItems(): CharacterSet {
		const ranges: (readonly [number, number])[] = [];
		for (let isFirst = true; ; isFirst = false) {
			if (this.#position >= this.#source.length) this.#fail('a `[` is not closed');
			if (!isFirst && this.#consume(']')) return ranges;
			const posix = /^\[:(\^?)(\w+):\]/.exec(this.#source.slice(this.#position, this.#position + 16));
			if (posix) {
				const posixSet = posixClass(posix[2]!);
				if (!posixSet) return this.#fail(`\`${posix[0]}\` is not the name of a class`);
				this.#position += posix[0].length;
				ranges.push(...(posix[1] === '^' ? complementOfSet(posixSet) : posixSet));
				continue;
			}
			const low = this.#classItem();
			if (!isSingleCharacter(low) || !/^-[^\]]/s.test(this.#source.slice(this.#position, this.#position + 2))) {
				ranges.push(...low);
				continue;
			}
			this.#position++;
			const high = this.#classItem();
			if (!isSingleCharacter(high) || high[0]![0] < low[0]![0]) this.#fail('a range in `[ ]` is upside down');
			ranges.push([low[0]![0], high[0]![0]]);
		}
	}

	#classItem(): CharacterSet {
		return this.#consume('\\') ? this.#classEscape() : singleCharacter(this.#nextCharacter().codePointAt(0)!);
	}
}

function singleCharacter(code: number): CharacterSet {
	return [[code, code]];
}

function isSingleCharacter(ranges: CharacterSet): boolean {
	return ranges.length === 1 && ranges[0]![0] === ranges[0]![1];
}

function isProperty(propertyEscape: string): boolean {
	try {
		new RegExp(propertyEscape, 'u');
		return true;
	} catch {
		return false;
	}
}
