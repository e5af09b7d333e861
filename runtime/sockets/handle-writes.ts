/** What is needed to write to Node's handles directly, without streams. */
import { Socket } from 'node:net';

/** Node's request object for a write in progress. Node keeps it alive until the write ends. */
export interface PendingWrite {
	oncomplete: (status: number) => void;
	/** The written data, stored here to keep its memory alive. */
	buffer: unknown;
	/** The status, if the write ended before `oncomplete` was set. */
	writeStatus: number | null;
}

/** With at least this many unsent bytes, a writer should wait until the socket has drained. */
export const WRITE_HIGH_WATER_BYTES = 65_536;

/** The answer of {@link canWriteWithoutRequest} once it is known. */
let canWrite: boolean | undefined;

/**
 * Reports whether Node's handles accept a write without a request object, and create and return one only if the write does not
 * end at once, as in Node 26. Omitting a request object that a real handle requires would not be safe, so the test uses a fake
 * handle.
 */
export function canWriteWithoutRequest(): boolean {
	canWrite ??= probeWrites();
	return canWrite;
}

function probeWrites(): boolean {
	let acceptsNull = false;
	const handle = {
		writeLatin1String(request: unknown): number {
			acceptsNull = request === null;
			return 0;
		},
		close(onClosed?: () => void): void {
			onClosed?.();
		},
		readStart: doNothing,
		readStop: doNothing,
		getAsyncId: () => 0,
		ref: doNothing,
		unref: doNothing,
	};
	try {
		const socket = new Socket({ handle, manualStart: true } as never);
		socket.on('error', doNothing);
		socket.write('-', 'latin1');
		socket.destroy();
	} catch {
		return false;
	}
	return acceptsNull;
}

function doNothing(): void {}
