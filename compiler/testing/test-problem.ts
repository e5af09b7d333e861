/** Reports mistakes in `test` blocks. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { SourceSpan } from '../source/source.ts';

/** Reports an error, or a diagnostic of another severity if `details` gives one. */
export type TestProblem = (code: string, span: SourceSpan, message: string, details?: Partial<Diagnostic>) => void;
