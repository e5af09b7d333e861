/**
 * The compiler's entry point: takes text or JSON and returns a checked Document. It reads files and the environment only through
 * its Reader.
 */

import { CompilerSession } from './incremental/compiler-session.ts';
import type { CompileOptions } from './pipeline/compile.ts';
import type { Reader } from './source/reader.ts';

export { type CompileResult, compile } from './pipeline/compile.ts';

/**
 * Creates a compiler for a configuration that changes, as in an editor or a server that reloads. After a change to one site,
 * recompiling costs little more than compiling that site. Results equal those of `compile`.
 */
export function createCompiler(reader: Reader, options?: CompileOptions): CompilerSession {
	return new CompilerSession(reader, options);
}
