/** Log lines: their shape, and that no value can forge one. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { encoderOf, levelRank, members, text } from '../../../runtime/logs/encoders.ts';

const HOSTILE = 'a\nb\r\tc"\\\u0000\u001b[31m\u007f\u0085\u009b\u2028\u2029é😀';

/** Codes of the characters that a terminal or a reader of lines would act on. */
function controls(line: string): number[] {
	const codes = Array.from(line, character => character.codePointAt(0)!);
	return codes.filter(code => code < 32 || (code >= 127 && code < 160) || code === 0x2028 || code === 0x2029);
}

const encoders = suite('log encoders');

encoders('json is one line that parses back', () => {
	const line = encoderOf('json')!.encode(
		'warn',
		'a"b',
		HOSTILE,
		members({ value: HOSTILE, deep: { [HOSTILE]: [1] } }),
		1500,
	);
	assert.is(line.split('\n').length, 2);
	assert.equal(controls(line), [10]);
	assert.equal(JSON.parse(line), {
		level: 'warn',
		ts: 1.5,
		logger: 'a"b',
		msg: HOSTILE,
		value: HOSTILE,
		deep: { [HOSTILE]: [1] },
	});
});

encoders('console is one line without control characters but its tabs', () => {
	const line = encoderOf('console')!.encode('info', 'http', HOSTILE, members({ value: HOSTILE }), 0);
	assert.is(line.split('\n').length, 2);
	assert.is(line.split('\t').length, 5);
	assert.equal(controls(line), [9, 9, 9, 9, 10]);
	assert.match(line, /^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d\.\d{3}\tINFO\thttp\t/);
});

encoders('fields that are no JSON are left out', () => {
	assert.is(members({ a: undefined, b: () => 1, c: null }), '"c":null');
	assert.is(members(undefined), '');
	assert.is(text('plain'), '"plain"');
});

encoders('levels have ranks in any case, and unknown encoders are not there', () => {
	assert.ok(levelRank('DEBUG') < levelRank(undefined));
	assert.ok(levelRank('error') > levelRank('WARN'));
	assert.is(encoderOf('xml'), undefined);
});

encoders.run();
