/** Every endpoint of the Admin API, one line each. */
import { adapt } from './adapt.ts';
import { cache, purgeCache } from './cache.ts';
import { cluster } from './cluster.ts';
import { config, objectById } from './config.ts';
import type { AdminEndpoint } from './endpoint.ts';
import { live, ready } from './health.ts';
import { confirmLoad, load, revertLoad } from './load.ts';
import { metrics } from './metrics.ts';
import { createOpenapiEndpoint } from './openapi.ts';
import { rollout } from './rollout.ts';
import { stop } from './stop.ts';
import { upgrade } from './upgrade.ts';
import { upstreams } from './upstreams.ts';

const describedEndpoints: readonly AdminEndpoint[] = [
	live,
	ready,
	metrics,
	config,
	objectById,
	load,
	confirmLoad,
	revertLoad,
	adapt,
	stop,
	upgrade,
	upstreams,
	cache,
	purgeCache,
	cluster,
	rollout,
];

/** All endpoints, in the order in which they are matched and described. */
export const ENDPOINTS: readonly AdminEndpoint[] = [...describedEndpoints, createOpenapiEndpoint(describedEndpoints)];
