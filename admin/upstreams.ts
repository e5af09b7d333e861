/**
 * `GET /reverse_proxy/upstreams` → 200, a JSON array with an object for each upstream that the running configuration
 * names, used or not, and for each that its dynamic sources have found: `address`, `pool` (the name of a named one), `num_requests` (in flight), `fails` (remembered), `healthy`, `circuit` (`closed`,
 * `open`, `half_open`) and `latency_ms` (until an answer begins, of late; null when it is not known). An address with
 * placeholders stands as it was written.
 */
import type { UpstreamReport } from '../runtime/upstreams/pool-registry.ts';
import { type AdminEndpoint, answerJson } from './endpoint.ts';

const UPSTREAM = {
	type: 'object',
	properties: {
		address: { type: 'string', description: 'As it was resolved; one with placeholders as it was written.' },
		pool: { type: 'string', description: 'Name of the pool, when it has one.' },
		num_requests: { type: 'integer', minimum: 0, description: 'Requests in flight, of the whole process.' },
		fails: { type: 'integer', minimum: 0, description: 'Failures that are remembered.' },
		healthy: { type: 'boolean' },
		circuit: { enum: ['closed', 'open', 'half_open'] },
		latency_ms: { type: ['number', 'null'], description: 'Until an answer begins, of late; null when not known.' },
	},
	required: ['address', 'num_requests', 'fails', 'healthy', 'circuit', 'latency_ms'],
	additionalProperties: false,
};

/** `/reverse_proxy/upstreams`. */
export const upstreams: AdminEndpoint = {
	path: '/reverse_proxy/upstreams',
	methods: {
		GET: {
			summary:
				'Lists the upstreams that the running configuration names, and those that its dynamic sources have found.',
			answer: {
				description: 'One object for each.',
				type: 'application/json',
				schema: { type: 'array', items: UPSTREAM },
			},
			run: (x, { runtime }) => answerJson(x, 200, JSON.stringify(runtime.upstreams().map(entry))),
		},
	},
};

function entry({ address, pool, requests, fails, healthy, circuit, latency }: UpstreamReport) {
	const latency_ms = latency === undefined ? null : Math.round(latency * 1000) / 1000;
	return {
		address,
		...(pool === undefined ? {} : { pool }),
		num_requests: requests,
		fails,
		healthy,
		circuit,
		latency_ms,
	};
}
