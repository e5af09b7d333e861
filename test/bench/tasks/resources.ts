/** Rows that are no load: what an idle server holds, and how soon it answers. */
import { HELLO, HELLO_10K } from './responding.ts';
import type { IdleTask, StartTask } from './task.ts';

/** Rows of memory and start-up. */
export const RESOURCES: readonly (IdleTask | StartTask)[] = [
	{ name: 'memory of 10,000 idle connections', idle: 10_000, contenders: HELLO_10K, bounds: { caddy: 1 } },
	{ name: 'start-up', start: true, contenders: HELLO },
];
