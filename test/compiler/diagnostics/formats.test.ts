/** Diagnostics in formats for other tools: SARIF as its standard requires, and escaped workflow commands. */
import { Ajv } from 'ajv';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Diagnostic } from '../../../compiler/diagnostics/diagnostic.ts';
import { codequalityReport } from '../../../compiler/diagnostics/formats/codequality.ts';
import type { Findings } from '../../../compiler/diagnostics/formats/findings.ts';
import { githubReport } from '../../../compiler/diagnostics/formats/github.ts';
import { jsonReport } from '../../../compiler/diagnostics/formats/json.ts';
import { sarifReport } from '../../../compiler/diagnostics/formats/sarif.ts';
import { unixReport } from '../../../compiler/diagnostics/formats/unix.ts';
import { lintRules } from '../../../compiler/lint/index.ts';
import { Source } from '../../../compiler/source/source.ts';

const source = new Source({
	name: 'sites/a b,c.conf',
	text: ':80 {\n\trespond "50%"\n}\n',
	path: '/x/sites/a b,c.conf',
});
const span = { source, start: 7, end: 14 };
const whole = { source, start: 0, end: source.text.length };

const DIAGNOSTICS: readonly Diagnostic[] = [
	{
		code: 'path/prefix-without-slash',
		severity: 'warning',
		message: '100% of `a`,\nall: of it.',
		span,
		label: 'here',
		hint: 'Do it.',
		related: [{ span: whole, message: 'because of this' }],
		fix: { safety: 'safe', edits: [{ span, text: 'respond' }] },
	},
	{ code: 'document/unknown-key', severity: 'error', message: 'No.', pointer: '/sites/0' },
	{ code: 'block/empty', severity: 'note', message: 'Over lines.', span: whole },
];

const findings: Findings = {
	name: 'sites/a b,c.conf',
	valid: false,
	version: 'v1.2.3',
	diagnostics: DIAGNOSTICS,
	tests: { passed: 1, failed: 0 },
};

/** Returns a JSON Schema for one of the SARIF 2.1.0 objects in use: its members, and which of them are required. */
const objectSchema = (properties: object, required: readonly string[] = []): object => ({
	type: 'object',
	properties,
	required,
	additionalProperties: false,
});
const list = (items: object, more: object = {}): object => ({ type: 'array', items, ...more });
const text = { type: 'string' };
const line = { type: 'integer', minimum: 1 };
const level = { enum: ['none', 'note', 'warning', 'error'] };
const message = objectSchema({ text, markdown: text }, ['text']);
const artifactLocation = objectSchema({
	uri: { type: 'string', format: 'uri-reference', pattern: '^[^ <>"{}|\\\\^`]*$' },
});
const region = objectSchema({ startLine: line, startColumn: line, endLine: line, endColumn: line });
const physicalLocation = objectSchema({ artifactLocation, region });
const location = objectSchema({
	id: { type: 'integer', minimum: -1 },
	message,
	physicalLocation,
	logicalLocations: list(objectSchema({ fullyQualifiedName: text, kind: text })),
});
const replacement = objectSchema({ deletedRegion: region, insertedContent: objectSchema({ text }) }, ['deletedRegion']);
const fix = objectSchema(
	{
		description: message,
		artifactChanges: list(
			objectSchema({ artifactLocation, replacements: list(replacement, { minItems: 1 }) }, [
				'artifactLocation',
				'replacements',
			]),
			{ minItems: 1, uniqueItems: true },
		),
		properties: objectSchema({ safety: { enum: ['safe', 'unsafe'] } }),
	},
	['artifactChanges'],
);
const rule = objectSchema(
	{
		id: text,
		shortDescription: message,
		fullDescription: message,
		help: message,
		defaultConfiguration: objectSchema({ level }),
	},
	['id'],
);
const SARIF = objectSchema(
	{
		$schema: { type: 'string', format: 'uri', pattern: 'sarif-schema-2\\.1\\.0\\.json$' },
		version: { const: '2.1.0' },
		runs: list(
			objectSchema(
				{
					tool: objectSchema(
						{
							driver: objectSchema({ name: text, semanticVersion: text, rules: list(rule, { uniqueItems: true }) }, [
								'name',
							]),
						},
						['driver'],
					),
					columnKind: { enum: ['utf16CodeUnits', 'unicodeCodePoints'] },
					invocations: list(
						objectSchema({ executionSuccessful: { type: 'boolean' }, exitCode: { type: 'integer' } }, [
							'executionSuccessful',
						]),
					),
					results: list(
						objectSchema(
							{
								ruleId: text,
								ruleIndex: { type: 'integer', minimum: -1 },
								level,
								message,
								locations: list(location),
								relatedLocations: list(location, { uniqueItems: true }),
								fixes: list(fix, { uniqueItems: true }),
							},
							['message'],
						),
					),
				},
				['tool'],
			),
		),
	},
	['version', 'runs'],
);

const formats = suite('diagnostic formats');

formats('SARIF is valid, and its results refer to the rules that it describes', () => {
	const log = JSON.parse(sarifReport([findings], lintRules));
	const ajv = new Ajv({ strict: false, validateFormats: false });
	const valid = ajv.compile(SARIF);
	assert.ok(valid(structuredClone(log) as unknown), JSON.stringify(valid.errors));
	const [run] = log.runs;
	for (const { ruleId, ruleIndex } of run.results) assert.is(run.tool.driver.rules[ruleIndex].id, ruleId);
	assert.equal(
		run.results.map((one: { level: string }) => one.level),
		['warning', 'error', 'note'],
	);
	assert.is(run.results[0].locations[0].physicalLocation.artifactLocation.uri, 'sites/a%20b%2Cc.conf');
	assert.equal(run.results[0].locations[0].physicalLocation.region, {
		startLine: 2,
		startColumn: 2,
		endLine: 2,
		endColumn: 9,
	});
	assert.equal(run.results[0].fixes[0].properties, { safety: 'safe' });
	assert.is(run.results[0].fixes[0].artifactChanges[0].replacements[0].insertedContent.text, 'respond');
	assert.is(run.results[1].locations[0].logicalLocations[0].fullyQualifiedName, '/sites/0');
	assert.is(run.tool.driver.semanticVersion, '1.2.3');
	assert.equal(JSON.parse(sarifReport([{ ...findings, diagnostics: [], valid: true }], [])).runs[0].results, []);
});

formats('workflow commands escape their delimiters', () => {
	assert.equal(githubReport([findings]).split('\n'), [
		'::warning file=sites/a b%2Cc.conf,line=2,endLine=2,col=2,endColumn=9,title=path/prefix-without-slash::100%25 of `a`,%0Aall: of it.%0Ahere%0ADo it.%0ASuggested: respond "50%25"',
		'::error file=sites/a b%2Cc.conf,title=document/unknown-key::/sites/0: No.',
		'::notice file=sites/a b%2Cc.conf,line=1,endLine=4,title=block/empty::Over lines.',
		'',
	]);
	assert.is(githubReport([{ ...findings, diagnostics: [] }]), '');
});

formats('JSON has the same members as the Admin API, and the edits', () => {
	const { valid, tests, diagnostics } = JSON.parse(jsonReport([findings]));
	assert.is(valid, false);
	assert.equal(tests, { passed: 1, failed: 0 });
	assert.equal(diagnostics[0].fixes, [
		{
			safety: 'safe',
			edits: [{ file: 'sites/a b,c.conf', line: 2, column: 2, end_line: 2, end_column: 9, text: 'respond' }],
		},
	]);
	assert.is(diagnostics[1].pointer, '/sites/0');
});

formats('reports of several configurations are merged, and findings in a shared import appear once', () => {
	const other: Findings = { ...findings, name: 'other.conf', valid: true, tests: { passed: 2, failed: 0 } };
	const log = JSON.parse(sarifReport([findings, other], lintRules));
	const ajv = new Ajv({ strict: false, validateFormats: false });
	assert.ok(ajv.compile(SARIF)(structuredClone(log) as unknown));
	assert.is(log.runs.length, 1);
	// Two findings are in a file that both configurations import, and count once. The error is reported for the text of each
	// configuration, and counts twice.
	assert.is(log.runs[0].results.length, 4);
	assert.equal(log.runs[0].invocations, [{ executionSuccessful: true, exitCode: 1 }]);
	assert.is(githubReport([findings, other]).match(/^::/gm)!.length, 4);
	const json = JSON.parse(jsonReport([findings, other]));
	assert.equal(Object.keys(json), ['valid', 'tests', 'configurations']);
	assert.is(json.valid, false);
	assert.equal(json.tests, { passed: 3, failed: 0 });
	assert.equal(json.configurations[0], JSON.parse(jsonReport([findings])));
	assert.is(JSON.parse(jsonReport([other, other])).valid, true);
});

formats('one line per finding, for editors and grep', () => {
	assert.equal(unixReport([findings]).split('\n'), [
		'sites/a b,c.conf:2:2: warning: 100% of `a`, all: of it. (here) Do it. [path/prefix-without-slash]',
		'sites/a b,c.conf:1:1: error: /sites/0: No. [document/unknown-key]',
		'sites/a b,c.conf:1:1: note: Over lines. [block/empty]',
		'',
	]);
	assert.is(unixReport([findings, findings]), unixReport([findings]));
});

formats('code quality reports have fingerprints that do not depend on the line', () => {
	const of = (diagnostics: readonly Diagnostic[]) => JSON.parse(codequalityReport([{ ...findings, diagnostics }]));
	const report = JSON.parse(codequalityReport([findings, findings]));
	assert.equal(
		report.map((one: { check_name: string; severity: string }) => [one.check_name, one.severity]),
		[
			['path/prefix-without-slash', 'minor'],
			['document/unknown-key', 'critical'],
			['block/empty', 'info'],
		],
	);
	assert.equal(report[0].location, { path: 'sites/a b,c.conf', lines: { begin: 2, end: 2 } });
	const moved = new Source({ name: source.name, text: `# A comment\n\n${source.text}`, path: source.path });
	const [again] = of([{ ...DIAGNOSTICS[0]!, span: { source: moved, start: 20, end: 27 } }]);
	assert.is(again.fingerprint, report[0].fingerprint);
	assert.is(again.location.lines.begin, 4);
	// Findings on different lines are different findings, even if the lines have the same text.
	const twice = new Source({ name: source.name, text: 'respond\nrespond\n' });
	const both = of([0, 8].map(start => ({ ...DIAGNOSTICS[0]!, span: { source: twice, start, end: start + 7 } })));
	assert.is(new Set(both.map((one: { fingerprint: string }) => one.fingerprint)).size, 2);
});

formats.run();
