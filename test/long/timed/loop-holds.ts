/**
 * Measures how long the event loop of each thread of a server is blocked. Loaded into every thread by `NODE_OPTIONS=--import …`.
 * A turn of the event loop begins with the first callback after a wait and ends when the loop may wait again; it includes garbage
 * collection. Each thread writes its results to the folder LOOP_HOLDS once a file named `begin` exists there.
 */
import { createHook } from 'node:async_hooks';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PerformanceObserver } from 'node:perf_hooks';
import { threadId } from 'node:worker_threads';

/** One thread's measurements; times in milliseconds. */
export interface EventLoopStalls {
	readonly turns: number;
	/** CPU time of the longest turn. */
	readonly longest: number;
	/** Wall-clock time of the longest turn. */
	readonly wall: number;
	/** Number of turns that took more than 5 ms of CPU time. */
	readonly over5: number;
	/** Number of turns that took more than 10 ms of CPU time. */
	readonly over10: number;
	/** Wall-clock time of the longest garbage collection. */
	readonly collection: number;
	/** Number of garbage collections. */
	readonly collections: number;
}

/** Milliseconds between two checks of the folder. */
const CHECK_INTERVAL_MS = 250;

const folder = process.env.LOOP_HOLDS;
if (folder !== undefined) watch(folder);

function watch(into: string): void {
	const none = { turns: 0, longest: 0, wall: 0, over5: 0, over10: 0, collection: 0, collections: 0 };
	let found = { ...none };
	let began = false;
	let isTurn = false;
	let cpu = process.threadCpuUsage();
	let clock = 0;
	const end = (): void => {
		isTurn = false;
		const { user, system } = process.threadCpuUsage(cpu);
		const held = (user + system) / 1000;
		found.turns++;
		found.longest = Math.max(found.longest, held);
		found.wall = Math.max(found.wall, performance.now() - clock);
		if (held > 5) found.over5++;
		if (held > 10) found.over10++;
	};
	createHook({
		before: () => {
			if (isTurn) return;
			isTurn = true;
			cpu = process.threadCpuUsage();
			clock = performance.now();
			setImmediate(end);
		},
	}).enable();
	new PerformanceObserver(list => {
		for (const { duration } of list.getEntries()) {
			found.collections++;
			found.collection = Math.max(found.collection, duration);
		}
	}).observe({ entryTypes: ['gc'] });
	setInterval(() => {
		if (!began && existsSync(path.join(into, 'begin'))) {
			began = true;
			found = { ...none };
		}
		if (began) writeFileSync(path.join(into, `${threadId}.json`), JSON.stringify(found));
	}, CHECK_INTERVAL_MS).unref();
}
