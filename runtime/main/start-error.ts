/** Errors that prevent the server from starting. */
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import { ListenError } from '../listeners/port-probe.ts';
import { IO_MODES } from '../sockets/io-mode.ts';
import { TLS_MODES } from '../sockets/tls-mode.ts';
import { firstErrorMessage } from './load-outcomes.ts';

/** The reason for a failed start. */
export type StartFailure =
	| { readonly reason: 'refused'; readonly diagnostics: readonly DiagnosticReport[] }
	/** `code` is the system's error code, such as `EADDRINUSE`. `address` is the address that could not be bound. */
	| { readonly reason: 'listen'; readonly code: string; readonly address: string }
	/** `systemCode` is the system's error code, such as `EACCES`, if a system call failed. */
	| { readonly reason: 'failed'; readonly systemCode?: string };

/** An error thrown when the server could not start. Everything that had been started has been stopped. */
export class StartError extends Error {
	readonly failure: StartFailure;

	constructor(message: string, failure: StartFailure) {
		super(message);
		this.name = 'StartError';
		this.failure = failure;
	}
}

/** Returns the error for a start whose configuration was rejected. */
export function configurationRefusedError(diagnostics: readonly DiagnosticReport[]): StartError {
	return new StartError(firstErrorMessage(diagnostics), { reason: 'refused', diagnostics });
}

/** Returns the error for an invalid value of SVC_IO. */
export function unknownIoModeError(value: string): StartError {
	return new StartError(`SVC_IO is \`${value}\`: set it to ${IO_MODES.join(' or ')}, or unset it.`, {
		reason: 'failed',
	});
}

/** Returns the error for an invalid value of SVC_TLS. */
export function unknownTlsModeError(value: string): StartError {
	return new StartError(`SVC_TLS is \`${value}\`: set it to ${TLS_MODES.join(' or ')}, or unset it.`, {
		reason: 'failed',
	});
}

/** Converts any error thrown during a start to a StartError. */
export function toStartError(error: unknown): StartError {
	if (error instanceof StartError) return error;
	if (error instanceof ListenError) {
		return new StartError(error.message, { reason: 'listen', code: error.code, address: error.address });
	}
	const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException;
	return new StartError(error instanceof Error ? error.message : String(error), {
		reason: 'failed',
		...(syscall !== undefined && code !== undefined && { systemCode: code }),
	});
}

/** Wraps the error with which the callback `RuntimeOptions.beforeListening` rejected. */
export class StartForbidden extends Error {
	constructor(cause: unknown) {
		super('the start was forbidden', { cause });
	}
}
