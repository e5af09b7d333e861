/** Global options `storage`, `storage_check` and `storage_clean_interval`: where certificates are kept. */

import type { GlobalOption } from '../contract/option.ts';
import { STORE_SCHEMA, storeById, stores } from '../providers/stores/index.ts';

/** Global option; sets `settings.storage` in the document. */
export const storage: GlobalOption = {
	id: 'storage',
	names: { configfile: ['storage'], compatfile: ['storage'] },
	usage: 'storage <store> [<argument>…] [{ … }]',
	summary: 'Sets where certificates, keys and accounts are kept.',
	documentation: [
		'The store is `file_system`, with a folder, or `redis`, which is the Redis server of the option `cluster`. The default is the folder in `SVC_TLS_STORE`, otherwise `svc` in the',
		"user's data directory (`$XDG_DATA_HOME`, by default `~/.local/share`). Changing it needs a restart.",
		'',
		'```',
		'{',
		'	storage file_system /var/lib/svc',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		const [nameWord, ...args] = line.words.slice(1);
		if (!nameWord) {
			cx.count(line, [], 1, 2, storage.usage);
			return;
		}
		const storeIds = stores.map(({ id }) => id);
		const storeId = cx.oneOf(nameWord, storeIds, 'store');
		const storeModule = storeId === undefined ? undefined : storeById(storeId);
		if (storeModule)
			settings.storage = cx.origin({ store: storeModule.id, ...storeModule.lower(args, line, cx) }, line.span);
	},
	schema: STORE_SCHEMA,
	startup: true,
};

/** Global option; sets `settings.storage_check` in the document. */
export const storageCheck: GlobalOption = {
	id: 'storage_check',
	names: { configfile: ['storage_check'], compatfile: ['storage_check'] },
	usage: 'storage_check off',
	summary: 'Skips the check that the store is writable.',
	documentation:
		'By default, a value is written to the store, read back and removed before certificates are ordered: certificates that cannot be stored would be ordered again and again.\n\n```\n{\n\tstorage_check off\n}\n```',
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, storageCheck.usage)) return;
		if (args[0]!.text === 'off') settings.storage_check = false;
		else cx.problem('error', 'storage/check', args[0]!.span, "storage_check must be 'off'");
	},
	schema: { type: 'boolean', description: 'Whether the store is tested before certificates are ordered.' },
	startup: false,
};

/** Global option; sets `settings.storage_clean_interval` in the document. */
export const storageCleanInterval: GlobalOption = {
	id: 'storage_clean_interval',
	names: { configfile: ['storage_clean_interval'], compatfile: ['storage_clean_interval'] },
	usage: 'storage_clean_interval <duration> | off',
	summary: 'Sets how often obsolete data is removed from the store.',
	documentation: [
		'This removes certificates that expired more than two weeks ago, outdated OCSP responses and leftovers of',
		'challenges. The default is once a day; processes that share a store take turns.',
		'',
		'```',
		'{',
		'	storage_clean_interval 7d',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, storageCleanInterval.usage)) return;
		if (args[0]!.text === 'off') {
			settings.storage_clean_interval = 0;
			return;
		}
		const intervalMs = cx.duration(args[0]!);
		if (intervalMs === undefined) return;
		if (intervalMs > 0) settings.storage_clean_interval = intervalMs;
		else {
			cx.problem('error', 'value/out-of-range', args[0]!.span, 'The interval must be positive.', {
				hint: 'Write `off` to never clean the store.',
			});
		}
	},
	schema: { type: 'number', minimum: 0, description: 'Milliseconds; 0 disables cleaning.' },
	startup: false,
};
