/** The tables and charts of the guide about the size of a cluster, generated from the figures of a simulation. */
import { BUSY_SHARE, maxKeyRate, maxPurgeRate } from './capacity.ts';
import type { SimulationFigures } from './scenarios.ts';

/** Width of the longest bar of a chart in characters. */
const BAR_WIDTH = 40;

/** Returns the tables and charts. Each of them begins with a line that occurs only once in the guide. */
export function renderBlocks(figures: SimulationFigures): string[] {
	const { costs, limits, loads, purges, rollouts } = figures;
	return [
		table(
			['machines', 'purges a second', 'reported clients a second'],
			[10, 100, 300, 1000, 3000].map(machines => [
				count(machines),
				count(twoDigits(maxPurgeRate(machines, costs))),
				count(twoDigits(maxKeyRate(machines, costs))),
			]),
		),
		table(
			['machines', '`batch`', 'beyond the limit, median', 'highest', 'promised'],
			limits.map(({ machines, batch, median, highest, bound }) => [
				...[count(machines), count(batch), count(Math.round(median)), count(Math.round(highest)), count(bound)],
			]),
		),
		chart(
			'Requests beyond the limit of 100 at once, highest of 10 clients:',
			limits.map(({ machines, batch, highest }) => [
				`${count(machines)} machines, batch ${batch}`,
				highest,
				count(Math.round(highest)),
			]),
		),
		table(
			['machines', 'batch', 'commands/s', 'clients/s', 'KB/s', 'Redis busy', 'counted within'],
			loads.map(load => [
				...[count(load.machines), count(load.batch), count(load.commandsPerSecond), count(load.keysPerSecond)],
				count(Math.round((load.receivedBytesPerSecond + load.sentBytesPerSecond) / 1000)),
				...[percent(load.busyShare), `${load.delayMs.toFixed(0)} ms`],
			]),
		),
		table(
			['machines', 'purges/s', 'median', '99 %', '99.9 %', 'Redis busy', 'lost'],
			purges.map(purge => [
				...[count(purge.machines), count(purge.purgesPerSecond), milliseconds(purge.medianMs)],
				...[milliseconds(purge.percentile99Ms), milliseconds(purge.percentile999Ms), percent(purge.busyShare)],
				`${purge.lost} of ${count(purge.purges)}`,
			]),
		),
		chart(
			'Milliseconds until 99 % of the healthy machines have applied a purge:',
			purges.map(({ machines, purgesPerSecond, percentile99Ms }) => [
				`${count(machines)} machines, ${purgesPerSecond}/s`,
				percentile99Ms,
				milliseconds(percentile99Ms),
			]),
		),
		table(
			['configuration', 'machines', 'completed', 'beyond the canaries', 'ended after'],
			rollouts.map(({ published, machines, rollouts: all, completed, beyondCanary, medianSeconds }) => [
				...[published, count(machines), `${completed} of ${all}`, `${beyondCanary} of ${all}`, `${medianSeconds} s`],
			]),
		),
	];
}

/** Replaces the tables and charts of a guide. Throws if one of them is missing. */
export function replaceBlocks(guide: string, blocks: readonly string[]): string {
	let text = guide;
	for (const block of blocks) {
		const lines = text.split('\n');
		const [firstLine] = block.split('\n');
		const start = lines.indexOf(firstLine!);
		if (start === -1) throw new Error(`the guide has no line ${firstLine}`);
		const isTable = firstLine!.startsWith('|');
		let end = start;
		while (end < lines.length && (isTable ? lines[end]!.startsWith('|') : lines[end] !== '```')) end++;
		lines.splice(start, end - start, ...block.split('\n'));
		text = lines.join('\n');
	}
	return text;
}

/** Returns a sentence that says where the figures come from. */
export function describeOrigin({ date, seed, costs }: SimulationFigures): string {
	return `Simulated on ${date} with seed ${seed}; costs measured on ${costs.date} with ${costs.redis} on ${costs.machine}, busy for at most ${percent(BUSY_SHARE)}.`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
	const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
	return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function chart(title: string, bars: readonly (readonly [label: string, value: number, text: string])[]): string {
	const labelWidth = Math.max(...bars.map(([label]) => label.length));
	const highest = Math.max(...bars.map(([, value]) => value));
	const lines = bars.map(([label, value, text]) => {
		const width = Math.max(1, Math.round((value / highest) * BAR_WIDTH));
		return `${label.padEnd(labelWidth)}  ${'█'.repeat(width)} ${text}`;
	});
	return [title, ...lines].join('\n');
}

function count(value: number): string {
	return value.toLocaleString('en-US');
}

function percent(share: number): string {
	return `${Math.round(share * 100)} %`;
}

function milliseconds(value: number): string {
	return `${count(Math.round(value))} ms`;
}

/** Rounds down to two significant digits. */
function twoDigits(value: number): number {
	const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
	return Math.floor(value / unit) * unit;
}
