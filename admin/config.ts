/**
 * `/config/[path]` and `/id/<id>[/path]`: the running document, read and changed at one place.
 *
 * Segments are keys and array indices, each percent-encoded (`%2F` is a slash inside a key); a slash at the end changes
 * nothing. `/id/<id>` begins at the object whose `@id` that is.
 *
 * GET: 200 with the JSON value, secrets as `[redacted]`; `Etag` is qualified by the path. A missing key, index or `@id` is
 * 200 `null`. 304 without a body when `If-None-Match` holds that Etag. Every read is answered from one published generation.
 *
 * POST, PUT, PATCH, DELETE change one value (see `editDocument` for which does what) and apply the result as a load would:
 *
 * - 200 `{"generation":N,"diagnostics":[warnings]}`, and all that `POST /load` answers for a document that is refused.
 * - 404 `path_not_found`: the path does not exist; `nearest` is the nearest parent that does.
 * - 409 `already_exists`: PUT of what is there.
 * - 412 `precondition_failed`: `If-Match` no longer holds; nothing was changed.
 * - 400 `bad_value`: no JSON, or a value that does not fit the path.
 *
 * A value that replaces another may hold `[redacted]` where a secret was read: the stored one stays. Anywhere else, and
 * in POST of the whole document, it is refused. Writes are taken one after another, so that none is lost.
 */
import type { EditMethod } from '../compiler/document/edit-document.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import { type AdminContext, type AdminEndpoint, type AdminOperation, answerJson } from './endpoint.ts';
import { AdminError, type AdminErrorCode } from './errors.ts';
import { answerOutcome, CHANGE_ERRORS, editError, OUTCOME } from './outcome.ts';
import { mediaType, readText, unsupported } from './request-text.ts';

/** Where a request points. */
interface Place {
	readonly id: string | undefined;
	readonly path: readonly string[];
}

const PATH = 'Keys and array indices, separated by slashes; `...` at the end appends each value of an array.';
const ID = 'The `@id` of an object.';

export const config: AdminEndpoint = {
	path: '/config/',
	below: true,
	described: { '/config/': {}, '/config/{path}': { path: PATH } },
	methods: methodsAt(path => ({ id: undefined, path: segmentsOf(path, '/config/') })),
};

export const objectById: AdminEndpoint = {
	path: '/id/',
	below: true,
	described: { '/id/{id}': { id: ID }, '/id/{id}/{path}': { id: ID, path: PATH } },
	methods: methodsAt(path => {
		const [id, ...below] = segmentsOf(path, '/id/');
		if (id === undefined) throw new AdminError(404, 'not_found', 'Name an `@id`: /id/<id>.');
		return { id, path: below };
	}),
};

function methodsAt(placeOf: (path: string) => Place): { readonly [method: string]: AdminOperation } {
	const write = (summary: string, more: readonly AdminErrorCode[], hasBody = true): AdminOperation => ({
		summary,
		fields: ['If-Match'],
		...(hasBody && { body: { 'application/json': { description: 'The value.' } } }),
		answer: { description: 'The change is served.', type: 'application/json', schema: OUTCOME },
		errors: [...CHANGE_ERRORS, 'path_not_found', 'precondition_failed', ...more],
		run: (x, cx) => edit(x, cx, placeOf(x.request.path)),
	});
	return {
		GET: {
			summary: 'Reads the running configuration, or one value in it, with its secrets hidden.',
			fields: ['If-None-Match'],
			answer: {
				description: 'The value; null when nothing is there.',
				type: 'application/json',
				schema: {},
				fields: ['Etag'],
			},
			empty: { 304: 'It is what If-None-Match names.' },
			errors: ['bad_request'],
			run: async (x, { runtime }) => {
				const { id, path } = placeOf(x.request.path);
				const { json, etag } = await runtime.readConfig(path, id);
				x.response.headers.set('Etag', etag);
				if (listHolds(x.request.headers.combined('if-none-match'), etag)) {
					x.response.status = 304;
					return;
				}
				answerJson(x, 200, json);
			},
		},
		POST: write('Appends to an array, or sets a member.', ['bad_value']),
		PUT: write('Inserts into an array, or creates a member that is not there.', ['bad_value', 'already_exists']),
		PATCH: write('Replaces what is there.', ['bad_value']),
		DELETE: write('Removes what is there.', [], false),
	};
}

async function edit(x: Exchange, cx: AdminContext, { id, path }: Place): Promise<void> {
	const method = x.request.method as EditMethod;
	let text = '';
	if (method !== 'DELETE') {
		const type = mediaType(x);
		if (type !== undefined && type !== 'application/json' && !/^application\/[^/]+\+json$/.test(type)) {
			throw unsupported(type, ['application/json']);
		}
		text = await readText(x);
	}
	cx.changeable();
	const ifMatch = x.request.headers.combined('if-match');
	const outcome = await cx.runtime.edit({ method, id, path, text, ifMatch });
	if (outcome.result === 'edit_refused') throw editError(outcome);
	answerOutcome(x, await cx.changed(x, outcome));
}

/** Decoded segments of a path below a prefix. */
function segmentsOf(path: string, prefix: string): string[] {
	const below = path.slice(prefix.length).replace(/\/$/, '');
	if (below === '') return [];
	try {
		return below.split('/').map(decodeURIComponent);
	} catch {
		throw new AdminError(400, 'bad_request', 'The path is not valid percent-encoding.');
	}
}

/** If-None-Match compares weakly (RFC 9110 §13.1.2). An Etag of a path may hold commas, so the list is searched, not split. */
function listHolds(list: string | undefined, etag: string): boolean {
	if (list === undefined) return false;
	if (list.trim() === '*') return true;
	return (list.match(/(?:W\/)?"[^"]*"/g) ?? []).some(one => one.replace(/^W\//, '') === etag.replace(/^W\//, ''));
}
