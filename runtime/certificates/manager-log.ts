/** How the parts of the certificate manager write to the process log. */
import type { LogLevel } from '../threads/messages.ts';

/** Writes an entry. Fields hold names, times and reasons; never a key, a token or an account's secret. */
export type ManagerLog = (
	level: LogLevel,
	logger: string,
	message: string,
	fields?: { readonly [name: string]: unknown },
) => void;
