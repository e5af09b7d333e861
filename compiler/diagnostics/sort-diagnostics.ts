/** Sorts diagnostics in the order in which their causes appear in the main file. */
import type { Diagnostic } from './diagnostic.ts';

interface Ranked {
	readonly diagnostic: Diagnostic;
	/** Offsets from the outside in: of the import in the main file, of each nested import, and of the place itself. */
	readonly path: readonly number[];
}

function pathOf(diagnostic: Diagnostic): number[] {
	const { span } = diagnostic;
	if (!span) return [Number.POSITIVE_INFINITY];
	const path = [span.start];
	for (let at = span.source.importedAt; at; at = at.source.importedAt) path.unshift(at.start);
	return path;
}

function compare(left: Ranked, right: Ranked): number {
	const shared = Math.min(left.path.length, right.path.length);
	for (let index = 0; index < shared; index++) {
		if (left.path[index] !== right.path[index]) return left.path[index]! < right.path[index]! ? -1 : 1;
	}
	return left.path.length - right.path.length;
}

/**
 * Sorts diagnostics by place in the main file. A place in an imported file counts as the place of the import. Diagnostics without
 * a place come last, and equal places keep their order. Drops repeats: a finding that was already reported through another
 * import, and an error at exactly the text of an earlier error, which caused it.
 */
export function sortDiagnostics(diagnostics: readonly Diagnostic[]): Diagnostic[] {
	const seen = new Set<string>();
	const wrong = new Set<string>();
	const ranked: Ranked[] = [];
	for (const diagnostic of diagnostics) {
		const { span, code, message, pointer, severity } = diagnostic;
		const text = span ? (span.source.path ?? span.source.name) : '';
		const place = span ? `${text} ${span.start} ${span.end}` : (pointer ?? '');
		const finding = `${code} ${place} ${message}`;
		if (seen.has(finding)) continue;
		seen.add(finding);
		if (span && severity === 'error') {
			if (wrong.has(place)) continue;
			wrong.add(place);
		}
		ranked.push({ diagnostic, path: pathOf(diagnostic) });
	}
	return ranked.sort(compare).map(({ diagnostic }) => diagnostic);
}
