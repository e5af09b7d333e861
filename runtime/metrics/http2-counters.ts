/** Counters of HTTP/2: connections, streams, resets, and connections closed because the client misbehaved. */
import { CUT_REASONS } from '../protocols/http2/flood-guard.ts';
import type { Http2Counters } from '../protocols/protocol.ts';
import type { LabeledSlotFamily } from './refusals.ts';

/** Slots of the counter row (see counter-row.ts): 112 to 126. */
const SESSIONS_SLOT = 112;
const STREAMS_SLOT = 113;
const CLIENT_RESETS_SLOT = 114;
const SERVER_RESETS_SLOT = 115;
const FIRST_CUT_SLOT = 116;

/** Slot of the gauge of open HTTP/2 connections. */
export const HTTP2_SESSIONS_SLOT: number = SESSIONS_SLOT;
/** Slot of the counter of opened streams. */
export const HTTP2_STREAMS_SLOT: number = STREAMS_SLOT;

/** Returns an object that counts in a thread's counter row. */
export function http2Counters(row: Float64Array): Http2Counters {
	const slotsByReason = new Map<string, number>(CUT_REASONS.map((reason, index) => [reason, FIRST_CUT_SLOT + index]));
	return {
		sessionOpened: () => {
			row[SESSIONS_SLOT]!++;
		},
		sessionClosed: () => {
			row[SESSIONS_SLOT]!--;
		},
		streamOpened: () => {
			row[STREAMS_SLOT]!++;
		},
		streamReset: byClient => {
			row[byClient ? CLIENT_RESETS_SLOT : SERVER_RESETS_SLOT]!++;
		},
		connectionCut: reason => {
			const slot = slotsByReason.get(reason);
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
			['client', CLIENT_RESETS_SLOT],
			['server', SERVER_RESETS_SLOT],
		],
	},
	{
		name: 'svc_http2_connections_cut_total',
		help: "HTTP/2 connections closed because of their client's behavior, by reason.",
		label: 'reason',
		slots: CUT_REASONS.map((reason, index) => [reason, FIRST_CUT_SLOT + index]),
	},
];
