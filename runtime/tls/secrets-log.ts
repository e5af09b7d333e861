/** The log of TLS secrets, with which recorded traffic can be decrypted, in the format of NSS (`SSLKEYLOGFILE`). */
import { appendFile } from 'node:fs';

/** Appends a line to a log, in the background. A log that cannot be written does not affect connections. */
export function logSecret(file: string, line: string): void {
	appendFile(file, `${line}\n`, { encoding: 'latin1', mode: 0o600 }, () => {});
}
