/**
 * Preconditions of requests whose responses may be compressed. A precondition refers to the entity tag of the form, compressed
 * or not, that the client would get (RFC 9110 §13.1); later handlers know only the tag of the uncompressed form.
 */

import { isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { etagListHas, omitContentFields, parseEntityTags } from '../../representations/conditional.ts';
import { contentType } from '../../representations/content-type.ts';
import { isEncodable } from './encodable-media.ts';

/** Maximum number of tags that one step remembers on one thread. */
const MAX_TAGS = 8192;
/** Maximum number of characters in a URL together with its tag. */
const LONGEST = 512;

/**
 * Returns the tag of a compressed form. A strong tag identifies bytes, so the coding is appended. A weak tag identifies
 * content, so it stays the same.
 */
export function encodedTag(tag: string, coding: string): string {
	return isStrong(tag) ? `${tag.slice(0, -1)}-${coding}"` : tag;
}

function isStrong(tag: string): boolean {
	return tag.length >= 2 && tag.startsWith('"') && tag.endsWith('"');
}

/**
 * Tags of responses that a step leaves uncompressed although the client accepts a coding, because they are too short or of
 * another type. Later handlers may compare only these tags verbatim: with any other tag, they would answer 304 for a form that
 * the client would not get.
 */
export class UnencodedTags {
	readonly #byType: boolean;
	readonly #known = new Set<string>();

	/** @param byType True if responses are selected by type, which usually follows from the extension of the path. */
	constructor(byType: boolean) {
		this.#byType = byType;
	}

	/** Returns those of `tags`, which are all strong, that are known to belong to such responses. */
	among(x: Exchange, tags: readonly string[]): readonly string[] {
		const type = this.#byType ? contentType(x.request.path) : undefined;
		if (type !== undefined && !isEncodable(type)) return tags;
		return tags.filter(tag => this.#known.has(keyOf(x, tag)));
	}

	add(x: Exchange, tag: string): void {
		const key = keyOf(x, tag);
		if (key.length > LONGEST) return;
		if (this.#known.size >= MAX_TAGS) this.#known.delete(this.#known.values().next().value!);
		this.#known.add(key);
	}
}

function keyOf({ request, received }: Exchange, tag: string): string {
	return `${request.host}${received.path}?${received.query ?? ''} ${tag}`;
}

/** The preconditions of one GET or HEAD whose response may be compressed. */
export class TagConditions {
	/** The coding that the client prefers. */
	readonly #coding: string;
	readonly #unencoded: UnencodedTags;
	readonly #ifMatch: string | undefined;
	readonly #ifNoneMatch: string | undefined;
	/** True if the request is not for a range; partial responses are never compressed. */
	readonly #whole: boolean;
	/** Tags of If-None-Match that later handlers may compare verbatim; `#withheld` has the others. */
	readonly #compared: ReadonlySet<string>;
	readonly #withheld: string;

	private constructor(x: Exchange, coding: string, unencoded: UnencodedTags) {
		const { headers } = x.request;
		this.#coding = coding;
		this.#unencoded = unencoded;
		this.#ifMatch = headers.combined('if-match');
		this.#ifNoneMatch = headers.combined('if-none-match');
		this.#whole = !headers.has('range');
		const tags = parseEntityTags(this.#ifNoneMatch ?? '');
		// A weak tag matches the compressed and the uncompressed form.
		this.#compared = new Set([...tags.filter(tag => !isStrong(tag)), ...unencoded.among(x, tags.filter(isStrong))]);
		this.#withheld = tags.filter(tag => !this.#compared.has(tag)).join(', ');
	}

	/**
	 * Rewrites a request's conditions to ones that later handlers can evaluate. `coding` is the one that the client prefers,
	 * `names` are those it might have received. Returns undefined if the response needs no further check.
	 */
	static of(
		x: Exchange,
		coding: string | undefined,
		names: readonly string[],
		unencoded: UnencodedTags,
	): TagConditions | undefined {
		const { method, headers } = x.request;
		const reads = method === 'GET' || method === 'HEAD';
		// The response will not be compressed, so later handlers can compare the tags themselves.
		if (reads && coding === undefined) return undefined;
		x.keepReceivedHeaders();
		addPlainTags(headers, 'If-Match', reads ? [coding!] : names);
		if (!reads) {
			// The method modifies the resource, and all forms that the client may have represent the same state of it.
			addPlainTags(headers, 'If-None-Match', names);
			return undefined;
		}
		const conditions = new TagConditions(x, coding!, unencoded);
		conditions.#setIfNoneMatch(headers);
		return conditions;
	}

	/** Reduces If-None-Match to the tags that later handlers can compare. The others are compared once the response is known. */
	#setIfNoneMatch(headers: HeaderList): void {
		const tags = parseEntityTags(this.#ifNoneMatch ?? '');
		if (tags.length === 0) return;
		const plain = this.#whole ? plainTags(tags, [this.#coding]) : [];
		const list = [...new Set([...this.#compared, ...plain])];
		if (list.length > 0) headers.set('If-None-Match', list.join(', '));
		else {
			headers.delete('if-none-match');
			// The client sent If-None-Match, so If-Modified-Since must be ignored (RFC 9110 §13.1.3).
			headers.delete('if-modified-since');
		}
	}

	/**
	 * Called when a later handler has answered 304: if the client has the compressed form, the response gets the tag of that form
	 * (RFC 9110 §15.4.5).
	 */
	confirmed(headers: HeaderList): void {
		const tag = headers.get('etag');
		if (tag === undefined || this.#compared.has(tag)) return;
		const encoded = encodedTag(tag, this.#coding);
		if (etagListHas(this.#ifNoneMatch ?? '', encoded, false)) headers.set('Etag', encoded);
	}

	/**
	 * Compares a response's tag with the tags withheld from later handlers. Returns true if it has turned the response into 304 or
	 * 412.
	 * @param coding The coding in which the response is sent; undefined if uncompressed.
	 * @param always True if this client never gets the response in a coding.
	 */
	answer(x: Exchange, coding: string | undefined, always: boolean): boolean {
		const { status, headers } = x.response;
		const tag = headers.get('etag');
		if (tag === undefined || (status !== 200 && status !== 206)) return false;
		const own = coding === undefined ? tag : encodedTag(tag, coding);
		const list = this.#ifMatch;
		// If the tag of the uncompressed form does not match either, later handlers have already evaluated If-Match.
		if (list !== undefined && own !== tag && etagListHas(list, tag, true) && !etagListHas(list, own, true)) {
			finish(x, 412);
			return true;
		}
		// Later handlers have already compared the tags of compressed forms, as the tags of their uncompressed forms.
		if (coding !== undefined && this.#whole) return false;
		if (!etagListHas(this.#withheld, own, false)) return false;
		if (coding === undefined && always && this.#whole) this.#unencoded.add(x, tag);
		headers.set('Etag', own);
		finish(x, 304);
		return true;
	}
}

function finish(x: Exchange, status: 304 | 412): void {
	const { response } = x;
	if (isStream(response.body)) response.body.cancel();
	response.body = null;
	response.status = status;
	omitContentFields(response.headers);
}

/** Adds the tags of the uncompressed forms to a field's list of tags. */
function addPlainTags(headers: HeaderList, name: 'If-Match' | 'If-None-Match', codings: readonly string[]): void {
	const list = headers.combined(name.toLowerCase());
	if (list === undefined) return;
	const plain = plainTags(parseEntityTags(list), codings);
	if (plain.length > 0) headers.set(name, [list, ...plain].join(', '));
}

/** Returns, for each tag that names a coding, the tag of the uncompressed form. */
function plainTags(tags: readonly string[], codings: readonly string[]): string[] {
	const plain: string[] = [];
	for (const tag of tags) {
		const coding = codings.find(name => tag.endsWith(`-${name}"`));
		if (coding !== undefined) plain.push(`${tag.slice(0, -coding.length - 2)}"`);
	}
	return plain;
}
