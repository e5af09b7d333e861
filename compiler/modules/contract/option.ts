/** The definition of a global option, in one object. Registered by one line in registry/options.ts. */

import type { Schema } from '../../document/schema-type.ts';
import type { Line } from '../../syntax/ast.ts';
import type { LowerContext } from './lower-context.ts';

/** The document's `settings` while the global block is being lowered. */
export interface SettingsDraft {
	[setting: string]: unknown;
}

export interface GlobalOption {
	/** Key in `settings`. */
	readonly id: string;
	readonly names: { readonly configfile: readonly string[]; readonly compatfile: readonly string[] };
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
	readonly lower: (line: Line, settings: SettingsDraft, cx: LowerContext) => void;
	/** Schema of `settings.<id>`. */
	readonly schema: Schema;
	/**
	 * True if changing the option needs a restart: `/load` then answers `restart_required`. Appears in the schema as `startup: true`.
	 */
	readonly startup: boolean;
	/** True if the option may be given several times; its lines then accumulate. */
	readonly repeatable?: true;
}
