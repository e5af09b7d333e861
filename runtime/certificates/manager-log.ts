/** The log function of the certificate manager. */
import type { LogLevel } from '../logs/log-entry.ts';

/** Writes a log entry. Fields must never contain a key, a token or the secret of an account. */
export type ManagerLog = (
	level: LogLevel,
	logger: string,
	message: string,
	fields?: { readonly [name: string]: unknown },
) => void;
