/** What one word inside `servers` is, in one object. Registered by one line in options/servers/index.ts. */

import type { LowerContext } from '../../../lower/lower-context.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { Schema } from '../../directives/directive.ts';
import type { SettingsDraft } from '../option.ts';

/** One item of `settings.servers` while its block is lowered. */
export interface ServerDraft {
	[field: string]: unknown;
}

/** What a word inside `servers` writes to. */
export interface ServerBlock {
	/** The item of `settings.servers` that the block becomes. */
	readonly server: ServerDraft;
	/** All settings, for the few words whose setting holds for every listener. */
	readonly settings: SettingsDraft;
	/** Address that the block is for; undefined when it is for every listener. */
	readonly listener: Word | undefined;
}

/** A word inside `servers`. */
export interface ServerOption {
	/** The word, the same in both languages. */
	readonly name: string;
	readonly usage: string;
	/** A sentence; the manual page of `servers` is made of these. */
	readonly summary: string;
	/** More on it, in whole lines. */
	readonly documentation?: readonly string[];
	readonly lower: (line: Line, args: readonly Word[], block: ServerBlock, cx: LowerContext) => void;
	/** Schemas of the fields of an item of `settings.servers` that this word fills, by field. */
	readonly schema: { readonly [field: string]: Schema };
}
