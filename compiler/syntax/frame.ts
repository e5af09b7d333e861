/** The origin of expanded lines: one expansion of a file or snippet, with the arguments of its import. */
import type { Source, SourceSpan } from '../source/source.ts';
import type { Word } from './ast.ts';
import type { ParsedLine, ParsedWord } from './parsed-file.ts';

/** The block that an import passes, already expanded in the context of the import. */
export interface PassedBlock {
	readonly lines: readonly ParsedLine[];
	/** Lines by their first word, for `{blocks.NAME}`. Of several lines with the same first word, the last one counts. */
	readonly byName: ReadonlyMap<string, ParsedLine>;
}

/** The definition of a snippet. Its lines are expanded for each use. */
export interface Snippet {
	readonly name: string;
	readonly headWord: Word;
	readonly lines: readonly ParsedLine[];
	readonly source: Source;
	/** Default values of the parameters by name, in the order written; undefined for a required parameter. */
	readonly parameters: ReadonlyMap<string, ParsedWord | undefined>;
	/** True if the snippet is defined in the main file. Unused snippets are reported only there. */
	readonly inMainFile: boolean;
	used: boolean;
}

/** An expansion of the lines of one file or one snippet. */
export interface Frame {
	/** The source to which spans refer. It knows the import that included it. */
	readonly source: Source;
	/** True if the spans of the frame's lines already refer to {@link source}. */
	readonly hasOwnSpans: boolean;
	readonly imported: boolean;
	readonly args: readonly Word[];
	readonly parameters: ReadonlyMap<string, ParsedWord> | undefined;
	readonly block: PassedBlock | undefined;
	/** The file's path, or the snippet. If it occurs twice in a chain of frames, the imports are cyclic. */
	readonly node: string | Snippet;
	/** The name of the frame in messages: `FILE` or `FILE:SNIPPET`. */
	readonly label: string;
	readonly parent: Frame | undefined;
	/** Number of imports between this frame and the main file. */
	readonly depth: number;
}

/** Returns the frame of a main file. */
export function mainFrame(source: Source): Frame {
	return {
		source,
		hasOwnSpans: true,
		imported: false,
		args: [],
		parameters: undefined,
		block: undefined,
		node: source.path ?? source.name,
		label: source.name,
		parent: undefined,
		depth: 0,
	};
}

/** Returns the span as part of the source that the frame's import included. */
export function spanIn(frame: Frame, span: SourceSpan): SourceSpan {
	return frame.hasOwnSpans ? span : { source: frame.source, start: span.start, end: span.end };
}
