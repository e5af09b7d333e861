/** How mistakes in `test` blocks are reported. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { SourceSpan } from '../source/source.ts';

/** Reports an error, or what `more` says it is. */
export type TestProblem = (code: string, span: SourceSpan, message: string, more?: Partial<Diagnostic>) => void;
