/** The handler `replace_text`: replaces texts in the bodies of later handlers' responses while they are sent. */
import { compileMatchReplacement, type GroupText } from '../../../codegen/context/replacement.ts';
import { type Body, type BodySource, BytesBody, isStream, UnsentBody } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { escapeHtml } from '../../../exchange/html-text.ts';
import { restartPoint } from '../../../exchange/restart-point.ts';
import type { CompileContext, EscapeValue } from '../../contract/compile-context.ts';
import type { ReplaceTextStep, TextReplacement } from './replace.ts';
import { ReplacingBody } from './replacing-body.ts';
import { compileTextSearch, type TextSearch } from './text-search.ts';

export const DEFAULT_SEARCHED_TYPES: readonly string[] = ['text/*'];
/** Default maximum length of a match in UTF-16 units. */
export const DEFAULT_MAX_MATCH_LENGTH = 8192;

/** Header fields that describe the bytes of a body and are wrong once text has been replaced. */
const STALE_BODY_FIELDS = [
	'content-length',
	'accept-ranges',
	'content-md5',
	'content-digest',
	'repr-digest',
	'digest',
] as const;

/**
 * If the original body is in memory and the replaced body has at most this many bytes, it is sent with its length. Longer bodies
 * are streamed without a length.
 */
const MAX_BUFFERED_BYTES = 64 * 1024;

/** Returns functions that render the replacements of a step for one response, one for each searched text or expression. */
type ReplacementRenderer = (x: Exchange) => ((groupText: GroupText) => string)[];

/** A compiled `replace_text` step. */
interface CompiledReplacer {
	readonly search: TextSearch;
	readonly hasSearchedType: (headers: HeaderList) => boolean;
	readonly unescaped: ReplacementRenderer;
	/** Like `unescaped`, but with the values of placeholders escaped for HTML and XML. `forJson` escapes them for JSON. */
	readonly forMarkup: ReplacementRenderer;
	readonly forJson: ReplacementRenderer;
	readonly keepsValidators: boolean;
	/** Counts a response that is not searched because it is compressed. */
	readonly countEncoded: () => void;
}

export function compileReplace(step: ReplaceTextStep, cx: CompileContext, next: Handler): Handler {
	const { replacements } = step;
	const encodedCounter = cx.lease('event_counter', { event: 'replace_encoded_response' });
	const replacer: CompiledReplacer = {
		search: compileTextSearch(replacements, step.max_match ?? DEFAULT_MAX_MATCH_LENGTH, cx),
		hasSearchedType: compileTypeTest(step.types ?? DEFAULT_SEARCHED_TYPES),
		unescaped: compileReplacements(replacements, cx, undefined),
		forMarkup: compileReplacements(replacements, cx, () => escapeHtml),
		forJson: compileReplacements(replacements, cx, () => escapeJson),
		keepsValidators: step.keep_validators === true,
		countEncoded: () => encodedCounter.add(),
	};
	return x => {
		const { headers } = x.request;
		const restartHandlers = headers.has('range') ? restartPoint(x) : undefined;
		const replaceOrRestart = (): void | Promise<void> => {
			if (restartHandlers === undefined || !isSearchedPart(x, replacer)) return replaceResponseBody(x, replacer);
			// A match may extend beyond the requested range, so the complete response is requested.
			restartHandlers();
			x.keepReceivedHeaders();
			headers.delete('range');
			headers.delete('if-range');
			return callForUncompressed(x, next, () => replaceResponseBody(x, replacer));
		};
		return callForUncompressed(x, next, replaceOrRestart);
	};
}

/** Calls the next handler with a request for an uncompressed response, and then calls `onResponse`. */
function callForUncompressed(x: Exchange, next: Handler, onResponse: () => void | Promise<void>): void | Promise<void> {
	const { headers } = x.request;
	const acceptEncoding = headers.getCombined('accept-encoding');
	x.keepReceivedHeaders();
	// Without `Accept-Encoding`, `reverse_proxy` would ask for gzip.
	headers.set('Accept-Encoding', 'identity');
	const restoreAcceptEncoding = (): void => {
		if (acceptEncoding === undefined) headers.delete('accept-encoding');
		else headers.set('Accept-Encoding', acceptEncoding);
	};
	let pending: void | Promise<void>;
	try {
		pending = next(x);
	} catch (error) {
		restoreAcceptEncoding();
		throw error;
	}
	if (pending instanceof Promise) {
		return pending.finally(restoreAcceptEncoding).then(onResponse);
	}
	restoreAcceptEncoding();
	return onResponse();
}

/** Reports whether a response is partial and text would be replaced in the corresponding complete response. */
function isSearchedPart(x: Exchange, { hasSearchedType: isSearched }: CompiledReplacer): boolean {
	const { status, headers } = x.response;
	if (status !== 206 || x.request.method !== 'GET' || x.request.body !== null) return false;
	return isSearched(headers) || /^multipart\/byteranges/i.test(headers.get('content-type') ?? '');
}

function replaceResponseBody(x: Exchange, replacer: CompiledReplacer): void {
	const { request, response } = x;
	const { status, headers, body } = response;
	if (x.isAborted || x.upgradeCallback !== undefined || status < 200 || status === 204 || status === 206) return;
	if (status === 304) {
		if (replacer.keepsValidators && hasWeakenedTag(request.headers, headers.get('etag'))) weakenTag(headers);
		return;
	}
	if (!replacer.hasSearchedType(headers)) return;
	if (hasContentCoding(headers)) {
		replacer.countEncoded();
		return;
	}
	const isHead = request.method === 'HEAD';
	if (isHead ? headers.get('content-length') === '0' : body === null) return;
	for (const name of STALE_BODY_FIELDS) headers.delete(name);
	editValidators(headers, replacer);
	if (isHead) {
		if (isStream(body)) body.cancel();
		// A GET would return the replaced body. Its length is unknown, because nothing is replaced for a HEAD.
		response.body = new UnsentBody(undefined);
		return;
	}
	response.body = createReplacedBody(x, body, replacer);
}

function createReplacedBody(x: Exchange, body: Body, replacer: CompiledReplacer): Body {
	const { search } = replacer;
	const replacements = chooseReplacements(mediaType(x.response.headers), replacer);
	let renderedReplacements: ReturnType<ReplacementRenderer> | undefined;
	const replacingBody = new ReplacingBody({
		// Copied, because the directive that created the body may reuse its memory once the response has been handled.
		body: isStream(body) ? body : new BytesBody(Buffer.from(body as string)),
		search,
		replacementFor: (index, match) => {
			renderedReplacements ??= replacements(x);
			const { group, groupCount: groups, groupsByName: names } = search.alternatives[index]!;
			return renderedReplacements[index]!(name => {
				const groupIndex = /^\d+$/.test(name) ? Number(name) : names.get(name);
				return groupIndex === undefined || groupIndex > groups ? '' : (match[group + groupIndex] ?? '');
			});
		},
	});
	if (isStream(body)) return replacingBody;
	const firstBytes = pullFirstBytes(replacingBody);
	return replacingBody.isComplete ? firstBytes : new PartlyPulledBody(firstBytes, replacingBody);
}

/** Pulls the first bytes of a body that is in memory. A short body is pulled completely, so that it is sent with its length. */
function pullFirstBytes(body: ReplacingBody): Uint8Array {
	const pieces: Uint8Array[] = [];
	let sizeBytes = 0;
	while (sizeBytes < MAX_BUFFERED_BYTES) {
		const piece = body.pull() as Uint8Array | null;
		if (piece === null) break;
		pieces.push(piece);
		sizeBytes += piece.byteLength;
	}
	return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, sizeBytes);
}

/** A body whose first bytes have already been pulled. */
class PartlyPulledBody implements BodySource {
	readonly length = undefined;
	#firstBytes: Uint8Array | undefined;
	readonly #remainingBody: ReplacingBody;

	constructor(firstBytes: Uint8Array, remainingBody: ReplacingBody) {
		this.#firstBytes = firstBytes;
		this.#remainingBody = remainingBody;
	}

	get heldBytes(): number {
		return this.#remainingBody.heldBytes + (this.#firstBytes?.byteLength ?? 0);
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		const firstBytes = this.#firstBytes;
		if (firstBytes === undefined) return this.#remainingBody.pull();
		this.#firstBytes = undefined;
		return firstBytes;
	}

	cancel(): void {
		this.#firstBytes = undefined;
		this.#remainingBody.cancel();
	}
}

/**
 * Removes `Etag` and `Last-Modified`, because they do not change with the replacements. If the step keeps validators, weakens the
 * entity tag instead.
 */
function editValidators(headers: HeaderList, { keepsValidators }: CompiledReplacer): void {
	if (keepsValidators) {
		weakenTag(headers);
		return;
	}
	headers.delete('etag');
	headers.delete('last-modified');
}

function weakenTag(headers: HeaderList): void {
	const tag = headers.get('etag');
	if (tag !== undefined && !tag.startsWith('W/')) headers.set('Etag', `W/${tag}`);
}

/**
 * Reports whether `If-None-Match` contains the weak form of a tag, which shows that the client has a response with replaced text.
 * A 304 has no `Content-Type` that would show it. A client with the strong tag must get the strong tag (RFC 9111 §4.3.4).
 */
function hasWeakenedTag(requestHeaders: HeaderList, tag: string | undefined): boolean {
	return tag !== undefined && requestHeaders.getCombined('if-none-match')?.includes(`W/${tag}`) === true;
}

function hasContentCoding(headers: HeaderList): boolean {
	const coding = headers.getCombined('content-encoding')?.trim().toLowerCase();
	return coding !== undefined && coding !== 'identity' && coding !== '';
}

function mediaType(headers: HeaderList): string {
	const field = headers.get('content-type') ?? '';
	const end = field.indexOf(';');
	return (end === -1 ? field : field.slice(0, end)).trim().toLowerCase();
}

function compileTypeTest(types: readonly string[]): (headers: HeaderList) => boolean {
	const exactTypes = new Set<string>();
	const typePrefixes: string[] = [];
	for (const type of types) {
		if (type.endsWith('/*')) typePrefixes.push(type.slice(0, -1).toLowerCase());
		else exactTypes.add(type.toLowerCase());
	}
	return headers => {
		const type = mediaType(headers);
		return exactTypes.has(type) || typePrefixes.some(prefix => type.startsWith(prefix));
	};
}

/**
 * Returns the replacements whose placeholder values are escaped for a media type, so that a value cannot end the text or attribute
 * around it.
 */
function chooseReplacements(type: string, { forMarkup, forJson, unescaped }: CompiledReplacer): ReplacementRenderer {
	if (/[/+](?:html|xml)$/.test(type)) return forMarkup;
	return /[/+]json$/.test(type) ? forJson : unescaped;
}

function escapeJson(value: string): string {
	return JSON.stringify(value).slice(1, -1);
}

function compileReplacements(
	replacements: readonly TextReplacement[],
	cx: CompileContext,
	escapeValue: EscapeValue | undefined,
): ReplacementRenderer {
	const compiledReplacements = replacements.map(({ replace, regexp }) => {
		// In the replacement of a text, a dollar sign is literal.
		return compileMatchReplacement(regexp ? replace : replace.replaceAll('$', '$$$$'), cx, 'keep', escapeValue);
	});
	return x =>
		compiledReplacements.map(render => {
			const renderForMatch = render(x);
			return groupText => renderForMatch(groupText).toWellFormed();
		});
}
