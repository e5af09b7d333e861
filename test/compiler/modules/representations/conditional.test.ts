/** Preconditions: entity tags, dates, and their precedence. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HeaderList } from '../../../../compiler/exchange/header-list.ts';
import {
	etagListHas,
	evaluatePreconditions,
	parseHttpDate,
	rangeApplies,
} from '../../../../compiler/modules/representations/conditional.ts';

const NOW = Date.UTC(2026, 0, 15);
const MODIFIED = 784111777;
const AT = 'Sun, 06 Nov 1994 08:49:37 GMT';
const BEFORE = 'Sun, 06 Nov 1994 08:49:36 GMT';
const AFTER = 'Sun, 06 Nov 1994 08:49:38 GMT';

const dates = suite('HTTP dates');
const DATES: readonly [string, number | undefined][] = [
	[AT, MODIFIED],
	['Sunday, 06-Nov-94 08:49:37 GMT', MODIFIED],
	['Sun Nov  6 08:49:37 1994', MODIFIED],
	['Sunday, 06-Nov-76 08:49:37 GMT', Date.UTC(2076, 10, 6, 8, 49, 37) / 1000],
	['Sunday, 06-Nov-77 08:49:37 GMT', Date.UTC(1977, 10, 6, 8, 49, 37) / 1000],
	['Sun, 06 Nov 1994 08:49:37', undefined],
	['Sun, 06 Nov 1994 08:49:37 UTC', undefined],
	['Sun, 06 Nov 1994 24:49:37 GMT', undefined],
	['Sun, 31 Feb 1994 08:49:37 GMT', undefined],
	['Sun, 6 Nov 1994 08:49:37 GMT', undefined],
	['1994-11-06T08:49:37Z', undefined],
	['784111777', undefined],
	['', undefined],
];
for (const [text, expected] of DATES) dates(`"${text}"`, () => assert.is(parseHttpDate(text, NOW), expected));
dates.run();

const tags = suite('entity tag lists');
const TAGS: readonly [list: string, etag: string | undefined, strong: boolean, weak: boolean][] = [
	['"a"', '"a"', true, true],
	['W/"a"', '"a"', false, true],
	['"a"', 'W/"a"', false, true],
	['"b", "a"', '"a"', true, true],
	['"b",,W/"a" , "c"', '"a"', false, true],
	['"b"', '"a"', false, false],
	['*', '"a"', true, true],
	['*', undefined, true, true],
	['"a"', undefined, false, false],
	['a', '"a"', false, false],
	['"a', '"a"', false, false],
	['"b" junk "a"', '"a"', false, false],
	['"x,"a"', '"a"', false, false],
	['"a,b"', '"a,b"', true, true],
	['w/"a"', '"a"', false, false],
	['', '"a"', false, false],
];
for (const [list, etag, strong, weak] of TAGS) {
	tags(`${list} against ${etag}`, () => {
		assert.is(etagListHas(list, etag, true), strong);
		assert.is(etagListHas(list, etag, false), weak);
	});
}
tags.run();

const order = suite('preconditions');
const TABLE: readonly [name: string, fields: string[], expected: string][] = [
	['none', [], 'proceed'],
	['If-Match holds', ['If-Match', '"a"'], 'proceed'],
	['If-Match fails', ['If-Match', '"b"'], 'failed'],
	['If-Match compares strongly', ['If-Match', 'W/"a"'], 'failed'],
	['If-Match any', ['If-Match', '*'], 'proceed'],
	['If-Match over two fields', ['If-Match', '"b"', 'If-Match', '"a"'], 'proceed'],
	['If-Unmodified-Since holds', ['If-Unmodified-Since', AT], 'proceed'],
	['If-Unmodified-Since fails', ['If-Unmodified-Since', BEFORE], 'failed'],
	['If-Unmodified-Since unreadable', ['If-Unmodified-Since', 'yesterday'], 'proceed'],
	['If-Match hides If-Unmodified-Since', ['If-Match', '"a"', 'If-Unmodified-Since', BEFORE], 'proceed'],
	['If-None-Match matches', ['If-None-Match', '"a"'], 'not-modified'],
	['If-None-Match compares weakly', ['If-None-Match', 'W/"a"'], 'not-modified'],
	['If-None-Match any', ['If-None-Match', '*'], 'not-modified'],
	['If-None-Match differs', ['If-None-Match', '"b"'], 'proceed'],
	['If-Modified-Since same', ['If-Modified-Since', AT], 'not-modified'],
	['If-Modified-Since later', ['If-Modified-Since', AFTER], 'not-modified'],
	['If-Modified-Since earlier', ['If-Modified-Since', BEFORE], 'proceed'],
	['If-Modified-Since unreadable', ['If-Modified-Since', '0'], 'proceed'],
	['If-Modified-Since twice', ['If-Modified-Since', AT, 'If-Modified-Since', AT], 'proceed'],
	['If-None-Match hides If-Modified-Since', ['If-None-Match', '"b"', 'If-Modified-Since', AFTER], 'proceed'],
	['If-Match fails first', ['If-None-Match', '"a"', 'If-Match', '"b"'], 'failed'],
	['If-Match holds, then If-None-Match', ['If-Match', '"a"', 'If-None-Match', '"a"'], 'not-modified'],
	[
		'If-Unmodified-Since holds, then If-Modified-Since',
		['If-Unmodified-Since', AT, 'If-Modified-Since', AT],
		'not-modified',
	],
];
for (const [name, fields, expected] of TABLE) {
	order(name, () => {
		const validators = { etag: '"a"', modified: MODIFIED };
		assert.is(evaluatePreconditions(new HeaderList(fields), validators, NOW), expected);
	});
}
order('without validators, dates are ignored and only `*` matches', () => {
	const none = { etag: undefined, modified: undefined };
	assert.is(evaluatePreconditions(new HeaderList(['If-Modified-Since', AT]), none, NOW), 'proceed');
	assert.is(evaluatePreconditions(new HeaderList(['If-Unmodified-Since', BEFORE]), none, NOW), 'proceed');
	assert.is(evaluatePreconditions(new HeaderList(['If-None-Match', '*']), none, NOW), 'not-modified');
	assert.is(evaluatePreconditions(new HeaderList(['If-Match', '"a"']), none, NOW), 'failed');
});
order.run();

const ifRange = suite('If-Range');
const RANGES: readonly [field: string | undefined, expected: boolean][] = [
	[undefined, true],
	['"a"', true],
	['"b"', false],
	['W/"a"', false],
	[AT, true],
	[BEFORE, false],
	[AFTER, false],
	['nonsense', false],
];
for (const [field, expected] of RANGES) {
	ifRange(`${field}`, () => {
		const headers = new HeaderList(field === undefined ? [] : ['If-Range', field]);
		assert.is(rangeApplies(headers, { etag: '"a"', modified: MODIFIED }, NOW), expected);
	});
}
ifRange('a date in the current second is not a strong validator', () => {
	const headers = new HeaderList(['If-Range', AT]);
	assert.is(rangeApplies(headers, { etag: '"a"', modified: MODIFIED }, MODIFIED * 1000 + 400), false);
});
ifRange('a weak entity tag never matches If-Range', () => {
	assert.is(rangeApplies(new HeaderList(['If-Range', 'W/"a"']), { etag: 'W/"a"', modified: undefined }, NOW), false);
});
ifRange.run();
