/** Findings as a GitLab code quality report, which GitLab shows in merge requests: `--format codequality`. */
import { createHash } from 'node:crypto';
import type { Diagnostic } from '../diagnostic.ts';
import type { Findings } from './findings.ts';

const SEVERITIES: { readonly [severity in Diagnostic['severity']]: string } = {
	error: 'critical',
	warning: 'minor',
	note: 'info',
};

/**
 * Returns the report as a JSON array, ending in a newline. GitLab recognizes a finding in another commit by its fingerprint, so
 * that does not depend on line numbers. A finding in a file that several configurations import appears once.
 */
export function codequalityReport(all: readonly Findings[]): string {
	const seen = new Map<string, object>();
	for (const { name, diagnostics } of all) {
		const places = new Set<string>();
		const counts = new Map<string, number>();
		for (const one of diagnostics) {
			const { code, severity, message, hint, span, pointer } = one;
			const path = span?.source.name ?? name;
			const start = span?.source.position(span.start);
			const end = span?.source.position(span.end);
			const identity = [path, code, message, start ? lineText(one) : (pointer ?? '')].join('\n');
			// A finding in a file that is imported twice counts once. A finding on another line with the same text is a different
			// finding.
			const place = `${identity}\n${start?.line}:${start?.column}`;
			if (places.has(place)) continue;
			places.add(place);
			const count = counts.get(identity) ?? 0;
			counts.set(identity, count + 1);
			const fingerprint = createHash('sha256').update(`${identity}\n${count}`).digest('hex');
			seen.set(fingerprint, {
				description: hint === undefined ? message : `${message} ${hint}`,
				check_name: code,
				fingerprint,
				severity: SEVERITIES[severity],
				location: { path, lines: { begin: start?.line ?? 1, ...(end ? { end: end.line } : {}) } },
			});
		}
	}
	return `${JSON.stringify([...seen.values()], undefined, 2)}\n`;
}

/** Returns the text of the line at which a finding begins, without its indentation. */
function lineText({ span }: Diagnostic): string {
	const { text } = span!.source;
	const from = text.lastIndexOf('\n', span!.start - 1) + 1;
	const to = text.indexOf('\n', from);
	return text.slice(from, to === -1 ? text.length : to).trim();
}
