/** What the samples of a phase of a fault test say about response times, statuses and admitted requests. */
import type { Sample } from './visitor.ts';

const WINDOW_MS = 1000;

export function medianOf(values: readonly number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Returns the 99th percentile of response times in milliseconds, for each second of the samples. */
export function p99BySecond(samples: readonly Sample[]): number[] {
	const windows = new Map<number, number[]>();
	for (const { sentAt, elapsedMs } of samples) {
		const window = Math.floor(sentAt / WINDOW_MS);
		const times = windows.get(window);
		if (times) times.push(elapsedMs);
		else windows.set(window, [elapsedMs]);
	}
	return [...windows.values()].map(times => quantileOf(times, 0.99));
}

/** Returns the quantile of the values at `share`, a number from 0 to 1. */
function quantileOf(values: readonly number[], share: number): number {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Returns the number of samples with each status. The keys are the statuses as text. */
export function statusesOf(samples: readonly Sample[]): { [status: string]: number } {
	const counts: { [status: string]: number } = {};
	for (const { status } of samples) counts[status] = (counts[status] ?? 0) + 1;
	return counts;
}

/** Returns the highest usage, in requests, that a single limit would reach if it counted all admitted requests of the samples. */
export function highestUsage(samples: readonly Sample[], perSecond: number): number {
	const times = samples
		.filter(({ status }) => status === 200)
		.map(({ sentAt, elapsedMs }) => sentAt + elapsedMs)
		.sort((a, b) => a - b);
	let usage = 0;
	let highest = 0;
	let last = 0;
	for (const time of times) {
		usage = Math.max(0, usage - ((time - last) * perSecond) / 1000) + 1;
		last = time;
		highest = Math.max(highest, usage);
	}
	return highest;
}
