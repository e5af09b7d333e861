/** What a store of certificates is to the compiler: its words and its schema. */

import type { LowerContext } from '../../../lower/lower-context.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { Schema } from '../../directives/directive.ts';

/** A store as documents have it: `{"store":"file_system",…}`. */
export interface StoreSettings {
	readonly store: string;
	readonly [setting: string]: unknown;
}

/** A kind of store; the module id is `storage.<id>`. */
export interface StoreModule {
	/** `store` in the document and word in both dialects. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/** Words after the store's name, and the line with its block, to its settings. */
	readonly lower: (args: readonly Word[], line: Line, cx: LowerContext) => { readonly [setting: string]: unknown };
	/** Properties beside `store`. */
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
}
