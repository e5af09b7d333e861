/**
 * `npm run bench`: CPU time per request of svc, nginx, haproxy, caddy and Node's own server, on one core each.
 *
 * svc runs as the single binary, built first. The bench installs nothing and skips programs that are missing. Servers
 * take turns for a few rounds, and a ratio is the median of the rounds' ratios; rows about startup compare the minima
 * of ten rounds, on any core. Absolute times mean little on a shared machine: read the ratios. A full run writes
 * latest.json and latest.svg next to this file, and the table in the README.md there.
 *
 * Usage: node test/bench/run.ts [--rounds N] [--seconds N] [part of a row's name …]
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { useBuiltBinary } from '../run.ts';
import { renderChart } from './chart.ts';
import { measureTask, type RowResult } from './measure.ts';
import { isInstalled } from './servers.ts';
import { replaceBenchSummary } from './summary.ts';
import { TASKS } from './tasks/index.ts';

const { values, positionals } = parseArgs({
	options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '2' } },
	allowPositionals: true,
});

for (const program of ['wrk', 'taskset', 'nginx']) {
	if (!isInstalled(program)) {
		console.error(`The bench needs ${program}, from the distribution's packages.`);
		process.exit(1);
	}
}

useBuiltBinary();
const conditions = {
	rounds: Number(values.rounds),
	seconds: Number(values.seconds),
	serverCore: '0',
	loadCore: '1',
};
const machine = `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}`;
console.log(`${machine}\none core for each server, ${conditions.rounds} rounds of ${conditions.seconds} s`);

const wanted = TASKS.filter(task => positionals.length === 0 || positionals.some(part => task.name.includes(part)));
const rows: RowResult[] = [];
for (const task of wanted) {
	try {
		const row = await measureTask(task, conditions);
		rows.push(row);
		print(row);
	} catch (error) {
		console.error(`\n${task.name}: ${(error as Error).message}`);
		process.exitCode = 1;
	}
}
// A failed row is not printed, and is not in the results either.
if (wanted.length === TASKS.length) {
	const result = { date: new Date().toISOString().slice(0, 10), machine, conditions, rows };
	writeFileSync(path.join(import.meta.dirname, 'latest.json'), `${JSON.stringify(result, undefined, '\t')}\n`);
	writeFileSync(path.join(import.meta.dirname, 'latest.svg'), renderChart(result));
	const readme = path.join(import.meta.dirname, 'README.md');
	writeFileSync(readme, replaceBenchSummary(readFileSync(readme, 'utf8'), result));
}

/** Prints one row, a line for each server. */
function print({ name, unit, figures }: RowResult): void {
	console.log(`\n${name}`);
	const width = Math.max(...figures.map(figure => figure.label.length));
	for (const { label, value, ratio, bound, limit, rate, p50, p99, p999 } of figures) {
		const parts = [`  ${label.padEnd(width)} ${value.toFixed(2).padStart(8)} ${unit}`];
		if (rate !== undefined) {
			const times = [p50!, p99!, p999!].map(time => (time / 1000).toFixed(time < 10_000 ? 2 : 0));
			parts.push(`${Math.round(rate).toString().padStart(7)}/s`, `p50/p99/p99.9 ${times.join('/')} ms`);
		}
		if (ratio) {
			const [middle, least, most] = ratio.map(number => number.toFixed(2));
			const verdict = bound === undefined ? '' : `, at most ${bound}${ratio[0] > bound ? ': MISSED' : ''}`;
			parts.push(`svc is ${middle} of it (${least} to ${most}${verdict})`);
		}
		if (limit !== undefined) parts.push(`at most ${limit}${value > limit ? ': MISSED' : ''}`);
		console.log(parts.join('  '));
	}
}
