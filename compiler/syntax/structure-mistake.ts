/** Diagnostics of structural mistakes, in the wording of each dialect. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { SourceSpan } from '../source/source.ts';
import { maxWordsPerLine } from './parsed-file.ts';

/** Maximum characters of a token in a message. */
const MAX_TOKEN_CHARS = 40;

/** Returns the start of a span as `FILE:LINE`. */
export function fileAndLine(span: SourceSpan): string {
	return `${span.source.name}:${span.source.position(span.start).line}`;
}

/**
 * Returns ` import chain ['FILE:LINE (import NAME)', …]` for a span in imported text, outermost import first; '' for other text.
 */
export function importChain(span: SourceSpan): string {
	const chain: string[] = [];
	for (let { source } = span; source.importedAt; source = source.importedAt.source) {
		chain.unshift(`'${fileAndLine(source.importedAt)} (import${source.importedAs ? ` ${source.importedAs}` : ''})'`);
	}
	return chain.length === 0 ? '' : ` import chain [${chain.join(', ')}]`;
}

/**
 * Returns the message of a syntax error in the wording of Caddy. It always contains an import chain: `['']` if nothing was
 * imported.
 */
export function syntaxError(unexpected: string, expected: '{' | '}', span: SourceSpan): string {
	const shortened = unexpected.length > MAX_TOKEN_CHARS ? `${unexpected.slice(0, MAX_TOKEN_CHARS)}…` : unexpected;
	const chain = importChain(span).replace(/^ import chain /, '') || "['']";
	const token = shortened.replaceAll('\n', '\\n');
	return `syntax error: unexpected token '${token}', expecting '${expected}', at ${fileAndLine(span)} import chain: ${chain}`;
}

/**
 * Returns the diagnostic for a structural mistake. In a Compatfile, the message ends with `FILE:LINE`, as in Caddy,
 * because tools match such messages. In a Configfile, only the code frame shows the position.
 */
export function structureMistake(
	dialect: Dialect,
	code: string,
	span: SourceSpan,
	message: string,
	details: Partial<Diagnostic> = {},
): Diagnostic {
	const fullMessage =
		dialect === 'compatfile' ? `${message}, at ${fileAndLine(span)}${importChain(span)}` : `${message}.`;
	return { code, severity: 'error', message: fullMessage, span, ...details };
}

/** Returns the diagnostic for a `}` that follows words on its line. */
export function misplacedCloseMistake(span: SourceSpan, dialect: Dialect): Diagnostic {
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

/** Returns the diagnostic for a directive whose line ends in `{}`. */
export function emptyBracesMistake(span: SourceSpan, dialect: Dialect): Diagnostic {
	return structureMistake(dialect, 'syntax/empty-braces', span, "Unexpected '{}' at end of line", {
		label: 'neither a block nor a placeholder',
		hint: 'Remove it, or quote it if it is meant as text.',
	});
}

/** Returns the diagnostic for a directive whose `{` is on the next line. */
export function misplacedOpenMistake(span: SourceSpan, dialect: Dialect): Diagnostic {
	return structureMistake(
		dialect,
		'syntax/open-on-new-line',
		span,
		"Unexpected '{' on a new line; did you mean to place the '{' on the previous line?",
		{ label: 'belongs at the end of the line before', hint: 'Write `name {` on one line.' },
	);
}

/** Returns the diagnostic for a directive that follows a `}` on the same line. `span` is the span of the `}`. */
export function trailingTextMistake(span: SourceSpan, dialect: Dialect): Diagnostic {
	return structureMistake(dialect, 'syntax/text-after-close', span, "Unexpected next token after '}' on same line", {
		label: 'the line ends here',
		hint: 'Break the line after `}`.',
	});
}

/** Returns the diagnostic for a line with too many words. `span` is the span of the first excess word. */
export function excessWordsMistake(span: SourceSpan): Diagnostic {
	return {
		code: 'syntax/too-many-words',
		severity: 'error',
		message: `A line has more than ${maxWordsPerLine.toLocaleString('en')} words; the rest is ignored.`,
		span,
		hint: 'Use several lines, or a matcher that expresses the same in fewer words.',
	};
}
