/**
 * `GET /rollout` → 200, an object: the latest rollout of the cluster, with `publication`, `previous`, `phase`, the waves, and
 * `machines`, one object for each machine that takes its configuration from the cluster.
 *
 * - 404, code `no_cluster`: the configuration has no option `cluster` with a `key`.
 * - 404, code `no_rollout`: nothing has been published.
 * - 503, code `cluster_unavailable`: Redis does not answer, or the state cannot be decrypted.
 */
import { ClusterError } from '../runtime/cluster/cluster-error.ts';
import { type AdminEndpoint, answerJson } from './endpoint.ts';
import { AdminError } from './errors.ts';

const FAILURE_SCHEMA = {
	type: 'object',
	properties: {
		publication: { type: 'integer' },
		kind: { enum: ['refused', 'machine', 'errors', 'unready', 'ended'] },
		reason: { type: 'string' },
	},
	required: ['publication', 'kind', 'reason'],
	additionalProperties: false,
};

const MACHINE_SCHEMA = {
	type: 'object',
	properties: {
		machine: { type: 'string', description: 'ID of the machine, which outlives its processes.' },
		host: { type: 'string', description: 'Name of the host.' },
		pid: { type: 'integer' },
		version: { type: 'string' },
		serves: { type: 'integer', minimum: 0, description: 'The publication that it serves; 0 is its own file.' },
		wanted: { type: 'integer', minimum: 0, description: 'The publication that it has to serve.' },
		ready: { type: 'boolean' },
		lost: { type: 'boolean', description: 'Whether it no longer reports.' },
		responses: { type: 'integer', minimum: 0, description: 'Responses since it serves the publication.' },
		server_errors: { type: 'integer', minimum: 0, description: 'Those with a status of 500 or more.' },
		same_id_as: {
			type: 'object',
			description: 'Another process that reports with the same machine ID. Present only if there is one.',
			properties: { host: { type: 'string' }, pid: { type: 'integer' } },
			required: ['host', 'pid'],
			additionalProperties: false,
		},
		failure: FAILURE_SCHEMA,
	},
	required: ['machine', 'host', 'pid', 'version', 'serves', 'wanted', 'ready', 'lost', 'responses', 'server_errors'],
	additionalProperties: false,
};

export const rollout: AdminEndpoint = {
	path: '/rollout',
	operationsByMethod: {
		GET: {
			summary: 'Shows how far the latest publication has spread over the cluster.',
			answer: {
				description: 'The latest rollout. Times are in seconds since the epoch.',
				type: 'application/json',
				schema: {
					type: 'object',
					properties: {
						publication: { type: 'integer', minimum: 1 },
						previous: { type: 'integer', minimum: 0, description: 'The publication that machines return to.' },
						phase: { enum: ['running', 'paused', 'completed', 'stopped', 'aborted'] },
						wave: { type: 'integer', minimum: 0, description: 'The current wave, from 1; 0 before the first one.' },
						shares: {
							type: 'array',
							items: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
							description: 'The share of the machines that each wave extends the rollout to.',
						},
						started_at: { type: 'integer' },
						observed_since: { type: 'integer', description: 'When all machines of the wave served it.' },
						ended_at: { type: 'integer' },
						reason: { type: 'string', description: 'Why the rollout was stopped.' },
						failed_machine: { type: 'string', description: 'The machine whose failure stopped it.' },
						machines: { type: 'array', items: MACHINE_SCHEMA },
					},
					required: ['publication', 'previous', 'phase', 'wave', 'shares', 'started_at', 'machines'],
					additionalProperties: false,
				},
			},
			errors: ['no_cluster', 'no_rollout', 'cluster_unavailable'],
			run: async (x, { runtime }) => {
				const { cluster } = runtime;
				const sealedValues = cluster?.sealedValues;
				if (!cluster || !sealedValues)
					throw new AdminError(404, 'no_cluster', 'The configuration has no option `cluster` with a `key`.');
				const [{ RolloutUnreadable, SharedRollout }, { summarizeRollout }] = await Promise.all([
					import('../runtime/cluster/shared-rollout.ts'),
					import('../runtime/cluster/rollout-summary.ts'),
				]);
				const reading = await new SharedRollout(cluster, sealedValues).read().catch(error => {
					if (error instanceof ClusterError)
						throw new AdminError(503, 'cluster_unavailable', `Redis cannot be used: ${error.message}.`);
					if (error instanceof RolloutUnreadable) throw new AdminError(503, 'cluster_unavailable', error.message);
					throw error;
				});
				const summary = summarizeRollout(reading);
				if (!summary) throw new AdminError(404, 'no_rollout', 'Nothing has been published in this cluster.');
				answerJson(x, 200, JSON.stringify(summary));
			},
		},
	},
};
