/** The command `svc test`: runs the `test` blocks of configurations. */
import { writeFileSync } from 'node:fs';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { TestedConfiguration } from '../../compiler/testing/junit-report.ts';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS, type Invocation } from '../command/command.ts';
import { reportFailure } from '../command/failure-report.ts';
import { print, printError } from '../command/terminal.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	readConfiguration,
	requiredSource,
} from '../configuration/configuration.ts';

const FORMATS = ['text', 'json', 'junit'] as const;

export const test: Command = {
	name: 'test',
	summary: "Run a configuration's own tests, and show what they cover",
	details: [
		'Runs the `test` blocks of a configuration through the compiled handlers, without a network: no port is opened, and upstreams are fakes. The exit status is 1 if a test fails, or if no test has the text of --filter in its name.',
		'With --coverage, lists the directives that no test reaches, and the conditions that were never true, or never false, in any test; --lcov and --html write the same to files.',
		LANGUAGE_RULE,
	],
	args: [{ ...PATH_ARGUMENT, repeatable: true }],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{ name: 'filter', valueName: 'TEXT', summary: 'Run only tests whose names contain this text, ignoring case' },
		{ name: 'format', valueName: 'FORMAT', offers: FORMATS, summary: 'text, json or junit', default: 'text' },
		{ name: 'coverage', summary: 'List what no test reaches' },
		{
			name: 'lcov',
			valueName: 'FILE',
			offers: 'file',
			summary: 'Write the coverage to this file, in the format of lcov',
		},
		{ name: 'html', valueName: 'FILE', offers: 'file', summary: 'Write the coverage to this file, as a page' },
		{ name: 'watch', short: 'w', summary: 'Run again whenever a file of the configuration changes' },
	],
	async run(invocation) {
		const format = FORMATS.find(candidate => candidate === (invocation.value('format') ?? 'text'));
		if (!format)
			throw new CommandFailure(`${quoteWord(invocation.value('format')!)} is not a format; give text, json or junit.`);
		if (!invocation.flag('watch')) return runAllTests(invocation, format);
		return watchTests(invocation, format);
	},
};

/** Runs the tests of all configurations once, and prints the results. */
async function runAllTests(invocation: Invocation, format: (typeof FORMATS)[number]): Promise<number> {
	const filter = invocation.value('filter')?.toLowerCase();
	const [lcovPath, htmlPath] = [invocation.value('lcov'), invocation.value('html')];
	const needsCoverage = invocation.flag('coverage') || lcovPath !== undefined || htmlPath !== undefined;
	const inputs = await inputsOf(invocation);
	if (needsCoverage && inputs.length > 1)
		throw new CommandFailure('Coverage is computed for one configuration; give a single file.');
	const { compileConfiguration, renderDiagnostics } = await import('../configuration/compilation.ts');
	const { runTests } = await import('../../compiler/testing/run-tests.ts');
	const { CoverageTracer, testCoverage } = await import('../../compiler/testing/test-coverage.ts');
	const { dryRunEnvironment } = await import('../../runtime/compile/dry-run-environment.ts');
	const testedConfigurations: TestedConfiguration[] = [];
	for (const input of inputs) {
		const { plan, tests, locate } = compileConfiguration(input);
		const selectedTests = tests.filter(({ name }) => filter === undefined || name.toLowerCase().includes(filter));
		const tracer = needsCoverage ? new CoverageTracer() : undefined;
		const report = await runTests(selectedTests, plan, dryRunEnvironment(process.cwd()), tracer);
		testedConfigurations.push({ name: input.name, results: report.results });
		if (format === 'text') {
			for (const { test: testCase, diagnostics } of report.results)
				print(`${diagnostics.length === 0 ? 'ok  ' : 'FAIL'} ${testCase.name}\n`);
			if (report.failed > 0) printError(`\n${renderDiagnostics(report.diagnostics)}\n`);
			const countText = `${report.passed} passed, ${report.failed} failed`;
			print(
				selectedTests.length === 0
					? `${input.name} has no ${filter === undefined ? 'tests' : 'such test'}.\n`
					: `${input.name}: ${countText}.\n`,
			);
		}
		if (!tracer) continue;
		const coverage = testCoverage(plan.document, locate, tracer);
		const { coverageAsHtml, coverageAsLcov, renderCoverage } = await import(
			'../../compiler/testing/render-coverage.ts'
		);
		if (invocation.flag('coverage')) (format === 'text' ? print : printError)(renderCoverage(coverage));
		if (lcovPath !== undefined) writeOutput(lcovPath, coverageAsLcov(coverage));
		if (htmlPath !== undefined) writeOutput(htmlPath, coverageAsHtml(coverage));
	}
	if (format === 'junit') {
		const { junitReport } = await import('../../compiler/testing/junit-report.ts');
		print(junitReport(testedConfigurations));
	} else if (format === 'json') print(`${JSON.stringify(await resultsAsJson(testedConfigurations), undefined, 2)}\n`);
	const results = testedConfigurations.flatMap(configuration => configuration.results);
	const isOk =
		results.every(({ diagnostics }) => diagnostics.length === 0) && (filter === undefined || results.length > 0);
	return isOk ? EXIT_STATUS.ok : EXIT_STATUS.failed;
}

async function inputsOf({ args, value }: Invocation): Promise<readonly ConfigInput[]> {
	if (args.length < 2) return [await readConfiguration(requiredSource({ args, value }))];
	const inputs: ConfigInput[] = [];
	for (const file of args) inputs.push(await readConfiguration(requiredSource({ args: [file], value })));
	return inputs;
}

async function resultsAsJson(testedConfigurations: readonly TestedConfiguration[]): Promise<object> {
	const { toReport } = await import('../../compiler/diagnostics/diagnostic-report.ts');
	return testedConfigurations.map(({ name, results }) => ({
		name,
		tests: results.map(({ test: { name: testName, span }, diagnostics, milliseconds }) => ({
			name: testName,
			file: span.source.name,
			line: span.source.position(span.start).line,
			passed: diagnostics.length === 0,
			milliseconds: Math.round(milliseconds),
			diagnostics: diagnostics.map(toReport),
		})),
	}));
}

/** Runs the tests now and after each change, until the process is ended. */
async function watchTests(invocation: Invocation, format: (typeof FORMATS)[number]): Promise<number> {
	const source = requiredSource(invocation);
	if (source.kind === 'stdin' || invocation.args.length > 1) throw new CommandFailure('`--watch` needs a single file.');
	const { ConfigurationWatch } = await import('../serving/watch.ts');
	for (;;) {
		const input = await readConfiguration(source);
		const nextChange = Promise.withResolvers<void>();
		const watcher = new ConfigurationWatch(input, nextChange.resolve);
		try {
			await runAllTests(invocation, format);
		} catch (error) {
			if (!(error instanceof CommandFailure)) throw error;
			await reportFailure(error);
		}
		print('Waiting for a change; stop with Ctrl+C.\n');
		await nextChange.promise;
		watcher.close();
	}
}

function writeOutput(file: string, text: string): void {
	try {
		writeFileSync(file, text);
	} catch (error) {
		throw new CommandFailure(`${quoteWord(file)} cannot be written: ${(error as NodeJS.ErrnoException).code}.`);
	}
}
