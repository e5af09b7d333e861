/** Results of tests in JUnit's XML. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Source } from '../../../compiler/source/source.ts';
import { junitReport } from '../../../compiler/testing/junit-report.ts';
import type { TestResult } from '../../../compiler/testing/test-case.ts';

const source = new Source({ name: 'Configfile', text: '# <&>\ntest "a \\"b\\" <c>" {\n}\n' });
const span = { source, start: 11, end: 22 };

const results: readonly TestResult[] = [
	{ test: { name: 'a "b" <c>', span, steps: [] }, diagnostics: [], milliseconds: 1.4 },
	{
		test: { name: 'control \u0007 characters', span, steps: [] },
		diagnostics: [{ code: 'test/failed', severity: 'error', message: 'It is 1 < 2 & "3".', span }],
		milliseconds: 2000,
	},
];

const junit = suite('JUnit');

junit('a suite for each configuration, a case for each test, a failure for each expectation', () => {
	const lines = junitReport([
		{ name: 'sites/a.configfile', results },
		{ name: 'b', results: [] },
	]).split('\n');
	assert.equal(lines.slice(0, 6), [
		'<?xml version="1.0" encoding="UTF-8"?>',
		'<testsuites>',
		'  <testsuite name="sites/a.configfile" tests="2" failures="1" time="2.001">',
		'    <testcase name="a &#34;b&#34; &#60;c&#62;" classname="sites/a.configfile" file="Configfile" line="2" time="0.001"/>',
		'    <testcase name="control \ufffd characters" classname="sites/a.configfile" file="Configfile" line="2" time="2.000">',
		'      <failure message="It is 1 &#60; 2 &#38; &#34;3&#34;.">error[test/failed]: It is 1 &#60; 2 &#38; &#34;3&#34;.&#10;  --&#62; Configfile:2:6&#10;1 | # &#60;&#38;&#62;&#10;2 | test &#34;a \\&#34;b\\&#34; &#60;c&#62;&#34; {&#10;  |      ^^^^^^^^^^^&#10;3 | }</failure>',
	]);
	assert.equal(lines.slice(6), [
		'    </testcase>',
		'  </testsuite>',
		'  <testsuite name="b" tests="0" failures="0" time="0.000">',
		'  </testsuite>',
		'</testsuites>',
		'',
	]);
});

junit.run();
