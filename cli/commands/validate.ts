/** `svc validate`. */

import type { Diagnostic } from '../../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS, type Invocation } from '../command/command.ts';
import { reportFailure } from '../command/failure-report.ts';
import { print, printError } from '../command/terminal.ts';
import { version } from '../command/version.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	type ConfigurationSource,
	givenPath,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	readConfiguration,
	requiredSource,
} from '../configuration/configuration.ts';
import type { Validation, ValidationOptions } from '../configuration/validation.ts';

/** Code of the diagnostic for a configuration that cannot be read while others are being checked. */
const UNREADABLE = 'configuration/unreadable';

const FORMATS = ['text', 'json', 'github', 'sarif'] as const;
type Format = (typeof FORMATS)[number];

/** Compiles a configuration, prints every problem, and runs its tests. Opens no listeners. */
export const validate: Command = {
	name: 'validate',
	summary: 'Check a configuration without serving it',
	details: [
		'Prints every problem, in order, and exits with status 1 if the configuration is refused. Nothing is started and no port is opened.',
		'Several paths are checked one by one, independently; the exit status is 1 unless all are valid. The format json then gives one object with all reports under `configurations`, sarif one run, github one list.',
		'Also checks what a start on this machine would check: environment variables, files and folders, Unix sockets, issuers and their DNS providers. Not checked is what depends on the network, on ports in use, or on the user that the server runs as.',
		"Runs the configuration's own tests, with a fake network; if a test fails, the exit status is 1. A file that imports another and adds `test` blocks tests the imported one.",
		'With --lint, also warns about what is valid but probably not intended; `svc list-modules` lists the rules as lint.<rule>. A comment `# lint: off <rule>` at the end of a line silences a rule for that line; on a line of its own, for the next line and its block; `# lint: off-file <rule>`, for the whole file. `area/*` stands for all rules of an area, no name for every rule, and a reason may follow ` -- `. Errors cannot be silenced.',
		LANGUAGE_RULE,
	],
	args: [{ ...PATH_ARGUMENT, repeatable: true }],
	options: [
		CONFIG_OPTION,
		ADAPTER_OPTION,
		{ name: 'lint', summary: 'Also warn about what is probably not intended' },
		{ name: 'strict', summary: 'Treat warnings as errors: exit with status 1' },
		{
			name: 'format',
			value: 'FORMAT',
			offers: FORMATS,
			summary: 'Report format: text, on standard error, or json, github or sarif, on standard output',
			default: 'text',
		},
	],
	async run(invocation) {
		const format = formatOf(invocation.value('format') ?? 'text');
		const options: ValidationOptions = { lint: invocation.flag('lint'), strict: invocation.flag('strict') };
		const checks = checksOf(invocation, options);
		if (format === 'text') return printTexts(checks, options);
		const all: Validation[] = [];
		for (const check of checks) all.push((await check()).validation);
		print(await reportOf(format, all));
		return all.every(({ valid }) => valid) ? EXIT_STATUS.ok : EXIT_STATUS.failed;
	},
};

/** A configuration and its validation. */
interface Checked {
	readonly input: ConfigInput;
	readonly validation: Validation;
}

type Check = () => Promise<Checked>;

/** Returns the checks for a command line, in its order. @throws {@link CommandFailure} if it contradicts itself */
function checksOf({ args, value }: Invocation, options: ValidationOptions): Check[] {
	const check = async (source: ConfigurationSource): Promise<Checked> => {
		const input = await readConfiguration(source);
		const { validateConfiguration } = await import('../configuration/validation.ts');
		return { input, validation: await validateConfiguration(input, options) };
	};
	if (args.length < 2) {
		const source = requiredSource({ args, value });
		return [() => check(source)];
	}
	givenPath({ args, value });
	if (value('adapter') !== undefined) {
		throw new CommandFailure('--adapter can only be used with a single file.');
	}
	if (args.filter(given => given === '-').length > 1) {
		throw new CommandFailure('Standard input is named more than once, but can be read only once.');
	}
	return args.map(given => async () => {
		try {
			return await check(requiredSource({ args: [given], value: () => undefined }));
		} catch (error) {
			// A file that cannot be read must not prevent the reports about the others.
			if (error instanceof CommandFailure) return unreadableAs(given, error.message);
			throw error;
		}
	});
}

function unreadableAs(name: string, message: string): Checked {
	const diagnostics: readonly Diagnostic[] = [{ code: UNREADABLE, severity: 'error', message }];
	return {
		input: { format: 'configfile', text: '', name },
		validation: {
			...{ name, version: version(), starts: false, valid: false },
			...{ diagnostics, failures: [], tests: { passed: 0, failed: 0 } },
		},
	};
}

function formatOf(text: string): Format {
	const format = FORMATS.find(one => one === text);
	if (format) return format;
	throw new CommandFailure(`${quoteWord(text)} is not a format; give text, json, github or sarif.`);
}

async function reportOf(format: Exclude<Format, 'text'>, all: readonly Validation[]): Promise<string> {
	switch (format) {
		case 'json':
			return (await import('../../compiler/diagnostics/formats/json.ts')).jsonReport(all);
		case 'github':
			return (await import('../../compiler/diagnostics/formats/github.ts')).githubReport(all);
		case 'sarif': {
			const { lintRules } = await import('../../compiler/lint/index.ts');
			const { sarifReport } = await import('../../compiler/diagnostics/formats/sarif.ts');
			return sarifReport(all, lintRules);
		}
	}
}

/** Prints reports as text, each as soon as it is ready. @throws {@link CommandFailure} if the exit status is to be 1 */
async function printTexts(checks: readonly Check[], options: ValidationOptions): Promise<number> {
	if (checks.length === 1) return printText(await checks[0]!(), options);
	let refused = 0;
	for (const check of checks) {
		try {
			await printText(await check(), options);
		} catch (error) {
			if (!(error instanceof CommandFailure)) throw error;
			refused++;
			await reportFailure(error);
		}
	}
	if (refused === 0) return EXIT_STATUS.ok;
	throw new CommandFailure(`${refused} of ${checks.length} configurations ${refused === 1 ? 'is' : 'are'} not valid.`);
}

async function printText({ input, validation }: Checked, { lint, strict }: ValidationOptions): Promise<number> {
	const { name, starts, valid, diagnostics, failures, tests } = validation;
	const { formatWarning, renderDiagnostics } = await import('../configuration/compilation.ts');
	const found = diagnostics.filter(one => !failures.includes(one));
	const [first] = found;
	if (first?.code === UNREADABLE) throw new CommandFailure(first.message);
	if (!starts) {
		const { refusalSentence } = await import('../command/refusal.ts');
		throw new CommandFailure(refusalSentence(name, found), { before: `${renderDiagnostics(found)}\n` });
	}
	// With --lint, a lint rule reports this.
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
			`${quoteWord(name)} has ${warned} warning${warned === 1 ? '' : 's'}, and --strict allows none.`,
		);
	}
	if (strict && unformatted !== '') {
		throw new CommandFailure(`${quoteWord(name)} is not formatted, and --strict allows no warning.`);
	}
	print(count === 0 ? `${name} is valid.\n` : `${name} is valid: ${all} passed.\n`);
	return EXIT_STATUS.ok;
}
