/** Where expanded lines come from: one run through a file or snippet, with what its import passed to it. */
import type { Source, SourceSpan } from '../source/source.ts';
import type { Word } from './ast.ts';
import type { ParsedLine, ParsedWord } from './parsed-file.ts';

/** The block of an import, already expanded where it stands. */
export interface PassedBlock {
	readonly lines: readonly ParsedLine[];
	/** Lines by their first word, for `{blocks.NAME}`; of several the last counts. */
	readonly named: ReadonlyMap<string, ParsedLine>;
}

/** A snippet as it was defined; its lines are expanded anew for each use. */
export interface Snippet {
	readonly name: string;
	readonly word: Word;
	readonly lines: readonly ParsedLine[];
	readonly source: Source;
	/** By name, in the order written; a parameter without a default is required. */
	readonly parameters: ReadonlyMap<string, ParsedWord | undefined>;
	/** Defined in the main file, so that not using it is a mistake. */
	readonly local: boolean;
	used: boolean;
}

/** One run through the lines of a file or snippet. */
export interface Frame {
	/** The source that spans point into: knows its import. */
	readonly source: Source;
	/** True when the lines' own spans already point into {@link source}. */
	readonly identity: boolean;
	readonly imported: boolean;
	readonly args: readonly Word[];
	readonly parameters: ReadonlyMap<string, ParsedWord> | undefined;
	readonly block: PassedBlock | undefined;
	/** The path or the snippet: the same one twice in a chain of frames is a cycle. */
	readonly node: string | Snippet;
	/** `FILE` or `FILE:SNIPPET`. */
	readonly label: string;
	readonly parent: Frame | undefined;
	/** Imports between this and the main file. */
	readonly depth: number;
}

/** The frame of a main file. */
export function mainFrame(source: Source): Frame {
	return {
		source,
		identity: true,
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

/** The span as seen by the frame's import. */
export function spanIn(frame: Frame, span: SourceSpan): SourceSpan {
	return frame.identity ? span : { source: frame.source, start: span.start, end: span.end };
}
