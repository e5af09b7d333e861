/**
 * `GET /cache` → 200, an object: `bytes` used by stored responses and their `ceiling`, `entries`, counters since the start
 * (`hits`, `misses`, `stale`, `bypassed`, `revalidated`, `collapsed`, `stored`, `evicted`, `purged`), and `stores`, one for
 * each separate store. A store with a `disk` reports responses `written`, `skipped` (too many were waiting, or the disk
 * failed), `recalled` into memory, `damaged`, disk `failures`, and, while no responses are written, the reason in `idle`:
 * `opening` (the folder is being read, or another process uses it) or `failing`.
 *
 * `POST /cache/purge` with JSON `{"host":"example.com","path":"/a"}` removes one URL: with any query if the path has none,
 * on any port if the host has none. `{"tag":"t"}` removes everything with a tag, `{"host":"example.com","prefix":"/a/"}`
 * everything below a path. → 200 `{"purged":N}`, once no thread serves any of it. In a cluster, other machines purge it as well:
 * `machines` then lists the IDs of the members that have `confirmed` it within a second, and of the `unconfirmed` others.
 *
 * - 400, code `bad_request`: the body is not JSON; `bad_value`: not an object of this form.
 * - 413, 415: see `ADMIN_ERRORS` in errors.ts.
 * - 503, code `purge_not_kept`: purged from memory, but a disk could not record it: repeat the request.
 * - 503, code `purge_not_shared`: purged only on this machine, because Redis does not answer: repeat the request when it does.
 */
import type { Exchange } from '../compiler/exchange/exchange.ts';
import { PurgeNotRecorded, type PurgeSelection } from '../runtime/cache/purging.ts';
import { PurgeNotShared } from '../runtime/cluster/cluster-error.ts';
import { type AdminEndpoint, answerJson } from './endpoint.ts';
import { AdminError } from './errors.ts';
import { mediaType, readText, unsupportedMediaTypeError } from './request-text.ts';

/** Maximum bytes of a purge request's body. */
const MAX_SELECTION_BYTES = 64 * 1024;

const countSchema = { type: 'integer', minimum: 0 };
const SIZE_FIELD_SCHEMAS = { bytes: countSchema, ceiling: countSchema, entries: countSchema };
const EVENT_FIELD_SCHEMAS = {
	...{ hits: countSchema, misses: countSchema, stale: countSchema, bypassed: countSchema, revalidated: countSchema },
	...{ collapsed: countSchema, stored: countSchema, evicted: countSchema, purged: countSchema },
};
const DISK_FIELD_SCHEMAS = {
	written: countSchema,
	skipped: countSchema,
	recalled: countSchema,
	damaged: countSchema,
	failures: countSchema,
};
const STORE_SCHEMA = {
	type: 'object',
	properties: {
		...{ ...SIZE_FIELD_SCHEMAS, evicted: countSchema, purged: countSchema },
		own: { type: 'boolean', description: 'Belongs to a single directive.' },
		disk: {
			type: 'object',
			description: 'The folder that backs the store.',
			properties: {
				...SIZE_FIELD_SCHEMAS,
				...DISK_FIELD_SCHEMAS,
				idle: { type: 'string', enum: ['opening', 'failing'], description: 'Why responses are not being written.' },
			},
			required: [...Object.keys(SIZE_FIELD_SCHEMAS), ...Object.keys(DISK_FIELD_SCHEMAS)],
			additionalProperties: false,
		},
	},
	required: ['bytes', 'ceiling', 'entries', 'evicted', 'purged', 'own'],
	additionalProperties: false,
};

export const cache: AdminEndpoint = {
	path: '/cache',
	operationsByMethod: {
		GET: {
			summary: 'Returns the size of the response caches and their counters.',
			answer: {
				description: 'Totals, and each store.',
				type: 'application/json',
				schema: {
					type: 'object',
					properties: { ...SIZE_FIELD_SCHEMAS, ...EVENT_FIELD_SCHEMAS, stores: { type: 'array', items: STORE_SCHEMA } },
					required: [...Object.keys(SIZE_FIELD_SCHEMAS), ...Object.keys(EVENT_FIELD_SCHEMAS), 'stores'],
					additionalProperties: false,
				},
			},
			run: (x, { runtime }) => {
				const { stores, events } = runtime.caches();
				const sumOverStores = (field: 'bytes' | 'ceiling' | 'entries' | 'evictions' | 'purged'): number =>
					stores.reduce((total, store) => total + store[field], 0);
				const answer = {
					...{ bytes: sumOverStores('bytes'), ceiling: sumOverStores('ceiling'), entries: sumOverStores('entries') },
					...{ hits: events.hit, misses: events.miss, stale: events.stale, bypassed: events.bypass },
					...{ revalidated: events.revalidated, collapsed: events.collapsed, stored: events.store },
					...{ evicted: sumOverStores('evictions'), purged: sumOverStores('purged') },
					stores: stores.map(({ bytes, ceiling, entries, evictions, purged, own, disk }) => {
						return { bytes, ceiling, entries, evicted: evictions, purged, own, ...(disk && { disk }) };
					}),
				};
				answerJson(x, 200, JSON.stringify(answer));
			},
		},
	},
};

const textSchema = (description: string) => ({ type: 'string', minLength: 1, description });

export const purgeCache: AdminEndpoint = {
	path: '/cache/purge',
	operationsByMethod: {
		POST: {
			summary: 'Removes stored responses: one URL, those with a tag, or those below a path.',
			body: {
				'application/json': {
					type: 'object',
					properties: {
						host: textSchema('Host of the URL; any port if it has none.'),
						path: textSchema('Path of the URL; any query if it has none.'),
						tag: textSchema(
							'A tag in `Cache-Tag` or `Surrogate-Key`, instead of `path`; on every host if `host` is missing.',
						),
						prefix: textSchema('A path prefix, instead of `path`.'),
					},
					additionalProperties: false,
				},
			},
			answer: {
				description: 'No thread serves them any longer.',
				type: 'application/json',
				schema: {
					type: 'object',
					properties: {
						purged: { ...countSchema, description: 'Number of responses removed on this machine.' },
						machines: {
							type: 'object',
							description:
								'Members of the cluster that have confirmed the purge, and those that have not within a second.',
							properties: {
								confirmed: { type: 'array', items: { type: 'string' } },
								unconfirmed: { type: 'array', items: { type: 'string' } },
							},
							required: ['confirmed', 'unconfirmed'],
							additionalProperties: false,
						},
					},
					required: ['purged'],
					additionalProperties: false,
				},
			},
			errors: [
				'bad_request',
				'bad_value',
				'body_too_large',
				'unsupported_media_type',
				'purge_not_kept',
				'purge_not_shared',
			],
			run: async (x, { runtime }) => {
				const selection = await readSelection(x);
				const { purged, machines } = await runtime.purge(selection).catch((error: Error) => {
					if (error instanceof PurgeNotRecorded) throw new AdminError(503, 'purge_not_kept', error.message);
					if (error instanceof PurgeNotShared) throw new AdminError(503, 'purge_not_shared', error.message);
					throw error;
				});
				answerJson(x, 200, JSON.stringify({ purged, machines }));
			},
		},
	},
};

async function readSelection(x: Exchange): Promise<PurgeSelection> {
	const type = mediaType(x);
	if (type !== undefined && type !== 'application/json') throw unsupportedMediaTypeError(type, ['application/json']);
	let body: unknown;
	try {
		body = JSON.parse(await readText(x, MAX_SELECTION_BYTES));
	} catch (error) {
		if (error instanceof SyntaxError) throw new AdminError(400, 'bad_request', 'The body is not JSON.');
		throw error;
	}
	if (typeof body !== 'object' || body === null || Array.isArray(body))
		throw badValueError('The body is not a JSON object.');
	const members = body as { [name: string]: unknown };
	for (const [name, value] of Object.entries(members)) {
		if (!['host', 'path', 'tag', 'prefix'].includes(name))
			throw badValueError(`\`/${name}\` is not a member of a purge request.`);
		if (typeof value !== 'string' || value === '') throw badValueError(`\`/${name}\` is not a non-empty string.`);
	}
	const { host, path, tag, prefix } = members as { host?: string; path?: string; tag?: string; prefix?: string };
	if ([path, tag, prefix].filter(selector => selector !== undefined).length !== 1) {
		throw badValueError('Give one of `path`, `tag` and `prefix`.');
	}
	if (tag !== undefined) return { tag, host };
	if (host === undefined) throw badValueError('`/host` is missing.');
	if (!(path ?? prefix)!.startsWith('/')) {
		throw badValueError(`\`/${path === undefined ? 'prefix' : 'path'}\` does not begin with a slash.`);
	}
	return path === undefined ? { prefix: prefix!, host } : { path, host };
}

function badValueError(message: string): AdminError {
	return new AdminError(400, 'bad_value', message);
}
