/** Every row of the bench, in the order in which they are printed. */
import { CACHING } from './caching.ts';
import { FILES } from './files.ts';
import { HTTP2 } from './http2.ts';
import { OBSERVING } from './observing.ts';
import { POOLS } from './pools.ts';
import { PROXYING } from './proxying.ts';
import { RESOURCES } from './resources.ts';
import { RESPONDING } from './responding.ts';
import type { Task } from './task.ts';
import { TLS } from './tls.ts';

export const TASKS: readonly Task[] = [
	...RESPONDING,
	...HTTP2,
	...TLS,
	...PROXYING,
	...POOLS,
	...FILES,
	...CACHING,
	...OBSERVING,
	...RESOURCES,
];
