/** Global option `cache`: the store that all `cache` directives share, and what holds for each of them. */

import type { Settings } from '../../document/document.ts';
import type { Word } from '../../syntax/ast.ts';
import {
	CEILING,
	lowerCacheRules,
	lowerCeiling,
	RULES_PROPERTIES,
	type RuleFields,
} from '../directives/cache/cache-words.ts';
import type { GlobalOption } from './option.ts';

/** Bytes of the common store, where nothing is said: 128 MiB. */
const DEFAULT_CEILING: number = 128 * 1024 ** 2;

/** Bytes of the disk, where nothing is said: 1 GiB; and least and most. */
const DEFAULT_DISK = 1024 ** 3;
const LEAST_DISK = 4 * 1024 ** 2;
const MOST_DISK = 1024 ** 4;

/** What holds for every `cache` directive that does not say otherwise. */
export interface CacheDefaults extends RuleFields {
	/** Bytes of the common store. */
	readonly ceiling: number;
	/** The folder behind it. */
	readonly disk?: { readonly folder: string; readonly size: number };
}

/** Reads `settings.cache`. */
export function cacheDefaults(settings: Settings): CacheDefaults {
	const { ceiling = DEFAULT_CEILING, disk, ...rules } = (settings.cache ?? {}) as Partial<CacheDefaults>;
	return { ceiling, ...(disk && { disk: { folder: disk.folder, size: disk.size ?? DEFAULT_DISK } }), ...rules };
}

/** `settings.cache`. */
export const cacheOption: GlobalOption = {
	id: 'cache',
	names: { configfile: ['cache'], compatfile: ['cache'] },
	usage: 'cache { ceiling <size>; … }',
	summary: 'The store of `cache` directives, and what holds for those that do not say otherwise.',
	documentation: [
		'`ceiling` (128MiB) is how much memory the process uses for what it keeps, bodies and what is known of them together;',
		'it is taken as it is needed. Another ceiling begins an empty store. The other words are those of the directive:',
		'`ttl`, `stale`, `heuristic`, `max_body`, `collapse`, `client_control`, `status_header`.',
		'',
		'`disk FOLDER [SIZE]` (1GiB) keeps the common store through restarts: what is stored is written behind, and read again',
		'when it is not in memory. Every record has checksums; what was not written to its end, or is not as it was written, is',
		'not served. The oldest goes when the files would take more than the size; bodies beyond 16 MiB stay in memory only. Purges',
		'and invalidations count there too, and are written down before they are answered. The folder is made with mode 700, its',
		'files with 600. One process at a time has it: another one works without until it is free, and takes out of it then what',
		'was purged meanwhile. A page that is confirmed again and again is written once a minute at most, and of the variants of',
		'one page the last 64 stay. A full disk is told in the log and in',
		'`svc_cache_disk_failures_total`; requests do not notice, but a purge that neither the segments nor a file beside them can',
		'hold is refused (`purge_not_kept`). Each response on disk takes some 60 bytes of memory. Stores with a',
		'`ceiling` of their own have no disk.',
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
			of: 'cache',
			more: {
				ceiling: lowerCeiling(fields, cx),
				disk: (words, at) => {
					cx.noBlock(at);
					if (!cx.count(at, words, 1, 2, 'disk <folder> [<size>]')) return;
					const [folder, size] = words as [Word, Word?];
					const bytes = size && cx.size(size);
					if (bytes !== undefined && (bytes < LEAST_DISK || bytes > MOST_DISK)) {
						cx.problem('error', 'cache/disk', size!.span, `\`${size!.text}\` is no size of a disk.`, {
							hint: 'Write a size from 4MiB to 1TiB.',
						});
						return;
					}
					fields.disk = {
						folder: cx.filePath(folder.text, folder.span),
						...(bytes !== undefined && { size: bytes }),
					};
				},
			},
		});
		settings.cache = cx.origin(fields, line.span);
	},
	schema: {
		type: 'object',
		description: 'The common store of `cache` steps, and what holds for those that do not say otherwise.',
		properties: {
			ceiling: {
				...CEILING,
				default: DEFAULT_CEILING,
				description: 'Bytes of memory, bodies and what is known of them together.',
			},
			disk: {
				type: 'object',
				description: 'A folder that keeps the common store through restarts.',
				properties: {
					folder: { type: 'string', minLength: 1, description: 'Its path.' },
					size: {
						type: 'integer',
						minimum: LEAST_DISK,
						maximum: MOST_DISK,
						default: DEFAULT_DISK,
						description: 'Bytes of its files.',
					},
				},
				required: ['folder'],
				additionalProperties: false,
			},
			...RULES_PROPERTIES,
			'@id': { type: 'string' },
		},
		additionalProperties: false,
	},
	startup: false,
};
