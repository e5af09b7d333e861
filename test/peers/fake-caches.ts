/** A member of a cluster whose caches only record what they are asked to purge. */

import type { PurgeSelection } from '../../runtime/cache/purging.ts';
import type { Cluster } from '../../runtime/cluster/cluster.ts';

/** Joins a cluster with caches that only record what they are asked to purge. Resolves to these records. */
export async function joinWithFakeCaches(cluster: Cluster): Promise<PurgeSelection[]> {
	const applied: PurgeSelection[] = [];
	cluster.join({
		version: () => 'test',
		generation: () => 1,
		caches: {
			purge: async selection => {
				applied.push(selection);
				return 0;
			},
			purgePositions: async () => [],
			recordPurgePosition: () => {},
		},
	});
	await cluster.purges;
	return applied;
}
