/**
 * Findings in the Static Analysis Results Interchange Format (OASIS SARIF 2.1.0), which code scanning services accept:
 * `--format sarif`.
 */

import type { SourceSpan } from '../../source/source.ts';
import type { Diagnostic, Fix } from '../diagnostic.ts';
import type { DescribedRule, Findings } from './findings.ts';

const SCHEMA = 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json';

/**
 * Returns the log of one run, ending in a newline. The log describes `rules` and every other code that a finding has. A finding
 * in a file that several configurations import appears once.
 */
export function sarifReport(configurations: readonly Findings[], rules: readonly DescribedRule[]): string {
	const rulesByCode = new Map(rules.map(rule => [rule.name, describeRule(rule)]));
	for (const { code, severity } of configurations.flatMap(({ diagnostics }) => diagnostics)) {
		if (!rulesByCode.has(code)) rulesByCode.set(code, { id: code, defaultConfiguration: { level: severity } });
	}
	const allValid = configurations.every(one => one.valid);
	const version = configurations[0]?.version ?? '';
	const ruleIndices = new Map([...rulesByCode.keys()].map((code, index) => [code, index]));
	const log = {
		$schema: SCHEMA,
		version: '2.1.0',
		runs: [
			{
				tool: { driver: { name: 'svc', semanticVersion: version.replace(/^v/, ''), rules: [...rulesByCode.values()] } },
				columnKind: 'utf16CodeUnits',
				invocations: [{ executionSuccessful: true, exitCode: allValid ? 0 : 1 }],
				results: withoutRepeats(
					configurations.flatMap(({ name, diagnostics }) =>
						diagnostics.map(one => sarifResult(one, ruleIndices.get(one.code)!, name)),
					),
				),
			},
		],
	};
	return `${JSON.stringify(log, undefined, 2)}\n`;
}

function withoutRepeats(results: readonly object[]): object[] {
	return [...new Map(results.map(one => [JSON.stringify(one), one])).values()];
}

function describeRule({ name, severity, summary, documentation }: DescribedRule): object {
	return {
		id: name,
		shortDescription: { text: summary.replaceAll('`', '') },
		fullDescription: { text: documentation.replaceAll('`', ''), markdown: documentation },
		help: { text: documentation.replaceAll('`', ''), markdown: documentation },
		defaultConfiguration: { level: severity },
	};
}

function sarifResult(diagnostic: Diagnostic, ruleIndex: number, name: string): object {
	const { code, severity, message, hint, label, span, pointer, related, fix } = diagnostic;
	const text = [message, label, hint].filter(part => part !== undefined).join(' ');
	const physicalLocation = span ? place(span) : { artifactLocation: { uri: fileUri(name) } };
	return {
		ruleId: code,
		ruleIndex,
		level: severity,
		message: { text },
		locations: [
			{
				physicalLocation,
				...(span || pointer === undefined
					? {}
					: { logicalLocations: [{ fullyQualifiedName: pointer, kind: 'value' }] }),
			},
		],
		...(related && related.length > 0
			? {
					relatedLocations: related.map((other, id) => ({
						id,
						message: { text: other.message },
						physicalLocation: place(other.span),
					})),
				}
			: {}),
		...(fix ? { fixes: [sarifFix(fix, hint ?? label ?? message)] } : {}),
	};
}

function sarifFix({ edits, safety }: Fix, description: string): object {
	const files = new Set(edits.map(({ span }) => span.source.name));
	return {
		description: { text: description },
		artifactChanges: [...files].map(name => ({
			artifactLocation: { uri: fileUri(name) },
			replacements: edits
				.filter(({ span }) => span.source.name === name)
				.map(({ span, text }) => ({ deletedRegion: sarifRegion(span), insertedContent: { text } })),
		})),
		properties: { safety },
	};
}

function place(span: SourceSpan): object {
	return { artifactLocation: { uri: fileUri(span.source.name) }, region: sarifRegion(span) };
}

function sarifRegion({ source, start, end }: SourceSpan): object {
	const from = source.position(start);
	const to = source.position(end);
	return { startLine: from.line, startColumn: from.column, endLine: to.line, endColumn: to.column };
}

/** Returns a file name as a URI reference (RFC 3986). */
function fileUri(name: string): string {
	const encoded = name.split(/[/\\]/).map(encodeURIComponent).join('/');
	return name.startsWith('/') ? `file://${encoded}` : encoded;
}
