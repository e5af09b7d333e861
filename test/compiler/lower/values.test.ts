/** Value types of both languages. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseBoolean, parseDuration, parseSize, parseStatus } from '../../../compiler/lower/context/values.ts';

const values = suite('values');

values('durations are parsed', () => {
	const table: [string, number | undefined][] = [
		['250ms', 250],
		['10s', 10_000],
		['1h30m', 5_400_000],
		['1d12h', 129_600_000],
		['1.5s', 1500],
		['-1s', -1000],
		['0', 0],
		['100us', 0.1],
		['10', undefined],
		['s', undefined],
		['', undefined],
		['-', undefined],
		['1 s', undefined],
		['1x', undefined],
		[`${'1s'.repeat(600)}`, undefined],
	];
	for (const [text, expected] of table) assert.is(parseDuration(text), expected, text);
});

values('sizes are parsed', () => {
	const table: [string, number | undefined][] = [
		['512', 512],
		['64KiB', 65_536],
		['10MB', 10_000_000],
		['10mb', 10_000_000],
		['1.5kb', 1500],
		['10B', 10],
		['4k', 4000],
		['10M', 10_000_000],
		['2G', 2_000_000_000],
		['1T', 1_000_000_000_000],
		['16Ki', 16_384],
		['8mi', 8_388_608],
		['1Gi', 1_073_741_824],
		['1Ti', 1_099_511_627_776],
		['.5K', 500],
		['1.K', 1000],
		['1 KB', undefined],
		['KB', undefined],
		['.', undefined],
		['10i', undefined],
		['10iB', undefined],
		['10MM', undefined],
		['-1', undefined],
	];
	for (const [text, expected] of table) assert.is(parseSize(text), expected, text);
});

values('statuses and switches are parsed', () => {
	assert.equal(['100', '404', '599', '99', '600', '4xx', '0404'].map(parseStatus), [
		100,
		404,
		599,
		undefined,
		undefined,
		undefined,
		undefined,
	]);
	assert.equal(['on', 'YES', 'true', 'off', 'no', 'False', '1'].map(parseBoolean), [
		true,
		true,
		true,
		false,
		false,
		false,
		undefined,
	]);
});

values.run();
