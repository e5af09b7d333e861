/** Reports mistakes in `test` blocks. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { SourceSpan } from '../source/source.ts';

/** Reports an error, or the severity in `more`. */
export type TestProblem = (code: string, span: SourceSpan, message: string, more?: Partial<Diagnostic>) => void;
