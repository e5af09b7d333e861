/** `keepalive_interval`, `keepalive_idle` and `keepalive_count` inside `servers`: TCP keep-alive, which detects dead peers. */
import type { ServerOption } from '../../contract/server-option.ts';

/** Default milliseconds of silence before the first probe, and between probes. */
export const DEFAULT_KEEPALIVE_MS = 15_000;

/** Option inside `servers`; sets `settings.servers[].keepalive_interval` in the document. */
export const keepaliveInterval: ServerOption = durationOption(
	'keepalive_interval',
	'Time between two probes of a silent connection, default 15s; a negative time disables TCP keep-alive.',
	'Milliseconds between probes; a negative number disables them.',
);

/** Option inside `servers`; sets `settings.servers[].keepalive_idle` in the document. */
export const keepaliveIdle: ServerOption = durationOption(
	'keepalive_idle',
	'Time of silence before the first probe, default 15s.',
	'Milliseconds before the first probe.',
);

/** Option inside `servers`; sets `settings.servers[].keepalive_count` in the document. */
export const keepaliveCount: ServerOption = {
	name: 'keepalive_count',
	usage: 'keepalive_count <number>',
	summary: "Unanswered probes after which a connection is closed; default the system's number.",
	lower: (line, args, { server }, cx) => {
		cx.noBlock(line);
		const probeCount = cx.count(line, args, 1, 1, keepaliveCount.usage) ? cx.integer(args[0]!, 1, 127) : undefined;
		if (probeCount !== undefined) server.keepalive_count = probeCount;
	},
	schema: {
		keepalive_count: { type: 'integer', minimum: 1, maximum: 127, description: 'Number of unanswered probes.' },
	},
};

function durationOption(name: string, summary: string, description: string): ServerOption {
	const usage = `${name} <duration>`;
	return {
		name,
		usage,
		summary,
		lower: (line, args, { server }, cx) => {
			cx.noBlock(line);
			const durationMs = cx.count(line, args, 1, 1, usage) ? cx.duration(args[0]!) : undefined;
			if (durationMs !== undefined) server[name] = durationMs;
		},
		schema: { [name]: { type: 'number', default: DEFAULT_KEEPALIVE_MS, description } },
	};
}
