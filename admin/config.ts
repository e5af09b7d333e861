/**
 * `/config/[path]` and `/id/<id>[/path]`: read and change parts of the running document.
 *
 * Segments are keys and array indices, each percent-encoded (`%2F` is a slash inside a key); a trailing slash is ignored.
 * `/id/<id>` starts at the object with that `@id`.
 *
 * GET: 200 with the JSON value, secrets as `[redacted]`; `Etag` is specific to the path. A missing key, index or `@id` is
 * 200 `null`. 304 without a body if `If-None-Match` holds that Etag. Every read sees exactly one published generation.
 *
 * POST, PUT, PATCH, DELETE change one value (`editDocument` documents each) and apply the result like a load:
 *
 * - 200 `{"generation":N,"diagnostics":[warnings]}`, and for a refused document the same answers as `POST /load`.
 * - 404 `path_not_found`: the path does not exist; `nearest` is the nearest parent that does.
 * - 409 `already_exists`: PUT of an existing value.
 * - 412 `precondition_failed`: `If-Match` no longer holds; nothing was changed.
 * - 400 `bad_value`: not JSON, or a value that does not fit the path.
 * - 409 `configured_by_cluster`: the configuration comes from the cluster (`svc run --cluster`).
 *
 * A replacement value may contain `[redacted]` where a secret was read: the stored secret is kept. Anywhere else, and
 * in a POST of the whole document, `[redacted]` is refused. Writes are serialized, so that none is lost.
 */

import type { Exchange } from '../compiler/exchange/exchange.ts';
import type { EditMethod } from '../compiler/schema/edit-document.ts';
import { type AdminContext, type AdminEndpoint, type AdminOperation, answerJson } from './endpoint.ts';
import { AdminError, type AdminErrorCode } from './errors.ts';
import { answerOutcome, CHANGE_ERROR_CODES, editError, OUTCOME_SCHEMA } from './outcome.ts';
import { mediaType, readText, unsupportedMediaTypeError } from './request-text.ts';

interface ConfigPlace {
	readonly id: string | undefined;
	readonly path: readonly string[];
}

const PATH_DESCRIPTION =
	'Keys and array indices, separated by slashes; a trailing `...` appends each value of an array.';
const ID_DESCRIPTION = 'The `@id` of an object.';

export const config: AdminEndpoint = {
	path: '/config/',
	includesSubpaths: true,
	describedPaths: { '/config/': {}, '/config/{path}': { path: PATH_DESCRIPTION } },
	operationsByMethod: createOperations(path => ({ id: undefined, path: segmentsOf(path, '/config/') })),
};

export const objectById: AdminEndpoint = {
	path: '/id/',
	includesSubpaths: true,
	describedPaths: {
		'/id/{id}': { id: ID_DESCRIPTION },
		'/id/{id}/{path}': { id: ID_DESCRIPTION, path: PATH_DESCRIPTION },
	},
	operationsByMethod: createOperations(path => {
		const [id, ...subpath] = segmentsOf(path, '/id/');
		if (id === undefined) throw new AdminError(404, 'not_found', 'Name an `@id`: /id/<id>.');
		return { id, path: subpath };
	}),
};

function createOperations(placeOf: (path: string) => ConfigPlace): { readonly [method: string]: AdminOperation } {
	const writeOperation = (summary: string, moreErrors: readonly AdminErrorCode[], hasBody = true): AdminOperation => ({
		summary,
		requestFields: ['If-Match'],
		...(hasBody && { body: { 'application/json': { description: 'The value.' } } }),
		answer: { description: 'The change has been applied.', type: 'application/json', schema: OUTCOME_SCHEMA },
		errors: [...CHANGE_ERROR_CODES, 'path_not_found', 'precondition_failed', ...moreErrors],
		run: (x, cx) => applyEdit(x, cx, placeOf(x.request.path)),
	});
	return {
		GET: {
			summary: 'Reads the running configuration, or a value in it, with secrets redacted.',
			requestFields: ['If-None-Match'],
			answer: {
				description: 'The value; null if it does not exist.',
				type: 'application/json',
				schema: {},
				responseFields: ['Etag'],
			},
			emptyResponses: { 304: 'The value has not changed: its Etag is in If-None-Match.' },
			errors: ['bad_request'],
			run: async (x, { runtime }) => {
				const { id, path } = placeOf(x.request.path);
				const { json, etag } = await runtime.readConfig(path, id);
				x.response.headers.set('Etag', etag);
				if (listIncludes(x.request.headers.getCombined('if-none-match'), etag)) {
					x.response.status = 304;
					return;
				}
				answerJson(x, 200, json);
			},
		},
		POST: writeOperation('Appends to an array, or sets a member.', ['bad_value']),
		PUT: writeOperation('Inserts into an array, or creates a missing member.', ['bad_value', 'already_exists']),
		PATCH: writeOperation('Replaces an existing value.', ['bad_value']),
		DELETE: writeOperation('Removes an existing value.', [], false),
	};
}

async function applyEdit(x: Exchange, cx: AdminContext, { id, path }: ConfigPlace): Promise<void> {
	const method = x.request.method as EditMethod;
	let valueText = '';
	if (method !== 'DELETE') {
		const type = mediaType(x);
		if (type !== undefined && type !== 'application/json' && !/^application\/[^/]+\+json$/.test(type)) {
			throw unsupportedMediaTypeError(type, ['application/json']);
		}
		valueText = await readText(x);
	}
	cx.refuseIfConfiguredByCluster();
	cx.refuseWhilePending();
	const ifMatch = x.request.headers.getCombined('if-match');
	const outcome = await cx.runtime.edit({ method, id, path, text: valueText, ifMatch });
	if (outcome.result === 'edit_refused') throw editError(outcome);
	answerOutcome(x, await cx.recordChange(x, outcome));
}

/** Returns the decoded segments of a path below a prefix. */
function segmentsOf(path: string, prefix: string): string[] {
	const relativePath = path.slice(prefix.length).replace(/\/$/, '');
	if (relativePath === '') return [];
	try {
		return relativePath.split('/').map(decodeURIComponent);
	} catch {
		throw new AdminError(400, 'bad_request', 'The path is not valid percent-encoding.');
	}
}

/**
 * Reports whether a list of entity tags contains a tag, by weak comparison, as If-None-Match requires (RFC 9110 §13.1.2). Our tags
 * may contain commas, so the list is searched, not split.
 */
function listIncludes(entityTags: string | undefined, etag: string): boolean {
	if (entityTags === undefined) return false;
	if (entityTags.trim() === '*') return true;
	return (entityTags.match(/(?:W\/)?"[^"]*"/g) ?? []).some(tag => tag.replace(/^W\//, '') === etag.replace(/^W\//, ''));
}
