/**
 * Evaluates preconditions of requests whose responses may be compressed. The compressed form of a response has an entity tag of its
 * own, and a precondition refers to the tag of the form that the client would get (RFC 9110 §13.1). Later handlers know only the
 * tag of the uncompressed form.
 */

import { isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { etagListHas, omitContentFields, parseEntityTags } from '../../representations/conditional.ts';
import { contentType } from '../../representations/content-type.ts';
import { isEncodable } from './encodable-media.ts';

/** Maximum number of entity tags that one step remembers on one thread. */
const MAX_REMEMBERED_TAGS = 8192;
/** Maximum number of characters in a key: a URL together with its tag. */
const MAX_KEY_LENGTH = 512;

/**
 * Returns the entity tag of the compressed form of a response with this tag. A strong tag identifies bytes, so the coding is
 * appended to it. A weak tag identifies content, so it stays the same.
 */
export function encodedTag(tag: string, coding: string): string {
	return isStrong(tag) ? `${tag.slice(0, -1)}-${coding}"` : tag;
}

function isStrong(tag: string): boolean {
	return tag.length >= 2 && tag.startsWith('"') && tag.endsWith('"');
}

/**
 * The entity tags of responses that a step leaves uncompressed although the client accepts a coding, because the response is too
 * short or has another type. Of strong tags, only these may be passed to later handlers verbatim: given any other strong tag, a
 * later handler could answer 304 for a form that the client would not get.
 */
export class UnencodedTags {
	readonly #isSelectedByType: boolean;
	readonly #tagKeys = new Set<string>();

	/** @param isSelectedByType True if responses are selected by type, which usually follows from the extension of the path. */
	constructor(isSelectedByType: boolean) {
		this.#isSelectedByType = isSelectedByType;
	}

	/** Filters strong `tags`: returns the ones known to belong to responses that the step leaves uncompressed. */
	filterUnencoded(x: Exchange, tags: readonly string[]): readonly string[] {
		const type = this.#isSelectedByType ? contentType(x.request.path) : undefined;
		if (type !== undefined && !isEncodable(type)) return tags;
		return tags.filter(tag => this.#tagKeys.has(tagKeyOf(x, tag)));
	}

	add(x: Exchange, tag: string): void {
		const key = tagKeyOf(x, tag);
		if (key.length > MAX_KEY_LENGTH) return;
		if (this.#tagKeys.size >= MAX_REMEMBERED_TAGS) this.#tagKeys.delete(this.#tagKeys.values().next().value!);
		this.#tagKeys.add(key);
	}
}

/** Uses the URL as received, because later handlers may change the host and the target. */
function tagKeyOf({ received: { authority, path, query } }: Exchange, tag: string): string {
	return `${authority}${path}?${query ?? ''} ${tag}`;
}

/** The preconditions of one GET or HEAD whose response may be compressed. */
export class TagConditions {
	/** The coding that the client prefers. */
	readonly #preferredCoding: string;
	readonly #unencodedTags: UnencodedTags;
	readonly #ifMatch: string | undefined;
	readonly #ifNoneMatch: string | undefined;
	/** True if the request has no `Range`. Partial responses are never compressed. */
	readonly #isForWholeBody: boolean;
	/** Tags of `If-None-Match` that later handlers get verbatim. The other tags are in `#withheldTags`, as a comma-separated list. */
	readonly #passedTags: ReadonlySet<string>;
	readonly #withheldTags: string;

	private constructor(x: Exchange, coding: string, unencodedTags: UnencodedTags) {
		const { headers } = x.request;
		this.#preferredCoding = coding;
		this.#unencodedTags = unencodedTags;
		this.#ifMatch = headers.getCombined('if-match');
		this.#ifNoneMatch = headers.getCombined('if-none-match');
		this.#isForWholeBody = !headers.has('range');
		const tags = parseEntityTags(this.#ifNoneMatch ?? '');
		// A weak tag matches the compressed and the uncompressed form.
		this.#passedTags = new Set([
			...tags.filter(tag => !isStrong(tag)),
			...unencodedTags.filterUnencoded(x, tags.filter(isStrong)),
		]);
		this.#withheldTags = tags.filter(tag => !this.#passedTags.has(tag)).join(', ');
	}

	/**
	 * Rewrites a request's preconditions so that later handlers can evaluate them. `coding` is the client's preferred coding;
	 * `codingNames` are all codings of the step. Returns undefined if the response needs no further check.
	 */
	static forRequest(
		x: Exchange,
		coding: string | undefined,
		codingNames: readonly string[],
		unencodedTags: UnencodedTags,
	): TagConditions | undefined {
		const { method, headers } = x.request;
		const isGetOrHead = method === 'GET' || method === 'HEAD';
		// The response will not be compressed, so later handlers can compare the tags themselves.
		if (isGetOrHead && coding === undefined) return undefined;
		x.keepReceivedHeaders();
		addUncompressedTags(headers, 'If-Match', isGetOrHead ? [coding!] : codingNames);
		if (!isGetOrHead) {
			// A method such as PUT concerns the state of the resource, and the compressed and the uncompressed form have the same state. So
			// for each tag of a compressed form, the tag of the uncompressed form is added.
			addUncompressedTags(headers, 'If-None-Match', codingNames);
			return undefined;
		}
		const conditions = new TagConditions(x, coding!, unencodedTags);
		conditions.#setIfNoneMatch(headers);
		return conditions;
	}

	/** Reduces `If-None-Match` to the tags that later handlers can compare. {@link answerIfMatching} compares the other tags. */
	#setIfNoneMatch(headers: HeaderList): void {
		const tags = parseEntityTags(this.#ifNoneMatch ?? '');
		if (tags.length === 0) return;
		const uncompressedTagList = this.#isForWholeBody ? uncompressedTagsOf(tags, [this.#preferredCoding]) : [];
		const tagList = [...new Set([...this.#passedTags, ...uncompressedTagList])];
		if (tagList.length > 0) headers.set('If-None-Match', tagList.join(', '));
		else {
			headers.delete('if-none-match');
			// The client sent If-None-Match, so If-Modified-Since must be ignored (RFC 9110 §13.1.3).
			headers.delete('if-modified-since');
		}
	}

	/**
	 * Called when a later handler has answered 304. If the client has the compressed form, gives the response the tag of that form
	 * (RFC 9110 §15.4.5).
	 */
	onNotModified(headers: HeaderList): void {
		const tag = headers.get('etag');
		if (tag === undefined || this.#passedTags.has(tag)) return;
		const compressedTag = encodedTag(tag, this.#preferredCoding);
		if (etagListHas(this.#ifNoneMatch ?? '', compressedTag, false)) headers.set('Etag', compressedTag);
	}

	/**
	 * Compares a response's tag with the tags withheld from later handlers. Returns true if it has turned the response into 304 or
	 * 412.
	 * @param coding The coding in which the response is sent; undefined if uncompressed.
	 * @param isNeverEncoded True if this client never gets the response in a coding.
	 */
	answerIfMatching(x: Exchange, coding: string | undefined, isNeverEncoded: boolean): boolean {
		const { status, headers } = x.response;
		const tag = headers.get('etag');
		if (tag === undefined || (status !== 200 && status !== 206)) return false;
		const sentTag = coding === undefined ? tag : encodedTag(tag, coding);
		const ifMatch = this.#ifMatch;
		// `If-Match` lists the tag of the uncompressed form, but not that of the compressed form that is sent. If it lists neither, a
		// later handler has already answered with 412.
		if (
			ifMatch !== undefined &&
			sentTag !== tag &&
			etagListHas(ifMatch, tag, true) &&
			!etagListHas(ifMatch, sentTag, true)
		) {
			endWithStatus(x, 412);
			return true;
		}
		// Later handlers have already compared the tags of compressed forms, because they got the tags of the uncompressed forms.
		if (coding !== undefined && this.#isForWholeBody) return false;
		if (!etagListHas(this.#withheldTags, sentTag, false)) return false;
		if (coding === undefined && isNeverEncoded && this.#isForWholeBody) this.#unencodedTags.add(x, tag);
		headers.set('Etag', sentTag);
		endWithStatus(x, 304);
		return true;
	}
}

function endWithStatus(x: Exchange, status: 304 | 412): void {
	const { response } = x;
	if (isStream(response.body)) response.body.cancel();
	response.body = null;
	response.status = status;
	omitContentFields(response.headers);
}

/** For each tag in a header field that names a coding, adds the tag of the uncompressed form to the field. */
function addUncompressedTags(
	headers: HeaderList,
	name: 'If-Match' | 'If-None-Match',
	codings: readonly string[],
): void {
	const tagList = headers.getCombined(name.toLowerCase());
	if (tagList === undefined) return;
	const addedTags = uncompressedTagsOf(parseEntityTags(tagList), codings);
	if (addedTags.length > 0) headers.set(name, [tagList, ...addedTags].join(', '));
}

/** Returns the tag of the uncompressed form for each tag that names a coding. */
function uncompressedTagsOf(tags: readonly string[], codings: readonly string[]): string[] {
	const uncompressedTags: string[] = [];
	for (const tag of tags) {
		const coding = codings.find(name => tag.endsWith(`-${name}"`));
		if (coding !== undefined) uncompressedTags.push(`${tag.slice(0, -coding.length - 2)}"`);
	}
	return uncompressedTags;
}
