/** Why OpenSSL has closed a connection because of an error of its own. */
import path from 'node:path';
import type { QuicThread } from './quic-thread.ts';

/** INTERNAL_ERROR (RFC 9000 §20.1). */
export const INTERNAL_ERROR = 1;
/** Offsets in `QuicThread.results`, where `askCloseInfo` has stored the reason. */
const REASON_POINTER_OFFSET = 88;
const REASON_LENGTH_OFFSET = 96;
/** Maximum entries of OpenSSL's error queue. */
const MAX_ERRORS = 16;

/** The reason for which OpenSSL has closed a connection, and the errors that preceded it. */
export interface InternalError {
	readonly reason: string;
	/** Entries of OpenSSL's error queue, oldest first. */
	readonly errors: readonly string[];
}

/** Describes the error of a connection whose close information was asked last. `channel` is its `QUIC_CHANNEL`; 0 if unknown. */
export function describeInternalError(thread: QuicThread, channel: bigint): InternalError {
	const { library, results, channelRuns } = thread;
	const pointer = results.readBigUInt64LE(REASON_POINTER_OFFSET);
	const length = Number(results.readBigUInt64LE(REASON_LENGTH_OFFSET));
	const reason = pointer === 0n ? '' : library.copyBytes(pointer, length).toString('latin1');
	// OpenSSL keeps the errors in the connection.
	if (channel !== 0n) channelRuns?.restoreErrors(channel);
	const errors: string[] = [];
	for (let text = nextError(thread); text !== undefined && errors.length < MAX_ERRORS; text = nextError(thread))
		errors.push(text);
	library.functions.ERR_clear_error();
	return { reason, errors };
}

/** Removes the oldest error from OpenSSL's queue and returns its text; undefined if the queue is empty. */
function nextError({ library, results, resultsPointer }: QuicThread): string | undefined {
	const { functions } = library;
	const [file, line, name, details, flags] = [0n, 8n, 16n, 24n, 32n].map(offset => resultsPointer + offset);
	const code = functions.ERR_get_error_all(file!, line!, name!, details!, flags!) as bigint;
	if (code === 0n) return undefined;
	const textAt = (address: bigint): string => (address === 0n ? '' : library.readText(address));
	const reason = textAt(functions.ERR_reason_error_string(code) as bigint) || `error ${code.toString(16)}`;
	const place = `${path.basename(textAt(results.readBigUInt64LE(0)))}:${results.readInt32LE(8)}`;
	return [reason, textAt(results.readBigUInt64LE(24)), textAt(results.readBigUInt64LE(16)), place]
		.filter(part => part !== '')
		.join(', ');
}
