/**
 * Findings in the Static Analysis Results Interchange Format (OASIS SARIF 2.1.0), which code scanning services accept:
 * `--format sarif`.
 */

import type { SourceSpan } from '../../source/source.ts';
import type { Diagnostic, Fix } from '../diagnostic.ts';
import type { DescribedRule, Findings } from './findings.ts';

const SARIF_SCHEMA_URL = 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json';

/**
 * Returns the log of one run, ending in a newline. The log describes `rules` and every other code that a finding has. A finding
 * in a file that several configurations import appears once.
 */
export function sarifReport(configurations: readonly Findings[], rules: readonly DescribedRule[]): string {
	const ruleByCode = new Map(rules.map(rule => [rule.name, describeRule(rule)]));
	for (const { code, severity } of configurations.flatMap(({ diagnostics }) => diagnostics)) {
		if (!ruleByCode.has(code)) ruleByCode.set(code, { id: code, defaultConfiguration: { level: severity } });
	}
	const allValid = configurations.every(configuration => configuration.valid);
	const version = configurations[0]?.version ?? '';
	const ruleIndexByCode = new Map([...ruleByCode.keys()].map((code, index) => [code, index]));
	const log = {
		$schema: SARIF_SCHEMA_URL,
		version: '2.1.0',
		runs: [
			{
				tool: { driver: { name: 'svc', semanticVersion: version.replace(/^v/, ''), rules: [...ruleByCode.values()] } },
				columnKind: 'utf16CodeUnits',
				invocations: [{ executionSuccessful: true, exitCode: allValid ? 0 : 1 }],
				results: withoutRepeats(
					configurations.flatMap(({ name, diagnostics }) =>
						diagnostics.map(diagnostic => sarifResult(diagnostic, ruleIndexByCode.get(diagnostic.code)!, name)),
					),
				),
			},
		],
	};
	return `${JSON.stringify(log, undefined, 2)}\n`;
}

function withoutRepeats(results: readonly object[]): object[] {
	return [...new Map(results.map(result => [JSON.stringify(result), result])).values()];
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
	const messageText = [message, label, hint].filter(part => part !== undefined).join(' ');
	const physicalLocation = span ? physicalLocationOf(span) : { artifactLocation: { uri: fileUri(name) } };
	return {
		ruleId: code,
		ruleIndex,
		level: severity,
		message: { text: messageText },
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
					relatedLocations: related.map((relatedPlace, id) => ({
						id,
						message: { text: relatedPlace.message },
						physicalLocation: physicalLocationOf(relatedPlace.span),
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

function physicalLocationOf(span: SourceSpan): object {
	return { artifactLocation: { uri: fileUri(span.source.name) }, region: sarifRegion(span) };
}

function sarifRegion({ source, start, end }: SourceSpan): object {
	const startPosition = source.position(start);
	const endPosition = source.position(end);
	return {
		startLine: startPosition.line,
		startColumn: startPosition.column,
		endLine: endPosition.line,
		endColumn: endPosition.column,
	};
}

/** Returns a file name as a URI reference (RFC 3986). */
function fileUri(name: string): string {
	const encodedPath = name.split(/[/\\]/).map(encodeURIComponent).join('/');
	return name.startsWith('/') ? `file://${encodedPath}` : encodedPath;
}
