/**
 * `GET /cluster` → 200, an object: the `address` of Redis, whether it is `connected`, the ID of this process (`self`), and `members`,
 * one object for each running process of the cluster: `id`, `host`, `pid`, `version`, `generation` and `since` (in seconds since the
 * epoch). `members` is missing while Redis does not answer. On a machine that takes its configuration from the cluster, `publication` says
 * which publication it serves, how old the publication is, and whether it was read from the disk because Redis has not answered
 * since the start.
 *
 * - 404, code `no_cluster`: the configuration has no option `cluster`.
 */
import { ClusterError } from '../runtime/cluster/cluster-error.ts';
import { type AdminEndpoint, answerJson } from './endpoint.ts';
import { AdminError } from './errors.ts';

const MEMBER_SCHEMA = {
	type: 'object',
	properties: {
		id: { type: 'string', description: 'Differs between any two processes.' },
		host: { type: 'string', description: 'Name of the host.' },
		pid: { type: 'integer' },
		version: { type: 'string' },
		generation: { type: 'integer', minimum: 0, description: 'Number of the generation that it serves.' },
		since: { type: 'integer', description: 'When it joined, in seconds since the epoch.' },
	},
	required: ['id', 'host', 'pid', 'version', 'generation', 'since'],
	additionalProperties: false,
};

const PUBLICATION_SCHEMA = {
	type: 'object',
	description: 'What the machine serves. Present only if it takes its configuration from the cluster.',
	properties: {
		number: { type: 'integer', minimum: 0, description: 'Number of the publication; 0 for its own file.' },
		age_seconds: {
			type: 'integer',
			minimum: 0,
			description: 'Seconds since it was published. Missing for its own file, and during a trial.',
		},
		from_disk: {
			type: 'boolean',
			description: 'Whether it comes from the disk and Redis has not answered since the start.',
		},
	},
	required: ['number', 'from_disk'],
	additionalProperties: false,
};

export const cluster: AdminEndpoint = {
	path: '/cluster',
	operationsByMethod: {
		GET: {
			summary: 'Lists the running processes of the cluster.',
			answer: {
				description: 'The cluster as this process sees it.',
				type: 'application/json',
				schema: {
					type: 'object',
					properties: {
						address: {
							type: 'string',
							description:
								'`host:port` of Redis, `sentinel` and the name of the master, or `cluster` and `host:port` of a node.',
						},
						connected: { type: 'boolean', description: 'Whether Redis is connected.' },
						self: { type: 'string', description: 'ID of this process among the members.' },
						members: { type: 'array', items: MEMBER_SCHEMA, description: 'Missing while Redis does not answer.' },
						publication: PUBLICATION_SCHEMA,
					},
					required: ['address', 'connected'],
					additionalProperties: false,
				},
			},
			errors: ['no_cluster'],
			run: async (x, { runtime }) => {
				const { cluster } = runtime;
				if (!cluster) throw new AdminError(404, 'no_cluster', 'The configuration has no option `cluster`.');
				const members = await cluster.listMembers().catch(error => {
					if (error instanceof ClusterError) return undefined;
					throw error;
				});
				const { address, isConnected: connected, rollout } = cluster.report();
				const publication = rollout && {
					number: rollout.serves,
					age_seconds: rollout.ageSeconds,
					from_disk: rollout.isFromDisk,
				};
				answerJson(x, 200, JSON.stringify({ address, connected, self: cluster.ownId, members, publication }));
			},
		},
	},
};
