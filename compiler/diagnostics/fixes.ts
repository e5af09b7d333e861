/** Applies the fixes of diagnostics to the texts in which they were found. */
import { type SourceSpan, wholeSpan } from '../source/source.ts';
import type { Diagnostic, Fix, FixSafety, TextEdit } from './diagnostic.ts';

/** A text before and after its fixes were applied. */
export interface FixedText {
	/** Absolute path of the file; undefined if the text is not a file's. */
	readonly path: string | undefined;
	/** Name of the text as in diagnostics. */
	readonly name: string;
	readonly before: string;
	readonly after: string;
}

/** The result of {@link applyFixes}. */
export interface AppliedFixes {
	readonly texts: readonly FixedText[];
	/** The diagnostics whose fixes were applied, in the order given. */
	readonly applied: readonly Diagnostic[];
}

/**
 * Applies fixes: only safe ones if `safety` is `safe`, otherwise all. Of overlapping fixes, only the smallest is applied, and of
 * equally small ones the first; problems that persist are reported again. A fix is applied completely or not at all.
 */
export function applyFixes(diagnostics: readonly Diagnostic[], safety: FixSafety): AppliedFixes {
	const fileByKey = new Map<string, { path: string | undefined; name: string; text: string; edits: TextEdit[] }>();
	const candidates = diagnostics
		.map((diagnostic, index) => ({ diagnostic, index, edits: editsInWholeText(diagnostic) }))
		.filter(({ diagnostic: { fix } }) => fix && (safety === 'unsafe' || fix.safety === 'safe'))
		.sort((one, other) => extentUnits(one.edits) - extentUnits(other.edits) || one.index - other.index);
	const appliedFixes: { diagnostic: Diagnostic; index: number }[] = [];
	for (const { diagnostic, index, edits } of candidates) {
		const keyedEdits = edits.map(edit => ({ edit, key: edit.span.source.path ?? edit.span.source.name }));
		// A snippet that is imported twice yields the same diagnostic twice, with the same fix. Its edits are applied once.
		const newEdits = keyedEdits.filter(
			({ edit, key }) => !fileByKey.get(key)?.edits.some(other => isSameEdit(edit, other)),
		);
		if (newEdits.some(({ edit, key }) => fileByKey.get(key)?.edits.some(other => editsOverlap(edit, other)))) continue;
		for (const { edit, key } of newEdits) {
			const { source } = edit.span;
			const file = fileByKey.get(key) ?? { path: source.path, name: source.name, text: source.text, edits: [] };
			fileByKey.set(key, file);
			file.edits.push(edit);
		}
		appliedFixes.push({ diagnostic, index });
	}
	return {
		texts: [...fileByKey.values()].map(({ path, name, text, edits }) => {
			return { path, name, before: text, after: applyEdits(text, edits) };
		}),
		applied: appliedFixes.sort((one, other) => one.index - other.index).map(({ diagnostic }) => diagnostic),
	};
}

/** Returns the line that a fix changes, after the fix, without its indentation; undefined if it changes more than one line. */
export function lineAfterFix({ edits }: Fix): string | undefined {
	const [firstEdit] = edits;
	if (!firstEdit) return undefined;
	const { source, start } = wholeSpan(firstEdit.span);
	const lineStart = source.text.lastIndexOf('\n', start - 1) + 1;
	const nextNewline = source.text.indexOf('\n', lineStart);
	const lineEnd = nextNewline === -1 ? source.text.length : nextNewline;
	const lineEdits: TextEdit[] = [];
	for (const { span, text } of edits) {
		const wholePlace = wholeSpan(span);
		if (
			wholePlace.source.text !== source.text ||
			wholePlace.start < lineStart ||
			wholePlace.end > lineEnd ||
			text.includes('\n')
		)
			return undefined;
		lineEdits.push({
			span: { ...wholePlace, start: wholePlace.start - lineStart, end: wholePlace.end - lineStart },
			text,
		});
	}
	return applyEdits(source.text.slice(lineStart, lineEnd), lineEdits).trim();
}

/** Returns a text after edits, which must not overlap. Their order does not matter. */
export function applyEdits(text: string, edits: readonly TextEdit[]): string {
	let result = '';
	let copiedEnd = 0;
	for (const { span, text: insertedText } of [...edits].sort(
		(one, other) => one.span.start - other.span.start || one.span.end - other.span.end,
	)) {
		result += text.slice(copiedEnd, span.start) + insertedText;
		copiedEnd = span.end;
	}
	return result + text.slice(copiedEnd);
}

function editsInWholeText({ fix }: Diagnostic): readonly TextEdit[] {
	return (fix?.edits ?? []).map(({ span, text }) => ({ span: wholeSpan(span), text }));
}

/** Returns the number of UTF-16 units from the start of the first edit to the end of the last. */
function extentUnits(edits: readonly TextEdit[]): number {
	return Math.max(...edits.map(({ span }) => span.end)) - Math.min(...edits.map(({ span }) => span.start));
}

function isSameEdit(one: TextEdit, other: TextEdit): boolean {
	return one.span.start === other.span.start && one.span.end === other.span.end && one.text === other.text;
}

/** Reports whether two edits overlap. Two insertions at the same place do, because their order would be arbitrary. */
function editsOverlap({ span: one }: TextEdit, { span: other }: TextEdit): boolean {
	if (isEmptySpan(one) || isEmptySpan(other)) return one.start <= other.end && other.start <= one.end;
	return one.start < other.end && other.start < one.end;
}

function isEmptySpan({ start, end }: SourceSpan): boolean {
	return start === end;
}
