/** Slots and metric families for rejected requests, client timeouts, and connections turned away because of overload. */

/** Values of the label `reason` of `svc_requests_refused_total`. All other reasons count as `other`. */
const REFUSAL_REASONS = [
	'other',
	...(['bad_request_line', 'bad_method', 'method_too_long', 'bad_target', 'target_too_long', 'bad_version'] as const),
	...(['bad_field_name', 'bad_field_value', 'bare_cr', 'bare_lf', 'too_many_fields', 'head_too_large'] as const),
	...(['no_host', 'bad_host', 'repeated_host', 'bad_content_length', 'two_lengths', 'bad_chunk'] as const),
	...(['bad_transfer_encoding', 'unknown_transfer_encoding', 'unknown_expectation', 'framing_in_trailer'] as const),
	'bad_proxy_header',
	...(['bad_pseudo_header', 'connection_field', 'bad_scheme', 'trailers_too_large', 'refused_stream'] as const),
] as const;

/** Values of the label `phase` of `svc_client_timeouts_total`, by the reason that the protocol reports. */
const TIMEOUT_PHASES: { readonly [reason: string]: string } = {
	header_timeout: 'header',
	body_timeout: 'body',
	write_timeout: 'write',
	proxy_header_timeout: 'proxy_header',
};

/** Values of the label `limit` of `svc_overload_rejected_total`. */
const OVERLOAD_LIMITS = [
	...([
		'connections',
		'connections_per_client',
		'requests_per_client',
		'queue',
		'queue_time',
		'descriptors',
		'passwords',
		'buffered_bodies',
	] as const),
] as const;

export type OverloadLimit = (typeof OVERLOAD_LIMITS)[number];

/**
 * First slot of the counter row (see counter-row.ts) for rejected requests. Each reason has a slot, in the order of the reasons.
 */
const FIRST_REFUSAL_SLOT = 64;
/** First slot for client timeouts. */
const FIRST_TIMEOUT_SLOT = 48;
/** First slot for overload limits. */
const FIRST_OVERLOAD_SLOT = 32;

const TIMEOUT_REASONS = Object.keys(TIMEOUT_PHASES);
const REFUSAL_SLOTS = new Map<string, number>([
	...REFUSAL_REASONS.map((reason, index) => [reason, FIRST_REFUSAL_SLOT + index] as const),
	...TIMEOUT_REASONS.map((reason, index) => [reason, FIRST_TIMEOUT_SLOT + index] as const),
]);

/** Returns the slot for a reason reported by a protocol. */
export function refusalSlot(reason: string): number {
	return REFUSAL_SLOTS.get(reason) ?? FIRST_REFUSAL_SLOT;
}

export function overloadSlot(limit: OverloadLimit): number {
	return FIRST_OVERLOAD_SLOT + OVERLOAD_LIMITS.indexOf(limit);
}

/** A counter with one label; each label value has its slot in the counter rows of the threads. */
export interface LabeledSlotFamily {
	readonly name: string;
	readonly help: string;
	readonly label: string;
	/** Values of the label, and their slots. */
	readonly slots: readonly (readonly [value: string, slot: number])[];
}

/** The metric families of the counters in this file. */
export const REFUSAL_FAMILIES: readonly LabeledSlotFamily[] = [
	{
		name: 'svc_requests_refused_total',
		help: 'Messages rejected before they became a request, by reason.',
		label: 'reason',
		slots: REFUSAL_REASONS.map((reason, index) => [reason, FIRST_REFUSAL_SLOT + index]),
	},
	{
		name: 'svc_client_timeouts_total',
		help: 'Clients that timed out, by phase.',
		label: 'phase',
		slots: TIMEOUT_REASONS.map((reason, index) => [TIMEOUT_PHASES[reason]!, FIRST_TIMEOUT_SLOT + index]),
	},
	{
		name: 'svc_overload_rejected_total',
		help: 'Connections and requests rejected, by the limit that they exceeded.',
		label: 'limit',
		slots: OVERLOAD_LIMITS.map((limit, index) => [limit, FIRST_OVERLOAD_SLOT + index]),
	},
];
