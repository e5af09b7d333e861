/**
 * `npm run bench`: CPU time per request of svc, nginx, haproxy, caddy and Node's own server, on one core each.
 *
 * svc runs as the single binary, built first. The bench installs nothing and skips programs that are missing. Servers
 * take turns for a few rounds, and a ratio is the median of the rounds' ratios; rows about startup compare the minima
 * of ten rounds, on any core. Absolute times mean little on a shared machine: read the ratios. With --save, the measured
 * rows replace those in latest.json and latest.svg next to this file, and in the table in the README.md there. Rows that
 * were not measured keep their earlier results and dates. A failed row is not saved.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { useBuiltBinary } from '../run.ts';
import { type BenchResult, type DatedRow, renderChart } from './chart.ts';
import { measureTask, type RowResult } from './measure.ts';
import { isInstalled } from './servers.ts';
import { replaceBenchSummary } from './summary.ts';
import { TASKS } from './tasks/index.ts';

const USAGE = `Usage: node test/bench/run.ts [--rounds N] [--seconds N] [--save] [a row's name, or a part of names …]

Measures the CPU time per request of svc and of other servers. Without names, measures all rows.

  --rounds N   number of rounds, 3 by default
  --seconds N  duration of each measurement, 1 by default
  --save       replaces the measured rows in latest.json, latest.svg and README.md
  --help       prints this text
`;

const { values, positionals } = parseCommandLine();

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

const names = new Set(TASKS.map(({ name }) => name));
const wanted = TASKS.filter(
	({ name }) =>
		positionals.length === 0 || positionals.some(part => (names.has(part) ? name === part : name.includes(part))),
);
const latestFile = path.join(import.meta.dirname, 'latest.json');
const latest = JSON.parse(readFileSync(latestFile, 'utf8')) as BenchResult;
if (values.save && wanted.length < TASKS.length && !isDeepStrictEqual(where(latest), where({ machine, conditions }))) {
	console.error('The saved rows were measured on another machine or under other conditions: measure all rows.');
	process.exit(1);
}
const rows = new Map<string, DatedRow>();
for (const task of wanted) {
	try {
		const row = await measureTask(task, conditions);
		rows.set(row.name, { ...row, date: new Date().toISOString().slice(0, 10) });
		print(row);
		if (values.save) save();
	} catch (error) {
		console.error(`\n${task.name}: ${(error as Error).message}`);
		process.exitCode = 1;
	}
}

/**
 * Returns the options and the names of rows. Prints the usage and ends the process if it is asked for, or if an option is
 * unknown.
 */
function parseCommandLine() {
	try {
		const commandLine = parseArgs({
			options: {
				rounds: { type: 'string', default: '3' },
				seconds: { type: 'string', default: '1' },
				save: { type: 'boolean', default: false },
				help: { type: 'boolean', default: false },
			},
			allowPositionals: true,
		});
		if (!commandLine.values.help) return commandLine;
		process.stdout.write(USAGE);
		process.exit(0);
	} catch (error) {
		process.stderr.write(`error: ${(error as Error).message}\n\n${USAGE}`);
		process.exit(1);
	}
}

function where({ machine, conditions }: Omit<BenchResult, 'rows'>): object {
	return { machine, conditions };
}

/** Saves the rows measured so far. Other rows keep their saved values, unless all rows are being measured. */
function save(): void {
	const savedRows = new Map(latest.rows.map(row => [row.name, row]));
	const isMeasuredWhole = wanted.length === TASKS.length;
	const all = TASKS.map(({ name }) => rows.get(name) ?? (isMeasuredWhole ? undefined : savedRows.get(name)));
	const result = { machine, conditions, rows: all.filter(row => row !== undefined) };
	writeFileSync(latestFile, `${JSON.stringify(result, undefined, '\t')}\n`);
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
