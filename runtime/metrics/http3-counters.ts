/** Counters of HTTP/3 and of the QUIC connections below it. */
import { CUT_REASONS } from '../protocols/http2/flood-guard.ts';
import type { Http3Counters } from '../protocols/protocol.ts';
import { type HandshakeResult, QUIC_REFUSALS, type QuicRefusal } from '../sockets/quic/quic-results.ts';
import { FILE_SLOTS_END } from './file-counters.ts';
import type { LabeledSlotFamily } from './refusals.ts';

const FIRST_HTTP3_SLOT = FILE_SLOTS_END;
const CONNECTIONS_SLOT = FIRST_HTTP3_SLOT;
const STREAMS_SLOT = FIRST_HTTP3_SLOT + 1;
const CLIENT_RESETS_SLOT = FIRST_HTTP3_SLOT + 2;
const SERVER_RESETS_SLOT = FIRST_HTTP3_SLOT + 3;
const RESUMPTIONS_SLOT = FIRST_HTTP3_SLOT + 4;
const RECEIVED_DATAGRAMS_SLOT = FIRST_HTTP3_SLOT + 5;
const SENT_DATAGRAMS_SLOT = FIRST_HTTP3_SLOT + 6;
const LOST_DATAGRAMS_SLOT = FIRST_HTTP3_SLOT + 7;
const HANDSHAKE_SLOTS: { readonly [result in HandshakeResult]: number } = {
	ok: FIRST_HTTP3_SLOT + 8,
	timeout: FIRST_HTTP3_SLOT + 9,
	failed: FIRST_HTTP3_SLOT + 10,
};
const PORT_CHANGES_SLOT = FIRST_HTTP3_SLOT + 11;
const FIRST_CUT_SLOT = FIRST_HTTP3_SLOT + 12;
const FIRST_REFUSAL_SLOT: number = FIRST_CUT_SLOT + CUT_REASONS.length;

/** Slot of the gauge of open HTTP/3 connections. */
export const HTTP3_CONNECTIONS_SLOT: number = CONNECTIONS_SLOT;
/** The first slot after the HTTP/3 counters. */
export const HTTP3_SLOTS_END: number = FIRST_REFUSAL_SLOT + QUIC_REFUSALS.length;

/** The metric families of the HTTP/3 counters that have no label, each with its slot. */
export const HTTP3_PLAIN_FAMILIES: readonly [name: string, help: string, type: 'counter' | 'gauge', slot: number][] = [
	['svc_http3_connections', 'Open HTTP/3 connections.', 'gauge', CONNECTIONS_SLOT],
	['svc_http3_streams_total', 'HTTP/3 streams that carried a request.', 'counter', STREAMS_SLOT],
	['svc_http3_resumptions_total', 'QUIC handshakes that resumed a session.', 'counter', RESUMPTIONS_SLOT],
	['svc_http3_datagrams_received_total', 'UDP datagrams received for HTTP/3.', 'counter', RECEIVED_DATAGRAMS_SLOT],
	['svc_http3_datagrams_sent_total', 'UDP datagrams sent for HTTP/3.', 'counter', SENT_DATAGRAMS_SLOT],
	[
		'svc_http3_datagrams_lost_total',
		'UDP datagrams that the operating system did not accept.',
		'counter',
		LOST_DATAGRAMS_SLOT,
	],
	[
		'svc_http3_port_changes_total',
		'Times that an HTTP/3 connection has followed its client to another UDP port.',
		'counter',
		PORT_CHANGES_SLOT,
	],
];

/** What the QUIC layer counts: handshakes, rejected datagrams, datagrams in and out, and changes of clients' ports. */
export interface QuicCounters {
	countHandshake(result: HandshakeResult, resumed: boolean): void;
	countRefusal(reason: QuicRefusal): void;
	countDatagrams(received: number, sent: number, lost: number): void;
	countPortChange(): void;
}

/** Returns an object that counts in a thread's counter row. */
export function http3Counters(row: Float64Array): Http3Counters & QuicCounters {
	const slotsByReason = new Map<string, number>(CUT_REASONS.map((reason, index) => [reason, FIRST_CUT_SLOT + index]));
	return {
		connectionOpened: () => {
			row[CONNECTIONS_SLOT]!++;
		},
		connectionClosed: () => {
			row[CONNECTIONS_SLOT]!--;
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
		countHandshake: (result, resumed) => {
			row[HANDSHAKE_SLOTS[result]]!++;
			if (resumed) row[RESUMPTIONS_SLOT]!++;
		},
		countRefusal: reason => {
			row[FIRST_REFUSAL_SLOT + QUIC_REFUSALS.indexOf(reason)]!++;
		},
		countDatagrams: (received, sent, lost) => {
			row[RECEIVED_DATAGRAMS_SLOT]! += received;
			row[SENT_DATAGRAMS_SLOT]! += sent;
			row[LOST_DATAGRAMS_SLOT]! += lost;
		},
		countPortChange: () => {
			row[PORT_CHANGES_SLOT]!++;
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
			['client', CLIENT_RESETS_SLOT],
			['server', SERVER_RESETS_SLOT],
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
		slots: Object.entries(HANDSHAKE_SLOTS),
	},
	{
		name: 'svc_http3_refused_total',
		help: 'QUIC datagrams and handshakes that were rejected, by reason.',
		label: 'reason',
		slots: QUIC_REFUSALS.map((reason, index) => [reason, FIRST_REFUSAL_SLOT + index]),
	},
];
