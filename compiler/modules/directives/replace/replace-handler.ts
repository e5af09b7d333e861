/** The handler `replace_text`: replaces texts in the bodies of later handlers' responses while they are sent. */
import { compileMatchReplacement, type GroupText } from '../../../codegen/context/replacement.ts';
import { type Body, type BodySource, isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { escapeHtml } from '../../../exchange/html-text.ts';
import { restartPoint } from '../../../exchange/restart-point.ts';
import type { CompileContext, EscapeValue } from '../../contract/compile-context.ts';
import { DEFAULT_MAX_MATCH, DEFAULT_TYPES, type ReplaceTextStep, type TextReplacement } from './replace.ts';
import { ReplacingBody } from './replacing-body.ts';
import { compileTextSearch, type TextSearch } from './text-search.ts';

/** Fields that describe the bytes of a body. */
const OF_BYTES = ['content-length', 'accept-ranges', 'content-md5', 'content-digest', 'repr-digest', 'digest'] as const;

/** Number of bytes up to which a body in memory is replaced before it is sent. */
const MAX_SHORT = 64 * 1024;

/** Returns the replacements of a step, one per alternative, for one response. */
type Replacements = (x: Exchange) => ((groupText: GroupText) => string)[];

/** A `replace_text` step, compiled. */
interface Replacer {
	readonly search: TextSearch;
	readonly isChosen: (headers: HeaderList) => boolean;
	readonly plain: Replacements;
	/** As `plain`, with the values of placeholders escaped for HTML and XML, or for JSON. */
	readonly forMarkup: Replacements;
	readonly forJson: Replacements;
	readonly keepsValidators: boolean;
	/** Counts a response that is not searched because it is compressed. */
	readonly encoded: () => void;
}

/** Compiles a `replace_text` step. */
export function compileReplace(step: ReplaceTextStep, cx: CompileContext, next: Handler): Handler {
	const { replacements } = step;
	const skipped = cx.lease('event_counter', { event: 'replace_encoded_response' });
	const replacer: Replacer = {
		search: compileTextSearch(replacements, step.max_match ?? DEFAULT_MAX_MATCH, cx),
		isChosen: compileTypes(step.types ?? DEFAULT_TYPES),
		plain: compileReplacements(replacements, cx, undefined),
		forMarkup: compileReplacements(replacements, cx, () => escapeHtml),
		forJson: compileReplacements(replacements, cx, () => escapeJson),
		keepsValidators: step.keep_validators === true,
		encoded: () => skipped.add(),
	};
	return x => {
		const { headers } = x.request;
		const restart = headers.has('range') ? restartPoint(x) : undefined;
		const finish = (): void | Promise<void> => {
			if (restart === undefined || !isPart(x, replacer)) return replaceIn(x, replacer);
			// A match may begin before the part, or end after it, so the whole is requested.
			restart();
			x.keepReceivedHeaders();
			headers.delete('range');
			headers.delete('if-range');
			return call(x, next, () => replaceIn(x, replacer));
		};
		return call(x, next, finish);
	};
}

/** Calls the next handler with a request for an uncompressed response, and then `after`. */
function call(x: Exchange, next: Handler, after: () => void | Promise<void>): void | Promise<void> {
	const { headers } = x.request;
	const accepted = headers.combined('accept-encoding');
	x.keepReceivedHeaders();
	// Without the field, `reverse_proxy` would ask for gzip.
	headers.set('Accept-Encoding', 'identity');
	const restore = (): void => {
		if (accepted === undefined) headers.delete('accept-encoding');
		else headers.set('Accept-Encoding', accepted);
	};
	let pending: void | Promise<void>;
	try {
		pending = next(x);
	} catch (error) {
		restore();
		throw error;
	}
	if (pending instanceof Promise) {
		return pending.finally(restore).then(after);
	}
	restore();
	return after();
}

/** Reports whether a response is a part of one whose text would be replaced. */
function isPart(x: Exchange, { isChosen }: Replacer): boolean {
	const { status, headers } = x.response;
	if (status !== 206 || x.request.method !== 'GET' || x.request.body !== null) return false;
	return isChosen(headers) || /^multipart\/byteranges/i.test(headers.get('content-type') ?? '');
}

function replaceIn(x: Exchange, replacer: Replacer): void {
	const { request, response } = x;
	const { status, headers, body } = response;
	if (x.aborted || x.upgradeCallback !== undefined || status < 200 || status === 204 || status === 206) return;
	if (status === 304) {
		if (replacer.keepsValidators && asksForWeakened(request.headers, headers.get('etag'))) weakenTag(headers);
		return;
	}
	if (!replacer.isChosen(headers)) return;
	if (isEncoded(headers)) {
		replacer.encoded();
		return;
	}
	const isHead = request.method === 'HEAD';
	if (isHead ? headers.get('content-length') === '0' : body === null) return;
	for (const name of OF_BYTES) headers.delete(name);
	editValidators(headers, replacer);
	if (isHead) {
		if (isStream(body)) body.cancel();
		response.body = UNSENT;
		return;
	}
	response.body = replacedBody(x, body, replacer);
}

function replacedBody(x: Exchange, body: Body, replacer: Replacer): Body {
	const { search } = replacer;
	const replacements = escapedFor(mediaType(x.response.headers), replacer);
	let rendered: ReturnType<Replacements> | undefined;
	const replacing = new ReplacingBody({
		body: isStream(body) ? body : new WholeBody(body),
		search,
		replacement: (number, match) => {
			rendered ??= replacements(x);
			const { group, groups, names } = search.alternatives[number]!;
			return rendered[number]!(name => {
				const own = /^\d+$/.test(name) ? Number(name) : names.get(name);
				return own === undefined || own > groups ? '' : (match[group + own] ?? '');
			});
		},
	});
	if (isStream(body)) return replacing;
	const begun = pullShort(replacing);
	return replacing.isComplete ? begun : new BegunBody(begun, replacing);
}

/** Pulls a body whose pieces are in memory: all of it if it is short, so that it is sent with its length. */
function pullShort(body: ReplacingBody): Uint8Array {
	const pieces: Uint8Array[] = [];
	let size = 0;
	while (size < MAX_SHORT) {
		const piece = body.pull() as Uint8Array | null;
		if (piece === null) break;
		pieces.push(piece);
		size += piece.byteLength;
	}
	return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, size);
}

/** A complete body, as a stream. */
class WholeBody implements BodySource {
	readonly length = undefined;
	#bytes: Uint8Array | null;

	constructor(body: string | Uint8Array | null) {
		// The owner may reuse the memory once the response has been handled.
		this.#bytes = body === null ? null : Buffer.from(body as string);
	}

	pull(): Uint8Array | null {
		const bytes = this.#bytes;
		this.#bytes = null;
		return bytes;
	}

	cancel(): void {
		this.#bytes = null;
	}
}

/** A body of which the first piece has been pulled. */
class BegunBody implements BodySource {
	readonly length = undefined;
	#first: Uint8Array | undefined;
	readonly #rest: ReplacingBody;

	constructor(first: Uint8Array, rest: ReplacingBody) {
		this.#first = first;
		this.#rest = rest;
	}

	get heldBytes(): number {
		return this.#rest.heldBytes + (this.#first?.byteLength ?? 0);
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		const first = this.#first;
		if (first === undefined) return this.#rest.pull();
		this.#first = undefined;
		return first;
	}

	cancel(): void {
		this.#first = undefined;
		this.#rest.cancel();
	}
}

/** The body of a response to HEAD, which is never pulled. Its length is unknown, because nothing is replaced. */
const UNSENT: BodySource = { length: undefined, pull: () => null, cancel: () => {} };

/** Removes the validators, which do not change with the replacements; or keeps them as weak ones. */
function editValidators(headers: HeaderList, { keepsValidators }: Replacer): void {
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
 * Reports whether a client asked about the weak form of a tag, which it has received with replaced text. A 304 has no
 * `Content-Type` that could tell, and a client that has the strong tag must get the same again (RFC 9111 §4.3.4).
 */
function asksForWeakened(asked: HeaderList, tag: string | undefined): boolean {
	return tag !== undefined && asked.combined('if-none-match')?.includes(`W/${tag}`) === true;
}

function isEncoded(headers: HeaderList): boolean {
	const coding = headers.combined('content-encoding')?.trim().toLowerCase();
	return coding !== undefined && coding !== 'identity' && coding !== '';
}

function mediaType(headers: HeaderList): string {
	const field = headers.get('content-type') ?? '';
	const end = field.indexOf(';');
	return (end === -1 ? field : field.slice(0, end)).trim().toLowerCase();
}

function compileTypes(types: readonly string[]): (headers: HeaderList) => boolean {
	const exact = new Set<string>();
	const prefixes: string[] = [];
	for (const type of types) {
		if (type.endsWith('/*')) prefixes.push(type.slice(0, -1).toLowerCase());
		else exact.add(type.toLowerCase());
	}
	return headers => {
		const type = mediaType(headers);
		return exact.has(type) || prefixes.some(prefix => type.startsWith(prefix));
	};
}

/** Returns the replacements with which the values of placeholders cannot leave the text or attribute where they are inserted. */
function escapedFor(type: string, { forMarkup, forJson, plain }: Replacer): Replacements {
	if (/[/+](?:html|xml)$/.test(type)) return forMarkup;
	return /[/+]json$/.test(type) ? forJson : plain;
}

function escapeJson(value: string): string {
	return JSON.stringify(value).slice(1, -1);
}

function compileReplacements(
	replacements: readonly TextReplacement[],
	cx: CompileContext,
	escapeValue: EscapeValue | undefined,
): Replacements {
	const compiled = replacements.map(({ replace, regexp }) => {
		// In the replacement of a text, a dollar sign is literal.
		return compileMatchReplacement(regexp ? replace : replace.replaceAll('$', '$$$$'), cx, 'keep', escapeValue);
	});
	return x =>
		compiled.map(render => {
			const replacement = render(x);
			return groupText => replacement(groupText).toWellFormed();
		});
}
