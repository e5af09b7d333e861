/**
 * Frames record where expanded lines come from. A frame is one expansion of a file or snippet, with the arguments of its import.
 */
import type { Source, SourceSpan } from '../source/source.ts';
import type { Word } from './ast.ts';
import type { ParsedLine, ParsedWord } from './parsed-file.ts';

/** A block that an import passes to a snippet. It has been expanded in the context of the import. */
export interface PassedBlock {
	readonly lines: readonly ParsedLine[];
	/** The lines by their first word, for `{blocks.NAME}`. If several lines have the same first word, the last one is used. */
	readonly linesByName: ReadonlyMap<string, ParsedLine>;
}

/** The definition of a snippet. Its lines are expanded again for each use. */
export interface Snippet {
	readonly name: string;
	readonly headWord: Word;
	readonly lines: readonly ParsedLine[];
	readonly source: Source;
	/** The default value of each parameter by name, in the order in which they are declared; undefined for a required parameter. */
	readonly parameters: ReadonlyMap<string, ParsedWord | undefined>;
	/** True if the snippet is defined in the main file. Unused snippets are reported only there. */
	readonly inMainFile: boolean;
	isUsed: boolean;
}

/** One expansion of the lines of a file or snippet. */
export interface Frame {
	/** The source to which spans refer, which also records the import that included it. */
	readonly source: Source;
	/** True if the spans of the frame's lines already refer to {@link source}. */
	readonly hasOwnSpans: boolean;
	readonly imported: boolean;
	readonly args: readonly Word[];
	readonly parameters: ReadonlyMap<string, ParsedWord> | undefined;
	readonly passedBlock: PassedBlock | undefined;
	/** The file's path, or the snippet. If it occurs twice on the way from a frame to the main file, the imports are cyclic. */
	readonly fileOrSnippet: string | Snippet;
	/** The name of the frame in messages: `FILE` or `FILE:SNIPPET`. */
	readonly label: string;
	readonly parent: Frame | undefined;
	/** Number of imports between this frame and the main file. */
	readonly importDepth: number;
}

export function mainFrame(source: Source): Frame {
	return {
		source,
		hasOwnSpans: true,
		imported: false,
		args: [],
		parameters: undefined,
		passedBlock: undefined,
		fileOrSnippet: source.path ?? source.name,
		label: source.name,
		parent: undefined,
		importDepth: 0,
	};
}

/** Returns a span of the frame's lines, made to refer to `frame.source`. */
export function spanIn(frame: Frame, span: SourceSpan): SourceSpan {
	return frame.hasOwnSpans ? span : { source: frame.source, start: span.start, end: span.end };
}
