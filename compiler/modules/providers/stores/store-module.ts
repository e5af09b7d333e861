/** The definition of a certificate store in the compiler: its name, lowering and schema. */

import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';

/** A kind of store; the module ID is `storage.<id>`. */
export interface StoreModule {
	/** Value of `store` in the document, which is also the store's name in both dialects. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/** Lowers the words after the store's name, and the line's block, to its settings. */
	readonly lower: (args: readonly Word[], line: Line, cx: LowerContext) => { readonly [setting: string]: unknown };
	/** Schema of the properties in addition to `store`. */
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
}
