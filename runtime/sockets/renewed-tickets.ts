/** Session ticket rotation: a context that decrypts tickets of the previous key and issues new ones under the current key. */
import { randomBytes } from 'node:crypto';
import type { SecureContext } from 'node:tls';

/** Size, in bytes, of each part of a key in Node's format: the key name, the HMAC secret and the AES secret. */
const PART_BYTES = 16;
/** Return values of OpenSSL's ticket key callback: accept, accept and renew, unknown key. */
const [ACCEPT, RENEW, UNKNOWN] = [1, 2, 0];

/** The private context object of Node, as far as it is used here. */
interface InnerContext {
	/** Returns the key for decrypting a received ticket, or for encrypting a new one. */
	onticketkeycallback?: (name: Buffer, vector: Buffer, isEncrypting: boolean) => unknown[];
	enableTicketKeyCallback?: () => void;
}

/** The indexes at which Node expects the parts of the callback's result. */
interface ResultIndexes {
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
	const { context: internalContext } = context as SecureContext & { readonly context?: InnerContext };
	const indexes = internalContext?.constructor as unknown as Partial<ResultIndexes> | undefined;
	if (typeof internalContext?.enableTicketKeyCallback !== 'function' || !indexes || !isComplete(indexes)) return false;
	internalContext.onticketkeycallback = (name: Buffer, _vector: Buffer, isEncrypting: boolean) => {
		const result: unknown[] = [];
		const isKnownKey = isEncrypting || name.equals(oldKey.subarray(0, PART_BYTES));
		const key = isEncrypting ? newKey : oldKey;
		result[indexes.kTicketKeyReturnIndex] = isKnownKey ? (isEncrypting ? ACCEPT : RENEW) : UNKNOWN;
		result[indexes.kTicketKeyHMACIndex] = key.subarray(PART_BYTES, 2 * PART_BYTES);
		result[indexes.kTicketKeyAESIndex] = key.subarray(2 * PART_BYTES, 3 * PART_BYTES);
		result[indexes.kTicketKeyNameIndex] = key.subarray(0, PART_BYTES);
		result[indexes.kTicketKeyIVIndex] = randomBytes(PART_BYTES);
		return result;
	};
	internalContext.enableTicketKeyCallback();
	return true;
}

function isComplete(indexes: Partial<ResultIndexes>): indexes is ResultIndexes {
	const { kTicketKeyReturnIndex: returnIndex, kTicketKeyHMACIndex: hmac, kTicketKeyAESIndex: aes } = indexes;
	return [returnIndex, hmac, aes, indexes.kTicketKeyNameIndex, indexes.kTicketKeyIVIndex].every(
		place => typeof place === 'number',
	);
}
