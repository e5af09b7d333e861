/**
 * The compiler's face: text or JSON in, a checked Document out. Pure but for the Reader it is given.
 */
import type { Plan } from './codegen/plan.ts';
import type { Diagnostic } from './diagnostics/diagnostic.ts';
import type { ConfigInput } from './dialects/dialect.ts';
import type { Document } from './document/document.ts';
import type { Reader } from './source/reader.ts';

/** What compiling gave. `document` and `plan` are there when no diagnostic is an error. */
export interface Compiled {
	readonly document: Document | undefined;
	readonly plan: Plan | undefined;
	readonly diagnostics: readonly Diagnostic[];
	/** Absolute paths of the files read. */
	readonly files: readonly string[];
}

export declare function compile(input: ConfigInput, reader: Reader): Compiled;
