/** One access log entry as an object, for tests of configurations. */
import type { LogFormat } from '../../compiler/document/log-settings.ts';
import type { LogEntryFields, LoggedExchange } from '../../compiler/dry-run/dry-run.ts';
import { compileClientIp } from '../../compiler/exchange/client-ip.ts';
import { AccessLogger } from './access-log.ts';

/** Returns the entry that a log would write, with the log's edits of fields; undefined if its level omits the entry. */
export function accessLogEntry({ x, log, settings, credentials }: LoggedExchange): LogEntryFields | undefined {
	let line: string | undefined;
	const sink = {
		write(text: string) {
			line = text;
		},
	};
	const deps = { terminal: false, clientIp: compileClientIp(settings), expand: (text: string) => text };
	new AccessLogger({ ...log, format: asJson(log.format) }, sink, deps).record(x, credentials);
	return line === undefined ? undefined : (JSON.parse(line) as LogEntryFields);
}

/** Returns a format that edits fields in the same way, but writes lines as plain JSON. */
function asJson(format: LogFormat): LogFormat {
	if (format.encoder === 'journald') return asJson(format.wrap ?? { encoder: 'json' });
	if (format.encoder !== 'filter' && format.encoder !== 'append') return { encoder: 'json' };
	return { ...format, wrap: asJson(format.wrap ?? { encoder: 'json' }) };
}
