/** Bench rows without a load: the memory of an idle server, and its startup time. */
import { HELLO, HELLO_10K } from './responding.ts';
import type { IdleTask, StartTask } from './task.ts';

/** The memory and startup rows. */
export const RESOURCES: readonly (IdleTask | StartTask)[] = [
	{ name: 'memory of 10,000 idle connections', idle: 10_000, contenders: HELLO_10K, bounds: { caddy: 1 } },
	{ name: 'start-up', start: true, contenders: HELLO },
];
