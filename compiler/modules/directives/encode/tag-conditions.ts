/**
 * Preconditions of requests whose responses are encoded. They are compared with the tag of the form that the client would get
 * (RFC 9110 §13.1): later handlers know only the tag of the form that is not encoded.
 */

import { isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { etagListHas, omitContentFields, tagsOf } from '../file-server/conditional.ts';
import { contentType } from '../file-server/content-type.ts';
import { isEncodable } from './encodable-media.ts';

/** Tags that one step remembers on one thread, and characters of a URL and its tag that it remembers at most. */
const MOST_TAGS = 8192;
const LONGEST = 512;

/** The tag of an encoded form. A strong tag names the bytes, which are others then; a weak one names what they mean. */
export function encodedTag(tag: string, coding: string): string {
	return isStrong(tag) ? `${tag.slice(0, -1)}-${coding}"` : tag;
}

function isStrong(tag: string): boolean {
	return tag.length >= 2 && tag.startsWith('"') && tag.endsWith('"');
}

/**
 * Tags of responses that a step leaves as they are although the client accepts a coding: short ones, and those of other
 * types. Only these may be compared by a later handler as they are: of another it would confirm a form that the client would
 * not be given.
 */
export class UnencodedTags {
	readonly #byType: boolean;
	readonly #known = new Set<string>();

	/** @param byType Responses are chosen by their type, which the extension of a path mostly tells. */
	constructor(byType: boolean) {
		this.#byType = byType;
	}

	/** Those of some strong tags that are known to be tags of such responses. */
	among(x: Exchange, tags: readonly string[]): readonly string[] {
		const type = this.#byType ? contentType(x.request.path) : undefined;
		if (type !== undefined && !isEncodable(type)) return tags;
		return tags.filter(tag => this.#known.has(keyOf(x, tag)));
	}

	add(x: Exchange, tag: string): void {
		const key = keyOf(x, tag);
		if (key.length > LONGEST) return;
		if (this.#known.size >= MOST_TAGS) this.#known.delete(this.#known.values().next().value!);
		this.#known.add(key);
	}
}

function keyOf({ request, received }: Exchange, tag: string): string {
	return `${request.host}${received.path}?${received.query ?? ''} ${tag}`;
}

/** The preconditions of one GET or HEAD whose response may be encoded. */
export class TagConditions {
	/** The coding that the client prefers. */
	readonly #coding: string;
	readonly #unencoded: UnencodedTags;
	readonly #ifMatch: string | undefined;
	readonly #ifNoneMatch: string | undefined;
	/** Whether the request asks for the whole: parts are never encoded. */
	readonly #whole: boolean;
	/** Tags of If-None-Match that later handlers compare as they are, and the others. */
	readonly #compared: ReadonlySet<string>;
	readonly #withheld: string;

	private constructor(x: Exchange, coding: string, unencoded: UnencodedTags) {
		const { headers } = x.request;
		this.#coding = coding;
		this.#unencoded = unencoded;
		this.#ifMatch = headers.combined('if-match');
		this.#ifNoneMatch = headers.combined('if-none-match');
		this.#whole = !headers.has('range');
		const tags = tagsOf(this.#ifNoneMatch ?? '');
		// A weak tag names every form.
		this.#compared = new Set([...tags.filter(tag => !isStrong(tag)), ...unencoded.among(x, tags.filter(isStrong))]);
		this.#withheld = tags.filter(tag => !this.#compared.has(tag)).join(', ');
	}

	/**
	 * Changes the conditions of a request to ones that later handlers can compare. `coding` is the one that the client prefers,
	 * `names` are those that it might have got. Undefined when nothing is left to be done with the response.
	 */
	static of(
		x: Exchange,
		coding: string | undefined,
		names: readonly string[],
		unencoded: UnencodedTags,
	): TagConditions | undefined {
		const { method, headers } = x.request;
		const reads = method === 'GET' || method === 'HEAD';
		// The form that is not encoded is the one that later handlers compare anyway.
		if (reads && coding === undefined) return undefined;
		x.keepReceivedHeaders();
		addPlainTags(headers, 'If-Match', reads ? [coding!] : names);
		if (!reads) {
			// The resource is changed: whichever form of it the client has, it is that of one state.
			addPlainTags(headers, 'If-None-Match', names);
			return undefined;
		}
		const conditions = new TagConditions(x, coding!, unencoded);
		conditions.#setIfNoneMatch(headers);
		return conditions;
	}

	/** Leaves what later handlers can rightly confirm. The rest is compared when the response is there. */
	#setIfNoneMatch(headers: HeaderList): void {
		const tags = tagsOf(this.#ifNoneMatch ?? '');
		if (tags.length === 0) return;
		const plain = this.#whole ? plainTags(tags, [this.#coding]) : [];
		const list = [...new Set([...this.#compared, ...plain])];
		if (list.length > 0) headers.set('If-None-Match', list.join(', '));
		else {
			headers.delete('if-none-match');
			// It counts only where there was no If-None-Match (RFC 9110 §13.1.3).
			headers.delete('if-modified-since');
		}
	}

	/** A later handler has answered 304: the tag goes on naming the form that the client has (RFC 9110 §15.4.5). */
	confirmed(headers: HeaderList): void {
		const tag = headers.get('etag');
		if (tag === undefined || this.#compared.has(tag)) return;
		const encoded = encodedTag(tag, this.#coding);
		if (etagListHas(this.#ifNoneMatch ?? '', encoded, false)) headers.set('Etag', encoded);
	}

	/**
	 * Compares the tag that a response gets, in a coding or as it is, with what later handlers were not told; true if the
	 * response has become 304 or 412.
	 * @param always This client never gets it in a coding.
	 */
	answer(x: Exchange, coding: string | undefined, always: boolean): boolean {
		const { status, headers } = x.response;
		const tag = headers.get('etag');
		if (tag === undefined || (status !== 200 && status !== 206)) return false;
		const own = coding === undefined ? tag : encodedTag(tag, coding);
		const list = this.#ifMatch;
		// What does not match the other form either was for later handlers to refuse.
		if (list !== undefined && own !== tag && etagListHas(list, tag, true) && !etagListHas(list, own, true)) {
			finish(x, 412);
			return true;
		}
		// The tags of encoded forms were told, as those of the others.
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

/** Adds to a list of tags those of the same responses without the codings. */
function addPlainTags(headers: HeaderList, name: 'If-Match' | 'If-None-Match', codings: readonly string[]): void {
	const list = headers.combined(name.toLowerCase());
	if (list === undefined) return;
	const plain = plainTags(tagsOf(list), codings);
	if (plain.length > 0) headers.set(name, [list, ...plain].join(', '));
}

/** Of the tags that name a coding, those of the forms without it. */
function plainTags(tags: readonly string[], codings: readonly string[]): string[] {
	const plain: string[] = [];
	for (const tag of tags) {
		const coding = codings.find(name => tag.endsWith(`-${name}"`));
		if (coding !== undefined) plain.push(`${tag.slice(0, -coding.length - 2)}"`);
	}
	return plain;
}
