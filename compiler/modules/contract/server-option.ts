/** The definition of an option inside `servers`, in one object. Registered by one line in options/servers/index.ts. */

import type { Schema } from '../../document/schema-type.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { LowerContext } from './lower-context.ts';
import type { SettingsDraft } from './option.ts';

/** An item of `settings.servers` during lowering. */
export interface ServerDraft {
	[field: string]: unknown;
}

/** The draft settings that an option inside `servers` writes to. */
export interface ServerBlock {
	/** The item of `settings.servers` for the block. */
	readonly server: ServerDraft;
	/** All settings, for the few options that apply to all listeners. */
	readonly settings: SettingsDraft;
	/** Address of the listener to which the block applies; undefined for all listeners. */
	readonly listener: Word | undefined;
}

/** An option inside `servers`. */
export interface ServerOption {
	/** Name of the option, the same in both languages. */
	readonly name: string;
	readonly usage: string;
	/** What the option does, in one sentence. The manual page of `servers` lists these sentences. */
	readonly summary: string;
	/** Further lines of documentation. */
	readonly documentation?: readonly string[];
	readonly lower: (line: Line, args: readonly Word[], block: ServerBlock, cx: LowerContext) => void;
	/** Schemas of the fields that this option fills in an item of `settings.servers`, by field. */
	readonly schema: { readonly [field: string]: Schema };
}
