/** Diagnostics of the parse level, in the wording of each dialect. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { SourceSpan } from '../source/source.ts';
import { mostWords } from './parsed-file.ts';

/** Characters of a token that a message shows. */
const LONGEST_TOKEN = 40;

/** `FILE:LINE` of a span. */
export function fileAndLine(span: SourceSpan): string {
	return `${span.source.name}:${span.source.position(span.start).line}`;
}

/** ` import chain ['FILE:LINE (import NAME)', …]`, outermost first, or nothing for what was not imported. */
export function importChain(span: SourceSpan): string {
	const chain: string[] = [];
	for (let { source } = span; source.importedAt; source = source.importedAt.source) {
		chain.unshift(`'${fileAndLine(source.importedAt)} (import${source.importedAs ? ` ${source.importedAs}` : ''})'`);
	}
	return chain.length === 0 ? '' : ` import chain [${chain.join(', ')}]`;
}

/** The message of a syntax error, which names the import chain even where nothing was imported. */
export function syntaxError(unexpected: string, expected: '{' | '}', at: SourceSpan): string {
	const shown = unexpected.length > LONGEST_TOKEN ? `${unexpected.slice(0, LONGEST_TOKEN)}…` : unexpected;
	const chain = importChain(at).replace(/^ import chain /, '') || "['']";
	const token = shown.replaceAll('\n', '\\n');
	return `syntax error: unexpected token '${token}', expecting '${expected}', at ${fileAndLine(at)} import chain: ${chain}`;
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

/** The mistake of a `}` behind words. */
export function closeAfterWords(span: SourceSpan, dialect: Dialect): Diagnostic {
	return structureMistake(
		dialect,
		'syntax/close-after-words',
		span,
		"Unexpected '}' because no matching opening brace",
		{
			label: 'not on a line of its own',
			hint: 'Put `}` on a line of its own.',
		},
	);
}

/** The mistake of a line of directives that ends in `{}`. */
export function emptyBraces(span: SourceSpan, dialect: Dialect): Diagnostic {
	return structureMistake(dialect, 'syntax/empty-braces', span, "Unexpected '{}' at end of line", {
		label: 'neither a block nor a placeholder',
		hint: 'Leave it out, or quote it if it is meant as text.',
	});
}

/** The mistake of a block of a directive that begins on the next line. */
export function openOnNewLine(span: SourceSpan, dialect: Dialect): Diagnostic {
	return structureMistake(
		dialect,
		'syntax/open-on-new-line',
		span,
		"Unexpected '{' on a new line; did you mean to place the '{' on the previous line?",
		{ label: 'belongs at the end of the line before', hint: 'Write `name {` on one line.' },
	);
}

/** The mistake of a directive that begins on the line of a `}`, whose span is given. */
export function textAfterClose(span: SourceSpan, dialect: Dialect): Diagnostic {
	return structureMistake(dialect, 'syntax/text-after-close', span, "Unexpected next token after '}' on same line", {
		label: 'the line ends here',
		hint: 'Break the line after `}`.',
	});
}

/** The mistake of a line that goes on and on; the span is that of the first word too many. */
export function tooManyWords(span: SourceSpan): Diagnostic {
	return {
		code: 'syntax/too-many-words',
		severity: 'error',
		message: `A line holds more than ${mostWords.toLocaleString('en')} words; the rest of it is not read.`,
		span,
		hint: 'Use several lines, or a matcher that says the same in fewer words.',
	};
}
