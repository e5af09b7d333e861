/** The command `svc validate`: compiles a configuration, prints every problem, and runs its tests. Opens no listeners. */

import type { Diagnostic, FixSafety } from '../../compiler/diagnostics/diagnostic.ts';
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
	configurationsBelow,
	defaultFile,
	fileSource,
	givenPath,
	isFolder,
	LANGUAGE_RULE,
	PATH_ARGUMENT,
	readConfiguration,
	requiredSource,
	STDIN_FILENAME_OPTION,
} from '../configuration/configuration.ts';
import type { FixedConfiguration } from '../configuration/fixing.ts';
import type { ConfigurationValidation, ValidationOptions } from '../configuration/validation.ts';

/** Code of the diagnostic for one of several configurations that cannot be read. */
const UNREADABLE_CODE = 'configuration/unreadable';

const FORMATS = ['text', 'json', 'unix', 'github', 'sarif', 'codequality'] as const;
type Format = (typeof FORMATS)[number];

export const validate: Command = {
	name: 'validate',
	summary: 'Check a configuration without serving it',
	details: [
		'Prints every problem, in order, and exits with status 1 if the configuration is refused. Nothing is started and no port is opened.',
		'Several paths are checked one by one, independently; the exit status is 1 unless all are valid. With --format json, the output is then one object with all reports under `configurations`; with sarif, one run; with the other formats, one list. A folder stands for the Configfile or Compatfile in it; a folder without one, for all configurations in it and its subfolders that no other of them imports.',
		'Also checks what a start on this machine would check: environment variables, files and folders, Unix sockets, issuers and their DNS providers. What depends on the network, on ports in use, or on the user that the server runs as is not checked.',
		"Runs the configuration's own tests, with a fake network; if a test fails, the exit status is 1. A file that imports another and adds `test` blocks tests the imported one.",
		'With --lint, also warns about what is valid but probably not intended; `svc list-modules` lists the rules as lint.<rule>. A comment `# lint: off <rule>` at the end of a line silences a rule for that line; on a line of its own, for the next line and its block; `# lint: off-file <rule>`, for the whole file. `area/*` means all rules of an area; without a name, the comment silences all rules. A reason may follow after ` -- `. Errors cannot be silenced.',
		'With --fix, applies the fixes that findings offer, also to imported files, and then reports what is left. A safe fix keeps the meaning, or is the only way to read what was refused; --fix=unsafe also applies those that a person should look at, such as the nearest known name for a misspelled one. No fix is kept that would cause an error or make a test of the configuration fail, and warnings of a configuration that is refused are left alone. With standard input, the fixed text is printed, and everything else goes to standard error.',
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
			valueName: 'FORMAT',
			offers: FORMATS,
			summary:
				'Report format: text, on standard error, or json, unix (file:line:column: severity: message), github, sarif or codequality (GitLab), on standard output',
			default: 'text',
		},
		{
			name: 'fix',
			valueName: 'SAFETY',
			valueOptional: true,
			summary: 'Apply the fixes that findings offer: the safe ones, or with --fix=unsafe all of them',
		},
		STDIN_FILENAME_OPTION,
	],
	async run(invocation) {
		const format = formatOf(invocation.value('format') ?? 'text');
		const options: ValidationOptions = { lint: invocation.flag('lint'), strict: invocation.flag('strict') };
		const fixSafety = fixSafetyOf(invocation);
		const checks = checksOf(invocation, options, fixSafety);
		if (format === 'text') return printAllAsText(checks, options);
		const validations: ConfigurationValidation[] = [];
		for (const { validation } of withoutImported(await runChecks(checks))) validations.push(validation);
		print(await renderReport(format, validations));
		return validations.every(({ valid }) => valid) ? EXIT_STATUS.ok : EXIT_STATUS.failed;
	},
};

interface CheckedConfiguration {
	readonly input: ConfigInput;
	readonly validation: ConfigurationValidation;
	/** What `--fix` did to the configuration. */
	readonly fixResult?: FixedConfiguration;
	/** True if the configuration was found in a folder, not named on the command line. */
	readonly isFromFolder?: boolean;
}

type Check = () => Promise<CheckedConfiguration>;

async function runChecks(checks: readonly Check[]): Promise<CheckedConfiguration[]> {
	const results: CheckedConfiguration[] = [];
	for (const check of checks) results.push(await check());
	return results;
}

/**
 * Leaves out configurations that were found in a folder and are imported by another, because they are checked as parts of the
 * importing configuration.
 */
function withoutImported(results: readonly CheckedConfiguration[]): CheckedConfiguration[] {
	return results.filter(({ input, isFromFolder }) => {
		return (
			!isFromFolder ||
			!results.some(importer => importer.input.path !== input.path && importer.validation.files.includes(input.path!))
		);
	});
}

/** Returns which fixes to apply; undefined for none. @throws {@link CommandFailure} */
function fixSafetyOf({ flag, value }: Invocation): FixSafety | undefined {
	if (!flag('fix')) return undefined;
	const safety = value('fix');
	if (safety === '' || safety === 'safe') return 'safe';
	if (safety === 'unsafe') return 'unsafe';
	throw new CommandFailure(`${quoteWord(`--fix=${safety}`)} is unknown; write --fix, or --fix=unsafe.`);
}

/**
 * Returns the checks of the configurations that the command line names, in the same order. @throws {@link CommandFailure} if the
 * options contradict each other
 */
function checksOf({ args, value }: Invocation, options: ValidationOptions, fixSafety: FixSafety | undefined): Check[] {
	const checkSource = async (source: ConfigurationSource): Promise<CheckedConfiguration> => {
		const input = await readConfiguration(source);
		if (fixSafety) return fixAndWrite(source, input, options, fixSafety);
		const { validateConfiguration } = await import('../configuration/validation.ts');
		return { input, validation: await validateConfiguration(input, options) };
	};
	const checksInFolder = (folder: string): Check[] =>
		configurationsBelow(folder).map(name => async () => ({
			...(await checkSource(fileSource(name))),
			isFromFolder: true,
		}));
	if (args.length < 2) {
		if (args[0] !== undefined && isFolderOfConfigurations(args[0]) && value('adapter') === undefined)
			return checksInFolder(args[0]);
		const source = requiredSource({ args, value });
		return [() => checkSource(source)];
	}
	givenPath({ args, value });
	if (value('adapter') !== undefined) {
		throw new CommandFailure('--adapter can only be used with a single file.');
	}
	if (args.filter(file => file === '-').length > 1) {
		throw new CommandFailure('Standard input is named more than once, but can be read only once.');
	}
	const createFileCheck = (file: string): Check => {
		return async () => {
			try {
				return await checkSource(
					requiredSource({ args: [file], value: name => (file === '-' ? value(name) : undefined) }),
				);
			} catch (error) {
				// A file that cannot be read must not prevent the reports about other files.
				if (error instanceof CommandFailure) return unreadableResult(file, error.message);
				throw error;
			}
		};
	};
	return args.flatMap(file => (isFolderOfConfigurations(file) ? checksInFolder(file) : [createFileCheck(file)]));
}

/**
 * Reports whether `file` is a folder without a default configuration file, but with other configurations in it or in its
 * subfolders.
 */
function isFolderOfConfigurations(file: string): boolean {
	if (file === '-' || !isFolder(file)) return false;
	return defaultFile(file) === undefined && configurationsBelow(file).length > 0;
}

/**
 * Fixes a configuration and writes the changed files. If the configuration was read from standard input, its fixed text is
 * printed.
 */
async function fixAndWrite(
	source: ConfigurationSource,
	input: ConfigInput,
	options: ValidationOptions,
	safety: FixSafety,
): Promise<CheckedConfiguration> {
	const { fixConfiguration, writeFixes } = await import('../configuration/fixing.ts');
	const fixResult = await fixConfiguration(input, options, safety);
	if (source.kind === 'stdin') print(fixResult.input.text);
	writeFixes(fixResult.changedFiles.filter(({ path }) => source.kind !== 'stdin' || path !== input.path));
	return { input: fixResult.input, validation: fixResult.validation, fixResult };
}

function unreadableResult(name: string, message: string): CheckedConfiguration {
	const diagnostics: readonly Diagnostic[] = [{ code: UNREADABLE_CODE, severity: 'error', message }];
	return {
		input: { format: 'configfile', text: '', name },
		validation: {
			...{ name, version: version(), canStart: false, valid: false },
			...{ diagnostics, failures: [], files: [], tests: { passed: 0, failed: 0 } },
		},
	};
}

function formatOf(text: string): Format {
	const format = FORMATS.find(candidate => candidate === text);
	if (format) return format;
	throw new CommandFailure(
		`${quoteWord(text)} is not a format; give ${FORMATS.slice(0, -1).join(', ')} or ${FORMATS.at(-1)}.`,
	);
}

async function renderReport(
	format: Exclude<Format, 'text'>,
	validations: readonly ConfigurationValidation[],
): Promise<string> {
	switch (format) {
		case 'json':
			return (await import('../../compiler/diagnostics/formats/json.ts')).jsonReport(validations);
		case 'unix':
			return (await import('../../compiler/diagnostics/formats/unix.ts')).unixReport(validations);
		case 'codequality':
			return (await import('../../compiler/diagnostics/formats/codequality.ts')).codequalityReport(validations);
		case 'github':
			return (await import('../../compiler/diagnostics/formats/github.ts')).githubReport(validations);
		case 'sarif': {
			const { lintRules } = await import('../../compiler/lint/index.ts');
			const { sarifReport } = await import('../../compiler/diagnostics/formats/sarif.ts');
			return sarifReport(validations, lintRules);
		}
	}
}

/** Prints the reports of all checks as text. @throws {@link CommandFailure} if the exit status is to be 1 */
async function printAllAsText(checks: readonly Check[], options: ValidationOptions): Promise<number> {
	const results = withoutImported(await runChecks(checks));
	if (results.length === 1) return printAsText(results[0]!, options);
	let refusedCount = 0;
	for (const checked of results) {
		try {
			await printAsText(checked, options);
		} catch (error) {
			if (!(error instanceof CommandFailure)) throw error;
			refusedCount++;
			await reportFailure(error);
		}
	}
	if (refusedCount === 0) return EXIT_STATUS.ok;
	throw new CommandFailure(
		`${refusedCount} of ${results.length} configurations ${refusedCount === 1 ? 'is' : 'are'} not valid.`,
	);
}

async function printAsText(
	{ input, validation, fixResult }: CheckedConfiguration,
	{ lint, strict }: ValidationOptions,
): Promise<number> {
	const { name, canStart, valid, diagnostics, failures, tests } = validation;
	const { formatWarning, renderDiagnostics } = await import('../configuration/compilation.ts');
	const findings = diagnostics.filter(diagnostic => !failures.includes(diagnostic));
	const [firstFinding] = findings;
	if (firstFinding?.code === UNREADABLE_CODE) throw new CommandFailure(firstFinding.message);
	// Standard output may receive the fixed text, so the report goes to standard error.
	const printReport = fixResult && input.path === undefined ? printError : print;
	if (fixResult) printReport(fixedSentence(fixResult));
	const advice = fixResult ? '' : await fixAdvice(findings);
	if (!canStart) {
		const { refusalSentence } = await import('../command/refusal.ts');
		throw new CommandFailure(refusalSentence(name, findings), {
			preamble: `${renderDiagnostics(findings)}${advice}\n`,
		});
	}
	// With --lint, a lint rule reports unformatted text.
	const unformattedWarning = lint ? '' : formatWarning(input);
	const warnings = [unformattedWarning, renderDiagnostics(findings)].filter(text => text !== '').join('\n');
	if (warnings !== '') printError(`${warnings}${advice}\n`);
	const testCount = tests.passed + tests.failed;
	const testsText = `${testCount} test${testCount === 1 ? '' : 's'}`;
	if (tests.failed > 0) {
		throw new CommandFailure(`${name}: ${tests.failed} of ${testsText} failed.`, {
			preamble: `${renderDiagnostics(failures)}\n`,
		});
	}
	const warningCount = findings.filter(({ severity }) => severity === 'warning').length;
	if (!valid) {
		throw new CommandFailure(
			`${quoteWord(name)} has ${warningCount} warning${warningCount === 1 ? '' : 's'}, and --strict allows none.`,
		);
	}
	if (strict && unformattedWarning !== '') {
		throw new CommandFailure(`${quoteWord(name)} is not formatted, and --strict allows no warning.`);
	}
	printReport(testCount === 0 ? `${name} is valid.\n` : `${name} is valid: ${testsText} passed.\n`);
	return EXIT_STATUS.ok;
}

/** Returns what `--fix` did, as a line; '' if it changed nothing. */
function fixedSentence({ fixCount, changedFiles }: FixedConfiguration): string {
	if (changedFiles.length === 0) return '';
	const files = changedFiles.map(({ name }) => quoteWord(name)).join(', ');
	return `Fixed ${fixCount} problem${fixCount === 1 ? '' : 's'} in ${files}.\n`;
}

/** Returns a line that says how to fix some of the findings; '' if no finding has a fix. */
async function fixAdvice(findings: readonly Diagnostic[]): Promise<string> {
	const { countFixes } = await import('../configuration/fixing.ts');
	const { safe, unsafe } = countFixes(findings);
	if (safe + unsafe === 0) return '';
	const problemsText = (count: number): string =>
		findings.length === 1 ? 'this problem' : `${count} of these problems`;
	if (unsafe === 0) return `\nnote: \`svc validate --fix\` fixes ${problemsText(safe)}.\n`;
	if (safe === 0) return `\nnote: \`svc validate --fix=unsafe\` fixes ${problemsText(unsafe)}; look at the result.\n`;
	return `\nnote: \`svc validate --fix\` fixes ${problemsText(safe)}, and --fix=unsafe ${unsafe} more; look at the result.\n`;
}
