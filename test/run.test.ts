/** The test runner: the order in which files start, and processes that several files share. */
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ROOT, temporaryFolder } from './harness.ts';
import { LONGEST_FILES, longestFirst, runFile, SharedProcess, TIMED_PEER_FILES } from './run.ts';

const runner = suite('test runner');

runner('the files that took longest start first; others start by the duration that is known or assumed', () => {
	const files = ['a', 'b', 'c', 'd', 'long/handover'].map(name => path.join('/tests', `${name}.test.ts`));
	const sorted = longestFirst(files, '/tests', { 'a.test.ts': 1, 'b.test.ts': 100, 'd.test.ts': 2 });
	assert.equal(
		sorted.map(file => path.basename(file, '.test.ts')),
		['handover', 'b', 'c', 'd', 'a'],
	);
});

runner('the files that the runner names exist', () => {
	const named = [...Object.keys(LONGEST_FILES), ...TIMED_PEER_FILES];
	const missing = named.filter(file => !existsSync(path.join(ROOT, 'test', file)));
	assert.equal(missing, []);
});

/** Writes a test file with the given cases in its suite. Returns its path. */
function writeTestFile(name: string, cases: string): string {
	const file = path.join(folder, `${name}.test.js`);
	const uvu = pathToFileURL(path.join(ROOT, 'node_modules/uvu/dist/index.mjs'));
	writeFileSync(file, `import { suite } from '${uvu}';\nconst cases = suite('${name}');\n${cases}\ncases.run();\n`);
	return file;
}

/** Runs a file with the given cases in a shared process. Returns how many of its tests passed and failed, and its output. */
async function runShared(
	shared: SharedProcess,
	name: string,
	cases: string,
	timeout?: number,
	failedEndLimit?: number,
): Promise<{ counts: string; output: string }> {
	const file = writeTestFile(name, cases);
	const { passed, failed, output } = await shared.run(file, timeout, failedEndLimit);
	return { counts: `${passed} passed, ${failed} failed`, output };
}

const folder = temporaryFolder();

runner('files in a shared process are counted one by one, and what they print stays with them', async () => {
	const shared = new SharedProcess();
	const first = await runShared(shared, 'first', "cases('a', () => console.log(process.pid)); cases('b', () => {});");
	assert.is(first.counts, '2 passed, 0 failed');
	const failing = await runShared(
		shared,
		'failing',
		"cases('c', () => {}); cases('d', () => { console.error('before it'); throw new Error('a reason'); });",
	);
	assert.is(failing.counts, '1 passed, 1 failed');
	assert.match(failing.output, /before it.*a reason/s);
	const last = await runShared(shared, 'last', "cases('e', () => console.log(process.pid));");
	assert.is(last.counts, '1 passed, 0 failed');
	const pidOf = (output: string): string | undefined => /\b\d{2,}\n/.exec(output)?.[0];
	assert.ok(pidOf(first.output));
	assert.is(pidOf(last.output), pidOf(first.output));
	assert.not.match(last.output, 'a reason');
	shared.close();
});

for (const [how, cases, message, timeout] of [
	['ends the process', "cases('a', () => process.exit(0));", 'ended with status 1'],
	['waits for what never happens', "cases('a', () => new Promise(() => {}));", 'are not finished'],
	['rejects a promise that nobody awaits', "cases('a', () => { Promise.reject(new Error('lost')); });", 'lost'],
	['cannot be loaded', "throw new Error('not loadable');", 'not loadable'],
	['runs no test', '', 'ran no test'],
	['leaves a timer running', "cases('a', () => { setInterval(() => {}, 1000); });", 'was left open', 2000],
] as const) {
	runner(`a file that ${how} fails, and the next file passes`, async () => {
		const shared = new SharedProcess();
		const { counts, output } = await runShared(shared, how.replaceAll(' ', '-'), cases, timeout);
		assert.match(counts, /[^0] failed/);
		assert.match(output, message);
		const next = await runShared(shared, `after-${how.replaceAll(' ', '-')}`, "cases('b', () => {});");
		assert.is(next.counts, '1 passed, 0 failed');
		shared.close();
	});
}

runner('a file that has failed and leaves a timer running is ended soon after its last test', async () => {
	const cases = "cases('a', () => { setInterval(() => {}, 1000); throw new Error('a reason'); });";
	const message = /did not end within 0.5 s after its last test: a server, a timer or a connection was left open/;
	const own = await runFile(writeTestFile('own-open', cases), undefined, [], 500);
	assert.is(own.failed, 1);
	assert.match(own.output, message);
	const shared = new SharedProcess();
	const { counts, output } = await runShared(shared, 'shared-open', cases, undefined, 500);
	assert.is(counts, '0 passed, 1 failed');
	assert.match(output, message);
	shared.close();
});

for (const [how, awaiting, counts] of [
	['later', 'await pauseFor(50); await rejected.catch(() => {});', '1 passed, 0 failed'],
	['never', 'await pauseFor(50);', '1 passed, 1 failed'],
] as const) {
	runner(`a promise that is rejected early and ${how} awaited gives: ${counts}`, async () => {
		const harness = pathToFileURL(path.join(ROOT, 'test/harness.ts'));
		const cases = `import { pauseFor } from '${harness}';
cases('a', async () => { const rejected = Promise.reject(new Error('early')); ${awaiting} });`;
		const file = writeTestFile(`own-${how}`, cases);
		const own = await runFile(file);
		assert.is(`${own.passed} passed, ${own.failed} failed`, counts);
		const shared = new SharedProcess();
		assert.is((await runShared(shared, `shared-${how}`, cases)).counts, counts);
		shared.close();
		if (how === 'never') assert.match(own.output, /never awaited.*early/s);
	});
}

runner.run();
