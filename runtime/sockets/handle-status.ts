/** The numbers with which handles report how a call has ended, and the errors that describe them. */
import { getSystemErrorName } from 'node:util';

/** Error numbers of libuv: canceled, reset by the other side, closed by the other side, the end of a stream. */
export const CANCELED = -125;
export const CONNECTION_RESET = -104;
export const BROKEN_PIPE = -32;
export const END_OF_STREAM = -4095;

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
