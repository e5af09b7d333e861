/**
 * Determines the meaning of words from the modules: lowers a part of a text and observes how the modules read the words.
 * Completion, hovers and signatures use this, so that no separate list of words is necessary.
 */
import { dirname, resolve } from 'node:path';
import type { Matcher } from '../document/document.ts';
import { DEFAULT_ORDER, directivePositions } from '../lower/directive-order.ts';
import { knownPlaceholders } from '../lower/known-placeholders.ts';
import { NamedRoutes } from '../lower/lower-named-routes.ts';
import { lowerOptions } from '../lower/lower-options.ts';
import { lowerLines } from '../lower/lower-pipeline.ts';
import { Lowering } from '../lower/lowering.ts';
import { NoOrigins } from '../lower/origins.ts';
import { registryOf } from '../lower/registry.ts';
import type { SubdirectiveHandler, UnknownSubdirective } from '../modules/contract/lower-context.ts';
import { lowerNamedUpstream } from '../modules/directives/reverse-proxy/lower-upstream.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Block, Line, Word } from '../syntax/ast.ts';
import type { ParsedLine } from '../syntax/parsed-file.ts';
import type { TextSyntax, TopLevelKind } from './text-syntax.ts';

/** The kinds of values that modules read from words. */
export type ReadValue =
	| 'duration'
	| 'size'
	| 'status'
	| 'integer'
	| 'boolean'
	| 'regexp'
	| 'template'
	| 'file'
	| 'upstream'
	| 'route';

/** Receives the calls with which modules read words. */
export interface LoweringObserver {
	/** Called for a block whose lines must begin with one of the given words. `owner` is the directive or option of the block. */
	onBlock?(block: Block, words: readonly string[], owner: string): void;
	/** Called for a word that must be one of `values`. */
	onChoice?(word: Word, values: readonly string[]): void;
	/** Called for a word that is read as a value of kind `kind`. */
	onValue?(span: SourceSpan, kind: ReadValue, text: string): void;
	/** Called with the usage of a line when the number of its arguments is checked. */
	onUsage?(line: Line, usage: string): void;
	/**
	 * Called for a block whose lines are directives. `inOrder` is true if they run in the order in which they are written, even in
	 * a Compatfile.
	 */
	onPipeline?(lines: readonly Line[], inOrder: boolean): void;
	/** Called for words, and possibly a block, that form a matcher. */
	onMatcher?(words: readonly Word[], block: Block | undefined): void;
}

/**
 * Lowers a top-level line, and passes the calls of its modules to an observer. Mistakes are not reported, and results are
 * discarded.
 */
export function observeLowering(
	topLine: ParsedLine,
	kind: TopLevelKind,
	{ dialect, path }: Pick<TextSyntax, 'dialect' | 'path'>,
	observer: LoweringObserver,
): void {
	const lowering = new ObservedLowering(
		{
			dialect,
			report: () => {},
			registry: registryOf(dialect),
			placeholders: knownPlaceholders,
			origins: new NoOrigins(),
			files: [path],
			workingDirectory: '/',
			upstreams: new Map(),
			routes: new NamedRoutes(),
			mappedNames: () => new Set(),
			positions: directivePositions(DEFAULT_ORDER),
			settings: {},
			dependencies: undefined,
		},
		observer,
	);
	const [line] = withoutBareBlocks([topLine], true);
	if (!line) return;
	const { block } = line;
	if (kind === 'options') lowerOptions(lowering, block, {});
	else if (kind === 'upstream' && line.words[1])
		lowerNamedUpstream({ name: line.words[1], lines: block?.lines ?? [], span: line.span }, lowering);
	else if (kind === 'site' || kind === 'snippet' || kind === 'route' || kind === 'directive') {
		const lines = kind === 'directive' ? [line] : (block?.lines ?? []);
		observer.onPipeline?.(lines, kind === 'directive');
		lowerLines(lowering, lines, 'route', { addresses: [] });
	}
}

/** Returns the lines that have words. Expansion, which is skipped here, would have removed the other lines. */
function withoutBareBlocks(lines: readonly ParsedLine[], isTopLevel: boolean): readonly ParsedLine[] {
	const linesWithWords: ParsedLine[] = [];
	for (const line of lines) {
		if (line.words.length === 0 && !isTopLevel) continue;
		const { block, alternative } = line;
		linesWithWords.push({
			...line,
			block: block && { ...block, lines: withoutBareBlocks(block.lines, false) },
			alternative: alternative && withoutBareBlocks([alternative], false)[0],
		});
	}
	return linesWithWords;
}

class ObservedLowering extends Lowering {
	readonly #observer: LoweringObserver;

	constructor(environment: ConstructorParameters<typeof Lowering>[0], observer: LoweringObserver) {
		super(environment);
		this.#observer = observer;
	}

	override count(line: Line, args: readonly Word[], min: number, max: number, usage: string): boolean {
		this.#observer.onUsage?.(line, usage);
		return super.count(line, args, min, max, usage);
	}

	override subdirectives(
		block: Block | undefined,
		handlers: { readonly [name: string]: SubdirectiveHandler },
		owner: string,
		unknown?: UnknownSubdirective,
	): void {
		if (block) this.#observer.onBlock?.(block, Object.keys(handlers), owner);
		super.subdirectives(block, handlers, owner, unknown);
	}

	override template(word: Word): string {
		this.#observer.onValue?.(word.span, 'template', word.text);
		return super.template(word);
	}

	override duration(word: Word): number | undefined {
		this.#observer.onValue?.(word.span, 'duration', word.text);
		return super.duration(word);
	}

	override size(word: Word): number | undefined {
		this.#observer.onValue?.(word.span, 'size', word.text);
		return super.size(word);
	}

	override status(word: Word): number | undefined {
		this.#observer.onValue?.(word.span, 'status', word.text);
		return super.status(word);
	}

	override integer(word: Word, min?: number, max?: number): number | undefined {
		this.#observer.onValue?.(word.span, 'integer', word.text);
		return super.integer(word, min, max);
	}

	override boolean(word: Word): boolean | undefined {
		this.#observer.onValue?.(word.span, 'boolean', word.text);
		return super.boolean(word);
	}

	override regexp(word: Word, use?: 'matcher'): string | undefined {
		this.#observer.onValue?.(word.span, 'regexp', word.text);
		return super.regexp(word, use);
	}

	override oneOf<const T extends string>(word: Word, values: readonly T[], valueName: string): T | undefined {
		this.#observer.onChoice?.(word, values);
		return super.oneOf(word, values, valueName);
	}

	override pipeline(lines: readonly Line[]): ReturnType<Lowering['pipeline']> {
		this.#observer.onPipeline?.(lines, false);
		return lowerLines(this, lines, 'route', undefined);
	}

	override pipelineInOrder(lines: readonly Line[]): ReturnType<Lowering['pipelineInOrder']> {
		this.#observer.onPipeline?.(lines, true);
		return super.pipelineInOrder(lines);
	}

	override matcherExpression(
		words: readonly Word[],
		block: Block | undefined,
		name: string | undefined,
	): Matcher | undefined {
		this.#observer.onMatcher?.(words, block);
		return super.matcherExpression(words, block, name);
	}

	override filePath(text: string, span: SourceSpan): string {
		this.#observer.onValue?.(span, 'file', text);
		return super.filePath(text, span);
	}

	override useRoute(name: Word): void {
		this.#observer.onValue?.(name.span, 'route', name.text);
		super.useRoute(name);
	}
}

/** Returns the words in a top-level line and its block that name files, with the absolute paths. */
export function filePathsOf(
	topLine: ParsedLine,
	kind: TopLevelKind,
	syntax: TextSyntax,
): { readonly span: SourceSpan; readonly path: string }[] {
	const paths: { span: SourceSpan; path: string }[] = [];
	const observer: LoweringObserver = {
		onValue: (span, kind, text) => {
			if (kind !== 'file' || text === '' || /[{}]/.test(text)) return;
			// In a Compatfile, relative paths start from the server's working directory, which is not known.
			if (syntax.dialect === 'configfile' || text.startsWith('/'))
				paths.push({ span, path: resolve(dirname(syntax.path), text) });
		},
	};
	observeLowering(topLine, kind, syntax, observer);
	return paths;
}
