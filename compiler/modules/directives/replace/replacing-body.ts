/** A body in which texts are replaced while it is sent. */
import { UnfinishedMatches } from '../../../codegen/regexp/unfinished-matches.ts';
import type { BodySource } from '../../../exchange/body.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { encodeLossless, LosslessDecoder } from './lossless-text.ts';
import type { TextSearch } from './text-search.ts';

/** Maximum number of bytes that are decoded at a time. */
const MAX_READ_BYTES = 64 * 1024;
/** Approximate maximum length of the output of one pull, in UTF-16 units. */
const MAX_OUTPUT_LENGTH = 64 * 1024;

export interface ReplacingBodyOptions {
	readonly body: BodySource;
	readonly search: TextSearch;
	/** Returns the replacement for a match. `alternative` is the index of the alternative of `search` that matched. */
	readonly replacementFor: (alternative: number, match: RegExpExecArray) => string;
}

/**
 * A body that pulls another body and returns its text with the matches replaced. Text that may be the beginning of a match is held
 * back until more text has arrived; all other text is passed on immediately.
 */
export class ReplacingBody implements BodySource {
	readonly length = undefined;
	readonly #body: BodySource;
	readonly #search: TextSearch;
	readonly #replacementFor: ReplacingBodyOptions['replacementFor'];
	readonly #decoder = new LosslessDecoder();
	readonly #unfinishedMatches: UnfinishedMatches;
	/** Indexes of the alternatives that have been replaced and must be replaced only once. */
	readonly #finishedAlternatives = new Set<number>();
	/** The rest of a pulled piece that is too long to be decoded at once. */
	#undecodedBytes: Uint8Array | undefined = undefined;
	/**
	 * The last character that has been sent, which assertions such as `\b` need, followed by the decoded text that has not been
	 * sent.
	 */
	#text = '';
	/** Index in `#text` from which the search continues. Everything before it has been sent. */
	#position = 0;
	/** Index in `#text`. A match that begins at this index or later may still change when more text arrives. */
	#certainEnd = 0;
	/** Number of UTF-16 units that have been removed from the beginning of the text. */
	#removedLength = 0;
	#isEnded = false;

	constructor({ body, search, replacementFor: replacement }: ReplacingBodyOptions) {
		this.#body = body;
		this.#search = search;
		this.#replacementFor = replacement;
		this.#unfinishedMatches = new UnfinishedMatches(search.followedRegexp, search.maxMatchLength);
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	get heldBytes(): number {
		return 2 * this.#text.length + (this.#body.heldBytes ?? 0);
	}

	/** True once the whole body has been returned. */
	get isComplete(): boolean {
		return this.#isEnded && this.#position === this.#text.length;
	}

	onIdle(): void {
		this.#body.onIdle?.();
	}

	cancel(reason?: unknown): void {
		this.#undecodedBytes = undefined;
		this.#body.cancel(reason);
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		for (;;) {
			const output = this.#replaceMatches();
			if (output !== '') return encodeLossless(output);
			if (this.isComplete) return null;
			if (this.#undecodedBytes !== undefined) {
				this.#decode(this.#undecodedBytes);
				continue;
			}
			const piece = this.#body.pull();
			if (piece instanceof Promise) {
				return piece.then(bytes => {
					this.#decode(bytes);
					return this.pull();
				});
			}
			this.#decode(piece);
		}
	}

	/** Decodes the next bytes of the body, or its end if `bytes` is null. */
	#decode(bytes: Uint8Array | null): void {
		const nextBytes = bytes === null ? NO_BYTES : bytes.subarray(0, MAX_READ_BYTES);
		this.#undecodedBytes = bytes !== null && bytes.length > MAX_READ_BYTES ? bytes.subarray(MAX_READ_BYTES) : undefined;
		this.#isEnded = bytes === null;
		this.#removeSentText();
		const newTextStart = this.#text.length;
		this.#text += this.#decoder.decode(nextBytes, this.#isEnded);
		if (this.#isEnded || this.#isSearchFinished) this.#certainEnd = this.#text.length;
		else
			this.#certainEnd = Math.max(
				this.#unfinishedMatches.read(this.#text, newTextStart) - this.#removedLength,
				this.#position,
			);
	}

	/** True if no further match can be replaced, because every alternative is replaced only once and has been replaced. */
	get #isSearchFinished(): boolean {
		return this.#finishedAlternatives.size === this.#search.alternatives.length;
	}

	/** Removes text that has been sent, except for its last character. */
	#removeSentText(): void {
		const keptLength = this.#position > 1 && isLowSurrogate(this.#text.charCodeAt(this.#position - 1)) ? 2 : 1;
		const removableLength = this.#position - keptLength;
		if (removableLength <= 0) return;
		this.#text = this.#text.slice(removableLength);
		this.#position -= removableLength;
		this.#removedLength += removableLength;
	}

	/** Returns the text up to `#certainEnd` with its matches replaced. Stops earlier if the output becomes long. */
	#replaceMatches(): string {
		const { regexp, alternatives, maxMatchLength: maxLength } = this.#search;
		let output = '';
		while (this.#position < this.#certainEnd && output.length < MAX_OUTPUT_LENGTH) {
			const match = this.#isSearchFinished ? null : this.#findNext(regexp);
			if (match === null || match.index >= this.#certainEnd) {
				output += this.#text.slice(this.#position, this.#certainEnd);
				this.#position = this.#certainEnd;
				break;
			}
			const [matchedText] = match;
			const matchEnd = match.index + matchedText.length;
			output += this.#text.slice(this.#position, match.index);
			const alternativeIndex = matchedText.length > maxLength ? -1 : this.#search.alternativeIndexOf(match);
			output +=
				alternativeIndex === -1 || this.#finishedAlternatives.has(alternativeIndex)
					? matchedText
					: this.#replacementFor(alternativeIndex, match);
			if (alternativeIndex !== -1 && alternatives[alternativeIndex]!.isReplacedOnce)
				this.#finishedAlternatives.add(alternativeIndex);
			this.#position = matchEnd;
			if (matchEnd > this.#certainEnd) this.#certainEnd = matchEnd;
		}
		return output;
	}

	#findNext(regexp: RegExp): RegExpExecArray | null {
		regexp.lastIndex = this.#position;
		return regexp.exec(this.#text);
	}
}

const NO_BYTES = new Uint8Array(0);

function isLowSurrogate(unit: number): boolean {
	return (unit & 0xfc00) === 0xdc00;
}
