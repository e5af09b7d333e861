/** A body in which texts are replaced while it is sent. */
import { UnfinishedMatches } from '../../../codegen/regexp/unfinished-matches.ts';
import type { BodySource } from '../../../exchange/body.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { encodeLossless, LosslessDecoder } from './lossless-text.ts';
import type { TextSearch } from './text-search.ts';

/** Maximum number of bytes that are decoded at a time. */
const MAX_READ = 64 * 1024;
/** Length of output, in UTF-16 units, after which the client must take it before the search continues. */
const MAX_OUTPUT = 64 * 1024;

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
	/** The alternatives that are replaced only once, and have been. */
	readonly #spent = new Set<number>();
	/** Pulled bytes that have not been decoded. */
	#rest: Uint8Array | undefined = undefined;
	/** Decoded text: the character before what is still to be sent, for assertions, and everything after it. */
	#text = '';
	/** Index in `#text` from which the search continues; what is before it has been sent. */
	#at = 0;
	/** Index in `#text` before which a match must begin for now. */
	#limit = 0;
	/** Number of units that have been removed from the beginning of the text. */
	#removed = 0;
	#ended = false;

	constructor({ body, search, replacement }: ReplacingBodyOptions) {
		this.#body = body;
		this.#search = search;
		this.#replacement = replacement;
		this.#unfinished = new UnfinishedMatches(search.followed, search.longest);
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	get heldBytes(): number {
		return 2 * this.#text.length + (this.#body.heldBytes ?? 0);
	}

	/** True if everything has been returned. */
	get isComplete(): boolean {
		return this.#ended && this.#at === this.#text.length;
	}

	onIdle(): void {
		this.#body.onIdle?.();
	}

	cancel(reason?: unknown): void {
		this.#rest = undefined;
		this.#body.cancel(reason);
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		for (;;) {
			const output = this.#replace();
			if (output !== '') return encodeLossless(output);
			if (this.isComplete) return null;
			if (this.#rest !== undefined) {
				this.#read(this.#rest);
				continue;
			}
			const piece = this.#body.pull();
			if (piece instanceof Promise) {
				return piece.then(bytes => {
					this.#read(bytes);
					return this.pull();
				});
			}
			this.#read(piece);
		}
	}

	/** Decodes the next bytes; null is the end. */
	#read(bytes: Uint8Array | null): void {
		const next = bytes === null ? NO_BYTES : bytes.subarray(0, MAX_READ);
		this.#rest = bytes !== null && bytes.length > MAX_READ ? bytes.subarray(MAX_READ) : undefined;
		this.#ended = bytes === null;
		this.#forget();
		const from = this.#text.length;
		this.#text += this.#decoder.decode(next, this.#ended);
		if (this.#ended || this.#isSpent) this.#limit = this.#text.length;
		else this.#limit = Math.max(this.#unfinished.read(this.#text, from) - this.#removed, this.#at);
	}

	/** True if nothing is left to search for. */
	get #isSpent(): boolean {
		return this.#spent.size === this.#search.alternatives.length;
	}

	/** Removes what has been sent from the beginning of the text, except the last character. */
	#forget(): void {
		const before = this.#at > 1 && isLowHalf(this.#text.charCodeAt(this.#at - 1)) ? 2 : 1;
		const from = this.#at - before;
		if (from <= 0) return;
		this.#text = this.#text.slice(from);
		this.#at -= from;
		this.#removed += from;
	}

	/** Returns the text up to the limit with its matches replaced; less if that becomes long. */
	#replace(): string {
		const { regexp, alternatives, longest } = this.#search;
		let output = '';
		while (this.#at < this.#limit && output.length < MAX_OUTPUT) {
			const match = this.#isSpent ? null : this.#next(regexp);
			if (match === null || match.index >= this.#limit) {
				output += this.#text.slice(this.#at, this.#limit);
				this.#at = this.#limit;
				break;
			}
			const [found] = match;
			const end = match.index + found.length;
			output += this.#text.slice(this.#at, match.index);
			const number = found.length > longest ? -1 : this.#search.alternativeOf(match);
			output += number === -1 || this.#spent.has(number) ? found : this.#replacement(number, match);
			if (number !== -1 && alternatives[number]!.once) this.#spent.add(number);
			this.#at = end;
			if (end > this.#limit) this.#limit = end;
		}
		return output;
	}

	#next(regexp: RegExp): RegExpExecArray | null {
		regexp.lastIndex = this.#at;
		return regexp.exec(this.#text);
	}
}

const NO_BYTES = new Uint8Array(0);

function isLowHalf(unit: number): boolean {
	return (unit & 0xfc00) === 0xdc00;
}
