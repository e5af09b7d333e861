/**
 * Runs every `*.test.ts` under test/ except peers, long tests and benches. Each runs in its own process, except tests of pure code,
 * which share a few processes. Prints `N passed, N failed` on a line of its own at the end. A file that fails, hangs or runs no
 * test counts as failed. The tests run the single binary, which is built first; SVC_BIN names another program, such as the
 * checkout's cli/svc.
 *
 * Usage: node test/run.ts [--long] [word …]. A word that is part of a test file's path selects that file; several such words
 * select all files that match any of them. The remaining words select the cases whose names contain all of them. `--long` runs
 * only the files under test/long/; time-sensitive files run last and one at a time.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { THREAD_CODE_VARIABLE } from '../runtime/threads/thread-source.ts';
import { FILE_END_MARKER } from './shared-process.ts';

/**
 * Milliseconds after which a test file is killed, because uvu waits forever for an open server. The time is several times as long
 * as the longest test takes on an idle machine.
 */
const FILE_TIMEOUT_MS = 900_000;

/**
 * Milliseconds without output after which the process of a test file is killed if all tests have ended and one has failed, because
 * it may have left a server, a timer or a connection open.
 */
const FAILED_END_LIMIT_MS = 15_000;

/**
 * Environment variables that make test processes cache compiled code. The cache is in the folder of the launcher (cli/svc),
 * because test processes load the same modules; it halves their startup time. The second variable hides the first from servers
 * that a test starts, as in cli/svc.
 */
const COMPILE_CACHE_VARIABLES = {
	NODE_COMPILE_CACHE: path.join(import.meta.dirname, '../node_modules/.cache/svc'),
	SVC_LAUNCHER_CACHE: '1',
};

/** The file with the number of seconds that each test file took when it last ran. The files that took longest start first. */
const DURATIONS_FILE = path.join(import.meta.dirname, '../node_modules/.cache/svc-test-seconds.json');

/**
 * Number of files that run at the same time. A test file waits for sockets, timers and child processes for nearly half of its
 * time. Two more files than there are processors therefore keep all processors busy.
 */
const PARALLEL_FILES = availableParallelism() + 2;

export interface FileResult {
	readonly file: string;
	readonly passed: number;
	readonly failed: number;
	readonly seconds: number;
	readonly output: string;
}

/** Returns the test files below a folder, in lexical order. `skip` names folders to leave out. */
export function testFiles(folder: string, skip: readonly string[]): string[] {
	return readdirSync(folder, { recursive: true, withFileTypes: true })
		.filter(entry => entry.isFile() && entry.name.endsWith('.test.ts'))
		.map(entry => path.join(entry.parentPath, entry.name))
		.filter(file => !skip.some(name => file.startsWith(path.join(folder, name) + path.sep)))
		.sort();
}

const running = new Set<ChildProcess>();

// Ctrl-C signals only the process group of this process. Test files run in groups of their own, so they are killed here.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
	process.on(signal, () => {
		for (const child of running) killGroup(child);
		process.exit(1);
	});
}

function killGroup({ pid }: ChildProcess): void {
	try {
		if (pid !== undefined) process.kill(-pid, 'SIGKILL');
	} catch {
		// The process has just ended by itself.
	}
}

/** Starts a Node process for tests in a process group of its own, so that the processes it has started end with it. */
function startTestProcess(
	args: readonly string[],
	extraVariables: NodeJS.ProcessEnv,
	hasChannel: boolean,
): ChildProcess {
	const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], {
		stdio: ['ignore', 'pipe', 'pipe', ...(hasChannel ? (['ipc'] as const) : [])],
		env: { ...COMPILE_CACHE_VARIABLES, ...process.env, ...extraVariables },
		detached: true,
	});
	running.add(child);
	child.once('close', () => running.delete(child));
	child.stdout!.setEncoding('utf8');
	child.stderr!.setEncoding('utf8');
	return child;
}

/** How the process of a test file ended. */
interface FileExit {
	readonly status: number | null;
	readonly signal: NodeJS.Signals | null;
	/** Why the process was killed; undefined if it was not. */
	readonly killReason: string | undefined;
	readonly output: string;
}

/** Maximum characters of the lines that uvu prints after the last test, and of a line after them. */
const CLOSING_LINES_LENGTH = 1000;

/** Kills the process of a test file if the file takes too long, or has failed and does not end after its last test. */
class FileTimeout {
	/** Why the process was killed; undefined if it was not. */
	killReason: string | undefined;
	readonly #child: ChildProcess;
	readonly #failedEndLimit: number;
	readonly #timer: NodeJS.Timeout;
	/** True if all tests have ended. */
	#hasEnded = false;
	#endTimer: NodeJS.Timeout | undefined;

	constructor(child: ChildProcess, timeout: number, failedEndLimit: number) {
		this.#child = child;
		this.#failedEndLimit = failedEndLimit;
		this.#timer = setTimeout(() => this.#kill(`within ${timeout / 1000} s`), timeout);
	}

	/** Must be called after each output, with all output so far. */
	onOutput(output: string): void {
		// uvu prints this line after the last test.
		this.#hasEnded ||= /\n {2}Duration: {2}.*\n/.test(output.slice(-CLOSING_LINES_LENGTH));
		if (!this.#hasEnded) return;
		clearTimeout(this.#endTimer);
		const { total, passed } = testCounts(stripColour(output));
		// The end of a file that has passed may take long, if it deletes many temporary files.
		if (passed === total) return;
		const limit = this.#failedEndLimit;
		this.#endTimer = setTimeout(() => this.#kill(`within ${limit / 1000} s after its last test`), limit);
	}

	stop(): void {
		clearTimeout(this.#timer);
		clearTimeout(this.#endTimer);
	}

	#kill(limit: string): void {
		this.killReason = `did not end ${limit}: a server, a timer or a connection was left open`;
		killGroup(this.#child);
	}
}

/** Returns the sums of the numbers that uvu prints after the last test of each suite. */
function testCounts(plainOutput: string): { readonly total: number; readonly passed: number } {
	return { total: sumOf(plainOutput, /Total:\s+(\d+)/g), passed: sumOf(plainOutput, /Passed:\s+(\d+)/g) };
}

/** Reads the numbers of passed and failed tests from a file's output, and explains in `output` why it counts as failed. */
function createFileResult(file: string, startedAt: number, end: FileExit, mayBeEmpty: boolean): FileResult {
	let { output } = end;
	const { total, passed } = testCounts(stripColour(output));
	let failed = total - passed;
	if (end.killReason !== undefined) {
		failed ||= 1;
		output += `\n${file} ${end.killReason}.\n`;
	} else if (end.status !== 0 && failed === 0) {
		failed = 1;
		output += `\n${file} ended with ${end.signal ?? `status ${end.status}`}.\n`;
	} else if (total === 0 && !mayBeEmpty) {
		failed = 1;
		output += `\n${file} ran no test: is a suite's .run() missing?\n`;
	}
	return { file, passed, failed, seconds: (performance.now() - startedAt) / 1000, output };
}

/**
 * Runs one test file in its own process.
 * @param words Only the cases whose names contain all of these words run. If there are no words, all cases run.
 */
export function runFile(
	file: string,
	timeout: number = FILE_TIMEOUT_MS,
	words: readonly string[] = [],
	failedEndLimit: number = FAILED_END_LIMIT_MS,
): Promise<FileResult> {
	const startedAt = performance.now();
	const hasWords = words.length > 0;
	const filter = hasWords ? ['--import', path.join(import.meta.dirname, 'case-filter.ts')] : [];
	const child = startTestProcess([...filter, file], hasWords ? { SVC_TEST_WORDS: JSON.stringify(words) } : {}, false);
	return new Promise(resolve => {
		let output = '';
		const limit = new FileTimeout(child, timeout, failedEndLimit);
		for (const stream of [child.stdout!, child.stderr!]) {
			stream.on('data', text => {
				output += text;
				limit.onOutput(output);
			});
		}
		child.on('close', (status, signal) => {
			limit.stop();
			const { killReason } = limit;
			resolve(createFileResult(file, startedAt, { status, signal, killReason, output }, hasWords));
		});
	});
}

/**
 * Files of test/compiler that need their own process all the same: one adds modules to the registries before any other code reads
 * them, and one measures memory.
 */
const OWN_PROCESS_FILES: readonly string[] = [
	'compiler/modules/added/added-modules.test.ts',
	'compiler/lint/lint-memory.test.ts',
];

/**
 * Reports whether a test file may run in one process with other files. The compiler is pure, and its tests leave nothing behind
 * that another test could notice: those of some directives open sockets, and close them. Loading the compiler takes longer than
 * most of them run.
 */
export function sharesProcess(file: string, root: string): boolean {
	const name = path.relative(root, file).split(path.sep).join('/');
	return name.startsWith('compiler/') && !OWN_PROCESS_FILES.includes(name);
}

/** A process that runs test files one after the other (shared-process.ts). It starts with the first file. */
export class SharedProcess {
	#child: ChildProcess | undefined;

	/** Runs one file. If the file ends the process or does not end, the file counts as failed, and the next has a new process. */
	run(
		file: string,
		timeout: number = FILE_TIMEOUT_MS,
		failedEndLimit: number = FAILED_END_LIMIT_MS,
	): Promise<FileResult> {
		const startedAt = performance.now();
		this.#child ??= startTestProcess([path.join(import.meta.dirname, 'shared-process.ts')], {}, true);
		const child = this.#child;
		return new Promise(resolve => {
			let output = '';
			const limit = new FileTimeout(child, timeout, failedEndLimit);
			const finish = (status: number | null, signal: NodeJS.Signals | null): void => {
				limit.stop();
				const { killReason } = limit;
				for (const stream of [child.stdout!, child.stderr!]) stream.off('data', onOutput);
				child.off('close', onClose);
				resolve(createFileResult(file, startedAt, { status, signal, killReason, output }, false));
			};
			const onOutput = (text: string): void => {
				output += text;
				limit.onOutput(output);
				const markerStart = output.indexOf(FILE_END_MARKER);
				// The marker and its line may arrive in parts.
				if (markerStart === -1 || !output.endsWith('\n')) return;
				const status = Number.parseInt(output.slice(markerStart + FILE_END_MARKER.length), 10);
				output = output.slice(0, markerStart);
				finish(status, null);
			};
			const onClose = (status: number | null, signal: NodeJS.Signals | null): void => {
				this.#child = undefined;
				// A status of 0 means here that the file has ended the process before its tests were finished.
				finish(status === 0 ? 1 : status, signal);
			};
			for (const stream of [child.stdout!, child.stderr!]) stream.on('data', onOutput);
			child.on('close', onClose);
			child.send(file);
		});
	}

	/** Closes the channel to the process, which then ends. */
	close(): void {
		this.#child?.disconnect();
	}
}

/**
 * Builds the binary for the tests, unless SVC_BIN names one. The binary is what users run, and its start takes a third of the CPU
 * time of a checkout's start. Runtimes inside a test's own process start their threads from the same build. The build is removed
 * when this process ends. Throws the output of the build if the build fails.
 */
export function useBuiltBinary(): void {
	if (process.env.SVC_BIN !== undefined) return;
	const folder = mkdtempSync(path.join(tmpdir(), 'svc-build-'));
	process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
	const output = path.join(folder, 'svc');
	const build = path.join(import.meta.dirname, '../cli/packaging/build.ts');
	const threadCode = path.join(folder, 'threads');
	const result = spawnSync(process.execPath, [build, '--output', output, '--thread-code', threadCode], {
		encoding: 'utf8',
	});
	if (result.status !== 0) throw new Error(`the build failed:\n${result.stdout}${result.stderr}`);
	process.env.SVC_BIN = output;
	process.env[THREAD_CODE_VARIABLE] = threadCode;
}

/**
 * Runs files, a few at a time, and prints one line for each. Returns the sums of passed and failed tests. With SVC_TEST_RETRY=1,
 * as in CI, a file that fails runs again by itself after all others. The second result counts, and the line says that it is a
 * retry. A shared machine that was slow for a moment then does not fail the run, and tests that depend on its speed remain
 * visible.
 */
async function runFiles(
	files: readonly string[],
	root: string,
	parallel: number,
	words: readonly string[] = [],
): Promise<{ passed: number; failed: number }> {
	const waiting = [...files];
	const retried: string[] = [];
	const durations = readDurations();
	let passed = 0;
	let failed = 0;
	const report = (result: FileResult, note: string): void => {
		const counts = `${result.passed} passed${result.failed ? `, ${result.failed} failed` : ''}`;
		const name = path.relative(root, result.file);
		console.log(`${result.failed ? 'FAIL' : 'ok  '} ${name}  ${counts} (${result.seconds.toFixed(1)} s)${note}`);
		if (result.failed) console.log(result.output.replace(/^/gm, '     '));
	};
	const work = async (): Promise<void> => {
		const shared = new SharedProcess();
		for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
			const isShared = words.length === 0 && sharesProcess(file, root);
			const result = await (isShared ? shared.run(file) : runFile(file, FILE_TIMEOUT_MS, words));
			if (result.passed + result.failed === 0) continue;
			const retry = result.failed > 0 && process.env.SVC_TEST_RETRY === '1';
			report(result, retry ? ', to be run again' : '');
			// If only some cases ran, their duration does not show how long the whole file takes.
			if (words.length === 0) durations[path.relative(root, file)] = Math.round(result.seconds * 10) / 10;
			if (retry) {
				retried.push(file);
				continue;
			}
			passed += result.passed;
			failed += result.failed;
		}
		shared.close();
	};
	await Promise.all(Array.from({ length: parallel }, work));
	mkdirSync(path.dirname(DURATIONS_FILE), { recursive: true });
	writeFileSync(DURATIONS_FILE, JSON.stringify(durations));
	for (const file of retried) {
		const result = await runFile(file, FILE_TIMEOUT_MS, words);
		report(result, result.failed ? ', for the second time' : ', at the second attempt');
		passed += result.passed;
		failed += result.failed;
	}
	return { passed, failed };
}

/** Reads the durations of earlier runs: seconds by file, relative to `root`. A clean checkout has none. */
function readDurations(): { [file: string]: number } {
	try {
		return JSON.parse(readFileSync(DURATIONS_FILE, 'utf8'));
	} catch {
		return {};
	}
}

/**
 * Approximate seconds of the files that take longest, for a checkout in which they have not run yet, as in CI. Started in another
 * order, one of them would run alone at the end.
 */
export const LONGEST_FILES: { readonly [file: string]: number } = {
	'long/more-rounds.test.ts': 500,
	'long/many-files.test.ts': 300,
	'long/hostile-handshakes.test.ts': 270,
	'long/handover.test.ts': 260,
	'long/language-server.test.ts': 150,
	'long/stored-certificates.test.ts': 140,
	'long/handover-deaths.test.ts': 130,
	'long/handover-failures.test.ts': 130,
	'long/http3-under-load.test.ts': 120,
	'long/growth.test.ts': 100,
	'long/many-certificates.test.ts': 100,
	'peers/redis-publish.test.ts': 90,
	'peers/node-releases.test.ts': 60,
};

/**
 * Peer tests that drive a browser, compare times, or may exceed their time limits on a busy machine. They might fail if other
 * files kept the processors busy.
 */
export const TIMED_PEER_FILES: readonly string[] = [
	'peers/browser-https.test.ts',
	'peers/documentation-site.test.ts',
	'peers/error-page.test.ts',
	'peers/hostile-page.test.ts',
	'peers/http2.test.ts',
	'peers/http3-proof.test.ts',
	'peers/http3.test.ts',
	'peers/listing-page.test.ts',
	'peers/nginx-limit-rate.test.ts',
	'peers/pebble.test.ts',
	'peers/release.test.ts',
];

/**
 * Matches the paths of tests in which the machines of a cluster, Sentinels or Redis servers decide by a time-out whether another
 * one is alive. `redis-publish` mostly waits for a minute to pass.
 */
const TIMED_CLUSTER_FILE = /^peers\/redis-(?!publish)/;

/** Reports whether a test file, given by its path relative to test/, runs while no other file runs. */
function isTimed(name: string): boolean {
	return name.startsWith('long/timed/') || TIMED_CLUSTER_FILE.test(name) || TIMED_PEER_FILES.includes(name);
}

/** Runs files, `parallel` at a time, and then the time-sensitive ones one at a time. Prints the results. */
export async function runAllFiles(
	files: readonly string[],
	root: string,
	parallel: number,
	words: readonly string[],
): Promise<void> {
	const timed = files.filter(file => isTimed(path.relative(root, file)));
	const others = files.filter(file => !timed.includes(file));
	const beside = await runFiles(longestFirst(others, root), root, parallel, words);
	const alone = await runFiles(timed, root, 1, words);
	reportRun(beside.passed + alone.passed, beside.failed + alone.failed);
}

/** The duration that is assumed for any other file that has not run yet. */
const ASSUMED_SECONDS = 30;

/**
 * Sorts files so that those with the longest duration start first, and no long file is left running alone at the end.
 * @param durations Seconds that files took when they last ran, by their paths relative to `root`.
 */
export function longestFirst(
	files: readonly string[],
	root: string,
	durations: { readonly [file: string]: number } = readDurations(),
): string[] {
	const seconds = (file: string): number => {
		const name = path.relative(root, file);
		return durations[name] ?? LONGEST_FILES[name] ?? ASSUMED_SECONDS;
	};
	return [...files].sort((a, b) => seconds(b) - seconds(a));
}

/**
 * Separates the words of a command line into those that select files and those that select cases. Returns the selected files, and
 * the words for cases.
 */
export function selectCases(
	all: readonly string[],
	root: string,
	wanted: readonly string[],
): { readonly files: readonly string[]; readonly words: readonly string[] } {
	const inPath = (file: string, word: string): boolean => path.relative(root, file).includes(word);
	const parts = wanted.filter(word => all.some(file => inPath(file, word)));
	const words = wanted.filter(word => !parts.includes(word));
	const files = all.filter(file => parts.length === 0 || parts.some(part => inPath(file, part)));
	if (words.length === 0) return { files, words };
	// Not all words of a case's name need to occur in the file: names may be composed at run time, and golden cases are named after
	// their folders.
	const mayMatch = (file: string): boolean => {
		const text = readFileSync(file, 'utf8');
		const lower = text.toLowerCase();
		return text.includes('golden.ts') || words.some(word => lower.includes(word.toLowerCase()));
	};
	const likely = files.filter(mayMatch);
	return { files: likely.length > 0 ? likely : files, words };
}

/** Prints the closing line that CI reads, and sets the exit status. */
function reportRun(passed: number, failed: number): void {
	if (passed + failed === 0) {
		console.log('No test was found.');
		failed = 1;
	}
	console.log(`${passed} passed, ${failed} failed`);
	process.exitCode = failed ? 1 : 0;
}

function stripColour(text: string): string {
	// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is looked for
	return text.replace(/\u001b\[[0-9;]*m/g, '');
}

function sumOf(text: string, pattern: RegExp): number {
	let sum = 0;
	for (const match of text.matchAll(pattern)) sum += Number(match[1]);
	return sum;
}

if (import.meta.main) {
	const root = import.meta.dirname;
	const long = process.argv.includes('--long');
	const wanted = process.argv.slice(2).filter(word => word !== '--long');
	const all = long ? testFiles(path.join(root, 'long'), []) : testFiles(root, ['peers', 'long', 'bench']);
	const { files, words } = selectCases(all, root, wanted);
	useBuiltBinary();
	await runAllFiles(files, root, PARALLEL_FILES, words);
}
