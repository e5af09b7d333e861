/** How Node's handles are written to. */
import { Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';

/** A write that did not end at once. Node keeps it until then. */
export interface PendingWrite {
	oncomplete: (status: number) => void;
	/** What is written, so that its memory stays. */
	buffer: unknown;
	/** Set when it ended before `oncomplete` was there. */
	writeStatus: number | null;
}

/** Bytes that wait for the peer from which a writer should wait too. */
export const HIGH_WATER = 65_536;

/** The error of a system call, as Node's own streams make it; without a stack, which costs more than the rest of a close. */
export function systemError(status: number, syscall: string): Error {
	const code = getSystemErrorName(status);
	const { stackTraceLimit } = Error;
	Error.stackTraceLimit = 0;
	const error = new Error(`${syscall} ${code}`);
	Error.stackTraceLimit = stackTraceLimit;
	return Object.assign(error, { errno: status, code, syscall });
}

/**
 * True where Node gives a handle no request of its own for a write, and gets one back if it does not end at once: so it is
 * with Node 26. A handle that expects one must not be called without. Found out by a socket over a handle that is none.
 */
export const WRITES_WITHOUT_REQUEST: boolean = probe();

function probe(): boolean {
	let known = false;
	const handle = {
		writeLatin1String(request: unknown): number {
			known = request === null;
			return 0;
		},
		close(closed?: () => void): void {
			closed?.();
		},
		readStart: ignore,
		readStop: ignore,
		getAsyncId: () => 0,
		ref: ignore,
		unref: ignore,
	};
	try {
		const socket = new Socket({ handle, manualStart: true } as never);
		socket.on('error', ignore);
		socket.write('-', 'latin1');
		socket.destroy();
	} catch {
		return false;
	}
	return known;
}

function ignore(): void {}
