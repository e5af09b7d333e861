/** Replaces `{args[N]}`, `{param.NAME}` and `{let.NAME}` in the words of a line. */
import { nearestName, suggestName } from '../diagnostics/suggest.ts';
import type { Word } from './ast.ts';
import type { Constants } from './constants.ts';
import type { ExpansionReport } from './expansion-report.ts';
import { type Frame, spanIn } from './frame.ts';
import { maxWordsPerLine, type ParsedWord } from './parsed-file.ts';

const referencePattern = /\\([{}])|\{args\[([^\]]*)\]\}|\{args\.([^{}]*)\}|\{(let|param)\.([^{}]*)\}/g;
const argumentRange = /^\{args\[([^\]:{}]*):([^\]:{}]*)\]\}$/;
const constantReference = /^\{let\.([^{}]*)\}$/;
const integerPattern = /^-?\d+$/;

/** The frame and constants to which references in words are resolved. */
export interface WordScope {
	readonly frame: Frame;
	readonly constants: Constants;
	readonly report: ExpansionReport;
}

/**
 * Returns the words with all known references replaced. If a complete word is a reference to a list, it becomes one word for each
 * value.
 */
export function expandWords(words: readonly ParsedWord[], scope: WordScope): ParsedWord[] {
	const expandedWords: ParsedWord[] = [];
	const { frame } = scope;
	for (const word of words) {
		if (!word.text.includes('{'))
			expandedWords.push(frame.hasOwnSpans ? word : { ...word, span: spanIn(frame, word.span) });
		else expandWord(word, scope, expandedWords);
	}
	if (expandedWords.length <= maxWordsPerLine) return expandedWords;
	// Constants that double the number of words would exhaust memory long before the limit on lines applies.
	scope.report.stopExpansion();
	return expandedWords.slice(0, maxWordsPerLine);
}

function expandWord(word: ParsedWord, scope: WordScope, out: ParsedWord[]): void {
	const { frame, report } = scope;
	const span = spanIn(frame, word.span);
	const { text } = word;
	if (frame.imported && text.startsWith('{args[')) {
		const range = argumentRange.exec(text);
		const values = range && argumentSlice(range, word, scope);
		if (values) {
			for (const value of values) out.push({ text: value.text, quote: quoteOf(word, value, report), span });
			report.countOutput(0, values.length, 0);
			return;
		}
		if (range) {
			out.push({ ...word, span });
			return;
		}
	}
	if (word.quote === 'none' && report.dialect === 'configfile') {
		const constantMatch = constantReference.exec(text);
		if (constantMatch) {
			const constant = findConstant(constantMatch[1]!, word, scope);
			// An unknown reference is kept as text. Otherwise the directive would also be reported, for a missing argument.
			if (constant) for (const value of constant.values) out.push({ text: value.text, quote: value.quote, span });
			else out.push({ ...word, span });
			report.countOutput(0, constant?.values.length ?? 0, 0);
			return;
		}
	}
	let wholeWordValue: Word | undefined;
	const expandedText = text.replace(referencePattern, (match: string, ...groups: (string | undefined)[]) => {
		const [escapedBrace, index, oldFormIndex, kind, name] = groups;
		if (escapedBrace !== undefined) return frame.imported ? escapedBrace : match;
		let value: Word | undefined;
		if (kind !== undefined) {
			if (report.dialect !== 'configfile') return match;
			value = kind === 'let' ? singleValue(name!, word, scope) : parameterValue(name!, word, scope);
		} else {
			if (!frame.imported) return match;
			value = argumentValue((index ?? oldFormIndex)!, index === undefined, word, scope);
		}
		if (!value) return match;
		if (match.length === text.length) wholeWordValue = value;
		return value.text;
	});
	if (expandedText !== text) report.countOutput(0, 0, expandedText.length);
	if (wholeWordValue) out.push({ text: wholeWordValue.text, quote: quoteOf(word, wholeWordValue, report), span });
	else if (expandedText === text) out.push(frame.hasOwnSpans ? word : { ...word, span });
	else out.push({ ...word, text: expandedText, span });
}

/**
 * Returns how an inserted value is quoted. In a Configfile, a value keeps the quotes with which it was passed, so that it stays a
 * single argument.
 */
function quoteOf(word: ParsedWord, value: Word, report: ExpansionReport): Word['quote'] {
	return word.quote === 'none' && report.dialect === 'configfile' ? value.quote : word.quote;
}

/** Returns the arguments to which `{args[a:b]}` refers. Returns undefined if the bounds are invalid, which is reported. */
function argumentSlice(range: RegExpExecArray, word: ParsedWord, scope: WordScope): readonly Word[] | undefined {
	const { args } = scope.frame;
	const [, from, to] = range;
	const start = from === '' ? 0 : integerPattern.test(from!) ? Number(from) : Number.NaN;
	const end = to === '' ? args.length : integerPattern.test(to!) ? Number(to) : Number.NaN;
	if (start >= 0 && start <= end && end <= args.length) return args.slice(start, end);
	reportBadArgument(word, scope, `\`${word.text}\` is out of range: ${describeCount(args.length)} passed.`);
	return undefined;
}

function argumentValue(index: string, isOldForm: boolean, word: ParsedWord, scope: WordScope): Word | undefined {
	const { args } = scope.frame;
	const referenceText = isOldForm ? `{args.${index}}` : `{args[${index}]}`;
	if (!integerPattern.test(index)) {
		const reason = index.includes(':') ? 'a range must be a word of its own' : 'the index must be a whole number';
		reportBadArgument(word, scope, `\`${referenceText}\` is not an argument: ${reason}.`);
		return undefined;
	}
	if (isOldForm) {
		scope.report.report({
			code: 'import/old-argument',
			severity: scope.report.dialect === 'configfile' ? 'error' : 'warning',
			message: `\`${referenceText}\` is the old form of \`{args[${index}]}\`.`,
			span: spanIn(scope.frame, word.span),
			hint: `Write \`{args[${index}]}\`.`,
		});
	}
	const value = Number(index) < 0 ? undefined : args[Number(index)];
	if (!value)
		reportBadArgument(word, scope, `\`${referenceText}\` has no value: ${describeCount(args.length)} passed.`);
	return value;
}

function describeCount(argCount: number): string {
	return argCount === 1 ? 'one argument is' : argCount === 0 ? 'no arguments are' : `${argCount} arguments are`;
}

function reportBadArgument(word: ParsedWord, scope: WordScope, message: string): void {
	scope.report.report(
		{
			code: 'import/no-such-argument',
			severity: scope.report.dialect === 'configfile' ? 'error' : 'warning',
			message,
			span: spanIn(scope.frame, word.span),
			label: 'left as written',
			hint: 'Arguments count from 0; pass one more at the import, or remove this.',
		},
		true,
	);
}

function findConstant(name: string, word: ParsedWord, scope: WordScope) {
	const constant = scope.constants.find(name);
	if (constant) {
		scope.report.markUsed(constant);
		return constant;
	}
	const nearest = nearestName(name, scope.constants.names());
	scope.report.report({
		code: 'let/unknown',
		severity: 'error',
		message: `There is no constant \`${name}\`.`,
		span: spanIn(scope.frame, word.span),
		...suggestName({ text: `{let.${name}}`, span: word.span }, nearest && `{let.${nearest}}`),
		hint: scope.report.allDefinitions.has(`let ${name}`)
			? `\`let ${name}\` is defined further down: a constant must be defined before it is used.`
			: `Define it above with \`let ${name} VALUE\`.`,
	});
	return undefined;
}

function singleValue(name: string, word: ParsedWord, scope: WordScope): Word | undefined {
	const constant = findConstant(name, word, scope);
	if (!constant) return undefined;
	if (constant.values.length === 1) return constant.values[0];
	scope.report.report({
		code: 'let/list-inside-word',
		severity: 'error',
		message: `\`{let.${name}}\` has ${constant.values.length} values and cannot be used inside a word.`,
		span: spanIn(scope.frame, word.span),
		label: 'one value is needed here',
		hint: 'Write it as a word of its own, without quotes, or give the constant a single value.',
		related: [{ span: constant.name.span, message: 'defined here' }],
	});
	return undefined;
}

function parameterValue(name: string, word: ParsedWord, scope: WordScope): Word | undefined {
	const { parameters } = scope.frame;
	const value = parameters?.get(name);
	if (value) return value;
	const nearest = parameters && nearestName(name, parameters.keys());
	scope.report.report({
		code: 'snippet/unknown-parameter',
		severity: 'error',
		message: parameters
			? `This snippet has no parameter \`${name}\`.`
			: `\`{param.${name}}\` is used outside of a snippet.`,
		span: spanIn(scope.frame, word.span),
		...suggestName({ text: `{param.${name}}`, span: word.span }, nearest && `{param.${nearest}}`),
		hint: parameters
			? `Declare it in the snippet's head: \`(${scope.frame.source.importedAs ?? 'name'}) ${name} { … }\`.`
			: 'Parameters exist only between the braces of `(name) parameter { … }`.',
	});
	return undefined;
}
