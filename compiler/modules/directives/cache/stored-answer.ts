/** Answers with a stored response: in full, in part, or with 304 (RFC 9111 §4, RFC 9110 §13, §14). */
import { randomUUID } from 'node:crypto';
import type { Exchange } from '../../../exchange/exchange.ts';
import { HeaderList, isSameFieldName } from '../../../exchange/header-list.ts';
import type { CachedHead, CachedResponse, ResponseCache } from '../../../exchange/response-cache.ts';
import {
	evaluatePreconditions,
	omitContentFields,
	parseHttpDate,
	rangeApplies,
	type Validators,
} from '../../representations/conditional.ts';
import { contentRange, multipartRanges, parseRange } from '../../representations/ranges.ts';
import { currentAge } from './freshness.ts';

/** Answers with a stored response. Returns false if it has been evicted. `note` is the `Cache-Status` member, '' for none. */
export function answerFromStore(x: Exchange, cache: ResponseCache, stored: CachedResponse, note: string): boolean {
	const { request, response } = x;
	const { head, length } = stored;
	const now = x.now();
	let conditional = false;
	let ranged = false;
	const asked = request.headers;
	for (let i = 0, size = asked.size; i < size; i++) {
		const name = asked.nameAt(i);
		const first = name.charCodeAt(0) | 32;
		if (first === 105 && (isSameFieldName(name, 'if-none-match') || isSameFieldName(name, 'if-modified-since')))
			conditional = true;
		else if (first === 114 && isSameFieldName(name, 'range')) ranged = true;
	}
	const validators: Validators = { etag: head.etag, modified: head.modified };
	// Without `Last-Modified`, a client may use the `Date` it was given (RFC 9111 §4.3.2).
	const compared: Validators = {
		etag: head.etag,
		modified: head.modified ?? (conditional ? dateOf(head, now) : undefined),
	};
	if (conditional && head.status === 200 && evaluatePreconditions(asked, compared, now) === 'not-modified') {
		response.status = 304;
		response.headers = mergeStoredFields(response.headers, head, now, note);
		omitContentFields(response.headers);
		response.body = null;
		return true;
	}
	if (request.method === 'HEAD') {
		response.status = head.status;
		response.headers = mergeStoredFields(response.headers, head, now, note);
		response.headers.set('Content-Length', String(length));
		response.body = null;
		return true;
	}
	if (ranged && head.status === 200 && request.method === 'GET' && rangeApplies(asked, validators, now)) {
		const done = answerRange(x, cache, stored, now, note);
		if (done !== undefined) return done;
	}
	const body = length === 0 ? null : cache.body(stored, 0, length);
	if (body === undefined) return false;
	response.status = head.status;
	response.headers = mergeStoredFields(response.headers, head, now, note);
	response.body = body;
	return true;
}

/** Returns the `Date` of a stored response in seconds. */
function dateOf({ fields }: CachedHead, now: number): number | undefined {
	for (let i = 0; i < fields.length; i += 2) {
		if (isSameFieldName(fields[i]!, 'date')) return parseHttpDate(fields[i + 1]!.trim(), now);
	}
	return undefined;
}

/** Answers with a range of the stored body. Returns undefined if the Range field is to be ignored. */
function answerRange(
	x: Exchange,
	cache: ResponseCache,
	stored: CachedResponse,
	now: number,
	note: string,
): boolean | undefined {
	const { response } = x;
	const { head, length } = stored;
	const ranges = parseRange(x.request.headers.combined('range')!, length);
	if (ranges === 'ignore') return undefined;
	const headers = (): HeaderList => {
		response.headers = mergeStoredFields(response.headers, head, now, note);
		return response.headers;
	};
	if (ranges === 'unsatisfiable') {
		headers().set('Content-Range', `bytes */${length}`);
		response.headers.delete('content-type');
		response.status = 416;
		response.body = null;
		return true;
	}
	if (ranges.length === 1) {
		const [range] = ranges as [(typeof ranges)[number]];
		const body = cache.body(stored, range.start, range.end);
		if (body === undefined) return false;
		headers().set('Content-Range', contentRange(range, length));
		response.status = 206;
		response.body = body;
		return true;
	}
	const release = cache.pin(stored);
	if (release === undefined) return false;
	const boundary = randomUUID().replaceAll('-', '');
	const list = headers();
	const type = list.get('content-type');
	response.body = multipartRanges(
		ranges,
		length,
		type,
		boundary,
		part => cache.body(stored, part.start, part.end) ?? null,
		release,
	);
	list.set('Content-Type', `multipart/byteranges; boundary=${boundary}`);
	response.status = 206;
	return true;
}

/** Returns the fields of a stored response merged into those already set, with `Age` (RFC 9111 §5.1). */
export function mergeStoredFields(own: HeaderList, head: CachedHead, now: number, note: string): HeaderList {
	const { fields, before, removed } = head;
	let items: string[];
	if (holds(own, before)) items = fields.slice();
	else {
		items = [];
		const kept = own.clone();
		for (const name of removed) kept.delete(name);
		// Fields that were set before the stored response was fetched are taken from the current response; the store supplies only
		// the fields added after them.
		for (let i = 0; i < kept.size; i++) items.push(kept.nameAt(i), kept.valueAt(i));
		for (let i = 0; i < fields.length; i += 2) {
			if (!standsIn(before, fields[i]!, fields[i + 1]!)) items.push(fields[i]!, fields[i + 1]!);
		}
	}
	items.push('Age', String(Math.floor(currentAge(head, now) / 1000)));
	if (note !== '') items.push('Cache-Status', note);
	return new HeaderList(items);
}

function holds(list: HeaderList, items: readonly string[]): boolean {
	const size = list.size;
	if (size * 2 !== items.length) return false;
	for (let i = 0; i < size; i++) {
		if (list.nameAt(i) !== items[i * 2] || list.valueAt(i) !== items[i * 2 + 1]) return false;
	}
	return true;
}

function standsIn(items: readonly string[], name: string, value: string): boolean {
	for (let i = 0; i < items.length; i += 2) if (items[i] === name && items[i + 1] === value) return true;
	return false;
}
