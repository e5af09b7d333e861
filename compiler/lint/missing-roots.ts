/** Warns about root folders that do not exist, when the server starts and whenever a configuration is loaded. */
import type { CompileResult } from '../compiler.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { withWholePlaces } from '../diagnostics/whole-places.ts';
import type { ConfigInput } from '../dialects/dialect.ts';
import type { Document } from '../document/document.ts';
import type { Reader } from '../source/reader.ts';
import { missingRoots, ROOT_MISSING_CODE } from './inspection/file-roots.ts';
import { firstLineSpan } from './inspection/lint-context.ts';
import { walkDocument } from './inspection/walk-document.ts';
import { SilencingComments } from './silencing-comments.ts';

/** Maximum number of warnings about single folders, because a configuration may have thousands of them. */
const MAX_WARNINGS = 20;

/**
 * Returns a warning for each missing root of a configuration text, without those that comments in the text silence. Returns none
 * for JSON, because it is usually compiled from a text that has been checked, and the comments of that text are lost.
 */
export function missingRootWarnings(
	{ format }: ConfigInput,
	document: Document,
	locate: CompileResult['locate'],
	reader: Reader,
): readonly Diagnostic[] {
	if (format === 'json') return [];
	const warnings: Diagnostic[] = [];
	const silencingComments = new SilencingComments(format);
	for (const { pointer, message, hint } of missingRoots(walkDocument(document), format, reader)) {
		const span = locate(pointer);
		const place = span ? { span: firstLineSpan(span) } : { pointer };
		const warning = withWholePlaces({ code: ROOT_MISSING_CODE, severity: 'warning', message, hint, ...place });
		if (silencingComments.filter([warning]).length === 0) continue;
		if (warnings.length === MAX_WARNINGS) {
			const restMessage = 'More root folders do not exist; `svc validate` lists all of them.';
			return [...warnings, { code: ROOT_MISSING_CODE, severity: 'warning', message: restMessage }];
		}
		warnings.push(warning);
	}
	return warnings;
}
