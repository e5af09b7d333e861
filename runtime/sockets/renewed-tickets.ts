/** Session ticket rotation: a context that decrypts tickets of the previous key and issues new ones under the current key. */
import { randomBytes } from 'node:crypto';
import type { SecureContext } from 'node:tls';

/** Size, in bytes, of each part of a key in Node's format: the key name, the HMAC secret and the AES secret. */
const PART = 16;
/** Return values of OpenSSL's ticket key callback: accept, accept and renew, unknown key. */
const [ACCEPT, RENEW, UNKNOWN] = [1, 2, 0];

/** The private context object of Node, as far as it is used here. */
interface InnerContext {
	/** Returns the key for decrypting a received ticket, or for encrypting a new one. */
	onticketkeycallback?: (name: Buffer, vector: Buffer, encrypting: boolean) => unknown[];
	enableTicketKeyCallback?: () => void;
}

/** The indexes at which Node expects the parts of the callback's result. */
interface Places {
	readonly kTicketKeyReturnIndex: number;
	readonly kTicketKeyHMACIndex: number;
	readonly kTicketKeyAESIndex: number;
	readonly kTicketKeyNameIndex: number;
	readonly kTicketKeyIVIndex: number;
}

/**
 * Makes a context decrypt tickets with `oldKey` and encrypt new ones with `newKey`. Returns false and leaves the context
 * unchanged if this version of Node does not support it.
 */
export function renewTickets(context: SecureContext, oldKey: Buffer, newKey: Buffer): boolean {
	const { context: inner } = context as SecureContext & { readonly context?: InnerContext };
	const places = inner?.constructor as unknown as Partial<Places> | undefined;
	if (typeof inner?.enableTicketKeyCallback !== 'function' || !places || !isComplete(places)) return false;
	inner.onticketkeycallback = (name: Buffer, _vector: Buffer, encrypting: boolean) => {
		const answer: unknown[] = [];
		const isKnownKey = encrypting || name.equals(oldKey.subarray(0, PART));
		const key = encrypting ? newKey : oldKey;
		answer[places.kTicketKeyReturnIndex] = isKnownKey ? (encrypting ? ACCEPT : RENEW) : UNKNOWN;
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
