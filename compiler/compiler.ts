/** The compiler's entry point: takes text or JSON, returns a checked Document. Pure except for the Reader it is given. */

import { CompilerSession } from './incremental/compiler-session.ts';
import type { CompileOptions } from './pipeline/compile.ts';
import type { Reader } from './source/reader.ts';

export { type Compiled, compile } from './pipeline/compile.ts';

/**
 * Creates a compiler for a configuration that changes, as in an editor or a server that reloads. Recompiling after a change to
 * one site costs little more than that site. Results equal those of `compile`.
 */
export function createCompiler(reader: Reader, options?: CompileOptions): CompilerSession {
	return new CompilerSession(reader, options);
}
