/**
 * Startup times: `svc version` compared with `node -e 0`, `svc validate` of the quickstart, and `svc adapt` of a
 * 10,000-site Compatfile compared with Caddy. Runs alternate; prints medians and the median ratio.
 *
 * Usage: node test/bench/start-times.ts [--runs 15]
 */
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT, temporaryFolder } from '../harness.ts';
import { manySitesDocument } from './many-sites.ts';
import { isInstalled } from './servers.ts';

const { values } = parseArgs({ options: { runs: { type: 'string', default: '15' } } });
const checkout = path.join(ROOT, 'cli/svc');
const binary = path.join(ROOT, 'dist/svc');
const folder = temporaryFolder();

/** Returns the milliseconds of one run; throws if it fails. */
function timeCommand(command: readonly string[]): number {
	const startedAt = performance.now();
	const result = spawnSync(command[0]!, command.slice(1), { stdio: ['ignore', 'ignore', 'pipe'], maxBuffer: 1 << 28 });
	const elapsed = performance.now() - startedAt;
	if (result.status !== 0) throw new Error(`${command.join(' ')}: status ${result.status}\n${result.stderr}`);
	return elapsed;
}

function median(list: readonly number[]): number {
	return [...list].sort((a, b) => a - b)[list.length >> 1]!;
}

/** Prints the time of a command, and of the command it is compared with. */
function printComparison(
	name: string,
	command: readonly string[],
	other: readonly string[] | undefined,
	runs: number,
	bound: number,
): void {
	timeCommand(command);
	if (other) timeCommand(other);
	const own: number[] = [];
	const others: number[] = [];
	for (let run = 0; run < runs; run++) {
		own.push(timeCommand(command));
		if (other) others.push(timeCommand(other));
	}
	const ratio = other ? median(own.map((value, run) => value / others[run]!)) : undefined;
	const figure = ratio ?? median(own);
	const verdict = figure <= bound ? 'ok' : 'OVER';
	if (figure > bound) process.exitCode = 1;
	console.log(
		`${name.padEnd(44)} ${median(own).toFixed(0).padStart(6)} ms${other ? `  compared with ${median(others).toFixed(0)} ms: ${ratio!.toFixed(2)} times (at most ${bound})` : ` (at most ${bound})`}  ${verdict}`,
	);
}

const runs = Number(values.runs);
const node = [process.execPath, '-e', '0'];
printComparison('svc version, checkout', [checkout, 'version'], node, runs, 3);
if (existsSync(binary)) printComparison('svc version, binary', [binary, 'version'], node, runs, 1.8);
const quickstart = path.join(ROOT, 'fixtures/quickstart/Configfile');
printComparison('svc validate of the quickstart, checkout', [checkout, 'validate', quickstart], undefined, runs, 300);
if (existsSync(binary))
	printComparison('svc validate of the quickstart, binary', [binary, 'validate', quickstart], undefined, runs, 300);
if (isInstalled('caddy')) {
	const file = path.join(folder, 'Compatfile');
	writeFileSync(file, manySitesDocument(10_000, 8080, '', 0));
	printComparison(
		'svc adapt of 10,000 sites',
		[existsSync(binary) ? binary : checkout, 'adapt', '-c', file],
		['caddy', 'adapt', '--config', file, '--adapter', 'caddyfile'],
		3,
		0.7,
	);
}
