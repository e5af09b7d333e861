/** Finds response heads in the data received from an upstream. */
import type { UpstreamRequest } from '../../../compiler/exchange/leases.ts';
import type { ClientOptions } from './client-call.ts';
import {
	checkIncompleteHead,
	InvalidResponse,
	PendingHead,
	parseResponseHead,
	type ResponseHead,
	readHeadText,
} from './client-head.ts';
import { LastHead } from './remembered-heads.ts';

/** Maximum interim responses to a request. Without a limit, they could keep an exchange open forever. */
const MAX_INTERIM_RESPONSES = 100;
const EMPTY_BUFFER = Buffer.alloc(0);

/** Finds the response heads of one connection, one exchange after another. */
export class ResponseHeads {
	/** The received bytes being searched. */
	searchedBytes: Buffer = EMPTY_BUFFER;
	/** Index in `searchedBytes` after the last head returned. */
	offset = 0;
	/** Index in `searchedBytes` after the last received byte. */
	searchEnd = 0;
	readonly #options: ClientOptions;
	readonly #pendingHead = new PendingHead();
	readonly #lastHead: LastHead;
	#interimCount = 0;

	constructor(options: ClientOptions) {
		this.#options = options;
		this.#lastHead = new LastHead(options.headCache);
	}

	/** Must be called when a request is sent. */
	beginExchange(): void {
		this.#interimCount = 0;
	}

	/** Sets the received bytes that `nextHead` searches, together with an incomplete head before them. @throws InvalidResponse */
	addBytes(bytes: Buffer, count: number): void {
		this.searchedBytes = bytes;
		this.offset = 0;
		this.searchEnd = count;
		const pendingHead = this.#pendingHead;
		if (pendingHead.length === 0) return;
		if (pendingHead.add(bytes, count, this.#options.maxResponseHead)) {
			this.searchedBytes = pendingHead.takeBytes();
			this.searchEnd = this.searchedBytes.length;
		} else this.searchEnd = 0;
	}

	/** Returns the next head, or undefined if it is incomplete. @throws InvalidResponse */
	nextHead({ method, upgrade }: UpstreamRequest): ResponseHead | undefined {
		const { searchedBytes: data, offset: start, searchEnd: end } = this;
		if (start >= end) return undefined;
		const cached = method === 'HEAD' ? undefined : this.#lastHead.find(data, start, end);
		if (cached) {
			this.offset = start + this.#lastHead.sizeBytes;
			return cached;
		}
		const text = readHeadText(data, start, end);
		if (text === undefined) {
			checkIncompleteHead(data, start, end, this.#options.maxResponseHead);
			this.#pendingHead.begin(data, start, end);
			return undefined;
		}
		if (text.length > this.#options.maxResponseHead) throw new InvalidResponse('the response head is too large');
		const head = parseResponseHead(text, method, upgrade !== undefined);
		if (head.status >= 200 && method !== 'HEAD') this.#lastHead.headReceived(text, data, start, head);
		this.offset = start + text.length + 2;
		if (head.status < 200 && head.status !== 101 && ++this.#interimCount > MAX_INTERIM_RESPONSES) {
			throw new InvalidResponse('too many interim responses');
		}
		return head;
	}

	/** Releases the bytes of an incomplete head. */
	release(): void {
		this.#pendingHead.takeBytes();
		this.searchedBytes = EMPTY_BUFFER;
	}
}
