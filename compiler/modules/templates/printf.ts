/** Formats values with verbs such as `%d`, like Go's `fmt`. */
import { formatFloat, formatValue, padExponent } from './format-value.ts';
import type { TemplateRun } from './run.ts';
import { typeName, type Value } from './value.ts';

/** Maximum width and precision of a verb; larger ones are reduced to it. */
const MAX_WIDTH = 10_000;

interface Verb {
	readonly letter: string;
	readonly hasPlus: boolean;
	readonly hasMinus: boolean;
	readonly hasSharp: boolean;
	readonly hasSpace: boolean;
	readonly hasZero: boolean;
	readonly width: number | undefined;
	readonly precision: number | undefined;
}

const DIRECTIVE_PATTERN = /%([+\-# 0]*)(\[\d+\])?(\*|\d+)?(?:\.(\[\d+\])?(\*|\d+)?)?(\[\d+\])?(.|$)/suy;

/** Implements `printf`. Mistakes appear in the output (`%!d(string=x)`), as in Go. */
export function formatPrintf(run: TemplateRun, format: string, args: readonly Value[]): string {
	let result = '';
	let argumentIndex = 0;
	let hasExplicitIndex = false;
	let literalStart = 0;
	for (
		let directiveStart = format.indexOf('%');
		directiveStart !== -1;
		directiveStart = format.indexOf('%', literalStart)
	) {
		run.budget.spendSteps(1);
		result += format.slice(literalStart, directiveStart);
		DIRECTIVE_PATTERN.lastIndex = directiveStart;
		const [directive, flags, index1, widthText, index2, precisionText, index3, letter] =
			DIRECTIVE_PATTERN.exec(format)!;
		literalStart = directiveStart + directive.length;
		for (const index of [index1, index2, index3]) {
			if (index === undefined) continue;
			argumentIndex = Number(index.slice(1, -1)) - 1;
			hasExplicitIndex = true;
		}
		if (letter === '') {
			result += '%!(NOVERB)';
			break;
		}
		if (letter === '%') {
			result += '%';
			continue;
		}
		const readNumber = (text: string | undefined): number | undefined => {
			if (text !== '*') return text === undefined ? undefined : Math.min(Number(text), MAX_WIDTH);
			const value = args[argumentIndex++];
			return typeof value === 'bigint' ? Number(BigInt.asIntN(32, value)) : undefined;
		};
		const width = readNumber(widthText);
		const precision = directive.includes('.') ? (readNumber(precisionText) ?? 0) : undefined;
		const verb: Verb = {
			letter: letter!,
			hasPlus: flags!.includes('+'),
			hasMinus: flags!.includes('-') || (width ?? 0) < 0,
			hasSharp: flags!.includes('#'),
			hasSpace: flags!.includes(' '),
			hasZero: flags!.includes('0') && !flags!.includes('-'),
			width: width === undefined ? undefined : Math.min(Math.abs(width), MAX_WIDTH),
			precision: precision === undefined || precision < 0 ? undefined : Math.min(precision, MAX_WIDTH),
		};
		if (argumentIndex < 0 || argumentIndex >= args.length)
			result += `%!${letter}(${hasExplicitIndex ? 'BADINDEX' : 'MISSING'})`;
		else result += formatVerb(run, verb, args[argumentIndex++]!);
		run.budget.checkLength(result.length);
	}
	result += format.slice(literalStart);
	if (!hasExplicitIndex && argumentIndex < args.length) {
		const extraArguments = args
			.slice(argumentIndex)
			.map(value => (value === null ? '<nil>' : `${typeName(value)}=${formatValue(run, value)}`));
		result += `%!(EXTRA ${extraArguments.join(', ')})`;
	}
	return result;
}

function formatVerb(run: TemplateRun, verb: Verb, value: Value): string {
	const { letter } = verb;
	if (letter === 'T') return padToWidth(verb, typeName(value));
	if (letter === 'v') return formatDefault(run, verb, value);
	switch (typeof value) {
		case 'boolean':
			if (letter === 't') return padToWidth(verb, String(value));
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

/** Formats each value of a list with the verb, in brackets. */
function formatEach(run: TemplateRun, verb: Verb, list: readonly Value[]): string {
	const parts: string[] = [];
	let joinedLength = 0;
	run.budget.enterLevel();
	for (const item of list) {
		run.budget.spendSteps(1);
		const part = formatVerb(run, verb, item);
		joinedLength += part.length + 1;
		run.budget.checkLength(joinedLength);
		parts.push(part);
	}
	run.budget.leaveLevel();
	return `[${parts.join(' ')}]`;
}

function formatDefault(run: TemplateRun, verb: Verb, value: Value): string {
	if (verb.hasSharp) return padToWidth(verb, formatGoSyntax(run, value));
	if (typeof value === 'bigint') return formatInteger({ ...verb, letter: 'd' }, value)!;
	if (typeof value === 'number') {
		if (verb.precision === undefined) return formatSigned(verb, formatFloat(value));
		return formatFloatVerb({ ...verb, letter: 'g' }, value)!;
	}
	if (typeof value === 'string') return formatText({ ...verb, letter: 's' }, value)!;
	return padToWidth(verb, formatValue(run, value));
}

/** Formats a value in Go's syntax, for `%#v`. */
function formatGoSyntax(run: TemplateRun, value: Value): string {
	if (typeof value === 'string') return quoteString(value);
	if (Array.isArray(value)) {
		run.budget.enterLevel();
		run.budget.spendSteps(value.length);
		const text = `[]interface {}{${value.map(item => formatGoSyntax(run, item)).join(', ')}}`;
		run.budget.checkLength(text.length);
		run.budget.leaveLevel();
		return text;
	}
	return formatValue(run, value);
}

function formatInteger(verb: Verb, value: bigint): string | undefined {
	const { letter, hasSharp } = verb;
	const magnitude = value < 0n ? -value : value;
	let digits: string;
	switch (letter) {
		case 'd':
			digits = magnitude.toString();
			break;
		case 'b':
			digits = (hasSharp ? '0b' : '') + magnitude.toString(2);
			break;
		case 'o':
			digits = (hasSharp ? '0' : '') + magnitude.toString(8);
			break;
		case 'O':
			digits = `0o${magnitude.toString(8)}`;
			break;
		case 'x':
			digits = (hasSharp ? '0x' : '') + magnitude.toString(16);
			break;
		case 'X':
			digits = (hasSharp ? '0X' : '') + magnitude.toString(16).toUpperCase();
			break;
		case 'c':
			return padToWidth(verb, formatCharacter(value));
		case 'q':
			return padToWidth(verb, `'${formatCharacter(value)}'`);
		case 'U':
			return padToWidth(verb, `U+${magnitude.toString(16).toUpperCase().padStart(4, '0')}`);
		default:
			return undefined;
	}
	if (verb.precision !== undefined) digits = digits.padStart(verb.precision, '0');
	return formatSigned(verb, (value < 0n ? '-' : '') + digits);
}

function formatCharacter(value: bigint): string {
	return value >= 0n && value <= 0x10ffffn ? String.fromCodePoint(Number(value)) : '\ufffd';
}

function formatFloatVerb(verb: Verb, value: number): string | undefined {
	const { precision = 6 } = verb;
	if (!/[eEfFgGv]/.test(verb.letter)) return undefined;
	if (!Number.isFinite(value)) return formatSigned({ ...verb, hasZero: false }, formatFloat(value));
	switch (verb.letter) {
		case 'e':
			return formatSigned(verb, padExponent(value.toExponential(Math.min(precision, 100))));
		case 'E':
			return formatSigned(verb, padExponent(value.toExponential(Math.min(precision, 100))).toUpperCase());
		case 'f':
		case 'F':
			return formatSigned(verb, formatFixed(value, Math.min(precision, 100)));
		default: {
			const text = verb.precision === undefined ? formatFloat(value) : formatSignificant(value, verb.precision);
			return formatSigned(verb, verb.letter === 'G' ? text.toUpperCase() : text);
		}
	}
}

/** Formats a number with a fixed number of decimal places and never with an exponent, which `toFixed` uses from 1e21 on. */
function formatFixed(value: number, decimalPlaces: number): string {
	if (Math.abs(value) < 1e21) return value.toFixed(decimalPlaces);
	return BigInt(value).toString() + (decimalPlaces > 0 ? `.${'0'.repeat(decimalPlaces)}` : '');
}

function formatSignificant(value: number, significantDigits: number): string {
	const text = value.toPrecision(Math.min(Math.max(significantDigits, 1), 100));
	const [mantissa, exponent] = text.split('e') as [string, string?];
	const shortMantissa = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa;
	return exponent === undefined ? shortMantissa : padExponent(`${shortMantissa}e${exponent}`);
}

function formatText(verb: Verb, text: string): string | undefined {
	const truncatedText = verb.precision === undefined ? text : [...text].slice(0, verb.precision).join('');
	switch (verb.letter) {
		case 's':
			return padToWidth(verb, truncatedText);
		case 'q':
			return padToWidth(
				verb,
				verb.hasSharp && !/[`\n\r]/.test(truncatedText) ? `\`${truncatedText}\`` : quoteString(truncatedText),
			);
		case 'x':
			return padToWidth(verb, Buffer.from(truncatedText).toString('hex'));
		case 'X':
			return padToWidth(verb, Buffer.from(truncatedText).toString('hex').toUpperCase());
		default:
			return undefined;
	}
}

/** Quotes a string with escapes, like Go. */
export function quoteString(text: string): string {
	return `"${text.replace(/["\\\p{C}\p{Zl}\p{Zp}]/gu, escapeCharacter)}"`;
}

function escapeCharacter(c: string): string {
	const escapeIndex = '\x07\b\f\n\r\t\v\\"'.indexOf(c);
	if (escapeIndex !== -1) return `\\${'abfnrtv\\"'[escapeIndex]}`;
	const code = c.codePointAt(0)!;
	if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
	return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** Adds the sign and the padding that the verb requires to a formatted number. */
function formatSigned(verb: Verb, numberText: string): string {
	const isNegative = numberText.startsWith('-');
	const sign = isNegative ? '-' : verb.hasPlus ? '+' : verb.hasSpace ? ' ' : '';
	const unsignedText = numberText.replace(/^[+-]/, '');
	if (!verb.hasZero || verb.width === undefined) return padToWidth(verb, sign + unsignedText);
	return sign + unsignedText.padStart(verb.width - sign.length, '0');
}

function padToWidth(verb: Verb, text: string): string {
	if (verb.width === undefined) return text;
	const missingWidth = verb.width - [...text].length;
	if (missingWidth <= 0) return text;
	return verb.hasMinus ? text + ' '.repeat(missingWidth) : (verb.hasZero ? '0' : ' ').repeat(missingWidth) + text;
}
