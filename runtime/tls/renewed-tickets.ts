/** A context that opens session tickets with a key that seals none any more: what is resumed gets a ticket under the key of today. */
import { randomBytes } from 'node:crypto';
import type { SecureContext } from 'node:tls';

/** Parts of a key as Node takes it: its name, then the secrets for HMAC and AES. */
const PART = 16;
/** What tells OpenSSL that a ticket is good, that it is good and is to be replaced, and that its key is not known. */
const [GOOD, GOOD_AND_OLD, UNKNOWN] = [1, 2, 0];

/** Node's side of a context, as far as it is used here. */
interface InnerContext {
	/** Asked for the key of a ticket that has come, or for one to seal with. */
	onticketkeycallback?: (name: Buffer, vector: Buffer, seals: boolean) => unknown[];
	enableTicketKeyCallback?: () => void;
}

/** Where the answer to Node has its parts. */
interface Places {
	readonly kTicketKeyReturnIndex: number;
	readonly kTicketKeyHMACIndex: number;
	readonly kTicketKeyAESIndex: number;
	readonly kTicketKeyNameIndex: number;
	readonly kTicketKeyIVIndex: number;
}

/** Has a context open tickets with one key and seal them with another; false, and it stays as it was, where Node cannot. */
export function renewTickets(context: SecureContext, opens: Buffer, seals: Buffer): boolean {
	const { context: inner } = context as SecureContext & { readonly context?: InnerContext };
	const places = inner?.constructor as unknown as Partial<Places> | undefined;
	if (typeof inner?.enableTicketKeyCallback !== 'function' || !places || !isComplete(places)) return false;
	inner.onticketkeycallback = (name: Buffer, _vector: Buffer, sealing: boolean) => {
		const answer: unknown[] = [];
		const known = sealing || name.equals(opens.subarray(0, PART));
		const key = sealing ? seals : opens;
		answer[places.kTicketKeyReturnIndex] = known ? (sealing ? GOOD : GOOD_AND_OLD) : UNKNOWN;
		answer[places.kTicketKeyHMACIndex] = key.subarray(PART, 2 * PART);
		answer[places.kTicketKeyAESIndex] = key.subarray(2 * PART, 3 * PART);
		answer[places.kTicketKeyNameIndex] = key.subarray(0, PART);
		answer[places.kTicketKeyIVIndex] = randomBytes(PART);
		return answer;
	};
	inner.enableTicketKeyCallback();
	return true;
}

function isComplete(places: Partial<Places>): places is Places {
	const { kTicketKeyReturnIndex: at, kTicketKeyHMACIndex: hmac, kTicketKeyAESIndex: aes } = places;
	return [at, hmac, aes, places.kTicketKeyNameIndex, places.kTicketKeyIVIndex].every(
		place => typeof place === 'number',
	);
}
