/** The handler `compress`: compresses the responses of later handlers while they are sent to the client. */

import { bodyLength, isStream, UnsentBody } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { type HeaderList, isSameFieldName } from '../../../exchange/header-list.ts';
import type { Coding, Compressor, EncodedResult } from '../../../exchange/leases.ts';
import { PendingAnswer } from '../../../exchange/pending-answer.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { compileResponseMatcher } from '../../matchers/response-matcher.ts';
import { preferredCoding } from '../../representations/accept-encoding.ts';
import { isEncodable } from './encodable-media.ts';
import type { CompressStep } from './encode.ts';
import { encodedTag, TagConditions, UnencodedTags } from './tag-conditions.ts';

const DEFAULT_CODINGS: readonly Coding[] = [{ name: 'zstd' }, { name: 'gzip' }];
const DEFAULT_MIN_BODY_BYTES = 512;

/** A compiled `compress` step. */
interface CompiledEncoder {
	readonly codingNames: readonly string[];
	readonly codings: ReadonlyMap<string, Coding>;
	readonly minBytes: number;
	readonly isEligible: (x: Exchange) => boolean;
	readonly compressor: Compressor;
	/** Remembers the entity tags of responses that this step leaves uncompressed. */
	readonly unencodedTags: UnencodedTags;
}

export function compileEncode(step: CompressStep, cx: CompileContext, next: Handler): Handler {
	const codings = step.codings ?? DEFAULT_CODINGS;
	const names = codings.map(({ name }) => name);
	const matchesResponse = step.match && compileResponseMatcher(step.match, cx);
	const encoder: CompiledEncoder = {
		codingNames: names,
		codings: new Map(codings.map(coding => [coding.name, coding])),
		minBytes: step.minimum_length ?? DEFAULT_MIN_BODY_BYTES,
		isEligible: matchesResponse
			? x => matchesResponse(x, x.response.status, x.response.headers)
			: x => isEncodable(x.response.headers.get('content-type')),
		compressor: cx.lease('compressor', {}),
		// With `match`, the path's extension does not show whether a response is compressed.
		unencodedTags: new UnencodedTags(matchesResponse === undefined),
	};
	return x => {
		const conditions = rewriteConditions(x, encoder);
		const pending = next(x);
		// Waits by callback, so that a proxied response needs neither a Promise nor a copy of its body.
		if (pending instanceof PendingAnswer) return pending.onSuccess(() => encodeResponse(x, encoder, conditions));
		if (pending instanceof Promise) return pending.then(() => encodeResponse(x, encoder, conditions));
		return encodeResponse(x, encoder, conditions);
	};
}

/**
 * Replaces the entity tags in a request's preconditions with tags that later handlers know. Returns undefined for requests without
 * preconditions, which are the majority.
 */
function rewriteConditions(x: Exchange, { codingNames, unencodedTags }: CompiledEncoder): TagConditions | undefined {
	const { headers } = x.request;
	for (let i = 0, size = headers.size; i < size; i++) {
		const name = headers.nameAt(i);
		const { length } = name;
		if (length !== 13 && length !== 8) continue;
		if (!isSameFieldName(name, 'if-none-match') && !isSameFieldName(name, 'if-match')) continue;
		const coding = forbidsTransform(headers)
			? undefined
			: preferredCoding(headers.getCombined('accept-encoding'), codingNames);
		return TagConditions.forRequest(x, coding, codingNames, unencodedTags);
	}
	return undefined;
}

function encodeResponse(
	x: Exchange,
	encoder: CompiledEncoder,
	conditions: TagConditions | undefined,
): void | Promise<void> {
	const { request, response } = x;
	const { status, headers } = response;
	if (x.isAborted || x.upgradeCallback !== undefined || status < 200 || status === 204) return;
	if (status === 304) {
		addVary(headers);
		conditions?.onNotModified(headers);
		return;
	}
	const knownLength = uncompressedLengthOf(x);
	const chosenCoding = chooseCoding(x, encoder, knownLength);
	if (conditions?.answerIfMatching(x, chosenCoding, true)) return;
	if (chosenCoding === undefined) return;
	if (request.method === 'HEAD') {
		// A HEAD response has the same fields as the response to a GET. Its length would be known only after compression.
		setEncodedFields(headers, chosenCoding);
		if (isStream(response.body)) response.body.cancel();
		response.body = new UnsentBody(undefined);
		return;
	}
	const encodeResult = encoder.compressor.encode(response.body!, encoder.codings.get(chosenCoding)!, {
		minimum: encoder.minBytes,
		flush: knownLength === undefined,
		identity: response.body === x.servedBody ? x.servedFile : undefined,
	});
	if (encodeResult instanceof Promise)
		return encodeResult.then(encodedResult => applyEncodedResult(x, chosenCoding, encoder, encodedResult, conditions));
	applyEncodedResult(x, chosenCoding, encoder, encodeResult, conditions);
}

/** Returns the length in bytes of the uncompressed body that a GET request would get; undefined if unknown. */
function uncompressedLengthOf({ request, response }: Exchange): number | undefined {
	if (request.method !== 'HEAD' || response.body !== null) return bodyLength(response.body);
	const field = response.headers.get('content-length');
	return field === undefined || !/^\d+$/.test(field) ? undefined : Number(field);
}

/**
 * Returns the coding in which a response is to be sent; undefined if it is sent uncompressed. Adds `Vary` if the coding depends on
 * the request's `Accept-Encoding`.
 */
function chooseCoding(x: Exchange, encoder: CompiledEncoder, lengthBytes: number | undefined): string | undefined {
	const { request, response } = x;
	const { headers } = response;
	if (response.status === 206 || (response.body === null && request.method !== 'HEAD')) return undefined;
	if (headers.has('content-encoding') || !encoder.isEligible(x)) return undefined;
	if (forbidsTransform(request.headers) || forbidsTransform(headers)) return undefined;
	if (lengthBytes !== undefined && lengthBytes <= encoder.minBytes) return undefined;
	addVary(headers);
	return preferredCoding(request.headers.getCombined('accept-encoding'), encoder.codingNames);
}

function applyEncodedResult(
	x: Exchange,
	coding: string,
	{ minBytes }: CompiledEncoder,
	{ body, encoded }: EncodedResult,
	conditions: TagConditions | undefined,
): void {
	x.response.body = body;
	if (!encoded) {
		// Not compressed, because the body is too short or too many responses are being compressed.
		conditions?.answerIfMatching(x, undefined, (bodyLength(body) ?? minBytes + 1) <= minBytes);
		return;
	}
	x.contentCoding = coding;
	setEncodedFields(x.response.headers, coding);
}

/** Sets the header fields of a compressed response, and removes those that describe the uncompressed body. */
function setEncodedFields(headers: HeaderList, coding: string): void {
	headers.set('Content-Encoding', coding);
	for (let i = 0; i < UNCOMPRESSED_BODY_FIELDS.length; i++) headers.delete(UNCOMPRESSED_BODY_FIELDS[i]!);
	const tag = headers.get('etag');
	if (tag !== undefined) headers.set('Etag', encodedTag(tag, coding));
}

const UNCOMPRESSED_BODY_FIELDS = [
	'content-length',
	'accept-ranges',
	'content-md5',
	'content-digest',
	'digest',
] as const;

function forbidsTransform(headers: HeaderList): boolean {
	const field = headers.getCombined('cache-control');
	return field !== undefined && /(?:^|[,\s])no-transform(?:$|[,;\s])/i.test(field);
}

function addVary(headers: HeaderList): void {
	const vary = headers.getCombined('vary');
	if (vary === undefined || !/(?:^|,)\s*(?:accept-encoding|\*)\s*(?:,|$)/i.test(vary))
		headers.add('Vary', 'Accept-Encoding');
}
