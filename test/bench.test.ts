/** The published results of the latest bench match its measurements. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type BenchResult, renderChart } from './bench/chart.ts';
import { replaceBenchSummary } from './bench/summary.ts';
import { TASKS } from './bench/tasks/index.ts';
import { ROOT } from './harness.ts';

const bench = suite('latest bench results');

const file = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');
const latest = JSON.parse(file('test/bench/latest.json')) as BenchResult;

bench('the table and the chart show the values of latest.json', () => {
	const readme = file('test/bench/README.md');
	assert.is(replaceBenchSummary(readme, latest), readme);
	assert.is(renderChart(latest), file('test/bench/latest.svg'));
});

bench('every row is one that the bench still has', () => {
	const names = new Set(TASKS.map(task => task.name));
	for (const { name } of latest.rows) assert.ok(names.has(name), name);
});

bench.run();
