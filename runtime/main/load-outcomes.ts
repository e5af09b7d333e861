/** Creates the load outcomes that originate in the runtime, and the log entries for all outcomes. */
import { match } from 'ts-pattern';
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import type { RestartReason } from '../compile/load-results.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import { LogOutputError } from '../logs/log-sinks.ts';
import { TlsRefused } from '../tls/tls-control.ts';
import type { LoadOutcome } from './control.ts';
import { BuildRefused, NoResponsiveThread, WorkerLostError } from './worker-pool-host.ts';

/** The end of log entries about loads that change nothing, for whoever sees only the log after a signal. */
export const STILL_SERVED = 'the previous one stays in use';

/** The outcome of a load that arrives while the server stops. */
export const STOPPING_OUTCOME: LoadOutcome = { result: 'failed', message: 'The server is stopping.' };

/** Returns the outcome of a load that the runtime refuses. `diagnostics` come from the compiler. */
export function refusedOutcome(
	code: string,
	message: string,
	diagnostics: readonly DiagnosticReport[] = [],
	pointer?: string,
): Extract<LoadOutcome, { result: 'refused' }> {
	const place = pointer === undefined ? '' : `\n  at ${pointer}`;
	const report: DiagnosticReport = {
		code,
		severity: 'error',
		message,
		text: `error[${code}]: ${message}${place}`,
		...(pointer === undefined ? {} : { pointer }),
	};
	return { result: 'refused', diagnostics: [report, ...diagnostics] };
}

/**
 * Returns why a restart is needed for a load that asks for `requestedCount` threads. `availableCount` is the number of threads
 * that this process can still start.
 */
export function tooManyThreadsReason(requestedCount: number, availableCount: number): RestartReason {
	const message = `${requestedCount} threads cannot be started in this process while others serve or finish their connections: it has memory for ${availableCount} more.`;
	return { code: 'setting_changed', subject: 'threads', message };
}

/** Returns the warning for a load that is in effect although the number of threads could not be changed. */
export function threadsUnchangedWarning(threadCount: number, cause: string): DiagnosticReport {
	const code = 'threads/unchanged';
	const message = `The number of threads is still ${threadCount}: ${cause}`;
	return { code, severity: 'warning', message, text: `warning[${code}]: ${message}` };
}

/**
 * Returns the outcome of a load that failed before it was applied. Rethrows `NoResponsiveThread`, after which the load is to be
 * retried, and errors that are bugs.
 */
export function outcomeOfError(error: unknown, diagnostics: readonly DiagnosticReport[]): LoadOutcome {
	if (error instanceof NoResponsiveThread) throw error;
	if (error instanceof LogOutputError) return refusedOutcome(error.code, error.message, diagnostics);
	if (error instanceof BuildRefused) return refusedOutcome(error.code, error.message, diagnostics, error.pointer);
	if (error instanceof TlsRefused) return refusedOutcome(error.code, error.message, diagnostics);
	if (error instanceof WorkerLostError) return { result: 'failed', message: error.message };
	throw error;
}

/** Returns the message of the first error of a refused configuration; a general message if there is no error. */
export function firstErrorMessage(diagnostics: readonly DiagnosticReport[]): string {
	return diagnostics.find(({ severity }) => severity === 'error')?.message ?? 'The configuration was refused.';
}

/** Returns the process log entries for the warnings about a configuration that is served. */
export function createWarningEntries(warnings: readonly DiagnosticReport[]): readonly LogEntry[] {
	return warnings.map(warning => ({ level: 'warn', logger: 'config', message: placedMessage(warning) }));
}

function placedMessage({ file, line, message }: DiagnosticReport): string {
	return file === undefined ? message : `${file}:${line}: ${message}`;
}

/** Returns the process log entry for a load from `source`. */
export function createLoadEntry(source: string, outcome: LoadOutcome): LogEntry {
	const logger = 'config';
	return match(outcome)
		.returnType<LogEntry>()
		.with({ result: 'applied' }, ({ generation, unchanged }) => ({
			level: 'info',
			logger,
			message: unchanged ? 'configuration unchanged' : 'configuration applied',
			fields: { source, generation },
		}))
		.with({ result: 'refused' }, ({ diagnostics }) => {
			const errors = diagnostics.filter(({ severity }) => severity === 'error');
			return {
				level: 'error',
				logger,
				message: `configuration refused; ${STILL_SERVED}`,
				fields: { source, problems: errors.map(placedMessage) },
			};
		})
		.with({ result: 'irreversible' }, ({ reasons, diagnostics }) => ({
			level: 'error',
			logger,
			message: 'configuration not applied: it could not be rolled back',
			fields: { source, reasons, problems: diagnostics.map(({ message }) => message) },
		}))
		.with({ result: 'restart_required' }, ({ reasons }) => ({
			level: 'error',
			logger,
			message: 'configuration needs a restart',
			fields: { source, reasons },
		}))
		.with({ result: 'failed' }, ({ message: cause }) => ({
			level: 'error',
			logger,
			message: `configuration not applied; ${STILL_SERVED}`,
			fields: { source, cause },
		}))
		.exhaustive();
}
