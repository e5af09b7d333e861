/** Why a server did not start. */
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import { ListenError } from '../listeners/port-probe.ts';
import { IO_MODES } from '../sockets/io-mode.ts';
import { firstMessage } from './load-outcomes.ts';

/** What stood in the way. */
export type StartFailure =
	| { readonly reason: 'refused'; readonly diagnostics: readonly DiagnosticReport[] }
	/** `code` is the system's (`EADDRINUSE`), `address` what could not be bound. */
	| { readonly reason: 'listen'; readonly code: string; readonly address: string }
	| { readonly reason: 'failed' };

/** A server did not start; nothing of it is left running. */
export class StartError extends Error {
	readonly failure: StartFailure;

	constructor(message: string, failure: StartFailure) {
		super(message);
		this.name = 'StartError';
		this.failure = failure;
	}
}

/** Returns the error for a configuration that was refused. */
export function refusedStart(diagnostics: readonly DiagnosticReport[]): StartError {
	return new StartError(firstMessage(diagnostics), { reason: 'refused', diagnostics });
}

/** Returns the error for a value of SVC_IO that is no mode. */
export function unknownIoMode(wanted: string): StartError {
	return new StartError(`SVC_IO is \`${wanted}\`: set it to ${IO_MODES.join(' or ')}, or unset it.`, {
		reason: 'failed',
	});
}

/** Any failure of a start as a StartError. */
export function startError(error: unknown): StartError {
	if (error instanceof StartError) return error;
	if (error instanceof ListenError) {
		return new StartError(error.message, { reason: 'listen', code: error.code, address: error.address });
	}
	return new StartError(error instanceof Error ? error.message : String(error), { reason: 'failed' });
}

/** Carries what `RuntimeOptions.beforeListening` rejected with. */
export class StartForbidden extends Error {
	constructor(cause: unknown) {
		super('the start was forbidden', { cause });
	}
}
