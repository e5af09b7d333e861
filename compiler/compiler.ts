/** The compiler's entry point: takes text or JSON, returns a checked Document. Pure except for the Reader it is given. */
import type { ConfigInput } from './dialects/dialect.ts';
import { type Compiled, CompilerSession, type SessionOptions } from './incremental/compiler-session.ts';
import type { Reader } from './source/reader.ts';

export type { Compiled } from './incremental/compiler-session.ts';

/**
 * Compiles a configuration: parses, expands, lowers, validates, plans, and builds every site on trial. Never throws for bad
 * input; `diagnostics` holds every mistake that can be found, sorted by file and place.
 */
export function compile(input: ConfigInput, reader: Reader, options?: SessionOptions): Compiled {
	return new CompilerSession(reader, options).compile(input);
}

/**
 * Creates a compiler for a configuration that changes, as in an editor or a server that reloads. Recompiling after a change to
 * one site costs little more than that site. Results equal those of {@link compile}.
 */
export function createCompiler(reader: Reader, options?: SessionOptions): CompilerSession {
	return new CompilerSession(reader, options);
}
