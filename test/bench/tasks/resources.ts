/** Bench rows without a load: the memory of an idle server, and its startup time. */
import { CONTENDERS_FOR_10K_CONNECTIONS, FIXED_RESPONSE_CONTENDERS } from './responding.ts';
import type { IdleTask, StartTask } from './task.ts';

/** The memory and startup rows. */
export const RESOURCE_TASKS: readonly (IdleTask | StartTask)[] = [
	{
		name: 'memory of 10,000 idle connections',
		idle: 10_000,
		contenders: CONTENDERS_FOR_10K_CONNECTIONS,
		bounds: { caddy: 1 },
	},
	{ name: 'start-up', start: true, contenders: FIXED_RESPONSE_CONTENDERS },
];
