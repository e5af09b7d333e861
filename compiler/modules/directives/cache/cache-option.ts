/** Global option `cache`: the store shared by all `cache` directives, and their defaults. */

import type { Settings } from '../../../document/document.ts';
import type { ClusterTierSettings } from '../../../exchange/response-cache.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import type { GlobalOption } from '../../contract/option.ts';
import {
	CACHE_RULES_PROPERTIES,
	CACHE_SIZE_SCHEMA,
	type CacheRuleFields,
	lowerCacheRules,
	lowerCeiling,
} from './cache-words.ts';

/** Default size of the common store in bytes: 128 MiB. */
const DEFAULT_STORE_BYTES: number = 128 * 1024 ** 2;

/** Default, minimum and maximum size of the store on disk in bytes. The default is 1 GiB. */
const DEFAULT_DISK_BYTES = 1024 ** 3;
const MIN_DISK_BYTES = 4 * 1024 ** 2;
const MAX_DISK_BYTES = 1024 ** 4;

/** Default and maximum of the setting `max_size` in `shared`, in bytes. Redis keeps responses in memory and sends each whole. */
const DEFAULT_SHARED_BYTES = 1024 ** 2;
const MAX_SHARED_BYTES = 16 * 1024 ** 2;
/** Default and maximum of the setting `keep` in `shared`, in milliseconds. */
const DEFAULT_KEEP_MS = 3_600_000;
const MAX_KEEP_MS = 604_800_000;
/** Default and maximum of the setting `wait` in `shared`, in milliseconds. */
const DEFAULT_SHARED_WAIT_MS = 2000;
const MAX_SHARED_WAIT_MS = 60_000;

const SHARED_USAGE = 'shared [{ max_size <size>; keep <duration>; wait <duration> }]';

/** The settings of `shared` in a document: a size in bytes, and times in milliseconds. */
interface SharedFields {
	readonly max_size?: number;
	readonly keep?: number;
	readonly wait?: number;
}

/** Defaults for all `cache` directives. */
export interface CacheDefaults extends CacheRuleFields {
	/** Maximum size of the common store in bytes. */
	readonly ceiling: number;
	/** Folder and maximum size in bytes of the part of the store that is on disk. */
	readonly disk?: { readonly folder: string; readonly size: number };
	/** Present if the machines of the cluster share the common store. */
	readonly shared?: ClusterTierSettings;
}

/** Returns the defaults for all `cache` directives: the values in `settings.cache`, completed by built-in values. */
export function cacheDefaults(settings: Settings): CacheDefaults {
	const {
		ceiling = DEFAULT_STORE_BYTES,
		disk,
		shared,
		...rules
	} = (settings.cache ?? {}) as Partial<Omit<CacheDefaults, 'shared'>> & { readonly shared?: SharedFields };
	return {
		ceiling,
		...(disk && { disk: { folder: disk.folder, size: disk.size ?? DEFAULT_DISK_BYTES } }),
		...(shared && {
			shared: {
				maxBytes: shared.max_size ?? DEFAULT_SHARED_BYTES,
				keepMs: shared.keep ?? DEFAULT_KEEP_MS,
				waitMs: shared.wait ?? DEFAULT_SHARED_WAIT_MS,
			},
		}),
		...rules,
	};
}

export const cacheOption: GlobalOption = {
	id: 'cache',
	names: { configfile: ['cache'], compatfile: ['cache'] },
	usage: 'cache { ceiling <size>; … }',
	summary: 'Configures the store of `cache` directives, and their defaults.',
	documentation: [
		'`ceiling` (128MiB) is the memory that the process uses for stored bodies and metadata together;',
		`it is allocated as needed. Changing it starts with an empty store. The other options are the directive's:`,
		'`ttl`, `stale`, `heuristic`, `max_body`, `collapse`, `client_control`, `status_header`.',
		'',
		'`disk FOLDER [SIZE]` (1GiB) keeps the common store across restarts: responses are written in the background and read back',
		'when they are not in memory. Every record has checksums; incomplete or damaged records are not',
		'served. The oldest are removed when the files would exceed the size; bodies larger than 16 MiB stay in memory only. Purges',
		'and invalidations apply to the disk too, and are recorded before they are acknowledged. The folder is created with mode 700, its',
		'files with 600. Only one process at a time uses it: another one runs without it until it is free, and then removes whatever',
		'was purged in the meantime. A response that is revalidated repeatedly is written at most once a minute, and of the variants of',
		'one URL the last 64 are kept. A full disk is reported in the log and in',
		'`svc_cache_disk_failures_total`; requests are not affected, but a purge that can be recorded neither in the segments nor in a file next to them',
		'is rejected (`purge_not_kept`). Each response on disk takes about 60 bytes of memory. Stores with their own',
		'`ceiling` have no disk.',
		'',
		'`shared` shares the common store with the machines of the `cluster`, which needs a `key`. A machine that has no response looks for',
		'it in Redis. If it is not there either, one machine fetches it, and the others wait for it for at most `wait` (2s; 0 disables waiting).',
		'Redis keeps responses of up to `max_size` (1MiB), including their fields, encrypted, for as long as they can be used, and no longer',
		'than `keep` (1h). Purges and invalidations apply to Redis, too. Without Redis, each machine uses its own store.',
		'Stores with their own `ceiling` are not shared. `svc help caching` and `svc help redis` have more.',
		'',
		'```',
		'{',
		'	cache {',
		'		ceiling 1GiB',
		'		ttl 404 10s',
		'	}',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		cx.count(line, line.words.slice(1), 0, 0, cacheOption.usage);
		const fields: { [field: string]: unknown } = {};
		lowerCacheRules(line.block, fields, cx, {
			directiveName: 'cache',
			ownSubdirectives: {
				ceiling: lowerCeiling(fields, cx),
				disk: (words, innerLine) => {
					cx.noBlock(innerLine);
					if (!cx.count(innerLine, words, 1, 2, 'disk <folder> [<size>]')) return;
					const [folderWord, sizeWord] = words as [Word, Word?];
					const sizeBytes = sizeWord && cx.size(sizeWord);
					if (sizeBytes !== undefined && (sizeBytes < MIN_DISK_BYTES || sizeBytes > MAX_DISK_BYTES)) {
						cx.problem('error', 'cache/disk', sizeWord!.span, `\`${sizeWord!.text}\` is not a valid size on disk.`, {
							hint: 'Write a size from 4MiB to 1TiB.',
						});
						return;
					}
					fields.disk = {
						folder: cx.filePath(folderWord.text, folderWord.span),
						...(sizeBytes !== undefined && { size: sizeBytes }),
					};
				},
				shared: (words, innerLine) => {
					cx.count(innerLine, words, 0, 0, SHARED_USAGE);
					fields.shared = lowerShared(innerLine, cx);
				},
			},
		});
		settings.cache = cx.origin(fields, line.span);
	},
	schema: {
		type: 'object',
		description: 'The common store of `cache` steps, and their defaults.',
		properties: {
			ceiling: {
				...CACHE_SIZE_SCHEMA,
				default: DEFAULT_STORE_BYTES,
				description: 'Bytes of memory, for bodies and metadata together.',
			},
			disk: {
				type: 'object',
				description: 'A folder that keeps the common store across restarts.',
				properties: {
					folder: { type: 'string', minLength: 1, description: 'Its path.' },
					size: {
						type: 'integer',
						minimum: MIN_DISK_BYTES,
						maximum: MAX_DISK_BYTES,
						default: DEFAULT_DISK_BYTES,
						description: 'Maximum bytes of its files.',
					},
				},
				required: ['folder'],
				additionalProperties: false,
			},
			shared: {
				type: 'object',
				description: 'Present if the machines of the cluster share the common store.',
				properties: {
					max_size: {
						type: 'integer',
						minimum: 0,
						maximum: MAX_SHARED_BYTES,
						default: DEFAULT_SHARED_BYTES,
						description: 'Maximum bytes of a response, including its fields.',
					},
					keep: {
						type: 'number',
						minimum: 1000,
						maximum: MAX_KEEP_MS,
						default: DEFAULT_KEEP_MS,
						description: 'Maximum milliseconds for which Redis keeps a response.',
					},
					wait: {
						type: 'number',
						minimum: 0,
						maximum: MAX_SHARED_WAIT_MS,
						default: DEFAULT_SHARED_WAIT_MS,
						description: 'Maximum milliseconds that a request waits while another machine fetches the response.',
					},
				},
				additionalProperties: false,
			},
			...CACHE_RULES_PROPERTIES,
			'@id': { type: 'string' },
		},
		additionalProperties: false,
	},
	startup: false,
};

function lowerShared(line: Line, cx: LowerContext): SharedFields {
	const fields: { -readonly [field in keyof SharedFields]: SharedFields[field] } = {};
	const lowerTime = (field: 'keep' | 'wait', minMs: number, maxMs: number, hint: string) => {
		return (words: readonly Word[], innerLine: Line): void => {
			cx.noBlock(innerLine);
			if (!cx.count(innerLine, words, 1, 1, `${field} <duration>`)) return;
			const timeMs = cx.duration(words[0]!);
			if (timeMs === undefined) return;
			if (timeMs >= minMs && timeMs <= maxMs) fields[field] = timeMs;
			else
				cx.problem('error', 'value/out-of-range', words[0]!.span, `\`${words[0]!.text}\` is out of range.`, { hint });
		};
	};
	cx.subdirectives(
		line.block,
		{
			max_size: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 1, 1, 'max_size <size>')) return;
				const sizeBytes = cx.size(words[0]!);
				if (sizeBytes === undefined) return;
				if (sizeBytes <= MAX_SHARED_BYTES) fields.max_size = sizeBytes;
				else {
					const message = `\`${words[0]!.text}\` is too large for a response in Redis.`;
					cx.problem('error', 'cache/shared', words[0]!.span, message, { hint: 'Write a size of up to 16MiB.' });
				}
			},
			keep: lowerTime('keep', 1000, MAX_KEEP_MS, 'Write a time from 1s to 7d.'),
			wait: lowerTime('wait', 0, MAX_SHARED_WAIT_MS, 'Write a time from 0 to 1m.'),
		},
		'shared',
	);
	return cx.origin(fields, line.span);
}
