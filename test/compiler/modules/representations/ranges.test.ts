/** Range fields and multipart bodies. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BodySource } from '../../../../compiler/exchange/body.ts';
import {
	createMultipartBody,
	formatContentRange,
	parseRange,
} from '../../../../compiler/modules/representations/ranges.ts';

const parsing = suite('range fields');
const manyRanges = (count: number) => Array.from({ length: count }, (_, i) => `${i * 200}-${i * 200}`).join(',');
const RANGE_CASES: readonly [field: string, size: number, expected: string][] = [
	['bytes=0-0', 10, '0-1'],
	['bytes=0-9', 10, '0-10'],
	['bytes=0-99', 10, '0-10'],
	['bytes=5-', 10, '5-10'],
	['bytes=-3', 10, '7-10'],
	['bytes=-99', 10, '0-10'],
	['bytes=-0', 10, 'unsatisfiable'],
	['bytes=10-', 10, 'unsatisfiable'],
	['bytes=10-20, 30-', 10, 'unsatisfiable'],
	['bytes=0-0, 99-', 10, '0-1'],
	['BYTES = 1-2', 10, '1-3'],
	['bytes= 1-2 , ', 10, '1-3'],
	['bytes=99999999999999999999-', 10, 'unsatisfiable'],
	['bytes=0-99999999999999999999', 10, '0-10'],
	['bytes=0-0', 0, 'ignore'],
	['bytes=-5', 0, 'ignore'],
	['bytes=', 10, 'ignore'],
	['bytes=,', 10, 'ignore'],
	['bytes', 10, 'ignore'],
	['items=0-5', 10, 'ignore'],
	['bytes=5-2', 10, 'ignore'],
	['bytes=a-b', 10, 'ignore'],
	['bytes=1', 10, 'ignore'],
	['bytes=-', 10, 'ignore'],
	['bytes=1-2-3', 10, 'ignore'],
	['bytes=+1-2', 10, 'ignore'],
	['bytes=1 - 2', 10, 'ignore'],
	['bytes=0-0, x', 10, 'ignore'],
	['bytes=0-9, 500-509', 1000, '0-10 500-510'],
	['bytes=500-509, 0-9', 1000, '500-510 0-10'],
	['bytes=0-9, 10-19', 1000, '0-20'],
	['bytes=0-9, 50-59', 1000, '0-60'],
	['bytes=500-509, 0-9, 505-600', 1000, '500-601 0-10'],
	['bytes=0-9, 200-209, 100-109', 1000, '0-10 200-210 100-110'],
	['bytes=0-9, 160-169, 80-89', 1000, '0-170'],
	['bytes=0-599, 400-999', 1000, 'ignore'],
	['bytes=0-9, 5-14, 8-20, 9-30', 1000, 'ignore'],
	[
		`bytes=${manyRanges(32)}`,
		10_000,
		manyRanges(32)
			.split(',')
			.map(range => `${range.split('-')[0]}-${Number(range.split('-')[0]) + 1}`)
			.join(' '),
	],
	[`bytes=${manyRanges(33)}`, 10_000, 'ignore'],
	[`bytes=${'0-,'.repeat(5000)}`, 10_000, 'ignore'],
	[`bytes=${','.repeat(5000)}0-1`, 10_000, 'ignore'],
];
for (const [field, size, expected] of RANGE_CASES) {
	parsing(`${field.slice(0, 40)} of ${size}`, () => {
		const ranges = parseRange(field, size);
		assert.is(typeof ranges === 'string' ? ranges : ranges.map(one => `${one.start}-${one.end}`).join(' '), expected);
	});
}
parsing('Content-Range counts the last byte', () =>
	assert.is(formatContentRange({ start: 0, end: 10 }, 20), 'bytes 0-9/20'),
);
parsing.run();

const multipart = suite('multipart/byteranges');

async function drain(source: BodySource): Promise<string> {
	let text = '';
	for (let piece = await source.pull(); piece !== null; piece = await source.pull())
		text += Buffer.from(piece).toString();
	return text;
}

function streamed(content: string): BodySource {
	const pieces = [content.slice(0, 1), content.slice(1)].map(piece => Buffer.from(piece));
	return {
		length: content.length,
		pull: () => Promise.resolve(pieces.shift() ?? null),
		cancel: () => {
			pieces.length = 0;
		},
	};
}

for (const kind of ['value', 'stream'] as const) {
	multipart(`parts, boundaries and length are correct, from a ${kind}`, async () => {
		let closedCount = 0;
		const content = '0123456789';
		const source = createMultipartBody(
			[
				{ start: 0, end: 2 },
				{ start: 7, end: 10 },
			],
			10,
			'text/plain',
			'XX',
			part => (kind === 'value' ? content.slice(part.start, part.end) : streamed(content.slice(part.start, part.end))),
			() => {
				closedCount += 1;
			},
		);
		const length = source.length;
		const text = await drain(source);
		assert.is(
			text,
			'--XX\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n' +
				'--XX\r\nContent-Type: text/plain\r\nContent-Range: bytes 7-9/10\r\n\r\n789\r\n--XX--\r\n',
		);
		assert.is(text.length, length);
		assert.is(closedCount, 1);
		source.cancel();
		assert.is(closedCount, 1);
	});
}

multipart('a body cancelled halfway closes its file once and produces nothing more', async () => {
	let closedCount = 0;
	const source = createMultipartBody(
		[
			{ start: 0, end: 2 },
			{ start: 7, end: 10 },
		],
		10,
		undefined,
		'XX',
		() => streamed('ab'),
		() => {
			closedCount += 1;
		},
	);
	await source.pull();
	await source.pull();
	source.cancel();
	assert.is(await source.pull(), null);
	assert.is(closedCount, 1);
});
multipart.run();
