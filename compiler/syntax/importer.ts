/** Processes `import` and `use`: finds the snippet or files and prepares the frame in which to expand them. */
import { dirname } from 'node:path';
import { didYouMean, nearestName, suggestName } from '../diagnostics/suggest.ts';
import { ReadError, type Reader, WITHHELD } from '../source/reader.ts';
import { Source, type SourceSpan } from '../source/source.ts';
import type { Word } from './ast.ts';
import { parseSource } from './config-parser.ts';
import type { Constants } from './constants.ts';
import { expandWords } from './expand-words.ts';
import type { Expander } from './expander.ts';
import type { ExpansionReport } from './expansion-report.ts';
import { type Frame, mainFrame, type PassedBlock, type Snippet, spanIn } from './frame.ts';
import { importPaths } from './import-paths.ts';
import type { ParsedFile, ParsedLine, ParsedWord } from './parsed-file.ts';
import { structureMistake } from './structure-mistake.ts';
import type { ReadPiece, TextPiece } from './text-piece.ts';

/** Maximum nesting of imports. */
const maxImportDepth = 100;

/** Lines to expand, and their origin. */
export interface ImportedLines {
	readonly lines: readonly ParsedLine[];
	readonly frame: Frame;
	/** The pieces of a file that was divided, instead of lines. */
	readonly pieces?: readonly TextPiece[] | undefined;
}

/** Divides source texts into pieces at the top level. */
export interface TextCutter {
	/** Returns the pieces of a source text; undefined if it must be parsed as a whole. */
	cut(source: Source): readonly TextPiece[] | undefined;
	/** Reports whether a piece may not need to be parsed at all. */
	expects(piece: TextPiece): boolean;
}

/** Keeps the snippets defined and the files read so far. */
export class Importer {
	readonly snippets = new Map<string, Snippet>();
	readonly #files = new Set<string>();
	readonly #report: ExpansionReport;
	readonly #reader: Reader;
	readonly #cutter: TextCutter | undefined;
	readonly #parsed = new Map<string, CutFile | undefined>();

	constructor(report: ExpansionReport, reader: Reader, cutter?: TextCutter) {
		this.#report = report;
		this.#reader = reader;
		this.#cutter = cutter;
	}

	/** Absolute paths of the files read, in order. */
	get files(): readonly string[] {
		return [...this.#files];
	}

	/** Adds a file whose contents were known, so that it was not read. */
	addFile(path: string): void {
		this.#files.add(path);
	}

	/** Returns the main file, divided into its sites, or as lines if it cannot be divided. */
	main(source: Source): ImportedLines {
		if (source.path !== undefined) this.#files.add(source.path);
		const pieces = this.#cut(source);
		return { lines: pieces ? [] : this.#parse(source).lines, frame: mainFrame(source), pieces };
	}

	#parse(source: Source): CutFile {
		const { dialect } = this.#report;
		let mistaken = false;
		const file = parseSource(source, dialect, this.env, diagnostic => {
			mistaken = true;
			this.#report.report(diagnostic);
		});
		this.#noteDefinitions(file.lines);
		return { ...file, mistaken };
	}

	/** Returns an environment variable. */
	readonly env = (name: string): string | undefined => this.#reader.env(name);

	/**
	 * Returns the pieces of a source text. Pieces that must be parsed are parsed now, so that diagnostics are in the order of the whole
	 * text.
	 */
	#cut(source: Source): readonly TextPiece[] | undefined {
		const cutter = this.#cutter;
		const pieces = cutter?.cut(source);
		for (const piece of pieces ?? []) if (!piece.sole && !cutter!.expects(piece)) this.read(piece);
		return pieces;
	}

	/** Parses a piece, reports its mistakes and records its definitions. */
	read(piece: TextPiece): ReadPiece {
		const read = piece.read(this.env, diagnostic => this.#report.report(diagnostic));
		this.#noteDefinitions(read.lines);
		return read;
	}

	#noteDefinitions(lines: readonly ParsedLine[]): void {
		for (const line of lines) {
			if (!line.live && !line.words[0]?.text.startsWith('(')) continue;
			const [first, second] = line.words;
			if (first?.text === 'let' && second) this.#report.define(`let ${second.text}`);
			else if (first?.text.startsWith('(')) this.#report.define(first.text);
		}
	}

	/** Returns the lines that an `import` or `use` line inserts, in order, and reports mistakes. Only an import at the top level divides files into pieces. */
	imports(
		line: ParsedLine,
		frame: Frame,
		constants: Constants,
		expander: Expander,
		depth: number,
		cut: boolean = false,
	): ImportedLines[] {
		const words = expandWords(line.words, { frame, constants, report: this.#report });
		const [keyword, target, ...args] = words;
		if (!target || !keyword) {
			const name = line.words[0]!.text;
			const span = spanIn(frame, line.words[0]!.span);
			const message = `wrong argument count or unexpected line ending after '${name}'`;
			const hint = name === 'use' ? 'Write `use SNIPPET name=value…`.' : 'Write `import SNIPPET` or `import FILE`.';
			this.#report.report(structureMistake(this.#report.dialect, 'import/no-argument', span, message, { hint }));
			return [];
		}
		if (frame.depth >= maxImportDepth) {
			this.#problem('import/too-deep', target.span, `Imports are nested more than ${maxImportDepth} levels deep`);
			return [];
		}
		this.#report.importing(target.span);
		// An import costs more than one of the lines that it inserts.
		this.#report.spend(2, 0, 0);
		const block = line.block && expander.passedBlock(line.block, frame, constants, depth);
		const snippet = this.snippets.get(target.text);
		if (keyword.text === 'use') {
			if (!snippet) {
				this.#unknownSnippet(target);
				return [];
			}
			return this.#fromSnippet(snippet, target, [], this.#named(args, snippet), block, frame);
		}
		if (snippet) {
			return this.#fromSnippet(snippet, target, args, new Map(), block, frame);
		}
		return this.#fromFiles(target, args, block, frame, cut);
	}

	#problem(code: string, span: SourceSpan, message: string, hint?: string): void {
		this.#report.report(structureMistake(this.#report.dialect, code, span, message, { hint }));
	}

	#unknownSnippet(target: Word): void {
		this.#report.report({
			code: 'snippet/unknown',
			severity: 'error',
			message: `There is no snippet \`${target.text}\`.`,
			span: target.span,
			...didYouMean(target, this.snippets.keys()),
			hint: this.#report.definedLater.has(`(${target.text})`)
				? `\`(${target.text})\` is defined further down: a snippet must be defined before it is used.`
				: `Define it above with \`(${target.text}) { … }\`; use \`import\` for files.`,
		});
	}

	/** Returns the `name=value` words of `use`. */
	#named(args: readonly ParsedWord[], snippet: Snippet): Map<string, ParsedWord> {
		const values = new Map<string, ParsedWord>();
		for (const arg of args) {
			const equals = arg.text.indexOf('=');
			if (equals < 1 || arg.quote !== 'none') {
				this.#report.report({
					code: 'snippet/positional',
					severity: 'error',
					message: `\`${arg.text}\` is not \`name=value\`.`,
					span: arg.span,
					hint: '`use` passes parameters by name; `import` passes arguments by position.',
				});
				continue;
			}
			const name = arg.text.slice(0, equals);
			const value: ParsedWord = { text: arg.text.slice(equals + 1), quote: arg.valueQuote ?? 'none', span: arg.span };
			if (!snippet.parameters.has(name)) {
				const near = nearestName(name, snippet.parameters.keys());
				this.#report.report({
					code: 'snippet/unknown-parameter',
					severity: 'error',
					message: `The snippet \`${snippet.name}\` has no parameter \`${name}\`.`,
					span: arg.span,
					...suggestName({ text: name, span: { ...arg.span, end: arg.span.start + equals } }, near),
					related: [{ span: snippet.word.span, message: 'the snippet' }],
				});
				// The nearest parameter was most likely meant, so it does not count as missing.
				if (near && !values.has(near)) values.set(near, value);
			} else if (values.has(name)) {
				this.#report.report({
					code: 'snippet/repeated-parameter',
					severity: 'error',
					message: `The parameter \`${name}\` is given more than once.`,
					span: arg.span,
					label: 'given again',
				});
			} else values.set(name, value);
		}
		return values;
	}

	#fromSnippet(
		snippet: Snippet,
		target: ParsedWord,
		args: readonly Word[],
		given: ReadonlyMap<string, ParsedWord>,
		block: PassedBlock | undefined,
		frame: Frame,
	): ImportedLines[] {
		this.#report.use(snippet);
		if (!snippet.source.moves) this.#report.taint();
		const label = `${snippet.source.name}:${snippet.name}`;
		if (this.#isCycle(snippet, label, target, frame)) return [];
		const parameters = new Map<string, ParsedWord>();
		for (const [name, fallback] of snippet.parameters) {
			const value = given.get(name) ?? fallback;
			// The parameter gets a value anyway, so that the lines of the snippet do not cause further diagnostics.
			parameters.set(name, value ?? { text: '', quote: 'double', span: target.span });
			if (value) continue;
			this.#report.report({
				code: 'snippet/missing-parameter',
				severity: 'error',
				message: `The snippet \`${snippet.name}\` needs a value for \`${name}\`.`,
				span: target.span,
				label: `\`${name}\` is missing`,
				hint: `Write \`use ${snippet.name} ${name}=VALUE\`.`,
				related: [{ span: snippet.word.span, message: 'the snippet' }],
			});
		}
		const source = snippet.source.importedFrom(target.span, snippet.name);
		const depth = frame.depth + 1;
		const inside: Frame = {
			source,
			hasOwnSpans: false,
			imported: true,
			args,
			parameters,
			block,
			node: snippet,
			label,
			parent: frame,
			depth,
		};
		return [{ lines: snippet.lines, frame: inside }];
	}

	#isCycle(node: string | Snippet, label: string, target: Word, frame: Frame): boolean {
		let at: Frame | undefined = frame;
		while (at && at.node !== node) at = at.parent;
		if (!at) return false;
		const message = `a cycle of imports exists between ${frame.label} and ${label}`;
		this.#problem('import/cycle', target.span, message, 'Move the shared part into a third snippet or file.');
		return true;
	}

	#fromFiles(
		target: ParsedWord,
		args: readonly Word[],
		block: PassedBlock | undefined,
		frame: Frame,
		cut: boolean,
	): ImportedLines[] {
		const { source } = frame;
		if (target.text === '') {
			this.#problem('import/empty', target.span, 'Import requires a non-empty filepath');
			return [];
		}
		const folder = source.path === undefined ? this.#reader.workingDirectory : dirname(source.path);
		const found = importPaths(target.text, folder, source.name, this.snippets.keys(), this.#reader);
		if (found.problem) {
			const { code, severity, message, hint } = found.problem;
			const later = this.#report.definedLater.has(`(${target.text})`);
			const early = later
				? `\`(${target.text})\` is defined further down: a snippet must be defined before it is imported.`
				: hint;
			this.#report.report({
				...structureMistake(this.#report.dialect, code, target.span, message, { hint: early }),
				severity,
			});
		}
		const imported: ImportedLines[] = [];
		for (const { path, name } of found.files) {
			if (this.#isCycle(path, name, target, frame)) continue;
			const known = this.#parsed.get(path);
			if (this.#parsed.has(path)) this.#readAgain(path, known);
			if (!known && this.#parsed.has(path)) continue;
			const file = known ?? this.#read(path, name, target, cut && args.length === 0 && !block);
			if (!file) continue;
			if (file.blank) {
				this.#report.report({
					code: 'import/blank',
					severity: 'warning',
					message: `The imported file ${name} is blank.`,
					span: target.span,
				});
				continue;
			}
			// For the first import of a file, the parser's spans can be used unchanged.
			const seenFrom = known ? file.source.importedFrom(target.span, target.text) : file.source;
			imported.push({
				lines: !known && file.pieces ? [] : file.lines,
				pieces: known ? undefined : file.pieces,
				frame: {
					source: seenFrom,
					hasOwnSpans: !known,
					imported: true,
					args,
					parameters: undefined,
					block,
					node: path,
					label: name,
					parent: frame,
					depth: frame.depth + 1,
				},
			});
		}
		return imported;
	}

	/** Repeats the recorded effects of an earlier import of the same file, as if this import had read the file itself. */
	#readAgain(path: string, known: CutFile | undefined): void {
		if (!this.#report.recording) return;
		if (known?.mistaken !== false) this.#report.taint();
		if (!known) return;
		this.#reader.readText(path);
		this.#noteDefinitions(known.lines);
	}

	#read(path: string, name: string, target: ParsedWord, cut: boolean): CutFile | undefined {
		let text: string;
		try {
			text = this.#reader.readText(path);
		} catch (error) {
			if (!(error instanceof ReadError)) throw error;
			this.#parsed.set(path, undefined);
			if (error.code === WITHHELD) {
				this.#report.report({
					code: 'import/withheld',
					severity: 'warning',
					message: `${target.text} is outside of the workspace and was not read.`,
					span: target.span,
					hint: 'Open the folder that contains both files.',
				});
				return undefined;
			}
			const why = error.code === 'EACCES' ? 'permission denied' : error.code;
			this.#problem('import/unreadable', target.span, `Could not import ${target.text}: ${why}`);
			return undefined;
		}
		this.#files.add(path);
		const source = new Source({ name, text, path, importedAt: target.span, importedAs: target.text });
		const pieces = cut ? this.#cut(source) : undefined;
		if (!pieces) {
			const file = this.#parse(source);
			this.#parsed.set(path, file);
			return file;
		}
		const importer = this;
		const file: CutFile = {
			source,
			pieces,
			mistaken: true,
			// This is evaluated only if the file is imported again.
			get lines() {
				return importer.#parse(source).lines;
			},
			blank: pieces.length === 0,
		};
		this.#parsed.set(path, file);
		return file;
	}
}

/** A file that may have been divided into pieces. */
interface CutFile extends ParsedFile {
	readonly pieces?: readonly TextPiece[];
	/** True if its structure has mistakes. */
	readonly mistaken: boolean;
}
