/** Constants of HTTP/3 (RFC 9114) and QPACK (RFC 9204). */

/** Frame types (RFC 9114 §7.2). */
export const FRAME_TYPE = {
	data: 0x0,
	headers: 0x1,
	cancelPush: 0x3,
	settings: 0x4,
	pushPromise: 0x5,
	goAway: 0x7,
	maxPushId: 0xd,
	/** The two types of PRIORITY_UPDATE frames: for requests and for pushes (RFC 9218 §7.2). */
	priorityUpdateRequest: 0xf0700,
	priorityUpdatePush: 0xf0701,
} as const;

/** Types of HTTP/2 frames that are not allowed in HTTP/3 (RFC 9114 §7.2.8). */
export const FORBIDDEN_FRAMES: ReadonlySet<number> = new Set([0x2, 0x6, 0x8, 0x9]);

/** Types of unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2). */
export const STREAM_TYPE = { control: 0x0, push: 0x1, encoder: 0x2, decoder: 0x3 } as const;

/** Setting identifiers (RFC 9114 §7.2.4.1, RFC 9204 §5, RFC 9220 §5). */
export const SETTING_ID = {
	qpackMaxTableCapacity: 0x1,
	maxFieldSectionSize: 0x6,
	qpackBlockedStreams: 0x7,
	enableConnectProtocol: 0x8,
} as const;

/** Identifiers of HTTP/2 settings that are not allowed in HTTP/3 (RFC 9114 §7.2.4.1). */
export const FORBIDDEN_SETTINGS: ReadonlySet<number> = new Set([0x0, 0x2, 0x3, 0x4, 0x5]);

/** Error codes (RFC 9114 §8.1, RFC 9204 §6). */
export const H3_ERROR = {
	none: 0x100,
	protocol: 0x101,
	internal: 0x102,
	streamCreation: 0x103,
	closedCriticalStream: 0x104,
	frameUnexpected: 0x105,
	frame: 0x106,
	excessiveLoad: 0x107,
	id: 0x108,
	settings: 0x109,
	missingSettings: 0x10a,
	rejected: 0x10b,
	cancel: 0x10c,
	incomplete: 0x10d,
	message: 0x10e,
	connect: 0x10f,
	decompression: 0x200,
	encoderStream: 0x201,
	decoderStream: 0x202,
} as const;
