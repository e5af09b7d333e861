/** Constants of the HTTP/2 wire format: frame types, flags, error codes and settings (RFC 9113 §6, §7; RFC 8441, RFC 9218). */

/** Frame types (RFC 9113 §6). */
export const FRAME_TYPE = {
	data: 0,
	headers: 1,
	priority: 2,
	resetStream: 3,
	settings: 4,
	pushPromise: 5,
	ping: 6,
	goAway: 7,
	windowUpdate: 8,
	continuation: 9,
} as const;

export const FRAME_FLAG = {
	/** A flag of SETTINGS and PING frames. */
	ack: 0x1,
	/** A flag of DATA and HEADERS frames. */
	endStream: 0x1,
	/** A flag of HEADERS and CONTINUATION frames. */
	endHeaders: 0x4,
	/** A flag of DATA and HEADERS frames. */
	padded: 0x8,
	/** A flag of HEADERS frames. */
	priority: 0x20,
} as const;

/** Error codes of RST_STREAM and GOAWAY (RFC 9113 §7). */
export const H2_ERROR = {
	none: 0,
	protocol: 1,
	internal: 2,
	flowControl: 3,
	settingsTimeout: 4,
	streamClosed: 5,
	frameSize: 6,
	refusedStream: 7,
	cancel: 8,
	compression: 9,
	connect: 10,
	enhanceYourCalm: 11,
} as const;

/** Setting identifiers (RFC 9113 §6.5.2). */
export const SETTING_ID = {
	headerTableSize: 1,
	enablePush: 2,
	maxConcurrentStreams: 3,
	initialWindowSize: 4,
	maxFrameSize: 5,
	maxHeaderListSize: 6,
	/** The peer supports extended CONNECT (RFC 8441 §3). */
	enableConnectProtocol: 8,
	/** The sender does not use the priorities of RFC 7540 (RFC 9218 §2.1). */
	noRfc7540Priorities: 9,
} as const;

/** Number of bytes before the payload of a frame: its length, type, flags and stream ID (RFC 9113 §4.1). */
export const FRAME_HEADER_BYTES = 9;
/** Maximum size of a flow-control window in bytes (RFC 9113 §6.9.1). */
export const MAX_WINDOW = 0x7fffffff;
/** Initial flow-control window of a connection and of a stream, in bytes. */
export const DEFAULT_WINDOW = 65_535;
/** The client's connection preface (RFC 9113 §3.4). */
export const CLIENT_PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
