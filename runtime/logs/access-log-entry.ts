/** One access log entry as an object, for tests of configurations. */
import type { LogFormat } from '../../compiler/document/log-settings.ts';
import type { LogEntryFields, LoggedExchange } from '../../compiler/dry-run/dry-run.ts';
import { compileClientIp } from '../../compiler/exchange/client-ip.ts';
import { AccessLogger } from './access-log.ts';

/** Returns the entry that a log would write, with the log's edits of fields; undefined if its level omits the entry. */
export function accessLogEntry({
	x,
	logSettings: log,
	settings,
	logsCredentials: credentials,
}: LoggedExchange): LogEntryFields | undefined {
	let line: string | undefined;
	const sink = {
		write(text: string) {
			line = text;
		},
	};
	const deps = { isTerminal: false, clientIp: compileClientIp(settings), expand: (text: string) => text };
	new AccessLogger({ ...log, format: toJsonFormat(log.format) }, sink, deps).record(x, credentials);
	return line === undefined ? undefined : (JSON.parse(line) as LogEntryFields);
}

/** Returns a format that edits fields in the same way, but writes lines as plain JSON. */
function toJsonFormat(format: LogFormat): LogFormat {
	if (format.encoder === 'journald') return toJsonFormat(format.wrap ?? { encoder: 'json' });
	if (format.encoder !== 'filter' && format.encoder !== 'append') return { encoder: 'json' };
	return { ...format, wrap: toJsonFormat(format.wrap ?? { encoder: 'json' }) };
}
