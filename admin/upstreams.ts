/**
 * `GET /reverse_proxy/upstreams` → 200, a JSON array with an object for each upstream that the running configuration
 * names, used or not, and for each that its dynamic sources have found: `address`, `pool` (the name of a named pool),
 * `num_requests` (in flight), `fails` (recent failures), `healthy`, `circuit` (`closed`, `open`, `half_open`) and
 * `latency_ms` (recent time to the response head; null if unknown); with `shed`, also `concurrency_limit` and `shedding`. An
 * address with placeholders is shown as written.
 */
import type { UpstreamReport } from '../runtime/upstreams/pool-registry.ts';
import { type AdminEndpoint, answerJson } from './endpoint.ts';

const UPSTREAM_SCHEMA = {
	type: 'object',
	properties: {
		address: { type: 'string', description: 'The resolved address; one with placeholders as written.' },
		pool: { type: 'string', description: 'Name of a named pool.' },
		num_requests: { type: 'integer', minimum: 0, description: 'Requests in flight, in the whole process.' },
		fails: { type: 'integer', minimum: 0, description: 'Recent failures, within `fail_duration`.' },
		healthy: { type: 'boolean' },
		circuit: { enum: ['closed', 'open', 'half_open'] },
		latency_ms: {
			type: ['number', 'null'],
			description: 'Recent time to response head, in milliseconds; null if unknown.',
		},
		concurrency_limit: {
			type: 'integer',
			minimum: 1,
			description: 'With `shed`: the current limit of requests that wait for response heads.',
		},
		shedding: {
			type: 'boolean',
			description: 'With `shed`: whether the pool has refused requests in the last ten seconds.',
		},
	},
	required: ['address', 'num_requests', 'fails', 'healthy', 'circuit', 'latency_ms'],
	additionalProperties: false,
};

export const upstreams: AdminEndpoint = {
	path: '/reverse_proxy/upstreams',
	operationsByMethod: {
		GET: {
			summary:
				'Lists the upstreams that the running configuration names, and those that its dynamic sources have found.',
			answer: {
				description: 'One object for each upstream.',
				type: 'application/json',
				schema: { type: 'array', items: UPSTREAM_SCHEMA },
			},
			run: (x, { runtime }) => answerJson(x, 200, JSON.stringify(runtime.upstreams().map(upstreamEntry))),
		},
	},
};

function upstreamEntry(report: UpstreamReport) {
	const { address, pool, requests, fails, healthy, circuit, latency, concurrencyLimit, isShedding } = report;
	const latency_ms = latency === undefined ? null : Math.round(latency * 1000) / 1000;
	return {
		address,
		...(pool === undefined ? {} : { pool }),
		num_requests: requests,
		fails,
		healthy,
		circuit,
		latency_ms,
		...(concurrencyLimit === undefined ? {} : { concurrency_limit: concurrencyLimit, shedding: isShedding }),
	};
}
