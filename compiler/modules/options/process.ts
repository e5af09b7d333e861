/** Global options of the process: `threads`, `io`, `grace_period`, `shutdown_delay`, `debug`. */
import type { GlobalOption } from '../contract/option.ts';

/** Values of the option `io`. */
const IO_MODES = ['direct', 'node'] as const;

/** Global option; sets `settings.threads` in the document. */
export const threads: GlobalOption = {
	id: 'threads',
	names: { configfile: ['threads'], compatfile: ['threads'] },
	usage: 'threads <number>',
	summary: 'Sets the number of threads that serve requests.',
	documentation:
		'The default is the number of processors available to the process. A reload can change it: new threads take over the listening sockets, and the old ones finish their connections, for as long as `grace_period` allows.\n\n```\n{\n\tthreads 2\n}\n```',
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, threads.usage)) return;
		const threadCount = cx.integer(args[0]!, 1, 1024);
		if (threadCount !== undefined) settings.threads = threadCount;
	},
	schema: { type: 'integer', minimum: 1, maximum: 1024 },
	startup: false,
};

/** Global option; sets `settings.io` in the document. */
export const io: GlobalOption = {
	id: 'io',
	names: { configfile: ['io'], compatfile: [] },
	usage: 'io direct|node',
	summary: 'Selects how sockets and files are read and written.',
	documentation:
		"`direct` calls the operating system directly, which is faster; `node` uses only Node's public modules. The default is `direct` on the Node releases it has been tested with, and `node` on all others. The environment variable `SVC_IO` takes precedence. `svc build-info` prints the mode that this build uses by default. Changing it needs a restart.\n\n```\n{\n\tio node\n}\n```",
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, io.usage)) return;
		const mode = cx.oneOf(args[0]!, IO_MODES, 'mode');
		if (mode !== undefined) settings.io = mode;
	},
	schema: { enum: IO_MODES },
	startup: true,
};

/** Global option; sets `settings.grace_period` in the document. */
export const gracePeriod: GlobalOption = {
	id: 'grace_period',
	names: { configfile: ['grace_period'], compatfile: ['grace_period'] },
	usage: 'grace_period <duration>',
	summary: 'Limits how long a stop waits for requests in flight.',
	documentation:
		'A stop waits for requests in flight, by default without limit; after this time it aborts them.\n\n```\n{\n\tgrace_period 10s\n}\n```',
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, gracePeriod.usage)) return;
		const milliseconds = cx.duration(args[0]!);
		if (milliseconds === undefined) return;
		if (milliseconds >= 0) settings.grace_period = milliseconds;
		else cx.problem('error', 'value/out-of-range', args[0]!.span, 'A grace period cannot be negative.');
	},
	schema: { type: 'number', minimum: 0, description: 'Milliseconds.' },
	startup: false,
};

/** Global option; sets `settings.shutdown_delay` in the document. */
export const shutdownDelay: GlobalOption = {
	id: 'shutdown_delay',
	names: { configfile: ['shutdown_delay'], compatfile: ['shutdown_delay'] },
	usage: 'shutdown_delay <duration>',
	summary: 'Delays a stop while the server keeps serving.',
	documentation:
		'As soon as a stop is requested, `GET /ready` of the Admin API answers 503, so that load balancers remove the server; `{http.shutting_down}` is true, and `{http.time_until_shutdown}` is the remaining time. A second signal skips the delay.\n\n```\n{\n\tshutdown_delay 10s\n}\n```',
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, shutdownDelay.usage)) return;
		const milliseconds = cx.duration(args[0]!);
		if (milliseconds === undefined) return;
		if (milliseconds >= 0) settings.shutdown_delay = milliseconds;
		else cx.problem('error', 'value/out-of-range', args[0]!.span, 'A delay cannot be negative.');
	},
	schema: { type: 'number', minimum: 0, description: 'Milliseconds.' },
	startup: false,
};

/** Global option; sets `settings.debug` in the document. */
export const debug: GlobalOption = {
	id: 'debug',
	names: { configfile: ['debug'], compatfile: ['debug'] },
	usage: 'debug',
	summary: 'Sets every log without its own level to DEBUG.',
	documentation: [
		`For troubleshooting, not for regular use. For each request, an entry names the site and handler that answered, the handler's place`,
		'in the configuration, and the upstream used; other entries say why a request or a TLS handshake failed.',
		'',
		'```',
		'{',
		'	debug',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		cx.noBlock(line);
		if (cx.count(line, line.words.slice(1), 0, 0, debug.usage)) settings.debug = true;
	},
	schema: { type: 'boolean' },
	startup: false,
};
