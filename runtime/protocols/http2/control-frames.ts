/** Handles frames that carry no message: SETTINGS, PING, WINDOW_UPDATE, PRIORITY, GOAWAY (RFC 9113 §6). */
import { type CutReason, FRAME_COST } from './flood-guard.ts';
import { DEFAULT_WINDOW, FRAME_FLAG, H2_ERROR, MAX_WINDOW } from './frame-codes.ts';
import type { FrameWriter } from './frame-writer.ts';
import type { OutputQueue } from './output-queue.ts';
import type { SessionEnd } from './session-end.ts';
import { readSettings } from './settings.ts';
import type { Http2Stream } from './stream.ts';

/** What the handler of control frames needs from its connection. */
export interface ControlledSession {
	readonly frames: FrameWriter;
	readonly queue: OutputQueue;
	readonly sessionEnd: SessionEnd;
	readonly streams: ReadonlyMap<number, Http2Stream>;
	/** The highest stream ID that the client has used. */
	readonly lastStreamId: number;
	sendWindow: number;
	/** Handles a connection error caused by the client. */
	fail(code: number): void;
	/** Handles a stream error caused by the client. */
	failStream(stream: Http2Stream, code: number): void;
	/** Charges the connection's budget with the cost of a frame that does no useful work. */
	charge(reason: CutReason, cost: number): void;
}

/** Handles the control frames of one connection. */
export class ControlFrames {
	/** The initial send window of streams, as set by the client. */
	peerStreamWindow: number = DEFAULT_WINDOW;
	/** True once the client's first SETTINGS have arrived. */
	hasReceivedSettings = false;
	readonly #session: ControlledSession;

	constructor(session: ControlledSession) {
		this.#session = session;
	}

	handleSettings(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
		const session = this.#session;
		const payloadBytes = end - start;
		if (streamId !== 0) session.fail(H2_ERROR.protocol);
		else if ((flags & FRAME_FLAG.ack) !== 0) {
			if (payloadBytes !== 0) session.fail(H2_ERROR.frameSize);
			else if (!this.hasReceivedSettings) session.fail(H2_ERROR.protocol);
			else session.charge('settings_flood', FRAME_COST.ping_flood);
		} else {
			this.hasReceivedSettings = true;
			const settings = readSettings(bytes, start, end);
			if (typeof settings === 'number') session.fail(settings);
			else if (this.#applyInitialWindow(settings.initialWindow)) {
				session.frames.writeSettings([]);
				session.charge('settings_flood', FRAME_COST.settings_flood + payloadBytes / 6);
			} else session.fail(H2_ERROR.flowControl);
		}
	}

	/**
	 * Applies a new initial window to new and open streams (RFC 9113 §6.9.2). Returns false if the window of an open stream becomes
	 * too large.
	 */
	#applyInitialWindow(window: number | undefined): boolean {
		if (window === undefined) return true;
		const windowChange = window - this.peerStreamWindow;
		this.peerStreamWindow = window;
		for (const { output } of this.#session.streams.values()) if (!output.widenWindow(windowChange)) return false;
		return true;
	}

	handlePing(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
		const session = this.#session;
		if (streamId !== 0) session.fail(H2_ERROR.protocol);
		else if (end - start !== 8) session.fail(H2_ERROR.frameSize);
		else {
			if ((flags & FRAME_FLAG.ack) !== 0) session.sessionEnd.onPingAnswered(session.lastStreamId);
			else session.frames.writePing(bytes.subarray(start, end), true);
			session.charge('ping_flood', FRAME_COST.ping_flood);
		}
	}

	/** Checks the form of a PRIORITY frame. Priorities are ignored: flow control and round-robin determine the order. */
	handlePriority(streamId: number, payloadBytes: number): void {
		if (streamId === 0) this.#session.fail(H2_ERROR.protocol);
		else if (payloadBytes !== 5) this.#session.fail(H2_ERROR.frameSize);
		else this.#session.charge('priority_flood', FRAME_COST.priority_flood);
	}

	handleGoAway(streamId: number, payloadBytes: number): void {
		if (streamId !== 0) this.#session.fail(H2_ERROR.protocol);
		else if (payloadBytes < 8) this.#session.fail(H2_ERROR.frameSize);
		else {
			this.#session.sessionEnd.onClientLeaving();
			this.#session.charge('empty_frames', FRAME_COST.empty_frames);
		}
	}

	handleWindowUpdate(id: number, bytes: Buffer, start: number, end: number): void {
		const session = this.#session;
		if (end - start !== 4) {
			session.fail(H2_ERROR.frameSize);
			return;
		}
		const increment = bytes.readUInt32BE(start) & MAX_WINDOW;
		if (id === 0) {
			session.sendWindow += increment;
			if (increment === 0) session.fail(H2_ERROR.protocol);
			else if (session.sendWindow > MAX_WINDOW) session.fail(H2_ERROR.flowControl);
			else session.queue.onWindowGrown();
		} else if (id > session.lastStreamId) session.fail(H2_ERROR.protocol);
		else {
			const stream = session.streams.get(id);
			if (stream !== undefined) {
				if (increment === 0) session.failStream(stream, H2_ERROR.protocol);
				else if (!stream.output.widenWindow(increment)) session.failStream(stream, H2_ERROR.flowControl);
			}
		}
		session.charge('window_update_flood', FRAME_COST.window_update_flood);
	}
}
