/** Applies the fixes of diagnostics to the texts in which they were found. */
import { type SourceSpan, wholeSpan } from '../source/source.ts';
import type { Diagnostic, Fix, FixSafety, TextEdit } from './diagnostic.ts';

/** A text after its fixes were applied. */
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
 * Applies the fixes that `safety` admits: `safe` only the safe ones, `unsafe` all. Where fixes overlap, the smaller one is
 * applied, and where they are of the same size, the first: the other diagnostic will be found again, if it still holds. A fix is
 * applied completely or not at all.
 */
export function applyFixes(diagnostics: readonly Diagnostic[], safety: FixSafety): AppliedFixes {
	const files = new Map<string, { path: string | undefined; name: string; text: string; edits: TextEdit[] }>();
	const wanted = diagnostics
		.map((diagnostic, index) => ({ diagnostic, index, edits: wholeEdits(diagnostic) }))
		.filter(({ diagnostic: { fix } }) => fix && (safety === 'unsafe' || fix.safety === 'safe'))
		.sort((one, other) => extentOf(one.edits) - extentOf(other.edits) || one.index - other.index);
	const applied: { diagnostic: Diagnostic; index: number }[] = [];
	for (const { diagnostic, index, edits } of wanted) {
		const places = edits.map(edit => ({ edit, key: edit.span.source.path ?? edit.span.source.name }));
		// A snippet that is used twice has the same diagnostic, with the same fix, twice.
		const added = places.filter(({ edit, key }) => !files.get(key)?.edits.some(other => isSame(edit, other)));
		if (added.some(({ edit, key }) => files.get(key)?.edits.some(other => overlaps(edit, other)))) continue;
		for (const { edit, key } of added) {
			const { source } = edit.span;
			const file = files.get(key) ?? { path: source.path, name: source.name, text: source.text, edits: [] };
			files.set(key, file);
			file.edits.push(edit);
		}
		applied.push({ diagnostic, index });
	}
	return {
		texts: [...files.values()].map(({ path, name, text, edits }) => {
			return { path, name, before: text, after: applyEdits(text, edits) };
		}),
		applied: applied.sort((one, other) => one.index - other.index).map(({ diagnostic }) => diagnostic),
	};
}

/** Returns the line that a fix changes, after the fix, without its indentation; undefined if it changes more than one line. */
export function fixedLine({ edits }: Fix): string | undefined {
	const [first] = edits;
	if (!first) return undefined;
	const { source, start } = wholeSpan(first.span);
	const from = source.text.lastIndexOf('\n', start - 1) + 1;
	const next = source.text.indexOf('\n', from);
	const to = next === -1 ? source.text.length : next;
	const moved: TextEdit[] = [];
	for (const { span, text } of edits) {
		const place = wholeSpan(span);
		if (place.source.text !== source.text || place.start < from || place.end > to || text.includes('\n'))
			return undefined;
		moved.push({ span: { ...place, start: place.start - from, end: place.end - from }, text });
	}
	return applyEdits(source.text.slice(from, to), moved).trim();
}

/** Returns a text after edits of it, which must not overlap. Their order does not matter. */
export function applyEdits(text: string, edits: readonly TextEdit[]): string {
	let after = '';
	let at = 0;
	for (const { span, text: inserted } of [...edits].sort(
		(one, other) => one.span.start - other.span.start || one.span.end - other.span.end,
	)) {
		after += text.slice(at, span.start) + inserted;
		at = span.end;
	}
	return after + text.slice(at);
}

function wholeEdits({ fix }: Diagnostic): readonly TextEdit[] {
	return (fix?.edits ?? []).map(({ span, text }) => ({ span: wholeSpan(span), text }));
}

/** Returns the number of UTF-16 units from the start of the first edit to the end of the last. */
function extentOf(edits: readonly TextEdit[]): number {
	return Math.max(...edits.map(({ span }) => span.end)) - Math.min(...edits.map(({ span }) => span.start));
}

function isSame(one: TextEdit, other: TextEdit): boolean {
	return one.span.start === other.span.start && one.span.end === other.span.end && one.text === other.text;
}

/** Reports whether two edits overlap. Two insertions at one place do, because their order would be arbitrary. */
function overlaps({ span: one }: TextEdit, { span: other }: TextEdit): boolean {
	if (isEmpty(one) || isEmpty(other)) return one.start <= other.end && other.start <= one.end;
	return one.start < other.end && other.start < one.end;
}

function isEmpty({ start, end }: SourceSpan): boolean {
	return start === end;
}
