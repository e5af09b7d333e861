/**
 * `GET /config/[path]`: the running document, or one value in it, with secrets as `[redacted]`.
 *
 * - 200 with the JSON value; `Etag` is qualified by the path. A missing key or index is 200 `null`.
 * - 304 without a body when `If-None-Match` holds that Etag.
 * - 400, code `bad_request`: a segment that is not valid percent-encoding.
 *
 * Segments are keys and array indices, each percent-encoded (`%2F` is a slash inside a key); a slash at the end changes
 * nothing. Every read is answered from one published generation. Other methods are 405.
 */
import { type AdminEndpoint, answerJson } from './endpoint.ts';
import { AdminError } from './errors.ts';

/** `/config/…`. */
export const config: AdminEndpoint = {
	path: '/config/',
	below: true,
	methods: {
		GET: async (x, { runtime }) => {
			const { json, etag } = await runtime.readConfig(segmentsOf(x.request.path));
			x.response.headers.set('Etag', etag);
			if (listHolds(x.request.headers.combined('if-none-match'), etag)) {
				x.response.status = 304;
				return;
			}
			answerJson(x, 200, json);
		},
	},
};

/** Decoded segments of a path below `/config`. */
function segmentsOf(path: string): string[] {
	const below = path.slice('/config/'.length).replace(/\/$/, '');
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
