/** Hover and signatures: what a word at an offset means. */
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

/** What an editor shows about a range. */
export interface Hover {
	readonly range: TextRange;
	/** Markdown. */
	readonly text: string;
}

/** Returns what the text at an offset means; undefined if there is nothing to say. */
export function hoverAt(workspace: Workspace, syntax: TextSyntax, offset: number): Hover | undefined {
	const { text, dialect } = syntax;
	const comment = ruleAt(syntax, offset);
	if (comment) return comment;
	const place = placeAt(syntax, offset);
	const { word, index, line } = place;
	if (!word || !line) return undefined;
	const name = nameAt(syntax, offset);
	if (name) {
		const said = definitionText(workspace, syntax, offset, name);
		if (said !== undefined) return { range: name, text: said };
	}
	const { start, end } = word.span;
	for (const { 0: whole, 1: inside, index: at } of text.slice(start, end).matchAll(/\{([^{}\s]+)\}/g)) {
		const range = { start: start + at, end: start + at + whole.length };
		if (offset < range.start || offset > range.end) continue;
		const said = placeholderText(inside!, syntax);
		if (said !== undefined) return { range, text: said };
	}
	const range = { start, end };
	if (index === 0) {
		const manual = manualOfLine(syntax, place);
		return manual && { range, text: manualText(manual) };
	}
	if (word.quote !== 'none') return undefined;
	const matcher = matcherManual(word.text, dialect);
	if (matcher && expectedAt(syntax, place).matcher) return { range, text: manualText(matcher) };
	const { directives } = registryOf(dialect);
	const directive = directives.get(line.words[0]!.text);
	if (index === 1 && directive?.kind === 'handler' && directive.matcherToken !== 'none' && word.text.startsWith('/'))
		return { range, text: patternText(word.text) };
	if (/^[1-5]\d\d$/.test(word.text) && STATUS_CODES[Number(word.text)] !== undefined)
		return { range, text: `${word.text} ${STATUS_CODES[Number(word.text)]}` };
	return undefined;
}

function ruleAt({ text, dialect }: TextSyntax, offset: number): Hover | undefined {
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
	const from = definition && workspace.syntax(definition.path);
	if (!definition || !from) return undefined;
	if (name.kind === 'let') {
		const values = definition.line.words.slice(2).map(({ text }) => text);
		return `\`${values.join(' ')}\``;
	}
	if (name.kind === 'parameter') {
		const [snippet] = definition.line.words;
		const own = definition.line.words.find(({ span }) => span.start === definition.start);
		const fallback = own?.text.includes('=') ? `default \`${own.text.slice(own.text.indexOf('=') + 1)}\`` : 'required';
		return `Parameter of the snippet \`${snippet!.text}\`, ${fallback}.`;
	}
	const { span } = definition.line;
	const lines = from.text.slice(span.start, Math.max(span.end, definition.line.block?.close.end ?? 0)).split('\n');
	const shown = lines.length > 16 ? [...lines.slice(0, 15), '…'] : lines;
	return ['```', ...shown, '```'].join('\n');
}

function placeholderText(name: string, { dialect }: TextSyntax): string | undefined {
	const variable = /^\$([^:]+)(?::(.*))?$/.exec(name) ?? /^env\.(.+)$/.exec(name);
	if (variable) {
		const fallback = variable[2] === undefined ? '' : ` Default: \`${variable[2]}\`.`;
		const when = name.startsWith('$') ? 'replaced before the text is read' : 'read when the configuration is loaded';
		return `The environment variable \`${variable[1]}\`, ${when}.${fallback}`;
	}
	const args = /^args\[(\d+)\]$/.exec(name);
	if (args) return `Argument ${Number(args[1]) + 1} of the \`import\` that inserts these lines.`;
	const manual = placeholderManual(name, dialect);
	return manual && manualText(manual);
}

function patternText(pattern: string): string {
	const stem = pattern.slice(0, -1);
	if (/[*?[{]/.test(stem))
		return `Matches paths by the pattern \`${pattern}\`, in which \`*\` stands for any text within it.`;
	if (!pattern.endsWith('*'))
		return `Matches only the path \`${pattern}\`. Write \`${pattern.replace(/\/?$/, '/*')}\` for everything below it.`;
	const below = stem.endsWith('/')
		? `, but not \`${stem.slice(0, -1) || '/'}\` itself`
		: ' and what follows without a `/`';
	return `Matches every path that begins with \`${stem}\`${stem === '/' ? '' : below}.`;
}

/** Returns the manual of the first word of a line. */
function manualOfLine(syntax: TextSyntax, place: Place): Manual | undefined {
	const { dialect } = syntax;
	const { around, line } = place;
	const name = line!.words[0]!.text;
	const outer = around.at(-1)?.words[0];
	if (outer?.text === 'test' && Object.hasOwn(EXPECTATIONS, line!.words[1]?.text ?? ''))
		return {
			usage: `expect ${EXPECTATIONS[line!.words[1]!.text]!.usage}`,
			summary: 'What the test expects.',
			details: '',
		};
	const keyword = keywordManual(name, dialect);
	if (keyword && (around.length === 0 || name !== 'upstream')) return keyword;
	const expected = expectedAt(syntax, place);
	if (expected.top === 'options' && around.length === 1) return optionManual(name, dialect);
	if (expected.words.includes(name)) {
		const { usage } = expectedAt(syntax, { ...place, index: 0 }, true);
		return subdirectiveManual(name, outerManual(around, syntax), usage);
	}
	if (expected.matcher) return matcherManual(name, dialect);
	return expected.directive || around.length === 0 ? directiveManual(name, dialect) : undefined;
}

function outerManual(around: Place['around'], { dialect }: TextSyntax): Manual | undefined {
	for (const { words } of around.toReversed()) {
		const name = words[0]?.text ?? '';
		const manual = directiveManual(name, dialect) ?? optionManual(name, dialect) ?? matcherManual(name, dialect);
		if (manual) return manual;
		if (name === 'upstream') return directiveManual('reverse_proxy', dialect);
	}
	return undefined;
}

/** How a line is written, and the argument that an offset is in. */
export interface Signature {
	readonly usage: string;
	readonly documentation: string;
	/** Places of the arguments in the usage line. */
	readonly parameters: readonly (readonly [start: number, end: number])[];
	/** Index of the current argument; undefined if there are too many. */
	readonly active: number | undefined;
}

/** Returns how the line at an offset is written; undefined between lines and in the first word. */
export function signatureAt(syntax: TextSyntax, offset: number): Signature | undefined {
	const place = placeAt(syntax, offset);
	const { line, index } = place;
	if (!line || index === 0) return undefined;
	const manual = manualOfLine(syntax, { ...place, index: 0, word: line.words[0] });
	if (manual?.usage === undefined) return undefined;
	const { usage } = manual;
	const all = usageArguments(usage);
	const hasMatcher = usage.includes('[matcher]') && index > 1 && /^[@/*]/.test(line.words[1]!.text);
	const position = index - 1 - (hasMatcher ? 1 : 0);
	const last = all.findLastIndex(({ repeats }) => repeats);
	const active = position < all.length ? position : last === -1 ? undefined : last;
	return {
		usage,
		documentation: manual.summary,
		parameters: all.map(({ start, end }) => [start, end] as const),
		active,
	};
}
