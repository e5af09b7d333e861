/** `svc validate`. */
import type { Plan } from '../../compiler/codegen/plan.ts';
import type { TestCase } from '../../compiler/testing/test-case.ts';
import { type Command, CommandFailure, EXIT } from '../command.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, LANGUAGE_RULE, readConfiguration, requiredSource } from '../configuration.ts';
import { print, printError } from '../terminal.ts';

/** Compiles a configuration, prints every problem, and runs its tests. Opens no listener. */
export const validate: Command = {
	name: 'validate',
	summary: 'Check a configuration without serving it',
	details: [
		'Prints every problem, the first one first, and exits with status 1 when the configuration is refused. Nothing is started and no port is opened.',
		"The configuration's own tests are run, with stand-ins for the network; a test that fails makes the exit status 1 too. A file that imports another and adds `test` blocks tests that one.",
		LANGUAGE_RULE,
	],
	args: [{ name: 'PATH', summary: 'Configuration file, or the folder that holds it; - reads standard input' }],
	options: [CONFIG_OPTION, ADAPTER_OPTION],
	async run(invocation) {
		const input = await readConfiguration(requiredSource(invocation));
		const { compileConfiguration } = await import('../compilation.ts');
		const { plan, tests, warnings } = compileConfiguration(input);
		if (warnings !== '') printError(`${warnings}\n`);
		if (tests.length === 0) print(`${input.name} is valid.\n`);
		else print(`${input.name} is valid: ${await testReport(input.name, tests, plan)} passed.\n`);
		return EXIT.ok;
	},
};

/** Runs the tests: `2 tests`. Throws {@link CommandFailure} with every failure rendered. */
async function testReport(name: string, tests: readonly TestCase[], plan: Plan): Promise<string> {
	const { runTests } = await import('../../compiler/testing/run-tests.ts');
	const { rehearsalSurroundings } = await import('../../runtime/rehearsal-surroundings.ts');
	const { renderDiagnostics } = await import('../compilation.ts');
	const { failed, diagnostics } = await runTests(tests, plan, rehearsalSurroundings(process.cwd()));
	const all = `${tests.length} test${tests.length === 1 ? '' : 's'}`;
	if (failed === 0) return all;
	throw new CommandFailure(`${name}: ${failed} of ${all} failed.`, { before: `${renderDiagnostics(diagnostics)}\n` });
}
