/** The log of TLS secrets, with which recorded traffic can be decrypted, in the format of NSS (`SSLKEYLOGFILE`). */
import { appendFile } from 'node:fs';

/** Appends a line to the log file in the background. Failures are ignored, so that they do not affect connections. */
export function logSecret(file: string, line: string): void {
	appendFile(file, `${line}\n`, { encoding: 'latin1', mode: 0o600 }, () => {});
}
