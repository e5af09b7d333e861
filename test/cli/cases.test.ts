/**
 * Runs command lines and compares their output and exit status with the files in fixtures/cli/<case>/.
 *
 * `command` is the line to run, in a copy of the folder; `stdin` and `environment` (NAME=value lines) are optional. The
 * output must equal `expected.stdout` and `expected.stderr` (empty if the file is missing), the exit status
 * `expected.status` (0 if missing), and each created or changed file `expected.file.<name>`. `<folder>` stands for the
 * working directory, `<version>` for the version. With SVC_BIN, the same cases run against another build.
 */
import { cpSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import { matchesWords } from '../case-filter.ts';
import { type GoldenCase, goldenCases } from '../golden.ts';
import { type CommandResult, runCommand, SVC, temporaryFolder } from '../harness.ts';

const CASE_FILES = /^(?:expected\..*|command|stdin|environment)$/;

interface CaseResult extends CommandResult {
	/** Contents of files that were created or changed, by name. */
	readonly files: ReadonlyMap<string, string>;
}

const version = (await runCommand(['version'])).stdout.trim();
const parent = realpathSync(temporaryFolder());

/** Splits a command line at spaces outside single and double quotes. */
function words(line: string): string[] {
	return [...line.trim().matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
		word.replace(/'([^']*)'|"([^"]*)"/g, (_, single, double) => single ?? double),
	);
}

async function runCase(golden: GoldenCase): Promise<CaseResult> {
	const folder = path.join(parent, golden.name);
	cpSync(golden.folder, folder, { recursive: true, filter: from => !CASE_FILES.test(path.basename(from)) });
	const before = contents(folder);
	const environment = (golden.file('environment') ?? '').split('\n').filter(line => line.includes('='));
	const stdin = golden.file('stdin');
	const [program, ...args] = words(golden.oneOf('command').text);
	if (program !== 'svc') throw new Error(`${golden.folder}/command does not run svc`);
	const result = await runCommand(args, {
		cwd: folder,
		env: Object.fromEntries(environment.map(line => line.split(/=(.*)/s, 2) as [string, string])),
		...(stdin === undefined ? {} : { stdin }),
	});
	const plain = (text: string): string => text.replaceAll(folder, '<folder>').replaceAll(version, '<version>');
	const files = new Map([...contents(folder)].filter(([name, text]) => before.get(name) !== text));
	return { status: result.status, stdout: plain(result.stdout), stderr: plain(result.stderr), files };
}

function contents(folder: string): Map<string, string> {
	return new Map(
		readdirSync(folder, { withFileTypes: true })
			.filter(entry => entry.isFile())
			.map(entry => [entry.name, readFileSync(path.join(folder, entry.name), 'utf8')]),
	);
}

const SUITE_NAME = `command line cases (${path.basename(path.dirname(SVC))}/svc)`;

const cases = suite(SUITE_NAME);
const selectedCases = goldenCases('cli').filter(({ name }) => matchesWords(SUITE_NAME, name));
const caseRuns = new Map<GoldenCase, Promise<CaseResult>>();

/** Runs a case, unless it has been started before. */
function startCase(golden: GoldenCase): Promise<CaseResult> {
	const startedRun = caseRuns.get(golden);
	if (startedRun) return startedRun;
	const result = runCase(golden);
	result.catch(() => {});
	caseRuns.set(golden, result);
	return result;
}

selectedCases.forEach((golden, index) => {
	cases(golden.name, async () => {
		const whenRan = startCase(golden);
		// Two cases run at a time, because most of a case's time is process startup.
		const next = selectedCases[index + 1];
		if (next) void startCase(next);
		const ran = await whenRan;
		golden.expect('expected.stdout', ran.stdout === '' ? undefined : ran.stdout);
		golden.expect('expected.stderr', ran.stderr === '' ? undefined : ran.stderr);
		golden.expect('expected.status', ran.status === 0 ? undefined : `${ran.status}\n`);
		for (const [name, text] of ran.files) golden.expect(`expected.file.${name}`, text);
		golden.close();
	});
});

cases.run();
