/** Sorts diagnostics in the order in which their causes appear in the main file. */
import type { Diagnostic } from './diagnostic.ts';

interface RankedDiagnostic {
	readonly diagnostic: Diagnostic;
	/** Offsets from the outside in: of the import in the main file, of each nested import, and of the place itself. */
	readonly path: readonly number[];
}

function sortPath(diagnostic: Diagnostic): number[] {
	const { span } = diagnostic;
	if (!span) return [Number.POSITIVE_INFINITY];
	const path = [span.start];
	for (let importSpan = span.source.importedAt; importSpan; importSpan = importSpan.source.importedAt)
		path.unshift(importSpan.start);
	return path;
}

function compareRanked(left: RankedDiagnostic, right: RankedDiagnostic): number {
	const shared = Math.min(left.path.length, right.path.length);
	for (let index = 0; index < shared; index++) {
		if (left.path[index] !== right.path[index]) return left.path[index]! < right.path[index]! ? -1 : 1;
	}
	return left.path.length - right.path.length;
}

/**
 * Sorts diagnostics by place in the main file. A place in an imported file counts as the place of the import. Diagnostics without a
 * place come last, and equal places keep their order. Drops a finding that was already reported through another import, and an
 * error at exactly the same text as an earlier error, which caused it.
 */
export function sortDiagnostics(diagnostics: readonly Diagnostic[]): Diagnostic[] {
	const seenFindings = new Set<string>();
	const errorPlaces = new Set<string>();
	const ranked: RankedDiagnostic[] = [];
	for (const diagnostic of diagnostics) {
		const { span, code, message, pointer, severity } = diagnostic;
		const text = span ? (span.source.path ?? span.source.name) : '';
		const place = span ? `${text} ${span.start} ${span.end}` : (pointer ?? '');
		const finding = `${code} ${place} ${message}`;
		if (seenFindings.has(finding)) continue;
		seenFindings.add(finding);
		if (span && severity === 'error') {
			if (errorPlaces.has(place)) continue;
			errorPlaces.add(place);
		}
		ranked.push({ diagnostic, path: sortPath(diagnostic) });
	}
	return ranked.sort(compareRanked).map(({ diagnostic }) => diagnostic);
}
