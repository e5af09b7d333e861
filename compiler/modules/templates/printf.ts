/** Formats values with verbs such as `%d`, like Go's `fmt`. */
import { formatFloat, formatValue, padExponent } from './format-value.ts';
import type { TemplateRun } from './run.ts';
import { typeName, type Value } from './value.ts';

/** Maximum width and precision. */
const MAX_WIDTH = 10_000;

interface Verb {
	readonly letter: string;
	readonly plus: boolean;
	readonly minus: boolean;
	readonly sharp: boolean;
	readonly space: boolean;
	readonly zero: boolean;
	readonly width: number | undefined;
	readonly precision: number | undefined;
}

const DIRECTIVE = /%([+\-# 0]*)(\[\d+\])?(\*|\d+)?(?:\.(\[\d+\])?(\*|\d+)?)?(\[\d+\])?(.|$)/suy;

/** Implements `printf`. Mistakes appear in the output (`%!d(string=x)`), as in Go. */
export function formatPrintf(run: TemplateRun, format: string, args: readonly Value[]): string {
	let out = '';
	let next = 0;
	let reordered = false;
	let from = 0;
	for (let at = format.indexOf('%'); at !== -1; at = format.indexOf('%', from)) {
		run.budget.spend(1);
		out += format.slice(from, at);
		DIRECTIVE.lastIndex = at;
		const [whole, flags, index1, widthText, index2, precisionText, index3, letter] = DIRECTIVE.exec(format)!;
		from = at + whole.length;
		for (const index of [index1, index2, index3]) {
			if (index === undefined) continue;
			next = Number(index.slice(1, -1)) - 1;
			reordered = true;
		}
		if (letter === '') {
			out += '%!(NOVERB)';
			break;
		}
		if (letter === '%') {
			out += '%';
			continue;
		}
		const star = (text: string | undefined): number | undefined => {
			if (text !== '*') return text === undefined ? undefined : Math.min(Number(text), MAX_WIDTH);
			const value = args[next++];
			return typeof value === 'bigint' ? Number(BigInt.asIntN(32, value)) : undefined;
		};
		const width = star(widthText);
		const precision = whole.includes('.') ? (star(precisionText) ?? 0) : undefined;
		const verb: Verb = {
			letter: letter!,
			plus: flags!.includes('+'),
			minus: flags!.includes('-') || (width ?? 0) < 0,
			sharp: flags!.includes('#'),
			space: flags!.includes(' '),
			zero: flags!.includes('0') && !flags!.includes('-'),
			width: width === undefined ? undefined : Math.min(Math.abs(width), MAX_WIDTH),
			precision: precision === undefined || precision < 0 ? undefined : Math.min(precision, MAX_WIDTH),
		};
		if (next < 0 || next >= args.length) out += `%!${letter}(${reordered ? 'BADINDEX' : 'MISSING'})`;
		else out += formatVerb(run, verb, args[next++]!);
		run.budget.fits(out.length);
	}
	out += format.slice(from);
	if (!reordered && next < args.length) {
		const extra = args
			.slice(next)
			.map(value => (value === null ? '<nil>' : `${typeName(value)}=${formatValue(run, value)}`));
		out += `%!(EXTRA ${extra.join(', ')})`;
	}
	return out;
}

function formatVerb(run: TemplateRun, verb: Verb, value: Value): string {
	const { letter } = verb;
	if (letter === 'T') return padded(verb, typeName(value));
	if (letter === 'v') return formatDefault(run, verb, value);
	switch (typeof value) {
		case 'boolean':
			if (letter === 't') return padded(verb, String(value));
			break;
		case 'bigint': {
			const text = formatInteger(verb, value);
			if (text !== undefined) return text;
			break;
		}
		case 'number': {
			const text = formatFloatVerb(verb, value);
			if (text !== undefined) return text;
			break;
		}
		case 'string': {
			const text = formatText(verb, value);
			if (text !== undefined) return text;
			break;
		}
		default:
			if (Array.isArray(value)) return formatEach(run, verb, value);
			if (value !== null && (letter === 's' || letter === 'q')) return formatText(verb, formatValue(run, value))!;
	}
	if (value === null) return `%!${letter}(<nil>)`;
	return `%!${letter}(${typeName(value)}=${formatValue(run, value)})`;
}

/** Formats each value of a list with the verb. */
function formatEach(run: TemplateRun, verb: Verb, list: readonly Value[]): string {
	const parts: string[] = [];
	let length = 0;
	run.budget.enter();
	for (const item of list) {
		run.budget.spend(1);
		const part = formatVerb(run, verb, item);
		length += part.length + 1;
		run.budget.fits(length);
		parts.push(part);
	}
	run.budget.leave();
	return `[${parts.join(' ')}]`;
}

function formatDefault(run: TemplateRun, verb: Verb, value: Value): string {
	if (verb.sharp) return padded(verb, goSyntax(run, value));
	if (typeof value === 'bigint') return formatInteger({ ...verb, letter: 'd' }, value)!;
	if (typeof value === 'number') {
		if (verb.precision === undefined) return signed(verb, formatFloat(value));
		return formatFloatVerb({ ...verb, letter: 'g' }, value)!;
	}
	if (typeof value === 'string') return formatText({ ...verb, letter: 's' }, value)!;
	return padded(verb, formatValue(run, value));
}

/** Implements `%#v`. */
function goSyntax(run: TemplateRun, value: Value): string {
	if (typeof value === 'string') return quoteString(value);
	if (Array.isArray(value)) {
		run.budget.enter();
		run.budget.spend(value.length);
		const text = `[]interface {}{${value.map(item => goSyntax(run, item)).join(', ')}}`;
		run.budget.fits(text.length);
		run.budget.leave();
		return text;
	}
	return formatValue(run, value);
}

function formatInteger(verb: Verb, value: bigint): string | undefined {
	const { letter, sharp } = verb;
	const size = value < 0n ? -value : value;
	let digits: string;
	switch (letter) {
		case 'd':
			digits = size.toString();
			break;
		case 'b':
			digits = (sharp ? '0b' : '') + size.toString(2);
			break;
		case 'o':
			digits = (sharp ? '0' : '') + size.toString(8);
			break;
		case 'O':
			digits = `0o${size.toString(8)}`;
			break;
		case 'x':
			digits = (sharp ? '0x' : '') + size.toString(16);
			break;
		case 'X':
			digits = (sharp ? '0X' : '') + size.toString(16).toUpperCase();
			break;
		case 'c':
			return padded(verb, character(value));
		case 'q':
			return padded(verb, `'${character(value)}'`);
		case 'U':
			return padded(verb, `U+${size.toString(16).toUpperCase().padStart(4, '0')}`);
		default:
			return undefined;
	}
	if (verb.precision !== undefined) digits = digits.padStart(verb.precision, '0');
	return signed(verb, (value < 0n ? '-' : '') + digits);
}

function character(value: bigint): string {
	return value >= 0n && value <= 0x10ffffn ? String.fromCodePoint(Number(value)) : '\ufffd';
}

function formatFloatVerb(verb: Verb, value: number): string | undefined {
	const { precision = 6 } = verb;
	if (!/[eEfFgGv]/.test(verb.letter)) return undefined;
	if (!Number.isFinite(value)) return signed({ ...verb, zero: false }, formatFloat(value));
	switch (verb.letter) {
		case 'e':
			return signed(verb, padExponent(value.toExponential(Math.min(precision, 100))));
		case 'E':
			return signed(verb, padExponent(value.toExponential(Math.min(precision, 100))).toUpperCase());
		case 'f':
		case 'F':
			return signed(verb, fixed(value, Math.min(precision, 100)));
		default: {
			const text = verb.precision === undefined ? formatFloat(value) : significant(value, verb.precision);
			return signed(verb, verb.letter === 'G' ? text.toUpperCase() : text);
		}
	}
}

/** Formats a number of any size with a fixed number of decimal places: `toFixed` switches to exponents at 1e21. */
function fixed(value: number, digits: number): string {
	if (Math.abs(value) < 1e21) return value.toFixed(digits);
	return BigInt(value).toString() + (digits > 0 ? `.${'0'.repeat(digits)}` : '');
}

function significant(value: number, digits: number): string {
	const text = value.toPrecision(Math.min(Math.max(digits, 1), 100));
	const [mantissa, power] = text.split('e') as [string, string?];
	const short = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa;
	return power === undefined ? short : padExponent(`${short}e${power}`);
}

function formatText(verb: Verb, text: string): string | undefined {
	const cut = verb.precision === undefined ? text : [...text].slice(0, verb.precision).join('');
	switch (verb.letter) {
		case 's':
			return padded(verb, cut);
		case 'q':
			return padded(verb, verb.sharp && !/[`\n\r]/.test(cut) ? `\`${cut}\`` : quoteString(cut));
		case 'x':
			return padded(verb, Buffer.from(cut).toString('hex'));
		case 'X':
			return padded(verb, Buffer.from(cut).toString('hex').toUpperCase());
		default:
			return undefined;
	}
}

/** Quotes a string with escapes, like Go. */
export function quoteString(text: string): string {
	return `"${text.replace(/["\\\p{C}\p{Zl}\p{Zp}]/gu, escaped)}"`;
}

function escaped(c: string): string {
	const known = '\x07\b\f\n\r\t\v\\"'.indexOf(c);
	if (known !== -1) return `\\${'abfnrtv\\"'[known]}`;
	const code = c.codePointAt(0)!;
	if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
	return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** Formats a number with its sign and padding. */
function signed(verb: Verb, text: string): string {
	const negative = text.startsWith('-');
	const sign = negative ? '-' : verb.plus ? '+' : verb.space ? ' ' : '';
	const digits = text.replace(/^[+-]/, '');
	if (!verb.zero || verb.width === undefined) return padded(verb, sign + digits);
	return sign + digits.padStart(verb.width - sign.length, '0');
}

function padded(verb: Verb, text: string): string {
	if (verb.width === undefined) return text;
	const missing = verb.width - [...text].length;
	if (missing <= 0) return text;
	return verb.minus ? text + ' '.repeat(missing) : (verb.zero ? '0' : ' ').repeat(missing) + text;
}
