/** The handler `compress`: what the later handlers answered is encoded on its way to the client. */
import type { CompileContext } from '../../codegen/compile-context.ts';
import { bodyLength, isStream } from '../../exchange/body.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Handler } from '../../exchange/handler.ts';
import type { HeaderList } from '../../exchange/header-list.ts';
import type { Coding, Compressor, EncodedResult } from '../../exchange/leases.ts';
import { PendingAnswer } from '../../exchange/pending-answer.ts';
import { compileResponseMatcher } from '../../matchers/response-matcher.ts';
import { preferredCoding } from './accept-encoding.ts';
import { isEncodable } from './encodable-media.ts';
import type { CompressStep } from './encode.ts';

const DEFAULT_CODINGS: readonly Coding[] = [{ name: 'zstd' }, { name: 'gzip' }];
const DEFAULT_MINIMUM = 512;

/** What load time settles for one step. */
interface Encoder {
	readonly names: readonly string[];
	readonly codings: ReadonlyMap<string, Coding>;
	readonly minimum: number;
	readonly matches: (x: Exchange) => boolean;
	readonly compressor: Compressor;
	/** Ends of entity tags that this step has made. */
	readonly tagEnds: readonly string[];
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
		tagEnds: names.map(name => `-${name}"`),
	};
	return x => {
		const stripped = stripTags(x.request.headers, encoder);
		const pending = next(x);
		// No promise is made of what comes of a proxy, and no copy of its body.
		if (pending instanceof PendingAnswer) return pending.after(() => encodeResponse(x, encoder, stripped));
		if (pending instanceof Promise) return pending.then(() => encodeResponse(x, encoder, stripped));
		return encodeResponse(x, encoder, stripped);
	};
}

/** Takes the names of codings from the tags of If-None-Match; the coding whose name was there. */
function stripTags(headers: HeaderList, { tagEnds, names }: Encoder): string | undefined {
	const field = headers.get('if-none-match');
	if (field === undefined) return undefined;
	let found: string | undefined;
	let list = headers.combined('if-none-match')!;
	for (let i = 0; i < tagEnds.length; i++) {
		if (!list.includes(tagEnds[i]!)) continue;
		found ??= names[i];
		list = list.replaceAll(tagEnds[i]!, '"');
	}
	if (found !== undefined) headers.set('If-None-Match', list);
	return found;
}

function encodeResponse(x: Exchange, encoder: Encoder, stripped: string | undefined): void | Promise<void> {
	const { request, response } = x;
	const { status, headers } = response;
	if (x.aborted || x.upgraded !== undefined || status < 200 || status === 204 || status === 206) return;
	if (status === 304) {
		addVary(headers);
		// The client's copy is an encoded one: the tag must go on naming it (RFC 9110 §15.4.5).
		if (stripped !== undefined) markTag(headers, stripped);
		return;
	}
	if (response.body === null && request.method !== 'HEAD') return;
	if (headers.has('content-encoding') || !encoder.matches(x)) return;
	if (forbids(request.headers) || forbids(headers)) return;
	const known = bodyLength(response.body);
	if (known !== undefined && known <= encoder.minimum) return;
	addVary(headers);
	const name = preferredCoding(request.headers.combined('accept-encoding'), encoder.names);
	if (name === undefined) return;
	const coding = encoder.codings.get(name)!;
	if (request.method === 'HEAD') {
		// The fields of a GET, whose length nobody knows before it is encoded.
		describe(headers, name);
		if (isStream(response.body)) response.body.cancel();
		response.body = UNSENT;
		return;
	}
	const result = encoder.compressor.encode(response.body!, coding, {
		minimum: encoder.minimum,
		flush: known === undefined,
		identity: response.body === x.servedBody ? x.servedFile : undefined,
	});
	if (result instanceof Promise) return result.then(settled => use(x, name, settled));
	use(x, name, result);
}

function use(x: Exchange, coding: string, { body, encoded }: EncodedResult): void {
	x.response.body = body;
	if (!encoded) return;
	x.encodedAs = coding;
	describe(x.response.headers, coding);
}

/** A body of unknown length that is never asked for. */
const UNSENT = { length: undefined, pull: () => null, cancel: () => {} };

/** Says how the body is encoded; what was true of it before goes. */
function describe(headers: HeaderList, coding: string): void {
	headers.set('Content-Encoding', coding);
	for (let i = 0; i < STALE.length; i++) headers.delete(STALE[i]!);
	markTag(headers, coding);
}

const STALE = ['content-length', 'accept-ranges', 'content-md5', 'content-digest', 'digest'] as const;

/** A strong tag names the bytes, which are others now; a weak one names what they mean. */
function markTag(headers: HeaderList, coding: string): void {
	const tag = headers.get('etag');
	if (tag?.startsWith('"') && tag.endsWith('"') && tag.length >= 2)
		headers.set('Etag', `${tag.slice(0, -1)}-${coding}"`);
}

function forbids(headers: HeaderList): boolean {
	const field = headers.combined('cache-control');
	return field !== undefined && /(?:^|[,\s])no-transform(?:$|[,;\s])/i.test(field);
}

function addVary(headers: HeaderList): void {
	const vary = headers.combined('vary');
	if (vary === undefined || !/(?:^|,)\s*(?:accept-encoding|\*)\s*(?:,|$)/i.test(vary))
		headers.add('Vary', 'Accept-Encoding');
}
