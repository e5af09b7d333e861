/** Checks a configuration in every way available: the compiler, lint rules, preflight checks, and its own tests. */
import type { Plan } from '../../compiler/codegen/plan/plan.ts';
import { type CompileResult, compile } from '../../compiler/compiler.ts';
import type { Diagnostic } from '../../compiler/diagnostics/diagnostic.ts';
import type { Findings } from '../../compiler/diagnostics/formats/findings.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { DryRunEnvironment } from '../../compiler/dry-run/dry-run.ts';
import { SilencingComments } from '../../compiler/lint/silencing-comments.ts';
import { overlayReader } from '../../compiler/source/overlay-reader.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';
import { dryRunEnvironment } from '../../runtime/compile/dry-run-environment.ts';
import { locateFindings } from '../../runtime/preflight/finding.ts';
import { hostFacts } from '../../runtime/threads/host-facts.ts';
import { version } from '../command/version.ts';

export interface ValidationOptions {
	/** True to run also the lint rules that do not always run. */
	readonly lint: boolean;
	/** True to refuse the configuration for warnings too. */
	readonly strict: boolean;
	/** Texts that replace the contents of files that the configuration imports, by absolute path. */
	readonly textsByPath?: ReadonlyMap<string, string>;
}

/** The result of {@link validateConfiguration}. */
export interface ConfigurationValidation extends Findings {
	/** True if the configuration compiles and no known problem would prevent a start on this machine. */
	readonly canStart: boolean;
	/** Diagnostics of failed tests. They are also the last entries of {@link Findings.diagnostics}. */
	readonly failures: readonly Diagnostic[];
	/** Absolute paths of the files that were read as configuration. */
	readonly files: readonly string[];
}

/** Checks a configuration. Opens no sockets. */
export async function validateConfiguration(
	input: ConfigInput,
	options: ValidationOptions,
): Promise<ConfigurationValidation> {
	const reader = overlayReader(diskReader(process.cwd()), options.textsByPath ?? new Map());
	const compileResult = compile(input, reader, { facts: hostFacts(process.cwd(), process.env) });
	const { document, plan } = compileResult;
	const environment = dryRunEnvironment(process.cwd());
	let { diagnostics } = compileResult;
	let canStart = false;
	if (document && plan) {
		const { lint } = await import('../../compiler/lint/lint.ts');
		const findings = await startFindings(plan, compileResult);
		canStart = !findings.some(({ severity }) => severity === 'error');
		const compiledWithFindings = { ...compileResult, document, plan, diagnostics: [...diagnostics, ...findings] };
		diagnostics = await lint({
			input,
			compiled: compiledWithFindings,
			reader,
			deps: environment,
			ruleSelection: options.lint ? 'all' : 'usual',
		});
	} else if (input.format !== 'json') diagnostics = new SilencingComments(input.format).filter(diagnostics);
	const {
		failed: failedCount,
		count: testCount,
		failures,
	} = canStart ? await runConfigurationTests(compileResult, environment) : NO_TEST_RESULTS;
	const isReasonToRefuse = ({ severity }: Diagnostic): boolean =>
		severity === 'error' || (options.strict && severity === 'warning');
	return {
		name: input.name,
		version: version(),
		canStart,
		valid: canStart && failedCount === 0 && !diagnostics.some(isReasonToRefuse),
		diagnostics: [...diagnostics, ...failures],
		failures,
		files: compileResult.files,
		tests: { passed: testCount - failedCount, failed: failedCount },
	};
}

/** Returns the problems that would prevent a start on this machine or cause warnings at the start, each with its place. */
async function startFindings(plan: Plan, { locate }: CompileResult): Promise<readonly Diagnostic[]> {
	const { preflight } = await import('../../runtime/preflight/preflight.ts');
	const { adminFindings } = await import('../../admin/admin-findings.ts');
	const findings = await preflight(plan, { workingDirectory: process.cwd(), environment: process.env });
	return locateFindings([...findings, ...adminFindings(plan)], locate);
}

/** The test results of a configuration whose tests were not run. */
const NO_TEST_RESULTS = { failed: 0, count: 0, failures: [] };

async function runConfigurationTests(
	{ tests, plan }: CompileResult,
	environment: DryRunEnvironment,
): Promise<{ failed: number; count: number; failures: readonly Diagnostic[] }> {
	if (!plan || tests.length === 0) return NO_TEST_RESULTS;
	const { runTests } = await import('../../compiler/testing/run-tests.ts');
	const { failed, diagnostics } = await runTests(tests, plan, environment);
	return { failed, count: tests.length, failures: diagnostics };
}
