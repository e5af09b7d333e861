/** Findings as a GitLab code quality report, which GitLab shows in merge requests: `--format codequality`. */
import { createHash } from 'node:crypto';
import type { Diagnostic } from '../diagnostic.ts';
import type { Findings } from './findings.ts';

const GITLAB_SEVERITIES: { readonly [severity in Diagnostic['severity']]: string } = {
	error: 'critical',
	warning: 'minor',
	note: 'info',
};

/**
 * Returns the report as a JSON array, ending in a newline. GitLab recognizes a finding in another commit by its fingerprint, so the
 * fingerprint does not depend on line numbers. A finding in a file that several configurations import appears once.
 */
export function codequalityReport(configurations: readonly Findings[]): string {
	const issueByFingerprint = new Map<string, object>();
	for (const { name, diagnostics } of configurations) {
		const seenPlaces = new Set<string>();
		const countByIdentity = new Map<string, number>();
		for (const diagnostic of diagnostics) {
			const { code, severity, message, hint, span, pointer } = diagnostic;
			const path = span?.source.name ?? name;
			const startPosition = span?.source.position(span.start);
			const endPosition = span?.source.position(span.end);
			const identity = [path, code, message, startPosition ? firstLineText(diagnostic) : (pointer ?? '')].join('\n');
			// A finding in a file that is imported twice is reported once, but findings with the same text on two lines are reported
			// twice.
			const placeKey = `${identity}\n${startPosition?.line}:${startPosition?.column}`;
			if (seenPlaces.has(placeKey)) continue;
			seenPlaces.add(placeKey);
			const earlierCount = countByIdentity.get(identity) ?? 0;
			countByIdentity.set(identity, earlierCount + 1);
			const fingerprint = createHash('sha256').update(`${identity}\n${earlierCount}`).digest('hex');
			issueByFingerprint.set(fingerprint, {
				description: hint === undefined ? message : `${message} ${hint}`,
				check_name: code,
				fingerprint,
				severity: GITLAB_SEVERITIES[severity],
				location: {
					path,
					lines: { begin: startPosition?.line ?? 1, ...(endPosition ? { end: endPosition.line } : {}) },
				},
			});
		}
	}
	return `${JSON.stringify([...issueByFingerprint.values()], undefined, 2)}\n`;
}

/** Returns the text of the line at which a finding begins, without its indentation. */
function firstLineText({ span }: Diagnostic): string {
	const { text } = span!.source;
	const lineStart = text.lastIndexOf('\n', span!.start - 1) + 1;
	const lineEnd = text.indexOf('\n', lineStart);
	return text.slice(lineStart, lineEnd === -1 ? text.length : lineEnd).trim();
}
