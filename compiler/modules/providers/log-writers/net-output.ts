/** Log output `net`: entries sent to a collector over TCP, UDP or a Unix socket. */

import type { LowerContext } from '../../../lower/lower-context.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { Schema } from '../../directives/directive.ts';

/** Fields of the writer `net`. */
export interface NetOutput {
	/** `tcp/host:port`, `udp/host:port` or `unix//path`; `host:port` is TCP. */
	readonly address?: string;
	/** Milliseconds to connect; 10000 if left out. */
	readonly dial_timeout?: number;
	/** Starts though nobody answers: entries go to standard error until somebody does. */
	readonly soft_start?: true;
}

/** An address of {@link NetOutput.address} in its parts. */
export type CollectorAddress =
	| { readonly network: 'tcp' | 'udp'; readonly host: string; readonly port: number }
	| { readonly network: 'unix'; readonly path: string };

/** How `output net` is written. */
export const NET_USAGE = 'net <address> [{ dial_timeout <duration>; soft_start }]';

const TCP_OR_UDP = /^(?:(tcp|udp)[46]?\/)?(\[[0-9a-fA-F:.%]+\]|[^[\]:/\s]+):(\d{1,5})$/;

/** The parts of an address; undefined when it is none. */
export function parseCollectorAddress(text: string): CollectorAddress | undefined {
	const unix = /^unix\/(.+)$/s.exec(text);
	if (unix) return unix[1]!.includes('\0') ? undefined : { network: 'unix', path: unix[1]! };
	const parts = TCP_OR_UDP.exec(text);
	const port = Number(parts?.[3]);
	if (!parts || port < 1 || port > 65_535) return undefined;
	const network = parts[1] === 'udp' ? 'udp' : 'tcp';
	return { network, host: parts[2]!.replace(/^\[|\]$/g, ''), port };
}

/** Schemas of the fields of `net`. */
export const NET_PROPERTIES: { readonly [name: string]: Schema } = {
	address: {
		type: 'string',
		minLength: 1,
		description: 'Collector of the writer `net`: `tcp/host:port`, `udp/host:port` or `unix//path`.',
	},
	dial_timeout: {
		type: 'integer',
		minimum: 1,
		default: 10_000,
		description: 'Milliseconds to connect; 10000 if left out.',
	},
	soft_start: {
		const: true,
		description: 'Starts though nobody answers: entries go to standard error until somebody does.',
	},
};

/** Lowers the address and the block of `output net`; undefined after a mistake was reported. */
export function lowerNetOutput(args: readonly Word[], line: Line, cx: LowerContext): NetOutput | undefined {
	if (!cx.count(line, args, 1, 1, `output ${NET_USAGE}`)) return undefined;
	const [word] = args as [Word];
	const settings: { dial_timeout?: number; soft_start?: true } = {};
	cx.subdirectives(
		line.block,
		{
			dial_timeout: (words, at) => {
				const time = cx.count(at, words, 1, 1, 'dial_timeout <duration>') ? cx.duration(words[0]!) : undefined;
				if (time === undefined) return;
				if (time >= 1) settings.dial_timeout = Math.round(time);
				else cx.problem('error', 'value/out-of-range', words[0]!.span, 'Connecting takes some time.');
			},
			soft_start: (words, at) => {
				if (cx.count(at, words, 0, 0, 'soft_start')) settings.soft_start = true;
			},
		},
		'output net',
	);
	if (!word.text.includes('{') && !parseCollectorAddress(word.text)) {
		cx.problem('error', 'log/bad-address', word.span, `\`${word.text}\` is not the address of a collector.`, {
			hint: 'Write tcp/host:port, udp/host:port or unix//path.',
		});
		return undefined;
	}
	return { address: cx.template(word), ...settings };
}
