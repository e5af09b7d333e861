/**
 * The counts of rate limits continue in a successor process. In these tests, a second set of tables, which knows only what is
 * handed over, represents the successor.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Rate } from '../../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { LimitTable, limitTableWords } from '../../../runtime/rate-limits/limit-table.ts';
import { LimitTables } from '../../../runtime/rate-limits/limit-tables.ts';

const test = suite('limit tables');

const MAX_KEYS = 200_000;
const RATE: Rate = { intervalMs: 1000, capacityMs: 10_000, maxDelayMs: 0 };
const now = (): number => Number(process.hrtime.bigint()) / 1e6;

function openTable(tables: LimitTables, key: string): LimitTable {
	const buffer = new SharedArrayBuffer(4 * limitTableWords(MAX_KEYS));
	tables.onLimitsOpened(key, { zone: key, maxKeys: MAX_KEYS }, buffer);
	return new LimitTable(buffer, MAX_KEYS);
}

/** Returns a new set of tables that continues the tables of a predecessor. */
function successorOf(tables: LimitTables, ...keys: string[]) {
	const next = new LimitTables(tables.secret);
	const found = keys.map(key => openTable(next, key));
	next.adoptStates(JSON.parse(JSON.stringify(tables.exportStates())));
	return found;
}

test('a key has used as much afterwards as before, in its own table only', () => {
	const tables = new LimitTables();
	const table = openTable(tables, 'a');
	openTable(tables, 'b').take('x', now(), RATE, 1);
	const at = now();
	for (let i = 0; i < 10; i++) assert.ok(table.take('x', at, RATE, 1) <= 0);
	table.take('y', at, RATE, 7);
	const [a, b] = successorOf(tables, 'a', 'b') as [LimitTable, LimitTable];
	assert.is(a.take('x', at, RATE, 1), 1000);
	assert.is(a.take('y', at, RATE, 3), 0);
	assert.is(a.take('y', at, RATE, 1), 1000);
	assert.ok(b.take('x', at, RATE, 5) < 0);
	assert.ok(a.take('z', at, RATE, 1) < 0);
});

test('a table that is closed, or that the successor does not have, is left out', () => {
	const tables = new LimitTables();
	openTable(tables, 'a').take('x', now(), RATE, 10);
	openTable(tables, 'b').take('x', now(), RATE, 10);
	tables.onLimitsClosed('a');
	assert.equal(
		tables.exportStates().map(([key]) => key),
		['b'],
	);
	const [other] = successorOf(tables, 'c');
	assert.ok(other!.take('x', now(), RATE, 1) < 0);
});

test('of too many keys, those that have used most are handed over', () => {
	const tables = new LimitTables();
	const table = openTable(tables, 'a');
	const at = now();
	const most = Array.from({ length: 50 }, (_, index) => `most ${index}`);
	for (const key of most) table.take(key, at + 3_600_000, RATE, 10);
	for (let index = 0; index < 150_000; index++) table.take(`least ${index}`, at + 1_800_000, RATE, 1);
	const states = tables.exportStates();
	const keys = states.reduce((sum, [, records]) => sum + Buffer.from(records, 'base64').length / 20, 0);
	assert.is(keys, 100_000);
	const [next] = successorOf(tables, 'a');
	for (const key of most) assert.ok(next!.take(key, at + 3_600_000, RATE, 1) > 0, key);
});

test('records that are no records change nothing', () => {
	const tables = new LimitTables('not a secret');
	const table = openTable(tables, 'a');
	const record = Buffer.alloc(20);
	record.writeUInt32LE(4_000_000_000);
	record.writeDoubleLE(Number.NaN, 12);
	tables.adoptStates([
		['a', record.toString('base64')],
		['a', 'AAAA'],
		['a', ''],
	]);
	assert.ok(table.take('x', now(), RATE, 10) <= 0);
});

test.run();
