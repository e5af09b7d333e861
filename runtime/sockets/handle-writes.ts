/** What is needed to write to Node's handles directly, without streams. */
import { Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';

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

/** The errors that {@link systemError} has created, by system call and status. */
const SYSTEM_ERRORS: { readonly [syscall: string]: Map<number, Error> } = {
	read: new Map(),
	write: new Map(),
	shutdown: new Map(),
};

/**
 * Returns an error like those of Node's streams, but without a stack trace. All failures with the same status and call share one
 * error, which must not be modified: many clients reset their connections, and creating an error takes 4 % of the time of a
 * resumed TLS handshake.
 */
export function systemError(status: number, syscall: 'read' | 'write' | 'shutdown'): Error {
	const errorsByStatus = SYSTEM_ERRORS[syscall]!;
	let error = errorsByStatus.get(status);
	if (error === undefined) {
		error = createSystemError(status, syscall);
		errorsByStatus.set(status, error);
	}
	return error;
}

function createSystemError(status: number, syscall: string): Error {
	const code = getSystemErrorName(status);
	const { stackTraceLimit } = Error;
	Error.stackTraceLimit = 0;
	const error = new Error(`${syscall} ${code}`);
	Error.stackTraceLimit = stackTraceLimit;
	return Object.assign(error, { errno: status, code, syscall });
}

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
