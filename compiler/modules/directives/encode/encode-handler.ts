/** The handler `compress`: compresses the responses of later handlers while they are sent to the client. */

import { bodyLength, isStream } from '../../../exchange/body.ts';
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
const DEFAULT_MINIMUM = 512;

/** Settings of one `compress` step, fixed when the configuration is compiled. */
interface Encoder {
	readonly names: readonly string[];
	readonly codings: ReadonlyMap<string, Coding>;
	readonly minimum: number;
	readonly matches: (x: Exchange) => boolean;
	readonly compressor: Compressor;
	/** Entity tags of responses that this step leaves uncompressed. */
	readonly unencoded: UnencodedTags;
}

/** Compiles a `compress` step. */
export function compileEncode(step: CompressStep, cx: CompileContext, next: Handler): Handler {
	const codings = step.codings ?? DEFAULT_CODINGS;
	const names = codings.map(({ name }) => name);
	const test = step.match && compileResponseMatcher(step.match, cx);
	const encoder: Encoder = {
		names,
		codings: new Map(codings.map(coding => [coding.name, coding])),
		minimum: step.minimum_length ?? DEFAULT_MINIMUM,
		matches: test
			? x => test(x, x.response.status, x.response.headers)
			: x => isEncodable(x.response.headers.get('content-type')),
		compressor: cx.lease('compressor', {}),
		// If responses are not selected by type, the path's extension does not tell which are compressed.
		unencoded: new UnencodedTags(test === undefined),
	};
	return x => {
		const conditions = conditionsOf(x, encoder);
		const pending = next(x);
		// Waits by callback, so that a proxied response needs neither a Promise nor a copy of its body.
		if (pending instanceof PendingAnswer) return pending.onSuccess(() => encodeResponse(x, encoder, conditions));
		if (pending instanceof Promise) return pending.then(() => encodeResponse(x, encoder, conditions));
		return encodeResponse(x, encoder, conditions);
	};
}

/**
 * Rewrites the entity tags in a request's preconditions to those that later handlers know. Returns undefined for requests
 * without preconditions, which are the majority.
 */
function conditionsOf(x: Exchange, { names, unencoded }: Encoder): TagConditions | undefined {
	const { headers } = x.request;
	for (let i = 0, size = headers.size; i < size; i++) {
		const name = headers.nameAt(i);
		const { length } = name;
		if (length !== 13 && length !== 8) continue;
		if (!isSameFieldName(name, 'if-none-match') && !isSameFieldName(name, 'if-match')) continue;
		const coding = forbids(headers) ? undefined : preferredCoding(headers.combined('accept-encoding'), names);
		return TagConditions.of(x, coding, names, unencoded);
	}
	return undefined;
}

function encodeResponse(x: Exchange, encoder: Encoder, conditions: TagConditions | undefined): void | Promise<void> {
	const { request, response } = x;
	const { status, headers } = response;
	if (x.aborted || x.upgradeCallback !== undefined || status < 200 || status === 204) return;
	if (status === 304) {
		addVary(headers);
		conditions?.confirmed(headers);
		return;
	}
	const known = lengthOf(x);
	const name = codingOf(x, encoder, known);
	if (conditions?.answer(x, name, true)) return;
	if (name === undefined) return;
	if (request.method === 'HEAD') {
		// A HEAD response has the same fields as the GET response, whose length is unknown before compression.
		describe(headers, name);
		if (isStream(response.body)) response.body.cancel();
		response.body = UNSENT;
		return;
	}
	const result = encoder.compressor.encode(response.body!, encoder.codings.get(name)!, {
		minimum: encoder.minimum,
		flush: known === undefined,
		identity: response.body === x.servedBody ? x.servedFile : undefined,
	});
	if (result instanceof Promise) return result.then(settled => use(x, name, encoder, settled, conditions));
	use(x, name, encoder, result, conditions);
}

/** Returns the length in bytes of the body that a GET would get; undefined if unknown. */
function lengthOf({ request, response }: Exchange): number | undefined {
	if (request.method !== 'HEAD' || response.body !== null) return bodyLength(response.body);
	const field = response.headers.get('content-length');
	return field === undefined || !/^\d+$/.test(field) ? undefined : Number(field);
}

/** Returns the coding of a response, if any. Adds `Vary` if the coding depends on the request's `Accept-Encoding`. */
function codingOf(x: Exchange, encoder: Encoder, length: number | undefined): string | undefined {
	const { request, response } = x;
	const { headers } = response;
	if (response.status === 206 || (response.body === null && request.method !== 'HEAD')) return undefined;
	if (headers.has('content-encoding') || !encoder.matches(x)) return undefined;
	if (forbids(request.headers) || forbids(headers)) return undefined;
	if (length !== undefined && length <= encoder.minimum) return undefined;
	addVary(headers);
	return preferredCoding(request.headers.combined('accept-encoding'), encoder.names);
}

function use(
	x: Exchange,
	coding: string,
	{ minimum }: Encoder,
	{ body, encoded }: EncodedResult,
	conditions: TagConditions | undefined,
): void {
	x.response.body = body;
	if (!encoded) {
		// The body was not compressed, because it is too short or too many responses are being compressed.
		conditions?.answer(x, undefined, (bodyLength(body) ?? minimum + 1) <= minimum);
		return;
	}
	x.contentCoding = coding;
	describe(x.response.headers, coding);
}

/** A body of unknown length that is never pulled. */
const UNSENT = { length: undefined, pull: () => null, cancel: () => {} };

/** Sets the fields of a compressed body and removes those that no longer hold. */
function describe(headers: HeaderList, coding: string): void {
	headers.set('Content-Encoding', coding);
	for (let i = 0; i < STALE.length; i++) headers.delete(STALE[i]!);
	const tag = headers.get('etag');
	if (tag !== undefined) headers.set('Etag', encodedTag(tag, coding));
}

const STALE = ['content-length', 'accept-ranges', 'content-md5', 'content-digest', 'digest'] as const;

function forbids(headers: HeaderList): boolean {
	const field = headers.combined('cache-control');
	return field !== undefined && /(?:^|[,\s])no-transform(?:$|[,;\s])/i.test(field);
}

function addVary(headers: HeaderList): void {
	const vary = headers.combined('vary');
	if (vary === undefined || !/(?:^|,)\s*(?:accept-encoding|\*)\s*(?:,|$)/i.test(vary))
		headers.add('Vary', 'Accept-Encoding');
}
