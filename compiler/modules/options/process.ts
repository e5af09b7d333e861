/** Global options of the process: `threads`, `grace_period`, `debug`. */
import type { GlobalOption } from './option.ts';

/** Values of `io`. */
const IO_MODES = ['direct', 'node'] as const;

/** `settings.threads`. */
export const threads: GlobalOption = {
	id: 'threads',
	names: { configfile: ['threads'], compatfile: ['threads'] },
	usage: 'threads <number>',
	summary: 'How many threads serve requests.',
	documentation:
		'As many as the processors that the process may use if left out. Changing it needs a restart.\n\n```\n{\n\tthreads 2\n}\n```',
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, threads.usage)) return;
		const count = cx.integer(args[0]!, 1, 1024);
		if (count !== undefined) settings.threads = count;
	},
	schema: { type: 'integer', minimum: 1, maximum: 1024 },
	startup: true,
};

/** `settings.io`. */
export const io: GlobalOption = {
	id: 'io',
	names: { configfile: ['io'], compatfile: [] },
	usage: 'io direct|node',
	summary: 'How sockets and files are read and written.',
	documentation:
		'`direct` calls the operating system past Node, which is faster; `node` uses only the public modules of Node. Without this option, `direct` is used on the releases of Node that it has been tested with, and `node` on all others. The environment variable `SVC_IO` takes precedence. `svc build-info` prints the mode that this build uses by default. Changing it needs a restart.\n\n```\n{\n\tio node\n}\n```',
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

/** `settings.grace_period`. */
export const gracePeriod: GlobalOption = {
	id: 'grace_period',
	names: { configfile: ['grace_period'], compatfile: ['grace_period'] },
	usage: 'grace_period <duration>',
	summary: 'How long a stop waits for requests in flight.',
	documentation:
		'A stop waits for requests that are being answered, without bound if left out; after this time it ends them.\n\n```\n{\n\tgrace_period 10s\n}\n```',
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

/** `settings.shutdown_delay`. */
export const shutdownDelay: GlobalOption = {
	id: 'shutdown_delay',
	names: { configfile: ['shutdown_delay'], compatfile: ['shutdown_delay'] },
	usage: 'shutdown_delay <duration>',
	summary: 'How long a stop waits, serving as ever, before it begins.',
	documentation:
		'From the moment that a stop is asked for `GET /ready` of the Admin API is 503, so that load balancers take the server out; `{http.shutting_down}` is true and `{http.time_until_shutdown}` tells how long. A second signal does not wait.\n\n```\n{\n\tshutdown_delay 10s\n}\n```',
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

/** `settings.debug`. */
export const debug: GlobalOption = {
	id: 'debug',
	names: { configfile: ['debug'], compatfile: ['debug'] },
	usage: 'debug',
	summary: 'Sets every log without a level of its own to DEBUG.',
	documentation: [
		'For finding out what happens; not for every day. For each request an entry tells which site and handler answered, where',
		'that stands in the configuration, and which upstream was asked; others tell why a request or a TLS handshake failed.',
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
