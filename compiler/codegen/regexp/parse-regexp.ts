/** Parses regular expressions in RE2's syntax. Rejects what RE2 does not have: lookaround, backreferences and atomic groups. */
import {
	ANY_CHARACTER,
	type CharacterSet,
	complementOfSet,
	DIGITS,
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

const MAX_GROUP_DEPTH = 100;
const MAX_REPEAT_COUNT = 1000;
/** Maximum number of ranges in all bracketed classes of an expression. */
const MAX_TOTAL_RANGES = 20_000;
const ASSERTIONS_BY_LETTER: { readonly [letter: string]: RegexpAssertion | undefined } = {
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
	const { maxSourceLength } = bounds;
	if (source.length > maxSourceLength)
		throw new RegexpError(`The expression is longer than ${maxSourceLength} characters.`);
	return new RegexpParser(source, ignoreCase, bounds).parse();
}

interface RegexpFlags {
	i: boolean;
	m: boolean;
	s: boolean;
	U: boolean;
}

class RegexpParser {
	readonly #source: string;
	#position = 0;
	#depth = 0;
	#flags: RegexpFlags;
	#groupCount = 0;
	readonly #groupsByName = new Map<string, number>();
	readonly #properties = new Set<string>();
	readonly #maxProperties: number;
	/** The sets of bracketed classes that have been parsed, by their source text and the flag `i`. */
	readonly #setsByText = new Map<string, CharacterSet>();
	#rangeCount = 0;

	constructor(source: string, ignoreCase: boolean, { maxProperties: properties }: RegexpBounds) {
		this.#source = source;
		this.#maxProperties = properties;
		this.#flags = { i: ignoreCase, m: false, s: false, U: false };
	}

	parse(): ParsedRegexp {
		const root = this.#parseAlternatives();
		if (this.#position < this.#source.length) this.#fail('unexpected `)`');
		return { root, groupCount: this.#groupCount, groupsByName: this.#groupsByName };
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
	#parseAlternatives(): RegexpNode {
		if (++this.#depth > MAX_GROUP_DEPTH) this.#fail('it is nested too deeply');
		const outerFlags = this.#flags;
		const nodes: RegexpNode[] = [];
		do nodes.push(this.#parseSequence());
		while (this.#consume('|'));
		this.#flags = outerFlags;
		this.#depth--;
		if (nodes.length === 1) return nodes[0]!;
		// Alternatives that are all single characters, as in `a|b`, become one set, as in `[ab]`.
		const rangeSets = nodes.flatMap(node => (node.kind === 'set' ? [node.ranges] : []));
		if (rangeSets.length === nodes.length) return { kind: 'set', ranges: unionOfSets(rangeSets.flat()) };
		return { kind: 'alt', children: nodes };
	}

	#parseSequence(): RegexpNode {
		const nodes: RegexpNode[] = [];
		while (this.#position < this.#source.length && !/[|)]/.test(this.#source[this.#position]!)) {
			const groupCountBefore = this.#groupCount;
			const atom = this.#parseAtom();
			if (atom) nodes.push(this.#parseQuantifier(atom, groupCountBefore));
		}
		return nodes.length === 1 ? nodes[0]! : { kind: 'cat', children: nodes };
	}

	/** Parses one atom. Returns undefined after `(?flags)`. */
	#parseAtom(): RegexpNode | undefined {
		const c = this.#nextCharacter();
		switch (c) {
			case '(':
				return this.#parseGroup();
			case '[':
				return this.#parseBracketClass();
			case '\\':
				return this.#parseEscape();
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
				return this.#setNode(singleCharacter(c.codePointAt(0)!));
		}
	}

	#nextCharacter(): string {
		const c = String.fromCodePoint(this.#source.codePointAt(this.#position)!);
		this.#position += c.length;
		return c;
	}

	#setNode(ranges: CharacterSet): RegexpNode {
		return { kind: 'set', ranges: this.#foldCase(ranges) };
	}

	#foldCase(ranges: CharacterSet): CharacterSet {
		return this.#flags.i ? withBothCases(ranges) : ranges;
	}

	#parseGroup(): RegexpNode | undefined {
		if (!this.#consume('?')) return this.#parseCapturingGroup();
		if (this.#consume(':')) return this.#parseGroupBody();
		for (const lookaround of ['=', '!', '<=', '<!']) {
			if (this.#source.startsWith(lookaround, this.#position))
				this.#fail(`lookaround \`(?${lookaround}\` is not part of the language`);
		}
		if (this.#consume('>')) this.#fail('atomic groups `(?>` are not part of the language');
		const nameMatch = /^P?<([^>]*)>/.exec(this.#source.slice(this.#position));
		if (nameMatch) {
			this.#position += nameMatch[0].length;
			if (!/^[A-Za-z_]\w*$/.test(nameMatch[1]!)) this.#fail(`\`${nameMatch[1]}\` cannot name a group`);
			if (this.#groupsByName.has(nameMatch[1]!)) this.#fail(`two groups are named \`${nameMatch[1]}\``);
			this.#groupsByName.set(nameMatch[1]!, this.#groupCount + 1);
			return this.#parseCapturingGroup();
		}
		const flagsMatch = /^([imsU]*)(?:-([imsU]+))?([:)])/.exec(this.#source.slice(this.#position));
		if (!flagsMatch || flagsMatch[0] === ')')
			return this.#fail(`\`(?${this.#source.slice(this.#position, this.#position + 3)}\` is not known`);
		this.#position += flagsMatch[0].length;
		const newFlags = { ...this.#flags };
		for (const flag of flagsMatch[1]!) newFlags[flag as keyof RegexpFlags] = true;
		for (const flag of flagsMatch[2] ?? '') newFlags[flag as keyof RegexpFlags] = false;
		if (flagsMatch[3] === ')') {
			this.#flags = newFlags;
			return undefined;
		}
		const outerFlags = this.#flags;
		this.#flags = newFlags;
		const groupNode = this.#parseGroupBody();
		this.#flags = outerFlags;
		return groupNode;
	}

	#parseCapturingGroup(): RegexpNode {
		const index = ++this.#groupCount;
		return { kind: 'group', child: this.#parseGroupBody(), index };
	}

	#parseGroupBody(): RegexpNode {
		const bodyNode = this.#parseAlternatives();
		if (!this.#consume(')')) this.#fail('a `(` is not closed');
		return bodyNode;
	}

	/** Parses the quantifier after an atom, if there is one. `groupCountBefore` is the number of capturing groups before the atom. */
	#parseQuantifier(atom: RegexpNode, groupCountBefore: number): RegexpNode {
		const quantifierMatch = /^(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})(\??)/.exec(
			this.#source.slice(this.#position, this.#position + 24),
		);
		if (!quantifierMatch) return atom;
		this.#position += quantifierMatch[0].length;
		if (/^(?:[*+?]|\{\d+(?:,\d*)?\})/.test(this.#source.slice(this.#position, this.#position + 16))) {
			this.#fail(`\`${quantifierMatch[0]}${this.#source[this.#position]}\` repeats a repetition`);
		}
		const [, symbol, minDigits, comma, maxDigits, lazy] = quantifierMatch;
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
		if (min > max || min > MAX_REPEAT_COUNT || (max !== Infinity && max > MAX_REPEAT_COUNT)) {
			this.#fail(`\`${quantifierMatch[0]}\` is not a repeat count (at most ${MAX_REPEAT_COUNT})`);
		}
		const groupRange = [groupCountBefore + 1, this.#groupCount + 1] as const;
		return { kind: 'repeat', child: atom, min, max, lazy: (lazy === '?') !== this.#flags.U, groups: groupRange };
	}

	#parseEscape(): RegexpNode {
		if (this.#position >= this.#source.length) this.#fail('it ends in a backslash');
		const assertion = ASSERTIONS_BY_LETTER[this.#source[this.#position]!];
		if (assertion) {
			this.#position++;
			return { kind: 'assert', assertion };
		}
		return this.#consume('Q') ? this.#parseQuoted() : this.#setNode(this.#parseClassEscape());
	}

	#parseQuoted(): RegexpNode {
		const quoteEnd = this.#source.indexOf('\\E', this.#position);
		const quotedText = this.#source.slice(this.#position, quoteEnd === -1 ? undefined : quoteEnd);
		this.#position = quoteEnd === -1 ? this.#source.length : quoteEnd + 2;
		const nodes = Array.from(quotedText, c => this.#setNode(singleCharacter(c.codePointAt(0)!)));
		// A quantifier after `\Q…\E` belongs to the last character.
		const lastNode = nodes.pop();
		if (lastNode) nodes.push(this.#parseQuantifier(lastNode, this.#groupCount));
		return { kind: 'cat', children: nodes };
	}

	/** Parses an escape after its backslash, inside or outside of a bracketed class. */
	#parseClassEscape(): CharacterSet {
		const c = this.#nextCharacter();
		switch (c) {
			case 'd':
				return DIGITS;
			case 'D':
				return complementOfSet(DIGITS);
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
				return this.#parseProperty(c === 'P');
			case 'x':
				return this.#parseHex();
			default:
				return singleCharacter(this.#parseSimpleEscape(c));
		}
	}

	#parseSimpleEscape(c: string): number {
		const controlIndex = 'afnrtv'.indexOf(c);
		if (controlIndex !== -1) return [7, 12, 10, 13, 9, 11][controlIndex]!;
		if (/[0-7]/.test(c)) {
			const octalDigits = /^[0-7]{1,3}/.exec(this.#source.slice(this.#position - 1, this.#position + 2))![0];
			if (c !== '0' && octalDigits.length === 1)
				this.#fail(`backreferences such as \`\\${c}\` are not part of the language`);
			this.#position += octalDigits.length - 1;
			return Number.parseInt(octalDigits, 8);
		}
		if (/[89k]/.test(c)) this.#fail(`backreferences such as \`\\${c}\` are not part of the language`);
		if (/[A-Za-z]/.test(c) || c.codePointAt(0)! > 127) this.#fail(`\`\\${c}\` is not an escape`);
		return c.charCodeAt(0);
	}

	#parseHex(): CharacterSet {
		const hexMatch = /^(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2}))/.exec(
			this.#source.slice(this.#position, this.#position + 10),
		);
		const code = hexMatch ? Number.parseInt((hexMatch[1] ?? hexMatch[2])!, 16) : Number.POSITIVE_INFINITY;
		if (code > 0x10ffff) this.#fail('`\\x` needs two hex digits, or braces around some');
		this.#position += hexMatch![0].length;
		return singleCharacter(code);
	}

	#parseProperty(isNegated: boolean): CharacterSet {
		const propertyMatch = /^(?:\{(\^?)(\w+)\}|([A-Z]))/.exec(this.#source.slice(this.#position, this.#position + 40));
		if (!propertyMatch) return this.#fail('`\\p` needs the name of a class');
		this.#position += propertyMatch[0].length;
		const name = (propertyMatch[2] ?? propertyMatch[3])!;
		const isComplement = isNegated !== (propertyMatch[1] === '^');
		for (const property of [name, `Script=${name}`]) {
			const propertyEscape = `\\${isComplement ? 'P' : 'p'}{${property}}`;
			if (!isProperty(propertyEscape)) continue;
			this.#properties.add(propertyEscape);
			const maxProperties = this.#maxProperties;
			if (this.#properties.size > maxProperties) this.#fail(`it has more than ${maxProperties} Unicode classes`);
			return unicodePropertySet(propertyEscape);
		}
		return this.#fail(`\`${name}\` is not the name of a class`);
	}

	/** Parses a bracketed class after its `[`. */
	#parseBracketClass(): RegexpNode {
		const start = this.#position;
		const isNegated = this.#consume('^');
		const itemRanges = this.#parseClassItems();
		const setKey = this.#source.slice(start, this.#position) + this.#flags.i;
		let ranges = this.#setsByText.get(setKey);
		if (!ranges) {
			ranges = this.#foldCase(unionOfSets(itemRanges));
			if (isNegated) ranges = complementOfSet(ranges);
			this.#setsByText.set(setKey, ranges);
			this.#rangeCount += ranges.length;
			if (this.#rangeCount > MAX_TOTAL_RANGES) throw new RegexpTooLarge();
		}
		return { kind: 'set', ranges };
	}

	#parseClassItems(): CharacterSet {
		const ranges: (readonly [number, number])[] = [];
		for (let isFirst = true; ; isFirst = false) {
			if (this.#position >= this.#source.length) this.#fail('a `[` is not closed');
			if (!isFirst && this.#consume(']')) return ranges;
			const posixMatch = /^\[:(\^?)(\w+):\]/.exec(this.#source.slice(this.#position, this.#position + 16));
			if (posixMatch) {
				const posixSet = posixClass(posixMatch[2]!);
				if (!posixSet) return this.#fail(`\`${posixMatch[0]}\` is not the name of a class`);
				this.#position += posixMatch[0].length;
				ranges.push(...(posixMatch[1] === '^' ? complementOfSet(posixSet) : posixSet));
				continue;
			}
			const firstItem = this.#parseClassItem();
			if (!isSingleCharacter(firstItem) || !/^-[^\]]/s.test(this.#source.slice(this.#position, this.#position + 2))) {
				ranges.push(...firstItem);
				continue;
			}
			this.#position++;
			const lastItem = this.#parseClassItem();
			if (!isSingleCharacter(lastItem) || lastItem[0]![0] < firstItem[0]![0])
				this.#fail('a range in `[ ]` is upside down');
			ranges.push([firstItem[0]![0], lastItem[0]![0]]);
		}
	}

	#parseClassItem(): CharacterSet {
		return this.#consume('\\') ? this.#parseClassEscape() : singleCharacter(this.#nextCharacter().codePointAt(0)!);
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
