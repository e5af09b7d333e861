/**
 * The compiler's face: text or JSON in, a checked Document out. Pure but for the Reader it is given.
 */

import { checkBuild } from './codegen/check-build.ts';
import type { Plan } from './codegen/plan.ts';
import { planDocument } from './codegen/plan-document.ts';
import { ConcealedValues } from './diagnostics/concealed-values.ts';
import type { Diagnostic } from './diagnostics/diagnostic.ts';
import type { ConfigInput, Dialect } from './dialects/dialect.ts';
import type { Document } from './document/document.ts';
import { checkNesting } from './document/nesting.ts';
import { objectIds } from './document/object-ids.ts';
import { parseJson } from './document/parse-json.ts';
import { refuseRedacted } from './document/secrets.ts';
import { upgradeDocument } from './document/upgrade.ts';
import { checkDocument } from './document/validate.ts';
import { DiagnosticCollector } from './lower/diagnostic-collector.ts';
import { knownPlaceholders } from './lower/known-placeholders.ts';
import { lowerTree } from './lower/lower-tree.ts';
import { Origins } from './lower/origins.ts';
import { registryOf } from './lower/registry.ts';
import { UNAVAILABLE_DIRECTIVES } from './lower/unavailable.ts';
import type { Reader } from './source/reader.ts';
import type { SourceSpan } from './source/source.ts';
import { parseConfig } from './syntax/parse-config.ts';
import { lowerTests } from './testing/lower-tests.ts';
import type { TestCase } from './testing/test-case.ts';

/** What compiling gave. `document` and `plan` are there when no diagnostic is an error. */
export interface Compiled {
	readonly document: Document | undefined;
	readonly plan: Plan | undefined;
	readonly diagnostics: readonly Diagnostic[];
	/** What `test` blocks check; they add nothing to the document. */
	readonly tests: readonly TestCase[];
	/** Absolute paths of the files read. */
	readonly files: readonly string[];
	/** Where in the text an object of the document came from, by JSON pointer; always undefined for JSON. */
	readonly locate: (pointer: string) => SourceSpan | undefined;
}

/**
 * Compiles a configuration: parse, expand, lower, validate, plan, and a trial build of every site. Never throws for
 * input; every mistake that can be found is in `diagnostics`, sorted by file and place.
 */
export function compile(input: ConfigInput, reader: Reader): Compiled {
	const collector = new DiagnosticCollector();
	const { format } = input;
	return format === 'json' ? compileJson(input, collector) : compileText(input, format, reader, collector);
}

function compileText(input: ConfigInput, dialect: Dialect, reader: Reader, collector: DiagnosticCollector): Compiled {
	const { report } = collector;
	const concealed = new ConcealedValues();
	const watched = concealed.watching(reader);
	const knownDirectives = new Set([...registryOf(dialect).directives.keys(), ...UNAVAILABLE_DIRECTIVES]);
	const tree = parseConfig(input, watched, report, { knownDirectives });
	const origins = new Origins();
	const document = lowerTree(tree, { dialect, report, reader: watched, placeholders: knownPlaceholders, origins });
	const reportInDocument = collector.ofDocument(document, origins);
	const plan = finish(document, reportInDocument);
	const tests = lowerTests(tree.tests, report);
	const { files } = tree;
	const compiled = conclude(collector, {
		document,
		plan,
		files,
		tests,
		locate: pointer => origins.locate(document, pointer),
	});
	return { ...compiled, diagnostics: compiled.diagnostics.map(diagnostic => concealed.conceal(diagnostic)) };
}

function compileJson(input: ConfigInput, collector: DiagnosticCollector): Compiled {
	const files = input.path === undefined ? [] : [input.path];
	const rest = { files, tests: [], locate: (): undefined => undefined };
	const parsed = parseJson(input.text, input.name, input.path, collector.report);
	if (parsed === undefined || !checkNesting(parsed, collector.report)) {
		return conclude(collector, { document: undefined, plan: undefined, ...rest });
	}
	const document = upgradeDocument(parsed) as Document;
	const report = collector.ofDocument(document, undefined);
	if (input.text.includes('@id')) objectIds(document, report);
	if (input.text.includes('redacted')) refuseRedacted(document, report);
	return conclude(collector, { document, plan: finish(document, report), ...rest });
}

/** The phases that are the same for every form of input. */
function finish(document: Document, report: (diagnostic: Diagnostic) => void): Plan | undefined {
	if (!checkDocument(document, report)) return undefined;
	const plan = planDocument(document, report);
	checkBuild(document, report);
	return plan;
}

/** Document and plan are given out only when there was no error. */
function conclude(collector: DiagnosticCollector, made: Omit<Compiled, 'diagnostics'>): Compiled {
	const usable = !collector.hasErrors;
	return {
		...made,
		document: usable ? made.document : undefined,
		plan: usable ? made.plan : undefined,
		diagnostics: collector.sorted(),
	};
}
