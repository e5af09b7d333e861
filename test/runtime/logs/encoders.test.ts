/** The format of log lines, and that no value can imitate a log line. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { encoderOf, jsonMembers, jsonString, levelRank } from '../../../runtime/logs/encoders.ts';
import { HeaderFields } from '../../../runtime/logs/header-fields.ts';
import { createDurationFormatter } from '../../../runtime/logs/time-text.ts';

const HOSTILE = 'a\nb\r\tc"\\\u0000\u001b[31m\u007f\u0085\u009b\u2028\u2029é😀';

/** Returns the code points that a terminal or a line reader would interpret. */
function controlCharacters(line: string): number[] {
	const codes = Array.from(line, character => character.codePointAt(0)!);
	return codes.filter(code => code < 32 || (code >= 127 && code < 160) || code === 0x2028 || code === 0x2029);
}

const encoders = suite('log encoders');

encoders('json entries are one line that parses to the same values', () => {
	const line = encoderOf('json').encode(
		'warn',
		'a"b',
		HOSTILE,
		jsonMembers({ value: HOSTILE, deep: { [HOSTILE]: [1] } }),
		1500,
	);
	assert.is(line.split('\n').length, 2);
	assert.equal(controlCharacters(line), [10]);
	assert.equal(JSON.parse(line), {
		level: 'warn',
		ts: 1.5,
		logger: 'a"b',
		msg: HOSTILE,
		value: HOSTILE,
		deep: { [HOSTILE]: [1] },
	});
});

encoders('console entries are one line without control characters other than the separating tabs', () => {
	const line = encoderOf('console').encode('info', 'http', HOSTILE, jsonMembers({ value: HOSTILE }), 0);
	assert.is(line.split('\n').length, 2);
	assert.is(line.split('\t').length, 5);
	assert.equal(controlCharacters(line), [9, 9, 9, 9, 10]);
	assert.match(line, /^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d\.\d{3}\tINFO\thttp\t/);
});

encoders('fields that are not valid JSON are left out', () => {
	assert.is(jsonMembers({ a: undefined, b: () => 1, c: null }), '"c":null');
	assert.is(jsonMembers(undefined), '');
	assert.is(jsonString('plain'), '"plain"');
});

encoders('levels are ranked regardless of letter case', () => {
	assert.ok(levelRank('DEBUG') < levelRank(undefined));
	assert.ok(levelRank('error') > levelRank('WARN'));
});

encoders('header fields become an object: repeated names are joined in an array, and credentials are hidden', () => {
	const fields = new HeaderFields();
	const list = new HeaderList([
		'Accept',
		'a',
		'COOKIE',
		'c=1',
		'accept',
		'b',
		'X-Api-Key',
		'k',
		'__proto__',
		'p',
		'Quote',
		'"',
	]);
	const shown = '{"Accept":["a","b"],"COOKIE":["REDACTED"],"X-Api-Key":["REDACTED"],"__proto__":["p"],"Quote":["\\""]}';
	for (let time = 0; time < 3; time++) {
		assert.is(fields.formatHeaders(list, false), shown);
		assert.is(fields.formatHeaders(new HeaderList(['cookie', 'c=1']), true), '{"cookie":["c=1"]}');
		assert.is(fields.formatHeaders(new HeaderList(), false), '{}');
		// Writes far more names than the cache holds, first in separate lists, then in a single list.
		for (let i = 0; i < 1500; i++)
			fields.formatHeaders(new HeaderList([`X-${time}-${i}`, 'v', `x-${time}-${i}`, 'w']), false);
		const many = new HeaderList(Array.from({ length: 3000 }, (_, i) => `n${i % 1500}`));
		assert.is(Object.keys(JSON.parse(fields.formatHeaders(many, false))).length, 750);
	}
});

encoders('long header names invented by clients are not cached', () => {
	setFlagsFromString('--expose-gc');
	const collect = runInNewContext('gc') as () => void;
	const fields = new HeaderFields();
	collect();
	const before = process.memoryUsage().heapUsed;
	for (let i = 0; i < 900; i++)
		fields.formatHeaders(new HeaderList([Buffer.alloc(16_000, `n${i}`).toString(), 'v']), false);
	collect();
	const kept = process.memoryUsage().heapUsed - before;
	assert.ok(kept < 2_000_000, `${kept} bytes`);
	assert.is(fields.formatHeaders(new HeaderList(['Accept', 'a']), false), '{"Accept":["a"]}');
});

encoders('durations are numbers of seconds, accurate for short and long ones', () => {
	const write = createDurationFormatter('s');
	for (const milliseconds of [0, 0.000_4, 0.5, 0.000_999, 1, 999.999_999, 1000, 123_456.789]) {
		assert.is(JSON.parse(write(milliseconds)), Math.round(milliseconds * 1e6) / 1e9, `${milliseconds}`);
	}
});

encoders.run();
