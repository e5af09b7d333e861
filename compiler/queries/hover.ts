/** Hover texts and signatures: the meaning of the word at an offset. */
import { STATUS_CODES } from '../exchange/status-codes.ts';
import { registryOf } from '../lower/registry.ts';
import { scanComments } from '../syntax/scan-comments.ts';
import { EXPECTATIONS } from '../testing/expectations.ts';
import {
	directiveManual,
	keywordManual,
	type Manual,
	manualText,
	matcherManual,
	optionManual,
	placeholderManual,
	ruleManual,
	subdirectiveManual,
} from './manual.ts';
import { type NameUse, nameAt, occurrencesAt } from './names.ts';
import { expectedAt } from './probe.ts';
import { type Place, placeAt, type TextRange, type TextSyntax } from './text-syntax.ts';
import { usageArguments } from './usage.ts';
import type { Workspace } from './workspace.ts';

/** The text that an editor shows when the pointer is over a range. */
export interface Hover {
	readonly range: TextRange;
	/** The text, in Markdown. */
	readonly text: string;
}

/** Returns the explanation of the word at an offset; undefined if there is none. */
export function hoverAt(workspace: Workspace, syntax: TextSyntax, offset: number): Hover | undefined {
	const { text, dialect } = syntax;
	const ruleHover = ruleHoverAt(syntax, offset);
	if (ruleHover) return ruleHover;
	const place = placeAt(syntax, offset);
	const { word, wordIndex, line } = place;
	if (!word || !line) return undefined;
	const name = nameAt(syntax, offset);
	if (name) {
		const definition = definitionText(workspace, syntax, offset, name);
		if (definition !== undefined) return { range: name, text: definition };
	}
	const { start, end } = word.span;
	for (const { 0: placeholder, 1: placeholderName, index: matchIndex } of text
		.slice(start, end)
		.matchAll(/\{([^{}\s]+)\}/g)) {
		const range = { start: start + matchIndex, end: start + matchIndex + placeholder.length };
		if (offset < range.start || offset > range.end) continue;
		const explanation = placeholderText(placeholderName!, syntax);
		if (explanation !== undefined) return { range, text: explanation };
	}
	const range = { start, end };
	if (wordIndex === 0) {
		const manual = lineManual(syntax, place);
		return manual && { range, text: manualText(manual) };
	}
	if (word.quote !== 'none') return undefined;
	const matcher = matcherManual(word.text, dialect);
	if (matcher && expectedAt(syntax, place).allowsMatcher) return { range, text: manualText(matcher) };
	const { directives } = registryOf(dialect);
	const directive = directives.get(line.words[0]!.text);
	if (
		wordIndex === 1 &&
		directive?.kind === 'handler' &&
		directive.matcherToken !== 'none' &&
		word.text.startsWith('/')
	)
		return { range, text: describePattern(word.text) };
	if (/^[1-5]\d\d$/.test(word.text) && STATUS_CODES[Number(word.text)] !== undefined)
		return { range, text: `${word.text} ${STATUS_CODES[Number(word.text)]}` };
	return undefined;
}

function ruleHoverAt({ text, dialect }: TextSyntax, offset: number): Hover | undefined {
	const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
	const newline = text.indexOf('\n', offset);
	const lineText = text.slice(lineStart, newline === -1 ? text.length : newline);
	if (!/#\s*lint:/.test(lineText)) return undefined;
	const comment = scanComments(text, dialect).find(({ start, end }) => start <= offset && offset <= end);
	if (!comment) return undefined;
	for (const { 0: name, index } of text.slice(comment.start, comment.end).matchAll(/[\w-]+\/[\w-]+/g)) {
		const range = { start: comment.start + index, end: comment.start + index + name.length };
		const manual = ruleManual(name);
		if (manual && range.start <= offset && offset <= range.end) return { range, text: manualText(manual) };
	}
	return undefined;
}

function definitionText(workspace: Workspace, syntax: TextSyntax, offset: number, name: NameUse): string | undefined {
	const definition = occurrencesAt(workspace, syntax, offset).find(({ role }) => role === 'definition');
	const definingSyntax = definition && workspace.syntaxOf(definition.path);
	if (!definition || !definingSyntax) return undefined;
	if (name.kind === 'let') {
		const values = definition.line.words.slice(2).map(({ text }) => text);
		return `\`${values.join(' ')}\``;
	}
	if (name.kind === 'parameter') {
		const [snippet] = definition.line.words;
		const parameterWord = definition.line.words.find(({ span }) => span.start === definition.start);
		const defaultText = parameterWord?.text.includes('=')
			? `default \`${parameterWord.text.slice(parameterWord.text.indexOf('=') + 1)}\``
			: 'required';
		return `Parameter of the snippet \`${snippet!.text}\`, ${defaultText}.`;
	}
	const { span } = definition.line;
	const lines = definingSyntax.text
		.slice(span.start, Math.max(span.end, definition.line.block?.close.end ?? 0))
		.split('\n');
	const shownLines = lines.length > 16 ? [...lines.slice(0, 15), '…'] : lines;
	return ['```', ...shownLines, '```'].join('\n');
}

function placeholderText(name: string, { dialect }: TextSyntax): string | undefined {
	const variable = /^\$([^:]+)(?::(.*))?$/.exec(name) ?? /^env\.(.+)$/.exec(name);
	if (variable) {
		const defaultText = variable[2] === undefined ? '' : ` Default: \`${variable[2]}\`.`;
		const timing = name.startsWith('$') ? 'replaced before the text is read' : 'read when the configuration is loaded';
		return `The environment variable \`${variable[1]}\`, ${timing}.${defaultText}`;
	}
	const args = /^args\[(\d+)\]$/.exec(name);
	if (args) return `Argument ${Number(args[1]) + 1} of the \`import\` that inserts these lines.`;
	const manual = placeholderManual(name, dialect);
	return manual && manualText(manual);
}

function describePattern(pattern: string): string {
	const prefix = pattern.slice(0, -1);
	if (/[*?[{]/.test(prefix))
		return `Matches paths by the pattern \`${pattern}\`, in which \`*\` stands for any text within it.`;
	if (!pattern.endsWith('*'))
		return `Matches only the path \`${pattern}\`. Write \`${pattern.replace(/\/?$/, '/*')}\` for everything below it.`;
	const suffix = prefix.endsWith('/')
		? `, but not \`${prefix.slice(0, -1) || '/'}\` itself`
		: ' and what follows without a `/`';
	return `Matches every path that begins with \`${prefix}\`${prefix === '/' ? '' : suffix}.`;
}

/** Returns the manual of the first word of a line; undefined if there is none. */
function lineManual(syntax: TextSyntax, place: Place): Manual | undefined {
	const { dialect } = syntax;
	const { enclosingLines, line } = place;
	const name = line!.words[0]!.text;
	const outerWord = enclosingLines.at(-1)?.words[0];
	if (outerWord?.text === 'test' && Object.hasOwn(EXPECTATIONS, line!.words[1]?.text ?? ''))
		return {
			usage: `expect ${EXPECTATIONS[line!.words[1]!.text]!.usage}`,
			summary: 'What the test expects.',
			details: '',
		};
	const keyword = keywordManual(name, dialect);
	if (keyword && (enclosingLines.length === 0 || name !== 'upstream')) return keyword;
	const expectedWords = expectedAt(syntax, place);
	if (expectedWords.topKind === 'options' && enclosingLines.length === 1) return optionManual(name, dialect);
	if (expectedWords.lineWords.includes(name)) {
		const { usage } = expectedAt(syntax, { ...place, wordIndex: 0 }, true);
		return subdirectiveManual(name, outerManual(enclosingLines, syntax), usage);
	}
	if (expectedWords.allowsMatcher) return matcherManual(name, dialect);
	return expectedWords.allowsDirective || enclosingLines.length === 0 ? directiveManual(name, dialect) : undefined;
}

function outerManual(enclosingLines: Place['enclosingLines'], { dialect }: TextSyntax): Manual | undefined {
	for (const { words } of enclosingLines.toReversed()) {
		const name = words[0]?.text ?? '';
		const manual = directiveManual(name, dialect) ?? optionManual(name, dialect) ?? matcherManual(name, dialect);
		if (manual) return manual;
		if (name === 'upstream') return directiveManual('reverse_proxy', dialect);
	}
	return undefined;
}

/** The usage line of a directive or option, and which of its arguments is at an offset. */
export interface Signature {
	readonly usage: string;
	readonly documentation: string;
	/** The ranges of the arguments in the usage line. */
	readonly parameters: readonly (readonly [start: number, end: number])[];
	/** Index of the argument at the offset; undefined if the usage has no such argument. */
	readonly activeParameter: number | undefined;
}

/**
 * Returns the signature of the line at an offset. Returns undefined between lines, in the first word of a line, and if there is no
 * usage.
 */
export function signatureAt(syntax: TextSyntax, offset: number): Signature | undefined {
	const place = placeAt(syntax, offset);
	const { line, wordIndex } = place;
	if (!line || wordIndex === 0) return undefined;
	const manual = lineManual(syntax, { ...place, wordIndex: 0, word: line.words[0] });
	if (manual?.usage === undefined) return undefined;
	const { usage } = manual;
	const usageParts = usageArguments(usage);
	const hasMatcher = usage.includes('[matcher]') && wordIndex > 1 && /^[@/*]/.test(line.words[1]!.text);
	const argumentIndex = wordIndex - 1 - (hasMatcher ? 1 : 0);
	const lastRepeatableIndex = usageParts.findLastIndex(({ isRepeatable }) => isRepeatable);
	const activeParameter =
		argumentIndex < usageParts.length ? argumentIndex : lastRepeatableIndex === -1 ? undefined : lastRepeatableIndex;
	return {
		usage,
		documentation: manual.summary,
		parameters: usageParts.map(({ start, end }) => [start, end] as const),
		activeParameter,
	};
}
