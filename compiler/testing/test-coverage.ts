/** Test coverage: the directives that the tests of a configuration reach, and the results of the conditions that they evaluate. */
import type { Document, Matcher, Step } from '../document/document.ts';
import type { DryRunTracer } from '../dry-run/dry-run.ts';
import type { Handler, Predicate } from '../exchange/handler.ts';
import { walkDocument } from '../lint/inspection/walk-document.ts';
import type { SourceSpan } from '../source/source.ts';

/** Counts the steps that run and the results of conditions while tests are executed. */
export class CoverageTracer implements DryRunTracer {
	/** Number of runs of each step, by the step's JSON Pointer in the compiled configuration. */
	readonly runsByStep = new Map<string, number>();
	/** How often each condition held, and how often it did not, by the condition's JSON Pointer. */
	readonly resultsByCondition = new Map<string, { held: number; failed: number }>();

	onRequestStart(): void {}

	wrapHandler(pointer: string, _step: Step, handler: Handler): Handler {
		return x => {
			this.runsByStep.set(pointer, (this.runsByStep.get(pointer) ?? 0) + 1);
			return handler(x);
		};
	}

	wrapMatcher(pointer: string, _matcher: Matcher, predicate: Predicate): Predicate {
		return x => {
			const holds = predicate(x);
			const counts = this.resultsByCondition.get(pointer) ?? { held: 0, failed: 0 };
			this.resultsByCondition.set(pointer, counts);
			if (holds) counts.held++;
			else counts.failed++;
			return holds;
		};
	}
}

/** The coverage of one line of a configuration. If a line is used in several places, its counts are the sums over all of them. */
export interface CoveredLine {
	readonly file: string;
	readonly line: number;
	/** The line as written, without its indentation. */
	readonly text: string;
	/** Number of times that the directive ran; undefined if the line has no directive of its own. */
	readonly runs: number | undefined;
	/** How often the line's condition held, and how often it did not; undefined if the line has no condition. */
	readonly condition: { readonly held: number; readonly failed: number } | undefined;
}

export interface TestCoverage {
	/** The lines that have a directive or a condition, by file and in the order of each file. */
	readonly lines: readonly CoveredLine[];
	/** The complete texts of the files, by name. */
	readonly texts: ReadonlyMap<string, string>;
}

/** Returns the coverage of each line of the configuration. A configuration given as JSON has no lines. */
export function testCoverage(
	document: Document,
	locate: (pointer: string) => SourceSpan | undefined,
	{ runsByStep, resultsByCondition }: CoverageTracer,
): TestCoverage {
	const lineByPlace = new Map<string, { -readonly [K in keyof CoveredLine]: CoveredLine[K] }>();
	const texts = new Map<string, string>();
	const coveredLineAt = (pointer: string) => {
		const span = locate(pointer);
		if (!span) return undefined;
		const { name, text } = span.source;
		const { line } = span.source.position(span.start);
		const placeKey = `${name}\n${String(line).padStart(9, '0')}`;
		texts.set(name, text);
		const coveredLine = lineByPlace.get(placeKey) ?? {
			file: name,
			line,
			text: (text.split('\n')[line - 1] ?? '').trim(),
			runs: undefined,
			condition: undefined,
		};
		lineByPlace.set(placeKey, coveredLine);
		return coveredLine;
	};
	const walkedDocument = walkDocument(document);
	for (const { pointer } of walkedDocument.steps) {
		const line = coveredLineAt(pointer);
		if (line) line.runs = (line.runs ?? 0) + (runsByStep.get(pointer) ?? 0);
	}
	for (const { pointer } of walkedDocument.matchers) {
		const line = coveredLineAt(pointer);
		const { held, failed } = resultsByCondition.get(pointer) ?? { held: 0, failed: 0 };
		if (line)
			line.condition = { held: (line.condition?.held ?? 0) + held, failed: (line.condition?.failed ?? 0) + failed };
	}
	const sortedLines = [...lineByPlace].sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
	return { lines: sortedLines.map(([, line]) => line), texts };
}
