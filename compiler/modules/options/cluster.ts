/** Global option `cluster`: the Redis server, or servers, that several machines share. */
import {
	CLUSTER_KEY_PATTERN,
	type ClusterSentinel,
	type ClusterSettings,
	type ClusterTls,
	DEFAULT_CLUSTER_PREFIX,
	DEFAULT_CLUSTER_TIMEOUT_MS,
	PUBLISHER_PATTERN,
} from '../../document/cluster-settings.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import type { GlobalOption } from '../contract/option.ts';

const HOST_PATTERN = '(\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9._-]+)';
const REDIS_URL = new RegExp(`^(rediss?)://(?:([^@/]*)@)?${HOST_PATTERN}(?::([0-9]{1,5}))?(?:/([0-9]{1,5})?)?$`);
const ADDRESS_PATTERN = `^${HOST_PATTERN}:[0-9]{1,5}$`;
const PREFIX_PATTERN = '^[A-Za-z0-9._:-]{1,64}$';
/** Maximum of `timeout` in milliseconds. If Redis does not respond, requests may have to wait this long. */
const MAX_TIMEOUT_MS = 10_000;
const MAX_ADDRESSES = 16;
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
const TLS_USAGE = 'tls [{ ca <file>; server_name <name>; client <certificate> <key> }]';

type ClusterDraft = { -readonly [field in keyof ClusterSettings]: ClusterSettings[field] };
type SentinelDraft = { -readonly [field in keyof ClusterSentinel]?: ClusterSentinel[field] };

/** Global option; sets `settings.cluster` in the document. */
export const cluster: GlobalOption = {
	id: 'cluster',
	names: { configfile: ['cluster'], compatfile: ['cluster'] },
	usage:
		'cluster redis[s]://<host>[:<port>][/<database>]… [{ sentinel <master>; sentinel_user <name>; sentinel_password <text>; mode cluster; user <name>; password <text>; key <base64> [<older>…]; publisher <base64> [<other>…]; prefix <text>; timeout <duration>; tls [{ … }] }]',
	summary: 'Names the Redis server, Sentinels or Redis Cluster that several machines share.',
	documentation: [
		'Redis, or Valkey, holds what machines share: certificates and their locks with `storage redis`, purges of response caches,',
		'keys of TLS session tickets, and rate limits and stored responses that are `shared`. Machines with the same server and `prefix` are one cluster. `rediss://` or `tls` encrypts the connection;',
		'`tls { ca … }` names the certificates to trust, `client` those to present.',
		'',
		'With `sentinel <master>`, the addresses are those of Sentinels, whose default port is 26379; they name the server that is the',
		'master. `sentinel_user` and `sentinel_password` are for the Sentinels, `user` and `password` for the server. With `mode cluster`,',
		'the addresses are some nodes of a Redis Cluster, which name the others.',
		'',
		'`key` encrypts private values in Redis with AES-256-GCM; it is the same on all machines: 32 bytes in base64, as',
		'`openssl rand -base64 32` creates them. To replace a key without a gap, give all machines `key <old> <new>` first, then',
		'`key <new> <old>`: the first one encrypts, all of them decrypt. `svc help cluster` has the remaining steps.',
		'',
		'`svc publish` puts a configuration into Redis, and machines that run `svc run --cluster` serve it. With `publisher`, they accept',
		'only what is signed with the private key of one of these Ed25519 keys; without it, whoever has the `key` can publish.',
		'',
		`Challenges of issuers, purges, and requests that miss a \`shared\` cache wait for Redis for at most \`timeout\`, by default`,
		`${DEFAULT_CLUSTER_TIMEOUT_MS}ms. The default of \`prefix\` is \`${DEFAULT_CLUSTER_PREFIX}\`.`,
		'Without Redis, machines serve what they have loaded. A change of this option needs a restart.',
		'',
		'```',
		'{',
		'	cluster rediss://redis.example.com:6379 {',
		'		user svc',
		'		password {$REDIS_PASSWORD}',
		'		key {$CLUSTER_KEY}',
		'	}',
		'	storage redis',
		'}',
		'```',
		'',
		'Three Sentinels:',
		'',
		'```',
		'{',
		'	cluster redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3 {',
		'		sentinel mymaster',
		'		key {$CLUSTER_KEY}',
		'	}',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		const draft: Partial<ClusterDraft> = {};
		const sentinel: SentinelDraft = {};
		let sentinelLine: Line | undefined;
		cx.subdirectives(
			line.block,
			{
				sentinel: (words, innerLine) => {
					sentinelLine = innerLine;
					if (cx.count(innerLine, words, 1, 1, 'sentinel <master>')) sentinel.master = words[0]!.text;
				},
				sentinel_user: (words, innerLine) => {
					if (cx.count(innerLine, words, 1, 1, 'sentinel_user <name>')) sentinel.user = words[0]!.text;
				},
				sentinel_password: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 1, 'sentinel_password <text>')) return;
					checkSecret(words[0]!, 'sentinel_password', cx);
					sentinel.password = words[0]!.text;
				},
				mode: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 1, 'mode cluster')) return;
					if (words[0]!.text === 'cluster') draft.mode = 'cluster';
					else
						cx.problem('error', 'cluster/unknown-mode', words[0]!.span, `\`${words[0]!.text}\` is not a mode.`, {
							hint: 'The only mode is `cluster`.',
						});
				},
				user: (words, innerLine) => {
					if (cx.count(innerLine, words, 1, 1, 'user <name>')) draft.user = words[0]!.text;
				},
				password: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 1, 'password <text>')) return;
					checkSecret(words[0]!, 'password', cx);
					draft.password = words[0]!.text;
				},
				key: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 4, 'key <base64> [<older>…]')) return;
					for (const word of words) checkEncryptionKey(word, cx);
					draft.keys = words.map(word => word.text);
				},
				publisher: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 4, 'publisher <base64> [<other>…]')) return;
					for (const word of words) checkPublisher(word, cx);
					draft.publishers = words.map(word => word.text);
				},
				prefix: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 1, 'prefix <text>')) return;
					if (new RegExp(PREFIX_PATTERN).test(words[0]!.text)) draft.prefix = words[0]!.text;
					else {
						cx.problem('error', 'cluster/bad-prefix', words[0]!.span, `\`${words[0]!.text}\` is not a valid prefix.`, {
							hint: 'Use up to 64 letters, digits, dots, colons, hyphens and underscores.',
						});
					}
				},
				timeout: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 1, 'timeout <duration>')) return;
					const timeoutMs = cx.duration(words[0]!);
					if (timeoutMs === undefined) return;
					if (timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS) draft.timeout = timeoutMs;
					else cx.problem('error', 'value/out-of-range', words[0]!.span, 'The timeout must be from 1ms to 10s.');
				},
				tls: (words, innerLine) => {
					if (cx.count(innerLine, words, 0, 0, TLS_USAGE)) draft.tls = lowerTls(innerLine, cx);
				},
			},
			'cluster',
		);
		if (draft.user !== undefined && draft.password === undefined) {
			cx.problem('error', 'cluster/user-without-password', line.span, 'A `user` needs a `password`.');
		}
		if (sentinel.master !== undefined) draft.sentinel = { ...sentinel, master: sentinel.master };
		else if (!sentinelLine && (sentinel.user !== undefined || sentinel.password !== undefined)) {
			cx.problem(
				'error',
				'cluster/no-sentinel',
				line.span,
				'These credentials are for Sentinels, but there are none.',
				{
					hint: 'Write `sentinel <master>` in the block, and the addresses of the Sentinels before it.',
				},
			);
		}
		if (sentinel.user !== undefined && sentinel.password === undefined) {
			cx.problem('error', 'cluster/user-without-password', line.span, 'A `sentinel_user` needs a `sentinel_password`.');
		}
		if (cx.count(line, args, 1, MAX_ADDRESSES, cluster.usage)) {
			lowerAddresses(args, draft, sentinelLine ? SENTINEL_PORT : REDIS_PORT, cx);
		}
		if (draft.address !== undefined) settings.cluster = cx.origin(draft, line.span);
	},
	schema: {
		type: 'object',
		properties: {
			address: {
				type: 'string',
				pattern: ADDRESS_PATTERN,
				description: '`host:port` of Redis, of the first Sentinel, or of the first node of a Redis Cluster.',
			},
			other_addresses: {
				type: 'array',
				minItems: 1,
				maxItems: MAX_ADDRESSES - 1,
				items: { type: 'string', pattern: ADDRESS_PATTERN },
				description: 'The other Sentinels or nodes.',
			},
			sentinel: {
				type: 'object',
				description: 'Present if the addresses are those of Sentinels.',
				properties: {
					master: { type: 'string', minLength: 1, description: 'The name of the master at the Sentinels.' },
					user: { type: 'string', minLength: 1, description: 'ACL user at the Sentinels.' },
					password: { type: 'string', minLength: 1, secret: true, description: 'Password at the Sentinels.' },
				},
				required: ['master'],
				additionalProperties: false,
			},
			mode: { enum: ['cluster'], description: '`cluster` if the addresses are those of nodes of a Redis Cluster.' },
			tls: {
				type: 'object',
				description: 'Present if the connection uses TLS.',
				properties: {
					ca: { type: 'string', minLength: 1, description: 'PEM file of the certificates to trust.' },
					server_name: { type: 'string', minLength: 1, description: 'The name to verify instead of the host.' },
					client: {
						type: 'object',
						description: 'The client certificate.',
						properties: {
							cert: { type: 'string', minLength: 1, description: 'PEM file of the certificate.' },
							key: { type: 'string', minLength: 1, description: 'PEM file of its private key.' },
						},
						required: ['cert', 'key'],
						additionalProperties: false,
					},
				},
				additionalProperties: false,
			},
			user: { type: 'string', minLength: 1, description: 'ACL user.' },
			password: { type: 'string', minLength: 1, secret: true, description: 'Password of the user.' },
			database: { type: 'integer', minimum: 0, maximum: 65_535, default: 0, description: 'Number of the database.' },
			prefix: {
				type: 'string',
				pattern: PREFIX_PATTERN,
				default: DEFAULT_CLUSTER_PREFIX,
				description: 'The start of all keys in Redis.',
			},
			timeout: {
				type: 'number',
				minimum: 1,
				maximum: MAX_TIMEOUT_MS,
				default: DEFAULT_CLUSTER_TIMEOUT_MS,
				description: 'Maximum milliseconds that a request may wait for Redis.',
			},
			keys: {
				type: 'array',
				minItems: 1,
				maxItems: 4,
				items: { type: 'string', pattern: CLUSTER_KEY_PATTERN, secret: true, description: '32 bytes in base64.' },
				description: 'Keys of private values in Redis. The first one encrypts, all of them decrypt.',
			},
			publishers: {
				type: 'array',
				minItems: 1,
				maxItems: 4,
				items: { type: 'string', pattern: PUBLISHER_PATTERN, description: 'DER of an Ed25519 public key in base64.' },
				description: 'Those who may publish configurations. Default: every machine that has a key.',
			},
			'@id': { type: 'string' },
		},
		required: ['address'],
		additionalProperties: false,
	},
	startup: true,
};

/** Lowers the addresses, and reports addresses that cannot be used together. */
function lowerAddresses(
	words: readonly Word[],
	draft: Partial<ClusterDraft>,
	defaultPort: number,
	cx: LowerContext,
): void {
	const urls: { readonly word: Word; readonly url: RedisUrl }[] = [];
	for (const word of words) {
		const url = lowerRedisUrl(word, defaultPort, cx);
		if (url) urls.push({ word, url });
	}
	const [first, ...others] = urls;
	if (!first || urls.length < words.length) return;
	const seenAddresses = new Set<string>();
	for (const { word, url } of urls) {
		if (url.usesTls !== first.url.usesTls) {
			cx.problem(
				'error',
				'cluster/mixed-schemes',
				word.span,
				'All addresses must be `redis://`, or all must be `rediss://`.',
			);
			return;
		}
		if (seenAddresses.has(url.address)) {
			cx.problem('error', 'cluster/repeated-address', word.span, 'This address is given more than once.');
			return;
		}
		seenAddresses.add(url.address);
		if (url.database !== first.url.database) {
			cx.problem('error', 'cluster/mixed-databases', word.span, 'All addresses must have the same database.');
			return;
		}
	}
	draft.address = first.url.address;
	if (others.length > 0) draft.other_addresses = others.map(({ url }) => url.address);
	if (first.url.usesTls) draft.tls ??= {};
	if (first.url.database !== undefined) draft.database = first.url.database;
}

interface RedisUrl {
	readonly address: string;
	readonly usesTls: boolean;
	readonly database: number | undefined;
}

function lowerRedisUrl(word: Word, defaultPort: number, cx: LowerContext): RedisUrl | undefined {
	const [, scheme, userinfo, host, port = String(defaultPort), database] = REDIS_URL.exec(word.text) ?? [];
	// The message must not quote a URL, because it may contain a password.
	if (scheme === undefined || Number(port) < 1 || Number(port) > 65_535 || Number(database ?? 0) > 65_535) {
		cx.problem('error', 'cluster/bad-address', word.span, 'This is not the address of a Redis server.', {
			hint: 'Write redis://host:6379, or rediss://host:6379 for TLS.',
		});
		return undefined;
	}
	if (userinfo !== undefined) {
		cx.problem('error', 'cluster/credentials-in-address', word.span, 'Credentials do not belong in the address.', {
			hint: 'Write `user` and `password {$REDIS_PASSWORD}` in the block.',
		});
		return undefined;
	}
	return {
		address: `${host}:${Number(port)}`,
		usesTls: scheme === 'rediss',
		database: database === undefined ? undefined : Number(database),
	};
}

function checkEncryptionKey(word: Word, cx: LowerContext): void {
	if (!checkSecret(word, 'key', cx)) return;
	if (new RegExp(CLUSTER_KEY_PATTERN).test(word.text)) return;
	cx.problem('error', 'cluster/bad-key', word.span, 'The key is not 32 bytes in base64.', {
		hint: 'Create one with `openssl rand -base64 32`.',
	});
}

function checkPublisher(word: Word, cx: LowerContext): void {
	if (new RegExp(PUBLISHER_PATTERN).test(word.text)) return;
	cx.problem('error', 'cluster/bad-publisher', word.span, 'This is not an Ed25519 public key in base64.', {
		hint: 'It is the middle line of what `openssl pkey -in publisher.pem -pubout` prints, and begins with MCowBQYDK2Vw.',
	});
}

/** The names of environment variables that hints suggest for the secrets. */
const VARIABLE_BY_SECRET = {
	key: 'CLUSTER_KEY',
	password: 'REDIS_PASSWORD',
	sentinel_password: 'SENTINEL_PASSWORD',
} as const;

/**
 * Reports a secret that is a placeholder, which would not be resolved, and returns false. Warns about a secret that is written into
 * the configuration, where everyone who can read the file sees it.
 */
function checkSecret(word: Word, secretName: keyof typeof VARIABLE_BY_SECRET, cx: LowerContext): boolean {
	const { source, start, end } = word.span;
	if (source.text.slice(start, end).includes('{$')) return true;
	if (/^\{[^{}]*\}$/.test(word.text)) {
		cx.problem('error', 'cluster/secret-placeholder', word.span, `The ${secretName} cannot be a placeholder.`, {
			hint: 'Write `{$NAME}`, which is replaced when the file is read.',
		});
		return false;
	}
	if (cx.dialect === 'compatfile') return true;
	cx.problem('warning', 'secret/in-file', word.span, 'A credential is written into the file.', {
		hint: `Take it from the environment: \`{$${VARIABLE_BY_SECRET[secretName]}}\`.`,
	});
	return true;
}

function lowerTls(line: Line, cx: LowerContext): ClusterTls {
	const tls: { -readonly [field in keyof ClusterTls]: ClusterTls[field] } = {};
	const lowerFilePath = (word: Word): string => cx.filePath(word.text, word.span);
	cx.subdirectives(
		line.block,
		{
			ca: (words, innerLine) => {
				if (cx.count(innerLine, words, 1, 1, 'ca <file>')) tls.ca = lowerFilePath(words[0]!);
			},
			server_name: (words, innerLine) => {
				if (cx.count(innerLine, words, 1, 1, 'server_name <name>')) tls.server_name = words[0]!.text;
			},
			client: (words, innerLine) => {
				if (!cx.count(innerLine, words, 2, 2, 'client <certificate> <key>')) return;
				tls.client = { cert: lowerFilePath(words[0]!), key: lowerFilePath(words[1]!) };
			},
		},
		'tls',
	);
	return tls;
}
