/** Store `redis`: the Redis server of the option `cluster`. */
import type { StoreModule } from './store-module.ts';

/** The kind of store that keeps its data in Redis, which several machines may share. */
export const redis: StoreModule = {
	id: 'redis',
	usage: 'storage redis',
	summary: 'Keeps certificates, keys and accounts in the Redis server of the option `cluster`.',
	documentation:
		'Every value is encrypted with the `key` of `cluster`, so that a dump of Redis reveals only the names of values. The machines order each certificate once, and any of them answers its challenges.',
	lower: (args, line, cx) => {
		cx.count(line, args, 0, 0, redis.usage);
		cx.noBlock(line);
		return {};
	},
	schema: { properties: {} },
};
