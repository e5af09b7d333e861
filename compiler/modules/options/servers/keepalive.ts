/** `keepalive_interval`, `keepalive_idle` and `keepalive_count` inside `servers`: how dead peers are noticed (TCP keep-alive). */
import type { ServerOption } from './server-option.ts';

/** Milliseconds of quiet before the first probe, and between probes, if left out. */
export const DEFAULT_KEEPALIVE = 15_000;

/** `settings.servers[].keepalive_interval`. */
export const keepaliveInterval: ServerOption = duration(
	'keepalive_interval',
	'Time between two probes of a quiet connection, 15s if left out; negative turns TCP keep-alive off.',
	'Milliseconds between probes; negative is off.',
);

/** `settings.servers[].keepalive_idle`. */
export const keepaliveIdle: ServerOption = duration(
	'keepalive_idle',
	'Quiet time before the first probe, 15s if left out.',
	'Milliseconds before the first probe.',
);

/** `settings.servers[].keepalive_count`. */
export const keepaliveCount: ServerOption = {
	name: 'keepalive_count',
	usage: 'keepalive_count <number>',
	summary: "Probes without an answer that end a connection; the system's number if left out.",
	lower: (line, args, { server }, cx) => {
		cx.noBlock(line);
		const count = cx.count(line, args, 1, 1, keepaliveCount.usage) ? cx.integer(args[0]!, 1, 127) : undefined;
		if (count !== undefined) server.keepalive_count = count;
	},
	schema: { keepalive_count: { type: 'integer', minimum: 1, maximum: 127, description: 'Unanswered probes.' } },
};

function duration(name: string, summary: string, description: string): ServerOption {
	const usage = `${name} <duration>`;
	return {
		name,
		usage,
		summary,
		lower: (line, args, { server }, cx) => {
			cx.noBlock(line);
			const value = cx.count(line, args, 1, 1, usage) ? cx.duration(args[0]!) : undefined;
			if (value !== undefined) server[name] = value;
		},
		schema: { [name]: { type: 'number', default: DEFAULT_KEEPALIVE, description } },
	};
}
