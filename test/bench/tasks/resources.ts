/** The bench row of the memory of idle connections. */
import { CONTENDERS_FOR_10K_CONNECTIONS } from './responding.ts';
import type { IdleTask } from './task.ts';

export const RESOURCE_TASKS: readonly IdleTask[] = [
	{
		name: 'memory of 10,000 idle connections',
		idle: 10_000,
		contenders: CONTENDERS_FOR_10K_CONNECTIONS,
		bounds: { caddy: 1 },
	},
];
