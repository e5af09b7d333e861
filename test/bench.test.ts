/** The published results of the latest bench match its measurements. */
import { spawnSync } from 'node:child_process';
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

bench('prints its usage when it is asked for it, and for an unknown option', () => {
	const run = (option: string) =>
		spawnSync(process.execPath, [path.join(ROOT, 'test/bench/run.ts'), option], { encoding: 'utf8' });
	const asked = run('--help');
	assert.is(asked.status, 0, asked.stderr);
	assert.match(asked.stdout, /^Usage: node test\/bench\/run\.ts /);
	const unknown = run('--unknown');
	assert.is(unknown.status, 1);
	assert.match(unknown.stderr, /^error: Unknown option '--unknown'.*\n\nUsage: /);
});

bench.run();
