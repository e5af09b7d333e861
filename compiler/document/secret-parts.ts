/** Finds secrets that are part of a longer text: in URLs, in arguments of commands, and in expressions that compare credentials. */
import { isSecretHeader, isSecretPlaceholder, isSecretVariable, refersToSecret } from './secret-names.ts';

/** The text that is shown instead of a secret. */
export const REDACTED = '[redacted]';

/** A part of a text, from `start` up to, but not including, `end`. */
export interface TextPart {
	readonly start: number;
	readonly end: number;
}

/** Returns the text with the given parts replaced by {@link REDACTED}. The parts must be in ascending order. */
export function redactParts(text: string, parts: readonly TextPart[]): string {
	let redactedText = '';
	let position = 0;
	for (const { start, end } of parts) {
		redactedText += text.slice(position, start) + REDACTED;
		position = end;
	}
	return redactedText + text.slice(position);
}

/** Reports whether a text is a single placeholder, which reveals nothing. */
function isPlaceholder(text: string): boolean {
	return /^\{[^{}]*\}$/.test(text);
}

/** Matches the userinfo of a URL, which ends at the last `@` before the path. */
const USERINFO_PATTERN = /(?<=^|:)\/\/([^/?#\s]*)@/g;
const URL_PARAMETER = /(?<=[?&;])([^=&;#\s?]+)=([^&;#\s]+)/g;

/**
 * Query parameters that hold the signature of a URL. They are redacted in addition to the parameters whose names indicate a
 * credential.
 */
const SIGNATURE_PARAMETERS: ReadonlySet<string> = new Set(['sig', 'signature', 'x-amz-signature', 'x-goog-signature']);

/**
 * Finds credentials in URLs: query parameters, and the password in the userinfo. Without a user name, the complete userinfo is a
 * credential.
 */
export function findUrlSecrets(text: string): TextPart[] {
	const parts: TextPart[] = [];
	if (text.includes('@')) {
		for (const match of text.matchAll(USERINFO_PATTERN)) {
			const userinfo = match[1]!;
			const passwordIndex = userinfo.indexOf(':') + 1;
			const start = match.index + 2 + passwordIndex;
			const end = match.index + 2 + userinfo.length;
			if (start < end && !isPlaceholder(text.slice(start, end))) parts.push({ start, end });
		}
	}
	if (text.includes('=')) {
		for (const { 1: name, 2: value, index } of text.matchAll(URL_PARAMETER)) {
			if (!isSecretVariable(name!) && !SIGNATURE_PARAMETERS.has(name!.toLowerCase())) continue;
			const start = index + name!.length + 1;
			if (!isPlaceholder(value!)) parts.push({ start, end: start + value!.length });
		}
	}
	return parts.sort((a, b) => a.start - b.start);
}

/** Redacts the credentials of all URLs in a text, such as an error message. */
export function redactUrlSecrets(text: string): string {
	return redactParts(text, findUrlSecrets(text));
}

/** Matches the prefixes that services give to their tokens. */
const TOKEN_PREFIX = /^(?:gh[opsur]_|github_pat_|glpat-|sk-|xox[abeprs]-|AKIA|ASIA|dop_v1_|hf_|npm_|pypi-|shpat_|SG\.)/;
const JWT_PATTERN = /^eyJ[\w-]+\.[\w-]+\.[\w-]*$/;

/** Reports whether a text looks random: it has a long run of letters and digits, or is a token of a known service. */
function looksRandom(text: string): boolean {
	if (text.length >= 16 && (TOKEN_PREFIX.test(text) || JWT_PATTERN.test(text))) return true;
	if (!/^[\w+/=-]{20,}$/.test(text) || text.startsWith('/')) return false;
	return text.split(/[_+/=-]/).some(run => run.length >= 16 && /\d/.test(run) && /[A-Za-z]/.test(run));
}

/**
 * Finds credentials in the argument `index` of a command: the value of `--token=…`, `TOKEN=…` or `Authorization: …`, the argument
 * after `--token`, the password in `--user name:password`, credentials in a URL, and a text that looks random.
 */
export function findArgumentSecrets(args: readonly unknown[], index: number): TextPart[] {
	const text = String(args[index]);
	const wholeArgument = [{ start: 0, end: text.length }];
	if (text === REDACTED) return wholeArgument;
	if (isPlaceholder(text)) return [];
	const [, name, separator] = /^-{0,2}([A-Za-z][\w.-]*)(=|:[ \t]*)(?=.)/s.exec(text) ?? [];
	if (name !== undefined && isSecretVariable(name)) {
		const start = text.indexOf(separator!, name.length) + separator!.length;
		return isPlaceholder(text.slice(start)) ? [] : [{ start, end: text.length }];
	}
	const option = /^--?([A-Za-z][\w-]*)$/.exec(String(args[index - 1] ?? ''))?.[1];
	if (index > 1 && option !== undefined && !text.startsWith('-')) {
		if (isSecretVariable(option)) return wholeArgument;
		const colon = text.indexOf(':');
		if (/^(?:u|user)$/.test(option) && colon > 0 && colon < text.length - 1) {
			return [{ start: colon + 1, end: text.length }];
		}
	}
	if (index > 0 && looksRandom(text)) return wholeArgument;
	return findUrlSecrets(text);
}

interface Token extends TextPart {
	readonly kind: 'text' | 'placeholder' | 'word' | 'mark';
	/** The text between the quotes of a literal, or the name of a placeholder. */
	readonly text: string;
}

const TOKEN_PATTERN =
	/([rRbB]{0,2})("""|'''|"|')|\/\/[^\n]*|\{([^\s{}:'"`]+)\}|([A-Za-z_][\w.]*)|(&&|\|\||[()[\]{}?:,!])|\s+|[^\s]/gy;

/** Maximum length of an expression in UTF-16 units. Longer expressions are rejected elsewhere. */
const MAX_EXPRESSION_UNITS = 16 * 1024;
/** Maximum nesting of parentheses that is examined. */
const MAX_GROUP_DEPTH = 64;

function tokenize(expression: string): Token[] {
	const tokens: Token[] = [];
	TOKEN_PATTERN.lastIndex = 0;
	for (let match = TOKEN_PATTERN.exec(expression); match; match = TOKEN_PATTERN.exec(expression)) {
		const [, prefix, quote, placeholder, word, punctuation] = match;
		const start = match.index;
		if (quote !== undefined) {
			const contentStart = start + prefix!.length + quote.length;
			const end = endOfLiteral(expression, contentStart, quote, /r/i.test(prefix!));
			tokens.push({ kind: 'text', text: expression.slice(contentStart, end), start: contentStart, end });
			TOKEN_PATTERN.lastIndex = Math.min(expression.length, end + quote.length);
		} else if (placeholder !== undefined) {
			tokens.push({ kind: 'placeholder', text: placeholder, start, end: TOKEN_PATTERN.lastIndex });
		} else if (word !== undefined) tokens.push({ kind: 'word', text: word, start, end: TOKEN_PATTERN.lastIndex });
		else if (punctuation !== undefined)
			tokens.push({ kind: 'mark', text: punctuation, start, end: TOKEN_PATTERN.lastIndex });
		else if (/^[^\s/]$/.test(match[0]))
			tokens.push({ kind: 'mark', text: match[0], start, end: TOKEN_PATTERN.lastIndex });
	}
	return tokens;
}

function endOfLiteral(expression: string, contentStart: number, quote: string, isRaw: boolean): number {
	let position = contentStart;
	while (position < expression.length && !expression.startsWith(quote, position))
		position += !isRaw && expression[position] === '\\' ? 2 : 1;
	return Math.min(position, expression.length);
}

/**
 * Finds the literals in an expression that occur in the same comparison or call as a credential. Literals that only
 * name a field or parameter are left out.
 */
export function findExpressionSecrets(expression: string): TextPart[] {
	if (!/["']/.test(expression)) return [];
	const tokens = tokenize(expression);
	const parts: TextPart[] = [];
	new ExpressionSecrets(tokens, parts).searchOperands(
		0,
		tokens.length,
		expression.length > MAX_EXPRESSION_UNITS ? MAX_GROUP_DEPTH : 0,
	);
	return parts;
}

/** Finds the secrets in a tokenized expression. The operands of `&&`, `||` and `?:` are searched separately. */
class ExpressionSecrets {
	readonly #tokens: readonly Token[];
	readonly #secretParts: TextPart[];
	/** The index of the last token of each group in brackets, by the index of its first token. */
	readonly #lastTokenByFirst = new Map<number, number>();
	/**
	 * The literals that are names of a field or parameter, by token index. The value is true if the field or parameter contains a
	 * credential.
	 */
	readonly #nameLiterals = new Map<number, boolean>();

	constructor(tokens: readonly Token[], parts: TextPart[]) {
		this.#tokens = tokens;
		this.#secretParts = parts;
		const openGroups: { readonly start: number; readonly functionName: string }[] = [];
		for (const [index, { kind, text }] of tokens.entries()) {
			if (kind === 'text') this.#recordName(index, openGroups.at(-1));
			else if (kind !== 'mark') continue;
			else if (text === '(' || text === '[' || text === '{') {
				const previousToken = tokens[index - 1];
				const functionName =
					text === '(' && previousToken?.kind === 'word' ? previousToken.text : (openGroups.at(-1)?.functionName ?? '');
				openGroups.push({ start: index, functionName });
			} else if (text === ')' || text === ']' || text === '}') {
				const group = openGroups.pop();
				if (group) this.#lastTokenByFirst.set(group.start, index);
			}
		}
	}

	/**
	 * Records a literal that is a name rather than a value: a key of a map, or an argument of `header_regexp` or `vars_regexp`
	 * other than the last one.
	 */
	#recordName(index: number, group: { readonly start: number; readonly functionName: string } | undefined): void {
		if (!group) return;
		const nextText = this.#tokens[index + 1]?.text;
		const openingBracket = this.#tokens[group.start]!.text;
		const isKey = openingBracket === '{' && nextText === ':';
		const isArgument =
			openingBracket === '(' && nextText === ',' && /^(?:header|vars)_regexp$/.test(group.functionName);
		if (!isKey && !isArgument) return;
		const { text } = this.#tokens[index]!;
		const isField = group.functionName.startsWith('header');
		this.#nameLiterals.set(index, refersToSecret(text) || (isField ? isSecretHeader(text) : isSecretVariable(text)));
	}

	searchOperands(start: number, end: number, depth: number): void {
		let operandStart = start;
		for (let index = start; index <= end; index++) {
			const token = this.#tokens[index];
			if (index < end && !(token!.kind === 'mark' && /^(?:&&|\|\||\?|:)$/.test(token!.text))) {
				index = Math.min(end - 1, this.#lastTokenByFirst.get(index) ?? index);
				continue;
			}
			this.#searchOperand(operandStart, index, depth);
			operandStart = index + 1;
		}
	}

	#searchOperand(startIndex: number, endIndex: number, depth: number): void {
		let firstIndex = startIndex;
		while (firstIndex < endIndex && this.#tokens[firstIndex]!.text === '!') firstIndex++;
		const isGroup = this.#tokens[firstIndex]?.text === '(' && this.#lastTokenByFirst.get(firstIndex) === endIndex - 1;
		if (isGroup && depth < MAX_GROUP_DEPTH) {
			this.searchOperands(firstIndex + 1, endIndex - 1, depth + 1);
			return;
		}
		if (!this.#refersToSecret(startIndex, endIndex)) return;
		for (let index = startIndex; index < endIndex; index++) {
			const { kind, text, start, end } = this.#tokens[index]!;
			// A template that inserts a credential does not reveal it.
			const isRevealing = start < end && !isPlaceholder(text) && !refersToSecret(text);
			if (kind === 'text' && isRevealing && !this.#nameLiterals.has(index)) this.#secretParts.push({ start, end });
		}
	}

	#refersToSecret(startIndex: number, endIndex: number): boolean {
		for (let index = startIndex; index < endIndex; index++) {
			const { kind, text } = this.#tokens[index]!;
			if (kind === 'placeholder' && isSecretPlaceholder(text)) return true;
			if (kind === 'text' && (this.#nameLiterals.get(index) ?? refersToSecret(text))) return true;
		}
		return false;
	}
}
