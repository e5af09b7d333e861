/** Log output `net`: sends entries to a collector over TCP, UDP or a Unix socket. */

import type { NetOutput } from '../../../document/log-settings.ts';
import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';

/** The parts of {@link NetOutput.address}. */
export type CollectorAddress =
	| { readonly network: 'tcp' | 'udp'; readonly host: string; readonly port: number }
	| { readonly network: 'unix'; readonly path: string };

/** Syntax of `output net`. */
export const NET_USAGE = 'net <address> [{ dial_timeout <duration>; soft_start }]';

const TCP_OR_UDP_ADDRESS = /^(?:(tcp|udp)[46]?\/)?(\[[0-9a-fA-F:.%]+\]|[^[\]:/\s]+):(\d{1,5})$/;

/** Parses the address of a collector; returns undefined if it is invalid. */
export function parseCollectorAddress(text: string): CollectorAddress | undefined {
	const unixMatch = /^unix\/(.+)$/s.exec(text);
	if (unixMatch) return unixMatch[1]!.includes('\0') ? undefined : { network: 'unix', path: unixMatch[1]! };
	const addressMatch = TCP_OR_UDP_ADDRESS.exec(text);
	const port = Number(addressMatch?.[3]);
	if (!addressMatch || port < 1 || port > 65_535) return undefined;
	const network = addressMatch[1] === 'udp' ? 'udp' : 'tcp';
	return { network, host: addressMatch[2]!.replace(/^\[|\]$/g, ''), port };
}

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
		description: 'Milliseconds to connect; default 10000.',
	},
	soft_start: {
		const: true,
		description: 'Starts even if the collector does not answer: entries go to standard error until it does.',
	},
};

/** Lowers the address and the block of `output net`; returns undefined after reporting a mistake. */
export function lowerNetOutput(args: readonly Word[], line: Line, cx: LowerContext): NetOutput | undefined {
	if (!cx.count(line, args, 1, 1, `output ${NET_USAGE}`)) return undefined;
	const [addressWord] = args as [Word];
	const settings: { dial_timeout?: number; soft_start?: true } = {};
	cx.subdirectives(
		line.block,
		{
			dial_timeout: (words, innerLine) => {
				const timeoutMs = cx.count(innerLine, words, 1, 1, 'dial_timeout <duration>')
					? cx.duration(words[0]!)
					: undefined;
				if (timeoutMs === undefined) return;
				if (timeoutMs >= 1) settings.dial_timeout = Math.round(timeoutMs);
				else cx.problem('error', 'value/out-of-range', words[0]!.span, 'The timeout must be positive.');
			},
			soft_start: (words, innerLine) => {
				if (cx.count(innerLine, words, 0, 0, 'soft_start')) settings.soft_start = true;
			},
		},
		'output net',
	);
	if (!addressWord.text.includes('{') && !parseCollectorAddress(addressWord.text)) {
		cx.problem(
			'error',
			'log/bad-address',
			addressWord.span,
			`\`${addressWord.text}\` is not the address of a collector.`,
			{
				hint: 'Write tcp/host:port, udp/host:port or unix//path.',
			},
		);
		return undefined;
	}
	return { address: cx.template(addressWord), ...settings };
}
