/** Counters of HTTP/3 and of the QUIC connections below it. */
import { CUT_REASONS } from '../protocols/http2/flood-guard.ts';
import type { Http3Counters } from '../protocols/protocol.ts';
import { type HandshakeResult, QUIC_REFUSALS, type QuicRefusal } from '../sockets/quic/quic-results.ts';
import { FILE_SLOTS_END } from './file-counters.ts';
import type { LabeledSlotFamily } from './refusals.ts';

const FIRST_SLOT = FILE_SLOTS_END;
const CONNECTIONS = FIRST_SLOT;
const STREAMS = FIRST_SLOT + 1;
const RESETS_BY_CLIENT = FIRST_SLOT + 2;
const RESETS_BY_SERVER = FIRST_SLOT + 3;
const RESUMPTIONS = FIRST_SLOT + 4;
const DATAGRAMS_RECEIVED = FIRST_SLOT + 5;
const DATAGRAMS_SENT = FIRST_SLOT + 6;
const DATAGRAMS_LOST = FIRST_SLOT + 7;
const HANDSHAKES: { readonly [result in HandshakeResult]: number } = {
	ok: FIRST_SLOT + 8,
	timeout: FIRST_SLOT + 9,
	failed: FIRST_SLOT + 10,
};
const FIRST_CUT_SLOT = FIRST_SLOT + 11;
const FIRST_REFUSAL_SLOT: number = FIRST_CUT_SLOT + CUT_REASONS.length;

/** Slot of the gauge of open HTTP/3 connections. */
export const HTTP3_CONNECTIONS_SLOT: number = CONNECTIONS;
/** The first slot after the HTTP/3 counters. */
export const HTTP3_SLOTS_END: number = FIRST_REFUSAL_SLOT + QUIC_REFUSALS.length;

/** The metric families of the HTTP/3 counters that have no label, each with its slot. */
export const HTTP3_PLAIN_FAMILIES: readonly [name: string, help: string, type: 'counter' | 'gauge', slot: number][] = [
	['svc_http3_connections', 'Open HTTP/3 connections.', 'gauge', CONNECTIONS],
	['svc_http3_streams_total', 'HTTP/3 streams that carried a request.', 'counter', STREAMS],
	['svc_http3_resumptions_total', 'QUIC handshakes that resumed a session.', 'counter', RESUMPTIONS],
	['svc_http3_datagrams_received_total', 'UDP datagrams received for HTTP/3.', 'counter', DATAGRAMS_RECEIVED],
	['svc_http3_datagrams_sent_total', 'UDP datagrams sent for HTTP/3.', 'counter', DATAGRAMS_SENT],
	[
		'svc_http3_datagrams_lost_total',
		'UDP datagrams that the operating system did not accept.',
		'counter',
		DATAGRAMS_LOST,
	],
];

/** What the QUIC layer counts: handshakes, rejected datagrams, and datagrams in and out. */
export interface QuicCounters {
	handshake(result: HandshakeResult, resumed: boolean): void;
	refused(reason: QuicRefusal): void;
	datagrams(received: number, sent: number, lost: number): void;
}

/** Returns an object that counts in a thread's counter row. */
export function http3Counters(row: Float64Array): Http3Counters & QuicCounters {
	const cutSlots = new Map<string, number>(CUT_REASONS.map((reason, index) => [reason, FIRST_CUT_SLOT + index]));
	return {
		connectionOpened: () => {
			row[CONNECTIONS]!++;
		},
		connectionClosed: () => {
			row[CONNECTIONS]!--;
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
		handshake: (result, resumed) => {
			row[HANDSHAKES[result]]!++;
			if (resumed) row[RESUMPTIONS]!++;
		},
		refused: reason => {
			row[FIRST_REFUSAL_SLOT + QUIC_REFUSALS.indexOf(reason)]!++;
		},
		datagrams: (received, sent, lost) => {
			row[DATAGRAMS_RECEIVED]! += received;
			row[DATAGRAMS_SENT]! += sent;
			row[DATAGRAMS_LOST]! += lost;
		},
	};
}

/** The metric families of the HTTP/3 counters that have a label. */
export const HTTP3_LABELED_FAMILIES: readonly LabeledSlotFamily[] = [
	{
		name: 'svc_http3_streams_reset_total',
		help: 'HTTP/3 streams that were reset, by side.',
		label: 'by',
		slots: [
			['client', RESETS_BY_CLIENT],
			['server', RESETS_BY_SERVER],
		],
	},
	{
		name: 'svc_http3_connections_cut_total',
		help: "HTTP/3 connections closed because of their client's behavior, by reason.",
		label: 'reason',
		slots: CUT_REASONS.map((reason, index) => [reason, FIRST_CUT_SLOT + index]),
	},
	{
		name: 'svc_http3_handshakes_total',
		help: 'QUIC handshakes, by result.',
		label: 'result',
		slots: Object.entries(HANDSHAKES),
	},
	{
		name: 'svc_http3_refused_total',
		help: 'QUIC datagrams and handshakes that were rejected, by reason.',
		label: 'reason',
		slots: QUIC_REFUSALS.map((reason, index) => [reason, FIRST_REFUSAL_SLOT + index]),
	},
];
