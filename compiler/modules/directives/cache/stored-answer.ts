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
import { createMultipartBody, formatContentRange, parseRange } from '../../representations/ranges.ts';
import { currentAgeMs } from './freshness.ts';

/**
 * Answers with a stored response. Returns false if it has been evicted. `statusMember` is the text to add to `Cache-Status`; '' for
 * none. `head` differs from the stored head if the origin has validated the response for this client only.
 */
export function answerFromStore(
	x: Exchange,
	cache: ResponseCache,
	storedResponse: CachedResponse,
	statusMember: string,
	head: CachedHead = storedResponse.head,
): boolean {
	const { request, response } = x;
	const { length } = storedResponse;
	const now = x.now();
	let isConditional = false;
	let hasRange = false;
	const requestHeaders = request.headers;
	for (let i = 0, size = requestHeaders.size; i < size; i++) {
		const name = requestHeaders.nameAt(i);
		const firstCode = name.charCodeAt(0) | 32;
		if (firstCode === 105 && (isSameFieldName(name, 'if-none-match') || isSameFieldName(name, 'if-modified-since')))
			isConditional = true;
		else if (firstCode === 114 && isSameFieldName(name, 'range')) hasRange = true;
	}
	const validators: Validators = { etag: head.etag, modified: head.modified };
	// Without `Last-Modified`, clients may send the `Date` of the response in `If-Modified-Since` (RFC 9111 §4.3.2).
	const comparedValidators: Validators = {
		etag: head.etag,
		modified: head.modified ?? (isConditional ? storedDateSeconds(head, now) : undefined),
	};
	if (
		isConditional &&
		head.status === 200 &&
		evaluatePreconditions(requestHeaders, comparedValidators, now) === 'not-modified'
	) {
		response.status = 304;
		response.headers = mergeStoredFields(response.headers, head, now, statusMember);
		omitContentFields(response.headers);
		response.body = null;
		return true;
	}
	if (request.method === 'HEAD') {
		response.status = head.status;
		response.headers = mergeStoredFields(response.headers, head, now, statusMember);
		response.headers.set('Content-Length', String(length));
		response.body = null;
		return true;
	}
	if (hasRange && head.status === 200 && request.method === 'GET' && rangeApplies(requestHeaders, validators, now)) {
		const rangeResult = answerRange(x, cache, storedResponse, head, now, statusMember);
		if (rangeResult !== undefined) return rangeResult;
	}
	const body = length === 0 ? null : cache.body(storedResponse, 0, length);
	if (body === undefined) return false;
	response.status = head.status;
	response.headers = mergeStoredFields(response.headers, head, now, statusMember);
	response.body = body;
	return true;
}

/** Returns the `Date` of a stored response in seconds since 1970. */
function storedDateSeconds({ fields }: CachedHead, now: number): number | undefined {
	for (let i = 0; i < fields.length; i += 2) {
		if (isSameFieldName(fields[i]!, 'date')) return parseHttpDate(fields[i + 1]!.trim(), now);
	}
	return undefined;
}

/**
 * Answers with the requested ranges of the stored body. Returns false if the response has been evicted, undefined if `Range` must
 * be ignored.
 */
function answerRange(
	x: Exchange,
	cache: ResponseCache,
	storedResponse: CachedResponse,
	head: CachedHead,
	now: number,
	statusMember: string,
): boolean | undefined {
	const { response } = x;
	const { length } = storedResponse;
	const ranges = parseRange(x.request.headers.getCombined('range')!, length);
	if (ranges === 'ignore') return undefined;
	const mergeHeaders = (): HeaderList => {
		response.headers = mergeStoredFields(response.headers, head, now, statusMember);
		return response.headers;
	};
	if (ranges === 'unsatisfiable') {
		mergeHeaders().set('Content-Range', `bytes */${length}`);
		response.headers.delete('content-type');
		response.status = 416;
		response.body = null;
		return true;
	}
	if (ranges.length === 1) {
		const [range] = ranges as [(typeof ranges)[number]];
		const body = cache.body(storedResponse, range.start, range.end);
		if (body === undefined) return false;
		mergeHeaders().set('Content-Range', formatContentRange(range, length));
		response.status = 206;
		response.body = body;
		return true;
	}
	const releasePin = cache.pin(storedResponse);
	if (releasePin === undefined) return false;
	const boundary = randomUUID().replaceAll('-', '');
	const mergedHeaders = mergeHeaders();
	const mediaType = mergedHeaders.get('content-type');
	response.body = createMultipartBody(
		ranges,
		length,
		mediaType,
		boundary,
		part => cache.body(storedResponse, part.start, part.end) ?? null,
		releasePin,
	);
	mergedHeaders.set('Content-Type', `multipart/byteranges; boundary=${boundary}`);
	response.status = 206;
	return true;
}

/** Returns the fields of a stored response merged with those already set for this response, and `Age` (RFC 9111 §5.1). */
export function mergeStoredFields(
	currentHeaders: HeaderList,
	head: CachedHead,
	now: number,
	statusMember: string,
): HeaderList {
	const { fields, before: earlierFields, removed } = head;
	let mergedFields: string[];
	if (hasExactFields(currentHeaders, earlierFields)) mergedFields = fields.slice();
	else {
		mergedFields = [];
		const keptHeaders = currentHeaders.clone();
		for (const name of removed) keptHeaders.delete(name);
		// Fields set before the stored response was fetched are taken from the current response. The store supplies only the
		// fields that were added later.
		for (let i = 0; i < keptHeaders.size; i++) mergedFields.push(keptHeaders.nameAt(i), keptHeaders.valueAt(i));
		for (let i = 0; i < fields.length; i += 2) {
			if (!includesField(earlierFields, fields[i]!, fields[i + 1]!)) mergedFields.push(fields[i]!, fields[i + 1]!);
		}
	}
	mergedFields.push('Age', String(Math.floor(currentAgeMs(head, now) / 1000)));
	if (statusMember !== '') mergedFields.push('Cache-Status', statusMember);
	return new HeaderList(mergedFields);
}

function hasExactFields(list: HeaderList, namesAndValues: readonly string[]): boolean {
	const size = list.size;
	if (size * 2 !== namesAndValues.length) return false;
	for (let i = 0; i < size; i++) {
		if (list.nameAt(i) !== namesAndValues[i * 2] || list.valueAt(i) !== namesAndValues[i * 2 + 1]) return false;
	}
	return true;
}

function includesField(namesAndValues: readonly string[], name: string, value: string): boolean {
	for (let i = 0; i < namesAndValues.length; i += 2)
		if (namesAndValues[i] === name && namesAndValues[i + 1] === value) return true;
	return false;
}
