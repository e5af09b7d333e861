/** `quic` inside `servers`: limits on the connections, handshakes and packets of HTTP/3 clients. */
import type { QuicSettings } from '../../../document/server-settings.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { ServerOption } from '../../contract/server-option.ts';

/** A limit that a line of the block `quic` sets: its range, default and documentation. */
interface QuicLimit {
	readonly min: number;
	readonly max: number;
	readonly defaultValue: number;
	readonly meaning: string;
}

const MAX_LIMIT = 1_000_000;

/** The lines of the block `quic`, in the order of the manual. */
const QUIC_LIMITS: { readonly [name in keyof QuicSettings]-?: QuicLimit } = {
	connections: {
		min: 1,
		max: MAX_LIMIT,
		defaultValue: 16_384,
		meaning: 'open connections, unfinished handshakes included',
	},
	connections_per_client: { min: 1, max: MAX_LIMIT, defaultValue: 1024, meaning: 'open connections of one address' },
	handshakes: { min: 1, max: MAX_LIMIT, defaultValue: 512, meaning: 'unfinished handshakes' },
	handshakes_per_client: { min: 1, max: MAX_LIMIT, defaultValue: 64, meaning: 'unfinished handshakes of one address' },
	retry_above: {
		min: 0,
		max: MAX_LIMIT,
		defaultValue: 64,
		meaning:
			'unfinished handshakes of unproven addresses; beyond that, or half of it for one address, new clients must prove theirs first',
	},
	retries: { min: 1, max: MAX_LIMIT, defaultValue: 200_000, meaning: 'Retry packets per second' },
	proven_handshakes: {
		min: 4,
		max: MAX_LIMIT,
		defaultValue: 8000,
		meaning: 'handshakes per second of clients that had to prove their addresses; one address gets a quarter',
	},
	initials_per_client: {
		min: 10,
		max: MAX_LIMIT,
		defaultValue: 10_000,
		meaning: 'first packets of one address per second; with more than a quarter, it must prove its address',
	},
};

/** Option inside `servers`; sets `settings.servers[].quic` in the document. */
export const quic: ServerOption = {
	name: 'quic',
	usage: `quic { ${Object.keys(QUIC_LIMITS)
		.map(name => `${name} <n>`)
		.join('; ')} }`,
	summary: 'Limits what clients of HTTP/3 may cost, for each thread.',
	documentation: [
		'| Line | Default | Meaning |',
		'| --- | --- | --- |',
		...Object.entries(QUIC_LIMITS).map(
			([name, { defaultValue, meaning }]) => `| \`${name} N\` | ${defaultValue} | ${meaning} |`,
		),
		'',
		'IPv6 addresses count by their /64. Anybody can send packets in the name of another address, so a limit of one address',
		'makes clients prove it with a Retry packet (RFC 9000 §8.1.2) before it refuses them. `limits` and',
		'`timeouts { handshake }` hold for HTTP/3 too. The metric `svc_http3_refused_total` counts what is refused, by reason, and',
		'the log has one entry a minute at most.',
		'',
		'Other limits are fixed. A connection has at most 100 open requests, is replaced after 2,048 of them, and ends after 30',
		'seconds without a packet. At most 128 KiB of a request body wait for their reader; at most 224 KiB of a response, and 1 MiB of all',
		'responses of a connection, wait until the client confirms that it has received them.',
		'',
		'A connection stays with the IP address of the client. If that changes, because the client left a Wi-Fi network, the',
		'connection gets no more answers. The client notices this by its own timeout, after 30 seconds or less, and connects again.',
		'If only the port changes, because a router (NAT) forgot the old one, the connection continues: answers go to the new port',
		'once a packet from there could be decrypted and is newer than all others, and return to the old port if the client does not',
		'confirm within 3 seconds that it receives them. A connection does this at most eight times in ten seconds, and not before the',
		'end of the handshake. From then on, `{http.request.remote.port}` and the log entries of new requests have the new port. The',
		'metric `svc_http3_port_changes_total` counts the changes; `moved` in `svc_http3_refused_total` counts packets from',
		'other ports and addresses that were refused.',
	],
	lower: (line, args, { server }, cx) => {
		if (!cx.count(line, args, 0, 0, quic.usage)) return;
		const limitValues: { [field: string]: number } = {};
		const handlers: { [word: string]: (words: readonly Word[], innerLine: Line) => void } = {};
		for (const [name, { min, max }] of Object.entries(QUIC_LIMITS)) {
			handlers[name] = (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 1, 1, `${name} <n>`)) return;
				const limitValue = cx.integer(words[0]!, min, max);
				if (limitValue !== undefined) limitValues[name] = limitValue;
			};
		}
		cx.subdirectives(line.block, handlers, 'servers quic');
		server.quic = cx.origin(limitValues, line.span);
	},
	schema: {
		quic: {
			type: 'object',
			description: 'Limits of HTTP/3 on one listener, for each thread.',
			properties: {
				...Object.fromEntries(
					Object.entries(QUIC_LIMITS).map(([name, { min, max, defaultValue, meaning }]) => [
						name,
						{
							type: 'integer',
							minimum: min,
							maximum: max,
							default: defaultValue,
							description: `${meaning[0]!.toUpperCase()}${meaning.slice(1)}.`,
						},
					]),
				),
				'@id': { type: 'string' },
			},
			additionalProperties: false,
		},
	},
};
