/** What an issuer is to the compiler: its words, its schema and its manual page. */

import type { LowerContext } from '../../../lower/lower-context.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { Schema } from '../../directives/directive.ts';

/** An issuer; the module id is `tls.issuance.<id>`. */
export interface IssuerModule {
	/** `issuer` in the document and word in both dialects. */
	readonly id: string;
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	/** Words after the issuer's name, and the line with its block, to its settings. */
	readonly lower: (args: readonly Word[], line: Line, cx: LowerContext) => { readonly [setting: string]: unknown };
	/** Properties beside `issuer`. */
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
}
