/** Expands imports, snippets, constants and blocks that are passed to snippets, so that only lines of directives remain. */
import { didYouMean } from '../diagnostics/suggest.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { Word } from './ast.ts';
import type { Constants } from './constants.ts';
import { expandWords } from './expand-words.ts';
import type { ExpansionReport } from './expansion-report.ts';
import { type Frame, type PassedBlock, spanIn } from './frame.ts';
import type { Importer } from './importer.ts';
import { lineShapes, maxNesting, type ParsedBlock, type ParsedLine, type ParsedWord } from './parsed-file.ts';
import {
	emptyBracesMistake,
	misplacedCloseMistake,
	misplacedOpenMistake,
	structureMistake,
	trailingTextMistake,
} from './structure-mistake.ts';

/**
 * The position of lines: directly in a site, or in a nested block. `let` is allowed only directly in a site and at the top level of
 * a file.
 */
export type LinePosition = 'site' | 'nested';

const namedBlockReference = /^\{blocks\.(.*)\}$/s;

/** Expands lines of directives, sub-directives and options. */
export class Expander {
	readonly dialect: Dialect;
	readonly report: ExpansionReport;
	readonly #importer: Importer;

	constructor(report: ExpansionReport, importer: Importer) {
		this.dialect = report.dialect;
		this.report = report;
		this.#importer = importer;
	}

	expandLines(
		lines: readonly ParsedLine[],
		frame: Frame,
		constants: Constants,
		position: LinePosition,
		depth: number,
	): ParsedLine[] {
		const expandedLines: ParsedLine[] = [];
		this.#expandInto(expandedLines, lines, frame, constants, position, depth);
		return expandedLines;
	}

	/** Appends the expansion of one line to `out`. */
	expandLineInto(
		out: ParsedLine[],
		line: ParsedLine,
		frame: Frame,
		constants: Constants,
		position: LinePosition,
		depth: number,
	): void {
		if (!line.needsExpansion && frame.hasOwnSpans) {
			out.push(line);
			return;
		}
		if (this.report.isExhausted) return;
		const firstWord = line.words[0];
		if (!firstWord) {
			this.#joinBlockToPrevious(out, line, frame, constants, depth);
			return;
		}
		if (line.needsExpansion && firstWord.quote === 'none') {
			if (firstWord.text === 'import' || (firstWord.text === 'use' && this.dialect === 'configfile')) {
				this.#expandImport(out, line, frame, constants, position, depth);
				return;
			}
			if (this.dialect === 'configfile' && this.#handleKeyword(line, firstWord, frame, constants, position)) return;
			if (frame.imported && this.#insertPassedBlock(out, line, frame, constants, depth)) return;
		}
		const expanded = this.#expandLine(line, frame, constants, depth);
		if (expanded) out.push(expanded);
	}

	#expandInto(
		out: ParsedLine[],
		lines: readonly ParsedLine[],
		frame: Frame,
		constants: Constants,
		position: LinePosition,
		depth: number,
	) {
		for (const line of lines) this.expandLineInto(out, line, frame, constants, position, depth);
	}

	/** Returns a block with its lines expanded. If it is nested too deeply, reports this and returns undefined. */
	expandBlock(block: ParsedBlock, frame: Frame, constants: Constants, depth: number): ParsedBlock | undefined {
		if (depth > maxNesting) {
			this.report.report({
				code: 'syntax/nesting-too-deep',
				severity: 'error',
				message: `Blocks are nested more than ${maxNesting} levels deep once imports are expanded.`,
				span: spanIn(frame, block.open),
				label: 'one level too many',
			});
			return undefined;
		}
		if (!block.needsExpansion && frame.hasOwnSpans) return block;
		return {
			lines: this.expandLines(block.lines, frame, constants, 'nested', depth + 1),
			open: spanIn(frame, block.open),
			close: spanIn(frame, block.close),
			needsExpansion: false,
		};
	}

	#expandLine(line: ParsedLine, frame: Frame, constants: Constants, depth: number): ParsedLine | undefined {
		if (line.shapeFlags !== 0) this.#reportTextAtBraces(line, frame);
		const lastWord = line.words[line.words.length - 1]!;
		if (line.words.length > 1 && lastWord.text === '{}' && lastWord.quote === 'none' && line.needsExpansion) {
			this.report.report(emptyBracesMistake(spanIn(frame, lastWord.span), this.dialect));
		}
		const words = expandWords(line.words, { frame, constants, report: this.report });
		this.report.countOutput(frame.imported ? 1 : 0, frame.imported ? words.length : 0, 0);
		if (words.length === 0) return undefined;
		const block = line.block && this.expandBlock(line.block, frame, constants, depth);
		const alternative = line.alternative && this.#expandLine(line.alternative, frame, constants, depth);
		return { words, block, alternative, span: spanIn(frame, line.span), needsExpansion: false, shapeFlags: 0 };
	}

	/**
	 * Reports text after a brace. For the top-level lines of a file or snippet, the parser leaves this to the expander, because
	 * such text is a mistake only if the line is a directive.
	 */
	#reportTextAtBraces(line: ParsedLine, frame: Frame): void {
		if (line.shapeFlags & lineShapes.afterClose) {
			const lineSpan = spanIn(frame, line.span);
			const closeOffset = lineSpan.source.text.lastIndexOf('}', lineSpan.start - 1);
			this.report.report(trailingTextMistake({ ...lineSpan, start: closeOffset, end: closeOffset + 1 }, this.dialect));
		}
		if (line.shapeFlags & lineShapes.contentAfterOpen) {
			const { block } = line;
			const span = block!.lines[0]?.span ?? block!.close;
			const diagnostic = structureMistake(
				this.dialect,
				'syntax/text-after-open',
				spanIn(frame, span),
				"Unexpected next token after '{' on same line",
				{ label: 'belongs on the next line', hint: 'Break the line after `{`.' },
			);
			this.report.report(diagnostic);
		} else if (line.shapeFlags & lineShapes.closeAfterWords) {
			this.report.report(misplacedCloseMistake(spanIn(frame, line.block!.close), this.dialect));
		}
	}

	#joinBlockToPrevious(out: ParsedLine[], line: ParsedLine, frame: Frame, constants: Constants, depth: number): void {
		this.report.report(misplacedOpenMistake(spanIn(frame, line.block!.open), this.dialect));
		const previous = out[out.length - 1];
		if (!previous || previous.block) return;
		out[out.length - 1] = { ...previous, block: this.expandBlock(line.block!, frame, constants, depth) };
	}

	/** Handles `let`, and an `else` that does not follow a `}`. Returns false if the line is neither. */
	#handleKeyword(
		line: ParsedLine,
		firstWord: ParsedWord,
		frame: Frame,
		constants: Constants,
		position: LinePosition,
	): boolean {
		if (firstWord.text === 'let') {
			if (position === 'site') this.defineConstant(line, frame, constants);
			else {
				this.report.report({
					code: 'let/misplaced',
					severity: 'error',
					message: '`let` is allowed only at file or site level.',
					span: spanIn(frame, firstWord.span),
					hint: 'Move it up to the site or to the top of the file.',
				});
			}
			return true;
		}
		if (firstWord.text !== 'else') return false;
		this.report.report({
			code: 'syntax/else-alone',
			severity: 'error',
			message: '`else` has no `}` before it on its line.',
			span: spanIn(frame, firstWord.span),
			label: 'belongs after the `}` above',
			hint: 'Write `} else {` on one line.',
		});
		return true;
	}

	/** Defines the constant of a line `let NAME VALUE…`. Reports mistakes in the line. */
	defineConstant(line: ParsedLine, frame: Frame, constants: Constants): void {
		const [, name, ...values] = expandWords(line.words, { frame, constants, report: this.report });
		const span = name ? name.span : spanIn(frame, line.span);
		const reportProblem = (code: string, message: string, hint: string) =>
			this.report.report({ code, severity: 'error', message, span, hint });
		if (!name || values.length === 0) {
			const lastWord = name ?? line.words[0]!;
			reportProblem(
				'let/no-value',
				`wrong argument count or unexpected line ending after '${lastWord.text}'`,
				'Write `let NAME VALUE…`.',
			);
		} else if (!/^[A-Za-z_][A-Za-z0-9_-]*$/.test(name.text)) {
			reportProblem(
				'let/name',
				`\`${name.text}\` is not a name.`,
				'Use letters, digits, `_` and `-`, beginning with a letter.',
			);
		}
		if (line.block) {
			this.report.report({
				code: 'let/block',
				severity: 'error',
				message: '`let` does not take a block.',
				span: spanIn(frame, line.block.open),
				hint: 'Quote a value that contains a brace.',
			});
		}
		if (!name) return;
		const existing = constants.define({ name, values, inMainFile: !frame.imported, isUsed: values.length === 0 });
		if (!existing) return;
		this.report.report({
			code: 'let/defined-twice',
			severity: 'error',
			message: `The constant \`${name.text}\` is defined more than once.`,
			span: name.span,
			label: 'defined again',
			related: [{ span: existing.name.span, message: 'first defined here' }],
		});
	}

	#expandImport(
		out: ParsedLine[],
		line: ParsedLine,
		frame: Frame,
		constants: Constants,
		position: LinePosition,
		depth: number,
	): void {
		for (const imported of this.#importer.resolveImport(line, frame, constants, this, depth)) {
			this.#expandInto(out, imported.lines, imported.frame, constants, position, depth);
		}
	}

	/** Expands the block that an import passes to a snippet. Names in the block have the meaning that they have at the import. */
	expandPassedBlock(block: ParsedBlock, frame: Frame, constants: Constants, depth: number): PassedBlock {
		const lines = this.expandLines(block.lines, frame, constants, 'nested', depth);
		return { lines, linesByName: new Map(lines.map(line => [line.words[0]!.text, line])) };
	}

	/**
	 * Replaces each word `{block}` or `{blocks.NAME}` of a line by the content that it stands for. The content becomes lines of its
	 * own, which divide the words before and after it into separate lines, too. If `{blocks.NAME}` stands only for arguments, these
	 * become words of the line instead. Returns false if the line has no such word.
	 */
	#insertPassedBlock(out: ParsedLine[], line: ParsedLine, frame: Frame, constants: Constants, depth: number): boolean {
		if (!line.words.some(word => insertedContent(word, frame.passedBlock) !== undefined)) return false;
		let words: ParsedWord[] = [];
		const scope = { frame, constants, report: this.report };
		const span = spanIn(frame, line.span);
		const flushWords = (block?: ParsedBlock | undefined) => {
			if (words.length === 0) return;
			const expandedBlock = block && this.expandBlock(block, frame, constants, depth);
			const alternative = block && line.alternative && this.#expandLine(line.alternative, frame, constants, depth);
			out.push({ words, block: expandedBlock, alternative, span, needsExpansion: false, shapeFlags: 0 });
			words = [];
		};
		for (const word of line.words) {
			const content = insertedContent(word, frame.passedBlock);
			if (this.report.isExhausted) break;
			if (!content) words = words.concat(expandWords([word], scope));
			else if (content.args.length > 0 && words.length > 0 && content.lines.length === 0) {
				words = words.concat(content.args);
				this.report.countOutput(0, content.args.length, 0);
			} else {
				flushWords();
				if (content.args.length > 0) {
					const argsSpan = { ...content.args[0]!.span, end: content.args[content.args.length - 1]!.span.end };
					out.push({
						words: content.args,
						block: undefined,
						alternative: undefined,
						span: argsSpan,
						needsExpansion: false,
						shapeFlags: 0,
					});
				}
				this.report.countOutput(content.lines.length, content.args.length, 0);
				for (const insertedLine of content.lines) out.push(insertedLine);
			}
		}
		if (words.length === 0 && line.block && out.length > 0) {
			const previous = out[out.length - 1]!;
			if (!previous.block)
				out[out.length - 1] = { ...previous, block: this.expandBlock(line.block, frame, constants, depth) };
		}
		flushWords(line.block);
		return true;
	}

	/** Returns the lines that replace a line that consists of `{block}`; undefined for any other line. */
	insertedLines(line: ParsedLine, frame: Frame): readonly ParsedLine[] | undefined {
		const content =
			line.words.length === 1 && !line.block ? insertedContent(line.words[0]!, frame.passedBlock) : undefined;
		return content && frame.imported && content.args.length === 0 ? content.lines : undefined;
	}

	/** Reports an unknown name, and suggests the most similar known name. */
	reportUnknownName(code: string, message: string, word: Word, knownNames: Iterable<string>, hint?: string): void {
		const suggestion = didYouMean(word, knownNames);
		this.report.report({ code, severity: 'error', message, span: word.span, ...suggestion, hint });
	}
}

/** Returns the content that a word inserts; undefined if the word is neither `{block}` nor `{blocks.NAME}`. */
function insertedContent(
	word: ParsedWord,
	block: PassedBlock | undefined,
): { args: readonly ParsedWord[]; lines: readonly ParsedLine[] } | undefined {
	if (word.quote !== 'none' || !word.text.startsWith('{block')) return undefined;
	if (word.text === '{block}') return { args: [], lines: block?.lines ?? [] };
	const name = namedBlockReference.exec(word.text);
	if (!name) return undefined;
	const line = block?.linesByName.get(name[1]!);
	return { args: line?.words.slice(1) ?? [], lines: line?.block?.lines ?? [] };
}
