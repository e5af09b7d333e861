/** What is shown of the latest bench is what was measured. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type BenchResult, renderChart } from './bench/chart.ts';
import { withSummary } from './bench/summary.ts';
import { TASKS } from './bench/tasks/index.ts';
import { ROOT } from './harness.ts';

const bench = suite('latest bench');

const file = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');
const latest = JSON.parse(file('test/bench/latest.json')) as BenchResult;

bench('README and the chart show what latest.json holds', () => {
	const readme = file('README.md');
	assert.is(withSummary(readme, latest), readme);
	assert.is(renderChart(latest), file('test/bench/latest.svg'));
});

bench('each of its rows is one that the bench has', () => {
	const names = new Set(TASKS.map(task => task.name));
	for (const { name } of latest.rows) assert.ok(names.has(name), name);
});

bench.run();
