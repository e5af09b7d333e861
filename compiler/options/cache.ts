/** Global option `cache`: the store that all `cache` directives share, and what holds for each of them. */
import {
	CEILING,
	lowerCacheRules,
	lowerCeiling,
	RULES_PROPERTIES,
	type RuleFields,
} from '../directives/cache/cache-words.ts';
import type { Settings } from '../document/document.ts';
import type { GlobalOption } from './option.ts';

/** Bytes of the common store, where nothing is said: 128 MiB. */
export const DEFAULT_CEILING: number = 128 * 1024 ** 2;

/** What holds for every `cache` directive that does not say otherwise. */
export interface CacheDefaults extends RuleFields {
	/** Bytes of the common store. */
	readonly ceiling: number;
}

/** Reads `settings.cache`. */
export function cacheDefaults(settings: Settings): CacheDefaults {
	const { ceiling = DEFAULT_CEILING, ...rules } = (settings.cache ?? {}) as Partial<CacheDefaults>;
	return { ceiling, ...rules };
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
		'`disk` is refused: what is kept is kept in memory, and gone with the process.',
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
				disk: (_words, at) => {
					cx.problem('error', 'cache/disk', at.words[0]!.span, '`disk` is not part of this build yet.', {
						hint: 'Leave it out: responses are kept in memory, up to the `ceiling`.',
					});
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
			...RULES_PROPERTIES,
			'@id': { type: 'string' },
		},
		additionalProperties: false,
	},
	startup: false,
};
