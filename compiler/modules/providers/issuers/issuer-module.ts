/** The definition of an issuer in the compiler: its name, lowering, schema and manual page. */

import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';

/** An issuer; the module ID is `tls.issuance.<id>`. */
export interface IssuerModule {
	/** Value of `issuer` in the document, which is also the issuer's name in both dialects. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/** Lowers the words after the issuer's name, and the line's block, to its settings. */
	readonly lower: (args: readonly Word[], line: Line, cx: LowerContext) => { readonly [setting: string]: unknown };
	/** Schema of the properties in addition to `issuer`. */
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
}
