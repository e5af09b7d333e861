/** Expands imports, snippets, constants and the blocks passed to snippets into plain lines of directives. */
import { didYouMean } from '../diagnostics/suggest.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { Word } from './ast.ts';
import type { Constants } from './constants.ts';
import { expandWords } from './expand-words.ts';
import type { ExpansionReport } from './expansion-report.ts';
import { type Frame, type PassedBlock, spanIn } from './frame.ts';
import type { Importer } from './importer.ts';
import { lineShapes, maxNesting, type ParsedBlock, type ParsedLine, type ParsedWord } from './parsed-file.ts';
import { closeAfterWords, emptyBraces, openOnNewLine, structureMistake, textAfterClose } from './structure-mistake.ts';

/** Where lines are: `let` is allowed in a file or directly in a site, but not in nested blocks. */
export type LinePosition = 'site' | 'nested';

const namedBlock = /^\{blocks\.(.*)\}$/s;

/** Expands lines that are directives, sub-directives or options. */
export class Expander {
	readonly dialect: Dialect;
	readonly report: ExpansionReport;
	readonly #importer: Importer;

	constructor(report: ExpansionReport, importer: Importer) {
		this.dialect = report.dialect;
		this.report = report;
		this.#importer = importer;
	}

	/** Returns the expanded lines of a block. */
	lines(
		lines: readonly ParsedLine[],
		frame: Frame,
		constants: Constants,
		level: LinePosition,
		depth: number,
	): ParsedLine[] {
		const out: ParsedLine[] = [];
		this.#into(out, lines, frame, constants, level, depth);
		return out;
	}

	/** Appends the expansion of one line to `out`. */
	lineInto(
		out: ParsedLine[],
		line: ParsedLine,
		frame: Frame,
		constants: Constants,
		level: LinePosition,
		depth: number,
	): void {
		if (!line.live && frame.hasOwnSpans) {
			out.push(line);
			return;
		}
		if (this.report.exhausted) return;
		const first = line.words[0];
		if (!first) {
			this.#joinBlock(out, line, frame, constants, depth);
			return;
		}
		if (line.live && first.quote === 'none') {
			if (first.text === 'import' || (first.text === 'use' && this.dialect === 'configfile')) {
				this.#import(out, line, frame, constants, level, depth);
				return;
			}
			if (this.dialect === 'configfile' && this.#word(line, first, frame, constants, level)) return;
			if (frame.imported && this.#splice(out, line, frame, constants, depth)) return;
		}
		const expanded = this.#line(line, frame, constants, depth);
		if (expanded) out.push(expanded);
	}

	#into(
		out: ParsedLine[],
		lines: readonly ParsedLine[],
		frame: Frame,
		constants: Constants,
		level: LinePosition,
		depth: number,
	) {
		for (const line of lines) this.lineInto(out, line, frame, constants, level, depth);
	}

	/** Returns the block with its lines expanded. Reports nesting beyond the maximum, and returns undefined. */
	block(block: ParsedBlock, frame: Frame, constants: Constants, depth: number): ParsedBlock | undefined {
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
		if (!block.live && frame.hasOwnSpans) return block;
		return {
			lines: this.lines(block.lines, frame, constants, 'nested', depth + 1),
			open: spanIn(frame, block.open),
			close: spanIn(frame, block.close),
			live: false,
		};
	}

	#line(line: ParsedLine, frame: Frame, constants: Constants, depth: number): ParsedLine | undefined {
		if (line.shape !== 0) this.#shape(line, frame);
		const last = line.words[line.words.length - 1]!;
		if (line.words.length > 1 && last.text === '{}' && last.quote === 'none' && line.live) {
			this.report.report(emptyBraces(spanIn(frame, last.span), this.dialect));
		}
		const words = expandWords(line.words, { frame, constants, report: this.report });
		this.report.spend(frame.imported ? 1 : 0, frame.imported ? words.length : 0, 0);
		if (words.length === 0) return undefined;
		const block = line.block && this.block(line.block, frame, constants, depth);
		const alternative = line.alternative && this.#line(line.alternative, frame, constants, depth);
		return { words, block, alternative, span: spanIn(frame, line.span), live: false, shape: 0 };
	}

	/** Reports text after a brace, which a top-level line of a file or snippet may not have if it turns out to be a directive. */
	#shape(line: ParsedLine, frame: Frame): void {
		if (line.shape & lineShapes.afterClose) {
			const at = spanIn(frame, line.span);
			const close = at.source.text.lastIndexOf('}', at.start - 1);
			this.report.report(textAfterClose({ ...at, start: close, end: close + 1 }, this.dialect));
		}
		if (line.shape & lineShapes.contentAfterOpen) {
			const { block } = line;
			const span = block!.lines[0]?.span ?? block!.close;
			const mistake = structureMistake(
				this.dialect,
				'syntax/text-after-open',
				spanIn(frame, span),
				"Unexpected next token after '{' on same line",
				{ label: 'belongs on the next line', hint: 'Break the line after `{`.' },
			);
			this.report.report(mistake);
		} else if (line.shape & lineShapes.closeAfterWords) {
			this.report.report(closeAfterWords(spanIn(frame, line.block!.close), this.dialect));
		}
	}

	#joinBlock(out: ParsedLine[], line: ParsedLine, frame: Frame, constants: Constants, depth: number): void {
		this.report.report(openOnNewLine(spanIn(frame, line.block!.open), this.dialect));
		const before = out[out.length - 1];
		if (!before || before.block) return;
		out[out.length - 1] = { ...before, block: this.block(line.block!, frame, constants, depth) };
	}

	/** Handles `let`, and an `else` that does not follow a `}`. Returns true if the line was one of them. */
	#word(line: ParsedLine, first: ParsedWord, frame: Frame, constants: Constants, level: LinePosition): boolean {
		if (first.text === 'let') {
			if (level === 'site') this.constant(line, frame, constants);
			else {
				this.report.report({
					code: 'let/misplaced',
					severity: 'error',
					message: '`let` is allowed only at file or site level.',
					span: spanIn(frame, first.span),
					hint: 'Move it up to the site or to the top of the file.',
				});
			}
			return true;
		}
		if (first.text !== 'else') return false;
		this.report.report({
			code: 'syntax/else-alone',
			severity: 'error',
			message: '`else` has no `}` before it on its line.',
			span: spanIn(frame, first.span),
			label: 'belongs after the `}` above',
			hint: 'Write `} else {` on one line.',
		});
		return true;
	}

	/** Defines the constant of a line `let NAME VALUE…`. */
	constant(line: ParsedLine, frame: Frame, constants: Constants): void {
		const [, name, ...values] = expandWords(line.words, { frame, constants, report: this.report });
		const span = name ? name.span : spanIn(frame, line.span);
		const problem = (code: string, message: string, hint: string) =>
			this.report.report({ code, severity: 'error', message, span, hint });
		if (!name || values.length === 0) {
			const last = name ?? line.words[0]!;
			problem(
				'let/no-value',
				`wrong argument count or unexpected line ending after '${last.text}'`,
				'Write `let NAME VALUE…`.',
			);
		} else if (!/^[A-Za-z_][A-Za-z0-9_-]*$/.test(name.text)) {
			problem(
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
		const before = constants.define({ name, values, local: !frame.imported, used: values.length === 0 });
		if (!before) return;
		this.report.report({
			code: 'let/defined-twice',
			severity: 'error',
			message: `The constant \`${name.text}\` is defined more than once.`,
			span: name.span,
			label: 'defined again',
			related: [{ span: before.name.span, message: 'first defined here' }],
		});
	}

	#import(
		out: ParsedLine[],
		line: ParsedLine,
		frame: Frame,
		constants: Constants,
		level: LinePosition,
		depth: number,
	): void {
		for (const part of this.#importer.imports(line, frame, constants, this, depth)) {
			this.#into(out, part.lines, part.frame, constants, level, depth);
		}
	}

	/** Expands the block that an import passes to a snippet, in the context of the import. */
	passedBlock(block: ParsedBlock, frame: Frame, constants: Constants, depth: number): PassedBlock {
		const lines = this.lines(block.lines, frame, constants, 'nested', depth);
		return { lines, named: new Map(lines.map(line => [line.words[0]!.text, line])) };
	}

	/**
	 * Inserts `{block}` and `{blocks.NAME}`. Inserted lines stay separate lines, apart from the words before and after them. The
	 * exception is a `{blocks.NAME}` that consists only of arguments: they join the line into which they are inserted.
	 */
	#splice(out: ParsedLine[], line: ParsedLine, frame: Frame, constants: Constants, depth: number): boolean {
		if (!line.words.some(word => placed(word, frame.block) !== undefined)) return false;
		let words: ParsedWord[] = [];
		const scope = { frame, constants, report: this.report };
		const span = spanIn(frame, line.span);
		const flush = (block?: ParsedBlock | undefined) => {
			if (words.length === 0) return;
			const expanded = block && this.block(block, frame, constants, depth);
			const alternative = block && line.alternative && this.#line(line.alternative, frame, constants, depth);
			out.push({ words, block: expanded, alternative, span, live: false, shape: 0 });
			words = [];
		};
		for (const word of line.words) {
			const content = placed(word, frame.block);
			if (this.report.exhausted) break;
			if (!content) words = words.concat(expandWords([word], scope));
			else if (content.args.length > 0 && words.length > 0 && content.lines.length === 0) {
				words = words.concat(content.args);
				this.report.spend(0, content.args.length, 0);
			} else {
				flush();
				if (content.args.length > 0) {
					const own = { ...content.args[0]!.span, end: content.args[content.args.length - 1]!.span.end };
					out.push({ words: content.args, block: undefined, alternative: undefined, span: own, live: false, shape: 0 });
				}
				this.report.spend(content.lines.length, content.args.length, 0);
				for (const placedLine of content.lines) out.push(placedLine);
			}
		}
		if (words.length === 0 && line.block && out.length > 0) {
			const before = out[out.length - 1]!;
			if (!before.block) out[out.length - 1] = { ...before, block: this.block(line.block, frame, constants, depth) };
		}
		flush(line.block);
		return true;
	}

	/** Returns the lines for a `{block}` alone on its line, or undefined for any other line. */
	placedLines(line: ParsedLine, frame: Frame): readonly ParsedLine[] | undefined {
		const content = line.words.length === 1 && !line.block ? placed(line.words[0]!, frame.block) : undefined;
		return content && frame.imported && content.args.length === 0 ? content.lines : undefined;
	}

	/** Reports an unknown name, and suggests the most similar known one. */
	unknown(code: string, message: string, word: Word, known: Iterable<string>, hint?: string): void {
		const suggestion = didYouMean(word, known);
		this.report.report({ code, severity: 'error', message, span: word.span, ...suggestion, hint });
	}
}

/** Returns the content that a word inserts; undefined if it is not `{block}` or `{blocks.NAME}`. */
function placed(
	word: ParsedWord,
	block: PassedBlock | undefined,
): { args: readonly ParsedWord[]; lines: readonly ParsedLine[] } | undefined {
	if (word.quote !== 'none' || !word.text.startsWith('{block')) return undefined;
	if (word.text === '{block}') return { args: [], lines: block?.lines ?? [] };
	const name = namedBlock.exec(word.text);
	if (!name) return undefined;
	const line = block?.named.get(name[1]!);
	return { args: line?.words.slice(1) ?? [], lines: line?.block?.lines ?? [] };
}
