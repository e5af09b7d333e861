/** `svc validate`. */
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import { quoted } from '../arguments.ts';
import { type Command, CommandFailure, EXIT } from '../command.ts';
import { ADAPTER_OPTION, CONFIG_OPTION, LANGUAGE_RULE, readConfiguration, requiredSource } from '../configuration.ts';
import { print, printError } from '../terminal.ts';
import type { Validation } from '../validation.ts';

const FORMATS = ['text', 'json', 'github', 'sarif'] as const;
type Format = (typeof FORMATS)[number];

/** Compiles a configuration, prints every problem, and runs its tests. Opens no listener. */
export const validate: Command = {
	name: 'validate',
	summary: 'Check a configuration without serving it',
	details: [
		'Prints every problem, the first one first, and exits with status 1 when the configuration is refused. Nothing is started and no port is opened.',
		"The configuration's own tests are run, with stand-ins for the network; a test that fails makes the exit status 1 too. A file that imports another and adds `test` blocks tests that one.",
		'With --lint it also looks for what is accepted and most likely not meant; svc list-modules names the rules as lint.<rule>. A comment `# lint: off <rule>` at the end of a line silences a rule there; on a line of its own, for the next line and its block; `# lint: off-file <rule>`, in the whole file. `area/*` names all rules of an area, no name means every rule, and a reason may follow ` -- `. Errors cannot be silenced.',
		LANGUAGE_RULE,
	],
	args: [{ name: 'PATH', summary: 'Configuration file, or the folder that holds it; - reads standard input' }],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{ name: 'lint', summary: 'Also look for what is most likely not meant' },
		{ name: 'strict', summary: 'Warnings make the exit status 1, as errors do' },
		{
			name: 'format',
			value: 'FORMAT',
			offers: FORMATS,
			summary: 'Form of the report: text on standard error; json, github or sarif on standard output',
			default: 'text',
		},
	],
	async run(invocation) {
		const format = formatOf(invocation.value('format') ?? 'text');
		const input = await readConfiguration(requiredSource(invocation));
		const strict = invocation.flag('strict');
		const { validateConfiguration } = await import('../validation.ts');
		const validation = await validateConfiguration(input, { lint: invocation.flag('lint'), strict });
		if (format === 'text') return printText(input, validation, { lint: invocation.flag('lint'), strict });
		print(await reportOf(format, validation));
		return validation.valid ? EXIT.ok : EXIT.failed;
	},
};

function formatOf(text: string): Format {
	const format = FORMATS.find(one => one === text);
	if (format) return format;
	throw new CommandFailure(`${quoted(text)} is not a format; give text, json, github or sarif.`);
}

async function reportOf(format: Exclude<Format, 'text'>, validation: Validation): Promise<string> {
	switch (format) {
		case 'json':
			return (await import('../../compiler/diagnostics/formats/json.ts')).jsonReport(validation);
		case 'github':
			return (await import('../../compiler/diagnostics/formats/github.ts')).githubReport(validation);
		case 'sarif': {
			const { lintRules } = await import('../../compiler/lint/index.ts');
			const { sarifReport } = await import('../../compiler/diagnostics/formats/sarif.ts');
			return sarifReport(validation, lintRules);
		}
	}
}

/** The report for people. Throws {@link CommandFailure} with what makes the status 1. */
async function printText(
	input: ConfigInput,
	{ name, compiles, valid, diagnostics, failures, tests }: Validation,
	{ lint, strict }: { lint: boolean; strict: boolean },
): Promise<number> {
	const { formatWarning, renderDiagnostics } = await import('../compilation.ts');
	const found = diagnostics.filter(one => !failures.includes(one));
	if (!compiles) {
		const { refusal } = await import('../refusal.ts');
		throw new CommandFailure(refusal(name, found), { before: `${renderDiagnostics(found)}\n` });
	}
	// A rule tells of it where rules are asked for.
	const unformatted = lint ? '' : formatWarning(input);
	const warnings = [unformatted, renderDiagnostics(found)].filter(text => text !== '').join('\n');
	if (warnings !== '') printError(`${warnings}\n`);
	const count = tests.passed + tests.failed;
	const all = `${count} test${count === 1 ? '' : 's'}`;
	if (tests.failed > 0) {
		throw new CommandFailure(`${name}: ${tests.failed} of ${all} failed.`, {
			before: `${renderDiagnostics(failures)}\n`,
		});
	}
	const warned = found.filter(({ severity }) => severity === 'warning').length;
	if (!valid) {
		throw new CommandFailure(
			`${quoted(name)} has ${warned} warning${warned === 1 ? '' : 's'}, and --strict allows none.`,
		);
	}
	if (strict && unformatted !== '') {
		throw new CommandFailure(`${quoted(name)} is not formatted, and --strict allows no warning.`);
	}
	print(count === 0 ? `${name} is valid.\n` : `${name} is valid: ${all} passed.\n`);
	return EXIT.ok;
}
