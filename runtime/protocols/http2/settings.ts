/** Parses a client's settings (RFC 9113 §6.5). */
import { H2_ERROR, MAX_WINDOW, SETTING_ID } from './frame-codes.ts';

/** The settings of the client that affect what we send. */
export interface PeerSettings {
	/** Initial window of each stream in bytes; undefined if not set. */
	readonly initialWindow: number | undefined;
}

/**
 * Parses the settings in a frame, or returns an error code. Ignores the header table size, because our encoder uses no dynamic
 * table, and the maximum frame size, because our frames never exceed the smallest allowed value.
 */
export function readSettings(bytes: Buffer, start: number, end: number): PeerSettings | number {
	if ((end - start) % 6 !== 0) return H2_ERROR.frameSize;
	let initialWindow: number | undefined;
	for (let at = start; at < end; at += 6) {
		const value = bytes.readUInt32BE(at + 2);
		switch (bytes.readUInt16BE(at)) {
			case SETTING_ID.enablePush:
				if (value > 1) return H2_ERROR.protocol;
				break;
			case SETTING_ID.initialWindowSize:
				if (value > MAX_WINDOW) return H2_ERROR.flowControl;
				initialWindow = value;
				break;
			case SETTING_ID.maxFrameSize:
				if (value < 16_384 || value > 16_777_215) return H2_ERROR.protocol;
				break;
			case SETTING_ID.enableConnectProtocol:
			case SETTING_ID.noRfc7540Priorities:
				if (value > 1) return H2_ERROR.protocol;
		}
	}
	return { initialWindow };
}
