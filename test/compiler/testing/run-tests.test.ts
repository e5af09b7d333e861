/** Tests inside a configuration: how they are compiled and run. fixtures/cli shows what each expectation reports. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UNKNOWN_HOST_FACTS } from '../../../compiler/codegen/placeholders/index.ts';
import { compile } from '../../../compiler/compiler.ts';
import { runTests } from '../../../compiler/testing/run-tests.ts';
import type { TestReport } from '../../../compiler/testing/test-case.ts';
import { diskReader } from '../../../runtime/compile/disk-reader.ts';
import { dryRunEnvironment } from '../../../runtime/compile/dry-run-environment.ts';
import { ROOT } from '../../harness.ts';

const SITE = ':8080 {\n\treverse_proxy a:1 b:2 {\n\t\tlb_policy round_robin\n\t}\n}\n';
const TEST = 'test "it answers" {\n\tGET http://x:8080/\n\texpect status 200\n}\n';

function compileText(text: string) {
	return compile({ format: 'configfile', text, name: 'Configfile' }, diskReader('/', {}));
}

async function run(text: string): Promise<TestReport> {
	const { plan, tests, diagnostics } = compileText(text);
	if (!plan) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
	return runTests(tests, plan, { facts: UNKNOWN_HOST_FACTS, lease: () => undefined });
}

const tests = suite('tests of a configuration');

tests('add nothing to the document', () => {
	assert.equal(compileText(SITE + TEST).document, compileText(SITE).document);
	assert.is(compileText(SITE + TEST).tests.length, 1);
});

tests('with mistakes refuse the configuration', () => {
	assert.is(compileText(`${SITE}test "x" {\n\tGET nowhere\n}\n`).document, undefined);
});

tests('each begin with pools as after a start', async () => {
	const twice = ['one', 'two'].map(
		name =>
			`test ${name} {\n\tGET http://x:8080/\n\texpect upstream b:2\n\tGET http://x:8080/\n\texpect upstream a:1\n}\n`,
	);
	const { passed, failed, diagnostics } = await run(SITE + twice.join(''));
	assert.equal({ passed, failed, diagnostics }, { passed: 2, failed: 0, diagnostics: [] });
});

tests('go on after a step that fails, and count once', async () => {
	const { passed, failed, diagnostics } = await run(
		`${SITE}${TEST}test "wrong" {\n\tGET http://x:8080/\n\texpect status 404\n\tGET http://x:8080/\n\texpect status 500\n}\n`,
	);
	assert.equal({ passed, failed }, { passed: 1, failed: 1 });
	assert.equal(
		diagnostics.map(({ span }) => span!.source.position(span!.start).line),
		[12, 14],
	);
});

tests('leave values with braces as they are', async () => {
	const report = await run(
		':8080 {\n\trespond `\\{path\\} {path}`\n}\ntest "x" {\n\tGET http://x:8080/%7Bhost%7D\n\texpect body "{path} /{host}"\n}\n',
	);
	assert.equal(
		report.diagnostics.map(({ message }) => message),
		[],
	);
});

tests('of the quickstart pass', async () => {
	const file = path.join(ROOT, 'fixtures/quickstart/Configfile');
	const input = { format: 'configfile', text: readFileSync(file, 'utf8'), name: 'Configfile', path: file } as const;
	const { plan, tests: cases } = compile(input, diskReader('/', {}));
	const { passed, failed } = await runTests(cases, plan!, dryRunEnvironment('/'));
	assert.equal({ passed, failed }, { passed: 2, failed: 0 });
});

tests.run();
