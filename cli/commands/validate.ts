/** `svc validate`. */

import type { Diagnostic } from '../../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import { quoted } from '../arguments.ts';
import { type Command, CommandFailure, EXIT, type Invocation } from '../command.ts';
import {
	ADAPTER_OPTION,
	CONFIG_OPTION,
	type ConfigurationSource,
	givenPath,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	readConfiguration,
	requiredSource,
} from '../configuration.ts';
import { reportFailure } from '../failure-report.ts';
import { print, printError } from '../terminal.ts';
import type { Validation, ValidationOptions } from '../validation.ts';
import { version } from '../version.ts';

/** Code of a configuration that cannot be read, where there are others. */
const UNREADABLE = 'configuration/unreadable';

const FORMATS = ['text', 'json', 'github', 'sarif'] as const;
type Format = (typeof FORMATS)[number];

/** Compiles a configuration, prints every problem, and runs its tests. Opens no listener. */
export const validate: Command = {
	name: 'validate',
	summary: 'Check a configuration without serving it',
	details: [
		'Prints every problem, the first one first, and exits with status 1 when the configuration is refused. Nothing is started and no port is opened.',
		'Several paths are checked one after the other, each by itself; the exit status is 1 unless all are valid. json then gives one object with all reports under `configurations`, sarif one run, github one list.',
		'What a start on this machine would refuse is refused here too: values of the environment, files and folders, sockets in the file system, issuers and their DNS providers. What depends on the network, on ports that others have, or on the user that the server runs as is left to the start.',
		"The configuration's own tests are run, with stand-ins for the network; a test that fails makes the exit status 1 too. A file that imports another and adds `test` blocks tests that one.",
		'With --lint it also looks for what is accepted and most likely not meant; svc list-modules names the rules as lint.<rule>. A comment `# lint: off <rule>` at the end of a line silences a rule there; on a line of its own, for the next line and its block; `# lint: off-file <rule>`, in the whole file. `area/*` names all rules of an area, no name means every rule, and a reason may follow ` -- `. Errors cannot be silenced.',
		LANGUAGE_RULE,
	],
	args: [{ ...PATH_ARGUMENT, repeatable: true }],
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
		const options: ValidationOptions = { lint: invocation.flag('lint'), strict: invocation.flag('strict') };
		const checks = checksOf(invocation, options);
		if (format === 'text') return printTexts(checks, options);
		const all: Validation[] = [];
		for (const check of checks) all.push((await check()).validation);
		print(await reportOf(format, all));
		return all.every(({ valid }) => valid) ? EXIT.ok : EXIT.failed;
	},
};

/** What was checked, and what came of it. */
interface Checked {
	readonly input: ConfigInput;
	readonly validation: Validation;
}

type Check = () => Promise<Checked>;

/** The checks that a command line asks for, in its order. Throws {@link CommandFailure} when it contradicts itself. */
function checksOf({ args, value }: Invocation, options: ValidationOptions): Check[] {
	const check = async (source: ConfigurationSource): Promise<Checked> => {
		const input = await readConfiguration(source);
		const { validateConfiguration } = await import('../validation.ts');
		return { input, validation: await validateConfiguration(input, options) };
	};
	if (args.length < 2) {
		const source = requiredSource({ args, value });
		return [() => check(source)];
	}
	givenPath({ args, value });
	if (value('adapter') !== undefined) {
		throw new CommandFailure('An explicit --adapter takes a single file, and there are several.');
	}
	if (args.filter(given => given === '-').length > 1) {
		throw new CommandFailure('Standard input is named more than once, and can be read once only.');
	}
	return args.map(given => async () => {
		try {
			return await check(requiredSource({ args: [given], value: () => undefined }));
		} catch (error) {
			// One that cannot be read keeps nobody from hearing of the others.
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
	throw new CommandFailure(`${quoted(text)} is not a format; give text, json, github or sarif.`);
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

/** The reports for people, each as soon as it is there. Throws {@link CommandFailure} with what makes the status 1. */
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
	if (refused === 0) return EXIT.ok;
	throw new CommandFailure(`${refused} of ${checks.length} configurations ${refused === 1 ? 'is' : 'are'} not valid.`);
}

async function printText({ input, validation }: Checked, { lint, strict }: ValidationOptions): Promise<number> {
	const { name, starts, valid, diagnostics, failures, tests } = validation;
	const { formatWarning, renderDiagnostics } = await import('../compilation.ts');
	const found = diagnostics.filter(one => !failures.includes(one));
	const [first] = found;
	if (first?.code === UNREADABLE) throw new CommandFailure(first.message);
	if (!starts) {
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
