/** A body in which texts are replaced while it is sent. */
import { UnfinishedMatches } from '../../../codegen/regexp/unfinished-matches.ts';
import type { BodySource } from '../../../exchange/body.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { encodeLossless, LosslessDecoder } from './lossless-text.ts';
import type { TextSearch } from './text-search.ts';

/** Maximum number of bytes that are decoded at a time. */
const MAX_READ_BYTES = 64 * 1024;
/** Maximum length of output, in UTF-16 units, that is produced at a time. */
const MAX_OUTPUT_LENGTH = 64 * 1024;

export interface ReplacingBodyOptions {
	readonly body: BodySource;
	readonly search: TextSearch;
	/** Returns the replacement for a match of one of the search's alternatives. */
	readonly replacement: (alternative: number, match: RegExpExecArray) => string;
}

/**
 * Pulls a body and returns it with its matches replaced. What could be the beginning of a match is held back until the rest has
 * arrived; everything else is passed on immediately.
 */
export class ReplacingBody implements BodySource {
	readonly length = undefined;
	readonly #body: BodySource;
	readonly #search: TextSearch;
	readonly #replacement: ReplacingBodyOptions['replacement'];
	readonly #decoder = new LosslessDecoder();
	readonly #unfinished: UnfinishedMatches;
	/** Alternatives that are replaced only once and have been replaced. */
	readonly #finishedAlternatives = new Set<number>();
	/** Pulled bytes that have not been decoded. */
	#undecoded: Uint8Array | undefined = undefined;
	/** The last character that has been sent, which assertions need, followed by the decoded text that has not been sent. */
	#text = '';
	/** Index in `#text` from which the search continues. Everything before it has been sent. */
	#position = 0;
	/** Index in `#text`. Matches that begin there or later are not certain yet. */
	#startLimit = 0;
	/** Number of units that have been removed from the beginning of the text. */
	#removedLength = 0;
	#isEnded = false;

	constructor({ body, search, replacement }: ReplacingBodyOptions) {
		this.#body = body;
		this.#search = search;
		this.#replacement = replacement;
		this.#unfinished = new UnfinishedMatches(search.followedRegexp, search.maxLength);
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	get heldBytes(): number {
		return 2 * this.#text.length + (this.#body.heldBytes ?? 0);
	}

	/** True if everything has been returned. */
	get isComplete(): boolean {
		return this.#isEnded && this.#position === this.#text.length;
	}

	onIdle(): void {
		this.#body.onIdle?.();
	}

	cancel(reason?: unknown): void {
		this.#undecoded = undefined;
		this.#body.cancel(reason);
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		for (;;) {
			const output = this.#replaceMatches();
			if (output !== '') return encodeLossless(output);
			if (this.isComplete) return null;
			if (this.#undecoded !== undefined) {
				this.#decode(this.#undecoded);
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

	/** Decodes the next bytes; null is the end. */
	#decode(bytes: Uint8Array | null): void {
		const nextBytes = bytes === null ? NO_BYTES : bytes.subarray(0, MAX_READ_BYTES);
		this.#undecoded = bytes !== null && bytes.length > MAX_READ_BYTES ? bytes.subarray(MAX_READ_BYTES) : undefined;
		this.#isEnded = bytes === null;
		this.#removeSentText();
		const start = this.#text.length;
		this.#text += this.#decoder.decode(nextBytes, this.#isEnded);
		if (this.#isEnded || this.#isSearchFinished) this.#startLimit = this.#text.length;
		else this.#startLimit = Math.max(this.#unfinished.read(this.#text, start) - this.#removedLength, this.#position);
	}

	/** True if all alternatives have been replaced as often as they may be. */
	get #isSearchFinished(): boolean {
		return this.#finishedAlternatives.size === this.#search.alternatives.length;
	}

	/** Removes text that has been sent, except for its last character. */
	#removeSentText(): void {
		const keptLength = this.#position > 1 && isLowSurrogate(this.#text.charCodeAt(this.#position - 1)) ? 2 : 1;
		const removable = this.#position - keptLength;
		if (removable <= 0) return;
		this.#text = this.#text.slice(removable);
		this.#position -= removable;
		this.#removedLength += removable;
	}

	/** Returns the text up to the limit, with its matches replaced. Stops earlier if the output becomes long. */
	#replaceMatches(): string {
		const { regexp, alternatives, maxLength } = this.#search;
		let output = '';
		while (this.#position < this.#startLimit && output.length < MAX_OUTPUT_LENGTH) {
			const match = this.#isSearchFinished ? null : this.#findNext(regexp);
			if (match === null || match.index >= this.#startLimit) {
				output += this.#text.slice(this.#position, this.#startLimit);
				this.#position = this.#startLimit;
				break;
			}
			const [matchedText] = match;
			const end = match.index + matchedText.length;
			output += this.#text.slice(this.#position, match.index);
			const alternative = matchedText.length > maxLength ? -1 : this.#search.alternativeOf(match);
			output +=
				alternative === -1 || this.#finishedAlternatives.has(alternative)
					? matchedText
					: this.#replacement(alternative, match);
			if (alternative !== -1 && alternatives[alternative]!.once) this.#finishedAlternatives.add(alternative);
			this.#position = end;
			if (end > this.#startLimit) this.#startLimit = end;
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
