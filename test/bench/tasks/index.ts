/** Every row of the bench, in the order in which they are printed. */
import { CACHE_TASKS } from './caching.ts';
import { FILE_TASKS } from './files.ts';
import { HTTP2_TASKS } from './http2.ts';
import { HTTP3_TASKS } from './http3.ts';
import { OBSERVABILITY_TASKS } from './observing.ts';
import { POOL_TASKS } from './pools.ts';
import { PROXY_TASKS } from './proxying.ts';
import { RESOURCE_TASKS } from './resources.ts';
import { RESPONSE_TASKS } from './responding.ts';
import { START_TASKS } from './starting.ts';
import type { Task } from './task.ts';
import { TLS_TASKS } from './tls.ts';

export const TASKS: readonly Task[] = [
	...RESPONSE_TASKS,
	...HTTP2_TASKS,
	...TLS_TASKS,
	...HTTP3_TASKS,
	...PROXY_TASKS,
	...POOL_TASKS,
	...FILE_TASKS,
	...CACHE_TASKS,
	...OBSERVABILITY_TASKS,
	...RESOURCE_TASKS,
	...START_TASKS,
];
