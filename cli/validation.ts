/** Checks a configuration with everything that there is: the compiler, the lint rules, its own tests. */
import { type Compiled, compile } from '../compiler/compiler.ts';
import type { Diagnostic } from '../compiler/diagnostics/diagnostic.ts';
import type { Findings } from '../compiler/diagnostics/formats/findings.ts';
import type { ConfigInput } from '../compiler/dialects/dialect.ts';
import { Silences } from '../compiler/lint/silence.ts';
import type { RehearsalSurroundings } from '../compiler/rehearsal/rehearsal.ts';
import { diskReader } from '../runtime/disk-reader.ts';
import { rehearsalSurroundings } from '../runtime/rehearsal-surroundings.ts';
import { version } from './version.ts';

/** What is asked of a check. */
export interface ValidationOptions {
	/** All lint rules; else only those that a Configfile promises. */
	readonly lint: boolean;
	/** Warnings refuse it, as errors do. */
	readonly strict: boolean;
}

/** What was found. */
export interface Validation extends Findings {
	/** It compiles. */
	readonly compiles: boolean;
	/** What failing tests tell; the last of {@link Findings.diagnostics}. */
	readonly failures: readonly Diagnostic[];
}

/** Checks a configuration. Opens no socket. */
export async function validateConfiguration(input: ConfigInput, options: ValidationOptions): Promise<Validation> {
	const reader = diskReader(process.cwd());
	const compiled = compile(input, reader);
	const { document, plan } = compiled;
	const surroundings = rehearsalSurroundings(process.cwd());
	let { diagnostics } = compiled;
	if (document && plan && (options.lint || input.format === 'configfile')) {
		const { lint } = await import('../compiler/lint/lint.ts');
		const subject = { input, compiled: { ...compiled, document, plan }, reader, surroundings };
		diagnostics = await lint({ ...subject, onlyOfConfigfile: !options.lint });
	} else if (input.format !== 'json') diagnostics = new Silences(input.format).filter(diagnostics);
	const { failed, count, failures } = await testResults(compiled, surroundings);
	const bad = ({ severity }: Diagnostic): boolean => severity === 'error' || (options.strict && severity === 'warning');
	const compiles = document !== undefined && plan !== undefined;
	return {
		name: input.name,
		version: version(),
		compiles,
		valid: compiles && failed === 0 && !diagnostics.some(bad),
		diagnostics: [...diagnostics, ...failures],
		failures,
		tests: { passed: count - failed, failed },
	};
}

async function testResults(
	{ tests, plan }: Compiled,
	surroundings: RehearsalSurroundings,
): Promise<{ failed: number; count: number; failures: readonly Diagnostic[] }> {
	if (!plan || tests.length === 0) return { failed: 0, count: 0, failures: [] };
	const { runTests } = await import('../compiler/testing/run-tests.ts');
	const { failed, diagnostics } = await runTests(tests, plan, surroundings);
	return { failed, count: tests.length, failures: diagnostics };
}
