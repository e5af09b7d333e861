/** A request under construction, and functions that change it. */
import {
	type DryRunRequest,
	fieldMistake,
	methodMistake,
	type RequestProtocol,
	type RequestUrl,
} from '../dry-run/dry-run-request.ts';
import type { RequestChange } from '../modules/contract/request-change.ts';

/** A request whose parts can be changed one at a time. */
export interface RequestDraft {
	readonly scheme: 'http' | 'https';
	readonly host: string;
	readonly port: number;
	readonly method: string;
	/** The path, percent-decoded, with a leading slash. */
	readonly path: string;
	readonly parameters: ReadonlyMap<string, string>;
	/** The value of each header field, by its lower-case name. */
	readonly headers: ReadonlyMap<string, string>;
	/** The request body; empty if there is none. */
	readonly body: string;
	readonly from: string;
	readonly protocol?: RequestProtocol | undefined;
}

/** Returns a copy of a draft with a change applied. */
export function changedDraft(draft: RequestDraft, change: RequestChange): RequestDraft {
	const { path, method, host, from, protocol, header, parameter, noQuery, body } = change;
	return {
		...draft,
		...(path === undefined ? {} : { path }),
		...(method === undefined ? {} : { method }),
		...(host === undefined ? {} : { host }),
		...(from === undefined ? {} : { from }),
		...(protocol === undefined ? {} : { protocol }),
		...(body === undefined ? {} : { body }),
		headers: header ? withEntry(draft.headers, header[0].toLowerCase(), header[1]) : draft.headers,
		parameters: noQuery
			? new Map()
			: parameter
				? withEntry(draft.parameters, parameter[0], parameter[1])
				: draft.parameters,
	};
}

/** Returns a text that is equal for drafts of the same request. */
export function draftKey(draft: RequestDraft): string {
	const { headers, parameters, body, ...rest } = draft;
	// The length and the first 100 characters suffice, because all derived bodies that have them in common are equal.
	return JSON.stringify([rest, [...headers].sort(), [...parameters], body.length, body.slice(0, 100)]);
}

/**
 * Returns the request that a draft describes, made at a given time; undefined if no client could send it. `timeMs` is in milliseconds
 * since 1970.
 */
export function requestOf(draft: RequestDraft, timeMs: number): DryRunRequest | undefined {
	const { scheme, host, port, method, path, parameters, headers, body, from, protocol } = draft;
	if (protocol === 'h3' && scheme === 'http') return undefined;
	if (methodMistake(method) || !/^[\w.:-]*$/.test(host)) return undefined;
	if ([...headers].some(([name, value]) => fieldMistake(name, value))) return undefined;
	const query = [...parameters].map(([name, value]) => `${percentEncode(name)}=${percentEncode(value)}`).join('&');
	const hostText = host.includes(':') ? `[${host}]` : host;
	const authority = port === (scheme === 'http' ? 80 : 443) ? hostText : `${hostText}:${port}`;
	const escapedPath = path
		.toWellFormed()
		.replace(/[^\x21\x24-\x3b\x3d\x40-\x5a\x5f\x61-\x7a\x7e]/gu, encodeURIComponent)
		.replace(/%(?![0-9A-Fa-f]{2})/g, '%25');
	const url: RequestUrl = {
		text: `${scheme}://${authority}${escapedPath}${query === '' ? '' : `?${query}`}`,
		scheme,
		authority,
		host,
		port,
		path: escapedPath,
		query: query === '' ? undefined : query,
	};
	return { method, url, headers: [...headers], body: body === '' ? undefined : body, from, at: timeMs, protocol };
}

function percentEncode(text: string): string {
	return encodeURIComponent(text.toWellFormed());
}

function withEntry(map: ReadonlyMap<string, string>, name: string, value: string | undefined): Map<string, string> {
	const copy = new Map(map);
	if (value === undefined) copy.delete(name);
	else copy.set(name, value);
	return copy;
}
