/**
 * Simulates clusters of up to 1,000 machines, prints the figures, and writes latest.json and the tables of the guide
 * `cluster-size`. The same seed yields the same figures.
 *
 * Usage: npm run simulate [-- --seed 1] [--dry-run]. With --dry-run, nothing is written.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from '../harness.ts';
import { readRedisCosts } from './redis-costs.ts';
import { describeOrigin, renderBlocks, replaceBlocks } from './report.ts';
import { simulateAll } from './scenarios.ts';

const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' }, 'dry-run': { type: 'boolean' } } });
const startedAt = performance.now();
const date = new Date().toISOString().slice(0, 10);
const figures = await simulateAll(date, Number(values.seed), readRedisCosts(), line => console.log(line));
const blocks = renderBlocks(figures);
console.log(`\n${blocks.join('\n\n')}\n\n${describeOrigin(figures)}`);
console.log(`It took ${Math.round((performance.now() - startedAt) / 1000)} s.`);
if (!values['dry-run']) {
	const guide = path.join(ROOT, 'cli/manual/cluster-size.md');
	writeFileSync(path.join(import.meta.dirname, 'latest.json'), `${JSON.stringify(figures, null, '\t')}\n`);
	const text = replaceBlocks(readFileSync(guide, 'utf8'), blocks);
	writeFileSync(guide, text.replace(/^Simulated on.*$/m, describeOrigin(figures)));
}
