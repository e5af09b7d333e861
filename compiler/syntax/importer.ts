/** Processes `import` and `use` lines: finds the snippet or files, and prepares the frames in which their lines are expanded. */
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

const maxImportDepth = 100;

/** Imported lines, and the frame in which to expand them. */
export interface ImportedLines {
	readonly lines: readonly ParsedLine[];
	readonly frame: Frame;
	/** The pieces of the file, if it was divided; `lines` is then empty. */
	readonly pieces?: readonly TextPiece[] | undefined;
}

/** Divides texts into pieces at the top level. */
export interface TextCutter {
	/** Returns the pieces of a text; undefined if it must be parsed as a whole. */
	cut(source: Source): readonly TextPiece[] | undefined;
	/** Reports whether the piece's earlier result may be reused, so that the piece need not be parsed. */
	mayBeReused(piece: TextPiece): boolean;
}

/** Resolves imports, and keeps the snippets and files that have been read. */
export class Importer {
	readonly snippets = new Map<string, Snippet>();
	readonly #filePaths = new Set<string>();
	readonly #report: ExpansionReport;
	readonly #reader: Reader;
	readonly #cutter: TextCutter | undefined;
	readonly #filesByPath = new Map<string, CutFile | undefined>();

	constructor(report: ExpansionReport, reader: Reader, cutter?: TextCutter) {
		this.#report = report;
		this.#reader = reader;
		this.#cutter = cutter;
	}

	/** Absolute paths of the files that have been read, in order. */
	get files(): readonly string[] {
		return [...this.#filePaths];
	}

	/** Adds a file that was not read again, because its contents are already known. */
	addFile(path: string): void {
		this.#filePaths.add(path);
	}

	/** Returns the main file, divided into pieces, or as lines if it cannot be divided. */
	readMainFile(source: Source): ImportedLines {
		if (source.path !== undefined) this.#filePaths.add(source.path);
		const pieces = this.#cutPieces(source);
		return { lines: pieces ? [] : this.#parse(source).lines, frame: mainFrame(source), pieces };
	}

	#parse(source: Source): CutFile {
		const { dialect } = this.#report;
		let hasMistakes = false;
		const file = parseSource(source, dialect, this.env, diagnostic => {
			hasMistakes = true;
			this.#report.report(diagnostic);
		});
		this.#recordDefinitions(file.lines);
		return { ...file, hasMistakes };
	}

	/** Returns an environment variable; undefined if it is not set. */
	readonly env = (name: string): string | undefined => this.#reader.env(name);

	/**
	 * Returns the pieces of a text. Pieces that have to be parsed are parsed now, so that diagnostics are in the order of the
	 * complete text.
	 */
	#cutPieces(source: Source): readonly TextPiece[] | undefined {
		const cutter = this.#cutter;
		const pieces = cutter?.cut(source);
		for (const piece of pieces ?? [])
			if (!piece.isIndependentSite && !cutter!.mayBeReused(piece)) this.readPiece(piece);
		return pieces;
	}

	/** Parses a piece, reports its mistakes and records its definitions. */
	readPiece(piece: TextPiece): ReadPiece {
		const result = piece.read(this.env, diagnostic => this.#report.report(diagnostic));
		this.#recordDefinitions(result.lines);
		return result;
	}

	#recordDefinitions(lines: readonly ParsedLine[]): void {
		for (const line of lines) {
			if (!line.needsExpansion && !line.words[0]?.text.startsWith('(')) continue;
			const [first, second] = line.words;
			if (first?.text === 'let' && second) this.#report.recordDefinition(`let ${second.text}`);
			else if (first?.text.startsWith('(')) this.#report.recordDefinition(first.text);
		}
	}

	/**
	 * Returns the lines that an `import` or `use` line inserts, in order, and reports mistakes. `mayDivide` is true if files may be
	 * divided into pieces, which is the case for imports at the top level.
	 */
	resolveImport(
		line: ParsedLine,
		frame: Frame,
		constants: Constants,
		expander: Expander,
		depth: number,
		mayDivide: boolean = false,
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
		if (frame.importDepth >= maxImportDepth) {
			this.#reportProblem('import/too-deep', target.span, `Imports are nested more than ${maxImportDepth} levels deep`);
			return [];
		}
		this.#report.setCurrentImport(target.span);
		// An import takes more time than one inserted line, so it is counted as two lines.
		this.#report.countOutput(2, 0, 0);
		const passedBlock = line.block && expander.expandPassedBlock(line.block, frame, constants, depth);
		const snippet = this.snippets.get(target.text);
		if (keyword.text === 'use') {
			if (!snippet) {
				this.#reportUnknownSnippet(target);
				return [];
			}
			return this.#importSnippet(snippet, target, [], this.#namedArguments(args, snippet), passedBlock, frame);
		}
		if (snippet) {
			return this.#importSnippet(snippet, target, args, new Map(), passedBlock, frame);
		}
		return this.#importFiles(target, args, passedBlock, frame, mayDivide);
	}

	#reportProblem(code: string, span: SourceSpan, message: string, hint?: string): void {
		this.#report.report(structureMistake(this.#report.dialect, code, span, message, { hint }));
	}

	#reportUnknownSnippet(target: Word): void {
		this.#report.report({
			code: 'snippet/unknown',
			severity: 'error',
			message: `There is no snippet \`${target.text}\`.`,
			span: target.span,
			...didYouMean(target, this.snippets.keys()),
			hint: this.#report.allDefinitions.has(`(${target.text})`)
				? `\`(${target.text})\` is defined further down: a snippet must be defined before it is used.`
				: `Define it above with \`(${target.text}) { … }\`; use \`import\` for files.`,
		});
	}

	/** Returns the values in the `name=value` words of a `use` line, by name. */
	#namedArguments(args: readonly ParsedWord[], snippet: Snippet): Map<string, ParsedWord> {
		const values = new Map<string, ParsedWord>();
		for (const arg of args) {
			const equalsIndex = arg.text.indexOf('=');
			if (equalsIndex < 1 || arg.quote !== 'none') {
				this.#report.report({
					code: 'snippet/positional',
					severity: 'error',
					message: `\`${arg.text}\` is not \`name=value\`.`,
					span: arg.span,
					hint: '`use` passes parameters by name; `import` passes arguments by position.',
				});
				continue;
			}
			const name = arg.text.slice(0, equalsIndex);
			const value: ParsedWord = {
				text: arg.text.slice(equalsIndex + 1),
				quote: arg.valueQuote ?? 'none',
				span: arg.span,
			};
			if (!snippet.parameters.has(name)) {
				const nearest = nearestName(name, snippet.parameters.keys());
				this.#report.report({
					code: 'snippet/unknown-parameter',
					severity: 'error',
					message: `The snippet \`${snippet.name}\` has no parameter \`${name}\`.`,
					span: arg.span,
					...suggestName({ text: name, span: { ...arg.span, end: arg.span.start + equalsIndex } }, nearest),
					related: [{ span: snippet.headWord.span, message: 'the snippet' }],
				});
				// The nearest parameter was probably meant, so it must not be reported as missing.
				if (nearest && !values.has(nearest)) values.set(nearest, value);
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

	#importSnippet(
		snippet: Snippet,
		target: ParsedWord,
		args: readonly Word[],
		passedValues: ReadonlyMap<string, ParsedWord>,
		passedBlock: PassedBlock | undefined,
		frame: Frame,
	): ImportedLines[] {
		this.#report.markUsed(snippet);
		if (!snippet.source.canMove) this.#report.invalidateRecord();
		const label = `${snippet.source.name}:${snippet.name}`;
		if (this.#isCycle(snippet, label, target, frame)) return [];
		const parameters = new Map<string, ParsedWord>();
		for (const [name, defaultValue] of snippet.parameters) {
			const value = passedValues.get(name) ?? defaultValue;
			// The parameter gets an empty value, so that the lines of the snippet cause no further diagnostics.
			parameters.set(name, value ?? { text: '', quote: 'double', span: target.span });
			if (value) continue;
			this.#report.report({
				code: 'snippet/missing-parameter',
				severity: 'error',
				message: `The snippet \`${snippet.name}\` needs a value for \`${name}\`.`,
				span: target.span,
				label: `\`${name}\` is missing`,
				hint: `Write \`use ${snippet.name} ${name}=VALUE\`.`,
				related: [{ span: snippet.headWord.span, message: 'the snippet' }],
			});
		}
		const source = snippet.source.importedFrom(target.span, snippet.name);
		const importDepth = frame.importDepth + 1;
		const snippetFrame: Frame = {
			source,
			hasOwnSpans: false,
			imported: true,
			args,
			parameters,
			passedBlock,
			fileOrSnippet: snippet,
			label,
			parent: frame,
			importDepth,
		};
		return [{ lines: snippet.lines, frame: snippetFrame }];
	}

	#isCycle(fileOrSnippet: string | Snippet, label: string, target: Word, frame: Frame): boolean {
		let ancestor: Frame | undefined = frame;
		while (ancestor && ancestor.fileOrSnippet !== fileOrSnippet) ancestor = ancestor.parent;
		if (!ancestor) return false;
		const message = `a cycle of imports exists between ${frame.label} and ${label}`;
		this.#reportProblem('import/cycle', target.span, message, 'Move the shared part into a third snippet or file.');
		return true;
	}

	#importFiles(
		target: ParsedWord,
		args: readonly Word[],
		passedBlock: PassedBlock | undefined,
		frame: Frame,
		mayDivide: boolean,
	): ImportedLines[] {
		const { source } = frame;
		if (target.text === '') {
			this.#reportProblem('import/empty', target.span, 'Import requires a non-empty filepath');
			return [];
		}
		const folder = source.path === undefined ? this.#reader.workingDirectory : dirname(source.path);
		const paths = importPaths(target.text, folder, source.name, this.snippets.keys(), this.#reader);
		if (paths.problem) {
			const { code, severity, message, hint } = paths.problem;
			const isDefinedLater = this.#report.allDefinitions.has(`(${target.text})`);
			const fullHint = isDefinedLater
				? `\`(${target.text})\` is defined further down: a snippet must be defined before it is imported.`
				: hint;
			this.#report.report({
				...structureMistake(this.#report.dialect, code, target.span, message, { hint: fullHint }),
				severity,
			});
		}
		const importedLines: ImportedLines[] = [];
		for (const { path, name } of paths.files) {
			if (this.#isCycle(path, name, target, frame)) continue;
			const earlierFile = this.#filesByPath.get(path);
			if (this.#filesByPath.has(path)) this.#repeatEffects(path, earlierFile);
			if (!earlierFile && this.#filesByPath.has(path)) continue;
			const file = earlierFile ?? this.#readFile(path, name, target, mayDivide && args.length === 0 && !passedBlock);
			if (!file) continue;
			if (file.isBlank) {
				this.#report.report({
					code: 'import/blank',
					severity: 'warning',
					message: `The imported file ${name} is blank.`,
					span: target.span,
				});
				continue;
			}
			// For the first import of a file, the spans of the parser can be used unchanged.
			const frameSource = earlierFile ? file.source.importedFrom(target.span, target.text) : file.source;
			importedLines.push({
				lines: !earlierFile && file.pieces ? [] : file.lines,
				pieces: earlierFile ? undefined : file.pieces,
				frame: {
					source: frameSource,
					hasOwnSpans: !earlierFile,
					imported: true,
					args,
					parameters: undefined,
					passedBlock,
					fileOrSnippet: path,
					label: name,
					parent: frame,
					importDepth: frame.importDepth + 1,
				},
			});
		}
		return importedLines;
	}

	/** Repeats the recorded effects of an earlier import of a file, as if this import had read the file. */
	#repeatEffects(path: string, earlierFile: CutFile | undefined): void {
		if (!this.#report.isRecording) return;
		if (earlierFile?.hasMistakes !== false) this.#report.invalidateRecord();
		if (!earlierFile) return;
		this.#reader.readText(path);
		this.#recordDefinitions(earlierFile.lines);
	}

	#readFile(path: string, name: string, target: ParsedWord, mayDivide: boolean): CutFile | undefined {
		let text: string;
		try {
			text = this.#reader.readText(path);
		} catch (error) {
			if (!(error instanceof ReadError)) throw error;
			this.#filesByPath.set(path, undefined);
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
			const reason = error.code === 'EACCES' ? 'permission denied' : error.code;
			this.#reportProblem('import/unreadable', target.span, `Could not import ${target.text}: ${reason}`);
			return undefined;
		}
		this.#filePaths.add(path);
		const source = new Source({ name, text, path, importedAt: target.span, importedAs: target.text });
		const pieces = mayDivide ? this.#cutPieces(source) : undefined;
		if (!pieces) {
			const file = this.#parse(source);
			this.#filesByPath.set(path, file);
			return file;
		}
		const importer = this;
		const file: CutFile = {
			source,
			pieces,
			hasMistakes: true,
			// Called only if the file is imported again.
			get lines() {
				return importer.#parse(source).lines;
			},
			isBlank: pieces.length === 0,
		};
		this.#filesByPath.set(path, file);
		return file;
	}
}

/** A file that may have been divided into pieces. */
interface CutFile extends ParsedFile {
	readonly pieces?: readonly TextPiece[];
	/**
	 * True if structural mistakes were reported when the file was parsed as a whole. Always true for a file that was divided,
	 * because the mistakes in its pieces are not counted here.
	 */
	readonly hasMistakes: boolean;
}
