/** Reads a client's settings (RFC 9113 §6.5). */
import { H2_ERROR, MAX_WINDOW, SETTING } from './frame-codes.ts';

/** What of a client's settings says how we have to send. */
export interface PeerSettings {
	/** Window of each stream; undefined when nothing was said of it. */
	readonly initialWindow: number | undefined;
}

/**
 * The settings of one frame, or the error that they are. The size of the header table concerns an encoder that has one,
 * and frames of ours are never larger than every client takes.
 */
export function readSettings(bytes: Buffer, start: number, end: number): PeerSettings | number {
	if ((end - start) % 6 !== 0) return H2_ERROR.frameSize;
	let initialWindow: number | undefined;
	for (let at = start; at < end; at += 6) {
		const value = bytes.readUInt32BE(at + 2);
		switch (bytes.readUInt16BE(at)) {
			case SETTING.enablePush:
				if (value > 1) return H2_ERROR.protocol;
				break;
			case SETTING.initialWindowSize:
				if (value > MAX_WINDOW) return H2_ERROR.flowControl;
				initialWindow = value;
				break;
			case SETTING.maxFrameSize:
				if (value < 16_384 || value > 16_777_215) return H2_ERROR.protocol;
				break;
			case SETTING.enableConnectProtocol:
			case SETTING.noRfc7540Priorities:
				if (value > 1) return H2_ERROR.protocol;
		}
	}
	return { initialWindow };
}
