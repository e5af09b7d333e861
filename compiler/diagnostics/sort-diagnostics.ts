/** Sorts diagnostics in the order in which their causes appear in the main file. */
import type { Diagnostic } from './diagnostic.ts';

interface RankedDiagnostic {
	readonly diagnostic: Diagnostic;
	/** Offset of the import in the main file, then of each nested import, and last of the diagnostic's own place. */
	readonly offsets: readonly number[];
}

function sortOffsets(diagnostic: Diagnostic): number[] {
	const { span } = diagnostic;
	if (!span) return [Number.POSITIVE_INFINITY];
	const offsets = [span.start];
	for (let importSpan = span.source.importedAt; importSpan; importSpan = importSpan.source.importedAt)
		offsets.unshift(importSpan.start);
	return offsets;
}

function compareRanked(left: RankedDiagnostic, right: RankedDiagnostic): number {
	const sharedLength = Math.min(left.offsets.length, right.offsets.length);
	for (let index = 0; index < sharedLength; index++) {
		if (left.offsets[index] !== right.offsets[index]) return left.offsets[index]! < right.offsets[index]! ? -1 : 1;
	}
	return left.offsets.length - right.offsets.length;
}

/**
 * Sorts diagnostics by place in the main file. For a diagnostic in an imported file, this is the place of the import. Diagnostics
 * without a place come last, and equal places keep their order. Drops a finding that was already reported through another import,
 * and an error about exactly the same text as an earlier error, because the earlier error usually causes it.
 */
export function sortDiagnostics(diagnostics: readonly Diagnostic[]): Diagnostic[] {
	const seenFindings = new Set<string>();
	const errorPlaces = new Set<string>();
	const rankedDiagnostics: RankedDiagnostic[] = [];
	for (const diagnostic of diagnostics) {
		const { span, code, message, pointer, severity } = diagnostic;
		const textName = span ? (span.source.path ?? span.source.name) : '';
		const placeKey = span ? `${textName} ${span.start} ${span.end}` : (pointer ?? '');
		const findingKey = `${code} ${placeKey} ${message}`;
		if (seenFindings.has(findingKey)) continue;
		seenFindings.add(findingKey);
		if (span && severity === 'error') {
			if (errorPlaces.has(placeKey)) continue;
			errorPlaces.add(placeKey);
		}
		rankedDiagnostics.push({ diagnostic, offsets: sortOffsets(diagnostic) });
	}
	return rankedDiagnostics.sort(compareRanked).map(({ diagnostic }) => diagnostic);
}
