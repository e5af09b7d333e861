/** Counters of HTTP/2: connections, streams, resets, and connections closed because the client misbehaved. */
import { CUT_REASONS } from '../protocols/http2/flood-guard.ts';
import type { Http2Counters } from '../protocols/protocol.ts';
import type { LabeledSlotFamily } from './refusals.ts';

/** Slots of the counter row (see counter-row.ts): 112 to 126. */
const SESSIONS = 112;
const STREAMS = 113;
const RESETS_BY_CLIENT = 114;
const RESETS_BY_SERVER = 115;
const FIRST_CUT_SLOT = 116;

/** Slot of the gauge of open HTTP/2 connections. */
export const HTTP2_SESSIONS_SLOT: number = SESSIONS;
/** Slot of the counter of opened streams. */
export const HTTP2_STREAMS_SLOT: number = STREAMS;

/** Returns an object that counts in a thread's counter row. */
export function http2Counters(row: Float64Array): Http2Counters {
	const cutSlots = new Map<string, number>(CUT_REASONS.map((reason, index) => [reason, FIRST_CUT_SLOT + index]));
	return {
		sessionOpened: () => {
			row[SESSIONS]!++;
		},
		sessionClosed: () => {
			row[SESSIONS]!--;
		},
		streamOpened: () => {
			row[STREAMS]!++;
		},
		streamReset: byClient => {
			row[byClient ? RESETS_BY_CLIENT : RESETS_BY_SERVER]!++;
		},
		connectionCut: reason => {
			const slot = cutSlots.get(reason);
			if (slot !== undefined) row[slot]!++;
		},
	};
}

/** The metric families of the HTTP/2 counters that have a label. */
export const HTTP2_LABELED_FAMILIES: readonly LabeledSlotFamily[] = [
	{
		name: 'svc_http2_streams_reset_total',
		help: 'HTTP/2 streams that were reset, by side.',
		label: 'by',
		slots: [
			['client', RESETS_BY_CLIENT],
			['server', RESETS_BY_SERVER],
		],
	},
	{
		name: 'svc_http2_connections_cut_total',
		help: "HTTP/2 connections closed because of their client's behavior, by reason.",
		label: 'reason',
		slots: CUT_REASONS.map((reason, index) => [reason, FIRST_CUT_SLOT + index]),
	},
];
