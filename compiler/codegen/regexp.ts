/**
 * Regular expressions of the languages: RE2's syntax, translated to the engine's. What RE2 does not have (lookaround,
 * backreferences, atomic groups) is refused, and so is what would take exponential time here though not in RE2.
 */
import { ambiguousLoop, type Ranges, type RegexpNode, sharedLoops } from './regexp-ambiguity.ts';
import { type ClassItem, classNamed, complement, DIGIT, SPACE, WORD, wordComplement } from './regexp-classes.ts';

/** An expression that is refused; the message is one sentence about it. */
export class RegexpError extends Error {}

const MAX_LENGTH = 8192;
const MAX_DEPTH = 100;
const MAX_REPEAT = 1000;
const EMPTY: RegexpNode = { kind: 'empty' };
const ANYTHING: Ranges = [[0, 0x10ffff]];
const NOT_NEWLINE: Ranges = [
	[0, 9],
	[11, 0x10ffff],
];

/**
 * Compiles an expression. `flags` are the engine's (`g`, `i`); `u` is always set. `^` and `$` are the ends of the text unless
 * `(?m)`, `.` is anything but a line feed unless `(?s)`, `\d \s \w \b` are ASCII. Throws RegexpError.
 */
export function compileRegexp(source: string, flags = ''): RegExp {
	if (source.length > MAX_LENGTH) throw new RegexpError(`The expression is longer than ${MAX_LENGTH} characters.`);
	const translator = new Translator(source, flags.includes('i'));
	const { js, node } = translator.whole();
	const loop = ambiguousLoop(node);
	if (loop) throw new RegexpError(`\`${source}\` could take exponential time: ${loop}.`);
	try {
		return new RegExp(flags.includes('g') ? js : anchored(js), flags.includes('u') ? flags : `${flags}u`);
	} catch {
		throw new RegexpError(`\`${source}\` is not a regular expression of this language.`);
	}
}

/** What an expression matches; undefined when it is none. */
function nodeOf(source: string): RegexpNode | undefined {
	try {
		return new Translator(source, false).whole().node;
	} catch (error) {
		if (error instanceof RegexpError) return undefined;
		throw error;
	}
}

/**
 * Says in words why an expression can take time with the square of its subject's length, or undefined when it does not
 * look so. What is no expression is not slow.
 */
export function slowRegexp(source: string): string | undefined {
	const node = nodeOf(source);
	if (!node || !sharedLoops(node, /(?:\$|\\z)\)*$/.test(source))) return undefined;
	return 'two repetitions in it can share a text in many ways';
}

/**
 * A search that begins with `.*` matches from the beginning of a line or not at all: it need not be tried from every
 * character, which would take the square of the subject's length.
 */
function anchored(js: string): string {
	if (js.startsWith('[^\\n]*')) return `(?<![^\\n])${js}`;
	return js.startsWith('[^]*') ? `^${js}` : js;
}

interface Flags {
	i: boolean;
	m: boolean;
	s: boolean;
	U: boolean;
}

/** A piece: the engine's text for it, and what it matches for the ambiguity check. */
interface Piece {
	readonly js: string;
	readonly node: RegexpNode;
	/** An assertion is wrapped before a quantifier. */
	readonly assertion?: boolean;
}

class Translator {
	readonly #source: string;
	#at = 0;
	#depth = 0;
	#flags: Flags;
	readonly #names = new Set<string>();

	constructor(source: string, ignoreCase: boolean) {
		this.#source = source;
		this.#flags = { i: ignoreCase, m: false, s: false, U: false };
	}

	whole(): Piece {
		const piece = this.#alternatives();
		if (this.#at < this.#source.length) this.#fail('unexpected `)`');
		return piece;
	}

	#fail(what: string): never {
		throw new RegexpError(`\`${this.#source}\` is not a regular expression: ${what}.`);
	}

	#take(text: string): boolean {
		if (!this.#source.startsWith(text, this.#at)) return false;
		this.#at += text.length;
		return true;
	}

	/** Up to a `)` or the end. Flags set inside hold to the end of the group, in later alternatives too. */
	#alternatives(): Piece {
		if (++this.#depth > MAX_DEPTH) this.#fail('it is nested too deeply');
		const outer = this.#flags;
		this.#flags = { ...outer };
		const texts: string[] = [];
		const nodes: RegexpNode[] = [];
		do {
			const piece = this.#sequence(outer.i);
			texts.push(piece.js);
			nodes.push(piece.node);
		} while (this.#take('|'));
		this.#flags = outer;
		this.#depth--;
		return { js: texts.join('|'), node: nodes.length === 1 ? nodes[0]! : { kind: 'alt', of: nodes } };
	}

	#sequence(outerIgnoreCase: boolean): Piece {
		let js = '';
		let closing = '';
		let ignoreCase = outerIgnoreCase;
		const nodes: RegexpNode[] = [];
		for (;;) {
			if (this.#flags.i !== ignoreCase) {
				ignoreCase = this.#flags.i;
				js += ignoreCase ? '(?i:' : '(?-i:';
				closing += ')';
			}
			if (this.#at >= this.#source.length) break;
			const c = this.#source[this.#at]!;
			if (c === '|' || c === ')') break;
			const atom = this.#atom();
			if (!atom) continue;
			const piece = this.#quantified(atom);
			js += piece.js;
			nodes.push(piece.node);
		}
		return { js: js + closing, node: { kind: 'cat', of: nodes } };
	}

	/** One atom; undefined for `(?flags)`, which is none. */
	#atom(): Piece | undefined {
		const c = this.#next();
		switch (c) {
			case '(':
				return this.#group();
			case '[':
				return this.#set();
			case '\\':
				return this.#escape();
			case '.':
				return this.#flags.s ? { js: '[^]', node: set(ANYTHING) } : { js: '[^\\n]', node: set(NOT_NEWLINE) };
			case '^':
				return assertion(this.#flags.m ? '(?<![^\\n])' : '^');
			case '$':
				return assertion(this.#flags.m ? '(?![^\\n])' : '$');
			case '*':
			case '+':
			case '?':
				return this.#fail(`nothing stands before \`${c}\``);
			default:
				return this.#literal(c);
		}
	}

	#next(): string {
		const c = String.fromCodePoint(this.#source.codePointAt(this.#at)!);
		this.#at += c.length;
		return c;
	}

	#literal(c: string): Piece {
		const code = c.codePointAt(0)!;
		return { js: literal(code), node: set(this.#folded([[code, code]])) };
	}

	/** Both letter cases of ASCII; other letters count as any character where case is ignored. */
	#folded(ranges: Ranges): Ranges {
		if (!this.#flags.i) return ranges;
		const all: [number, number][] = [];
		for (const [low, high] of ranges) {
			all.push([low, high]);
			if (high > 127) return ANYTHING;
			for (let c = Math.max(low, 65); c <= Math.min(high, 122); c++) if (isLetter(c)) all.push([c ^ 32, c ^ 32]);
		}
		return all;
	}

	#group(): Piece | undefined {
		if (!this.#take('?')) return this.#closed('(', this.#alternatives());
		if (this.#take(':')) return this.#closed('(?:', this.#alternatives());
		for (const look of ['=', '!', '<=', '<!']) {
			if (this.#source.startsWith(look, this.#at)) this.#fail(`lookaround \`(?${look}\` is not part of the language`);
		}
		if (this.#take('>')) this.#fail('atomic groups `(?>` are not part of the language');
		const name = /^P?<([^>]*)>/.exec(this.#source.slice(this.#at));
		if (name) {
			this.#at += name[0].length;
			if (!/^[A-Za-z_]\w*$/.test(name[1]!)) this.#fail(`\`${name[1]}\` cannot name a group`);
			if (this.#names.has(name[1]!)) this.#fail(`two groups are named \`${name[1]}\``);
			this.#names.add(name[1]!);
			return this.#closed(`(?<${name[1]}>`, this.#alternatives());
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
		const inner = this.#alternatives();
		this.#flags = outer;
		return this.#closed(changed.i === outer.i ? '(?:' : changed.i ? '(?i:' : '(?-i:', inner);
	}

	#closed(open: string, inner: Piece): Piece {
		if (!this.#take(')')) this.#fail('a `(` is not closed');
		return { js: `${open}${inner.js})`, node: inner.node };
	}

	#quantified(atom: Piece): Piece {
		const found = /^(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})(\??)/.exec(this.#source.slice(this.#at, this.#at + 24));
		if (!found) return atom;
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
		const isLazy = (lazy === '?') !== this.#flags.U;
		const count = sign ?? `{${least}${comma ?? ''}${most ?? ''}}`;
		const js = `${atom.assertion ? `(?:${atom.js})` : atom.js}${count}${isLazy ? '?' : ''}`;
		return { js, node: { kind: 'repeat', of: atom.node, min, max } };
	}

	#escape(): Piece {
		if (this.#at >= this.#source.length) this.#fail('it ends in a backslash');
		const c = this.#source[this.#at]!;
		if (c === 'A' || c === 'z' || c === 'b' || c === 'B') {
			this.#at++;
			return assertion(c === 'A' ? '^' : c === 'z' ? '$' : `\\${c}`);
		}
		if (c === 'Q') return this.#quoted();
		const item = this.#classEscape();
		if (item.js === undefined) {
			const [low, high] = item.ranges[0]!;
			if (item.ranges.length === 1 && low === high) return { js: literal(low), node: set(this.#folded(item.ranges)) };
		}
		return { js: `[${item.js ?? rangesText(item.ranges)}]`, node: set(this.#folded(item.ranges)) };
	}

	#quoted(): Piece {
		this.#at++;
		const end = this.#source.indexOf('\\E', this.#at);
		const text = this.#source.slice(this.#at, end === -1 ? undefined : end);
		this.#at = end === -1 ? this.#source.length : end + 2;
		const pieces = Array.from(text, c => this.#literal(c));
		// A quantifier after `\Q…\E` belongs to the last character.
		const last = pieces.pop();
		if (!last) return { js: '', node: EMPTY, assertion: true };
		const repeated = this.#quantified(last);
		return {
			js: `(?:${pieces.map(p => p.js).join('')}${repeated.js})`,
			node: { kind: 'cat', of: [...pieces.map(p => p.node), repeated.node] },
		};
	}

	/** What follows a backslash, inside a class or outside. */
	#classEscape(): ClassItem {
		const c = this.#next();
		switch (c) {
			case 'd':
				return { ranges: DIGIT };
			case 'D':
				return { ranges: complement(DIGIT) };
			case 's':
				return { ranges: SPACE };
			case 'S':
				return { ranges: complement(SPACE) };
			case 'w':
				return { ranges: WORD };
			case 'W':
				return { ranges: wordComplement(this.#flags.i) };
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

	#hex(): ClassItem {
		const found = /^(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2}))/.exec(this.#source.slice(this.#at, this.#at + 10));
		const code = found ? Number.parseInt((found[1] ?? found[2])!, 16) : Number.POSITIVE_INFINITY;
		if (code > 0x10ffff) this.#fail('`\\x` needs two hex digits, or braces around some');
		this.#at += found![0].length;
		return one(code);
	}

	#property(negated: boolean): ClassItem {
		const found = /^(?:\{(\^?)(\w+)\}|([A-Z]))/.exec(this.#source.slice(this.#at, this.#at + 40));
		if (!found) return this.#fail('`\\p` needs the name of a class');
		this.#at += found[0].length;
		const name = (found[2] ?? found[3])!;
		const negate = negated !== (found[1] === '^');
		for (const property of [name, `Script=${name}`]) {
			const js = `\\${negate ? 'P' : 'p'}{${property}}`;
			try {
				new RegExp(js, 'u');
				return { ranges: ANYTHING, js };
			} catch {}
		}
		return this.#fail(`\`${name}\` is not the name of a class`);
	}

	#set(): Piece {
		const negated = this.#take('^');
		const items: ClassItem[] = [];
		for (let first = true; ; first = false) {
			if (this.#at >= this.#source.length) this.#fail('a `[` is not closed');
			if (!first && this.#take(']')) break;
			const posix = /^\[:(\^?)(\w+):\]/.exec(this.#source.slice(this.#at, this.#at + 16));
			if (posix) {
				const named = classNamed(posix[2]!);
				if (!named) this.#fail(`\`${posix[0]}\` is not the name of a class`);
				this.#at += posix[0].length;
				items.push({ ranges: posix[1] === '^' ? complement(named!) : named! });
				continue;
			}
			const low = this.#setItem();
			if (!isOne(low) || !/^-[^\]]/s.test(this.#source.slice(this.#at, this.#at + 2))) {
				items.push(low);
				continue;
			}
			this.#at++;
			const high = this.#setItem();
			if (!isOne(high) || high.ranges[0]![0] < low.ranges[0]![0]) this.#fail('a range in `[ ]` is upside down');
			items.push({ ranges: [[low.ranges[0]![0], high.ranges[0]![0]]] });
		}
		const js = items.map(item => item.js ?? rangesText(item.ranges)).join('');
		const named = items.some(item => item.js !== undefined);
		const ranges = this.#folded(items.flatMap(item => [...item.ranges]));
		return { js: `[${negated ? '^' : ''}${js}]`, node: set(!negated ? ranges : named ? ANYTHING : complement(ranges)) };
	}

	#setItem(): ClassItem {
		return this.#take('\\') ? this.#classEscape() : one(this.#next().codePointAt(0)!);
	}
}

function one(code: number): ClassItem {
	return { ranges: [[code, code]] };
}

function isOne(item: ClassItem): boolean {
	return item.js === undefined && item.ranges.length === 1 && item.ranges[0]![0] === item.ranges[0]![1];
}

function set(ranges: Ranges): RegexpNode {
	return { kind: 'set', ranges };
}

function assertion(js: string): Piece {
	return { js, node: EMPTY, assertion: true };
}

function isLetter(code: number): boolean {
	return (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
}

function literal(code: number): string {
	const c = String.fromCodePoint(code);
	return /[A-Za-z0-9]/.test(c) ? c : `\\u{${code.toString(16)}}`;
}

function rangesText(ranges: Ranges): string {
	return ranges.map(([low, high]) => (low === high ? literal(low) : `${literal(low)}-${literal(high)}`)).join('');
}
