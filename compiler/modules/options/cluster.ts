/** Global option `cluster`: the Redis server that several machines share. */
import {
	CLUSTER_KEY_PATTERN,
	type ClusterSettings,
	type ClusterTls,
	DEFAULT_CLUSTER_PREFIX,
	DEFAULT_CLUSTER_TIMEOUT_MS,
} from '../../document/cluster-settings.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import type { GlobalOption } from '../contract/option.ts';

const HOST_PATTERN = '(\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9._-]+)';
const REDIS_URL = new RegExp(`^(rediss?)://(?:([^@/]*)@)?${HOST_PATTERN}(?::([0-9]{1,5}))?(?:/([0-9]{1,5})?)?$`);
const PREFIX_PATTERN = '^[A-Za-z0-9._:-]{1,64}$';
/** Maximum of `timeout` in milliseconds. If Redis does not respond, requests may have to wait this long. */
const MAX_TIMEOUT_MS = 10_000;
const TLS_USAGE = 'tls [{ ca <file>; server_name <name>; client <certificate> <key> }]';

type ClusterDraft = { -readonly [field in keyof ClusterSettings]: ClusterSettings[field] };

/** Global option; sets `settings.cluster` in the document. */
export const cluster: GlobalOption = {
	id: 'cluster',
	names: { configfile: ['cluster'], compatfile: ['cluster'] },
	usage:
		'cluster redis[s]://<host>[:<port>][/<database>] [{ user <name>; password <text>; key <base64> [<older>…]; prefix <text>; timeout <duration>; tls [{ … }] }]',
	summary: 'Names the Redis server that several machines share.',
	documentation: [
		'Redis, or Valkey, holds what machines share: certificates and their locks with `storage redis`, purges of response caches,',
		'and rate limits that are `shared`. Machines with the same server and `prefix` are one cluster. `rediss://` or `tls` encrypts the connection;',
		'`tls { ca … }` names the certificates to trust, `client` those to present.',
		'',
		'`key` encrypts private values in Redis with AES-256-GCM; it is the same on all machines: 32 bytes in base64, as',
		'`openssl rand -base64 32` creates them. To replace a key without a gap, give all machines `key <old> <new>` first, then',
		'`key <new> <old>`: the first one encrypts, all of them decrypt. `svc help cluster` has the remaining steps.',
		'',
		`A challenge of an issuer waits for Redis for at most \`timeout\`, by default ${DEFAULT_CLUSTER_TIMEOUT_MS}ms. The default of \`prefix\` is \`${DEFAULT_CLUSTER_PREFIX}\`.`,
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
	].join('\n'),
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		const draft: Partial<ClusterDraft> = {};
		if (cx.count(line, args, 1, 1, cluster.usage)) lowerRedisUrl(args[0]!, draft, cx);
		cx.subdirectives(
			line.block,
			{
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
		if (draft.address !== undefined) settings.cluster = cx.origin(draft, line.span);
	},
	schema: {
		type: 'object',
		properties: {
			address: { type: 'string', pattern: `^${HOST_PATTERN}:[0-9]{1,5}$`, description: '`host:port` of Redis.' },
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
			'@id': { type: 'string' },
		},
		required: ['address'],
		additionalProperties: false,
	},
	startup: true,
};

function lowerRedisUrl(word: Word, draft: Partial<ClusterDraft>, cx: LowerContext): void {
	const [, scheme, userinfo, host, port = '6379', database] = REDIS_URL.exec(word.text) ?? [];
	// The message must not quote a URL, because it may contain a password.
	if (scheme === undefined || Number(port) < 1 || Number(port) > 65_535 || Number(database ?? 0) > 65_535) {
		cx.problem('error', 'cluster/bad-address', word.span, 'This is not the address of a Redis server.', {
			hint: 'Write one server: redis://host:6379, or rediss://host:6379 for TLS.',
		});
		return;
	}
	if (userinfo !== undefined) {
		cx.problem('error', 'cluster/credentials-in-address', word.span, 'Credentials do not belong in the address.', {
			hint: 'Write `user` and `password {$REDIS_PASSWORD}` in the block.',
		});
		return;
	}
	draft.address = `${host}:${Number(port)}`;
	if (scheme === 'rediss') draft.tls ??= {};
	if (database !== undefined) draft.database = Number(database);
}

function checkEncryptionKey(word: Word, cx: LowerContext): void {
	if (!checkSecret(word, 'key', cx)) return;
	if (new RegExp(CLUSTER_KEY_PATTERN).test(word.text)) return;
	cx.problem('error', 'cluster/bad-key', word.span, 'The key is not 32 bytes in base64.', {
		hint: 'Create one with `openssl rand -base64 32`.',
	});
}

/**
 * Reports a secret that is a placeholder, which would not be resolved, and returns false. Warns about a secret that is written into
 * the configuration, where everyone who can read the file sees it.
 */
function checkSecret(word: Word, secretName: string, cx: LowerContext): boolean {
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
		hint: `Take it from the environment: \`{$${secretName === 'key' ? 'CLUSTER_KEY' : 'REDIS_PASSWORD'}}\`.`,
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
