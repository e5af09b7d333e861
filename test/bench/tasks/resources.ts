/** Bench rows that compare the memory that idle connections take. */
import { HTTP3_CONTENDERS } from './http3.ts';
import { CONTENDERS_FOR_10K_CONNECTIONS } from './responding.ts';
import type { IdleTask } from './task.ts';

export const RESOURCE_TASKS: readonly IdleTask[] = [
	{
		name: 'memory of 10,000 idle connections',
		idle: 10_000,
		contenders: CONTENDERS_FOR_10K_CONNECTIONS,
		bounds: { caddy: 1 },
	},
	{
		// By default, svc accepts at most 1,024 connections from one client.
		name: 'memory of 1,000 idle HTTP/3 connections',
		idle: 1000,
		protocol: 'http3',
		contenders: HTTP3_CONTENDERS,
		limit: 60,
	},
];
