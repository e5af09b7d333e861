/** Diagnostics of the parse level, in the wording of each dialect. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { SourceSpan } from '../source/source.ts';

/** `FILE:LINE` of a span. */
export function fileAndLine(span: SourceSpan): string {
	return `${span.source.name}:${span.source.position(span.start).line}`;
}

/** ` import chain ['FILE:LINE (import NAME)', …]`, outermost first, or nothing for what was not imported. */
function importChain(span: SourceSpan): string {
	const chain: string[] = [];
	for (let { source } = span; source.importedAt; source = source.importedAt.source) {
		chain.unshift(`'${fileAndLine(source.importedAt)} (import${source.importedAs ? ` ${source.importedAs}` : ''})'`);
	}
	return chain.length === 0 ? '' : ` import chain [${chain.join(', ')}]`;
}

/**
 * An error of structure. In Compatfile the message ends with the place, as the compatible server's messages do and as
 * tools that match them expect; in Configfile the place is only in the code frame.
 */
export function structureMistake(
	dialect: Dialect,
	code: string,
	span: SourceSpan,
	message: string,
	more: Partial<Diagnostic> = {},
): Diagnostic {
	const full = dialect === 'compatfile' ? `${message}, at ${fileAndLine(span)}${importChain(span)}` : `${message}.`;
	return { code, severity: 'error', message: full, span, ...more };
}
