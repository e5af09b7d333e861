/**
 * The compiler's face: text or JSON in, a checked Document out. Pure but for the Reader it is given.
 */
import type { ConfigInput } from './dialects/dialect.ts';
import { type Compiled, CompilerSession, type SessionOptions } from './incremental/compiler-session.ts';
import type { Reader } from './source/reader.ts';

/** What compiling gives. */
export type { Compiled } from './incremental/compiler-session.ts';

/**
 * Compiles a configuration: parse, expand, lower, validate, plan, and a trial build of every site. Never throws for
 * input; every mistake that can be found is in `diagnostics`, sorted by file and place.
 */
export function compile(input: ConfigInput, reader: Reader, options?: SessionOptions): Compiled {
	return new CompilerSession(reader, options).compile(input);
}

/**
 * A compiler for one configuration that changes: an editor's, or a server's that is loaded again and again. A change of
 * one site costs little more than that site. Results are those of {@link compile}.
 */
export function createCompiler(reader: Reader, options?: SessionOptions): CompilerSession {
	return new CompilerSession(reader, options);
}
