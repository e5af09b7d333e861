/** Session ticket rotation: a context that decrypts tickets of the previous key and issues new ones under the current key. */
import { randomBytes } from 'node:crypto';
import type { SecureContext } from 'node:tls';

/** Size, in bytes, of each part of a key in Node's format: the key name, the HMAC secret and the AES secret. */
const KEY_PART_BYTES = 16;
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
	const resultIndexes = internalContext?.constructor as unknown as Partial<ResultIndexes> | undefined;
	if (typeof internalContext?.enableTicketKeyCallback !== 'function' || !resultIndexes || !hasAllIndexes(resultIndexes))
		return false;
	internalContext.onticketkeycallback = (name: Buffer, _vector: Buffer, isEncrypting: boolean) => {
		const result: unknown[] = [];
		const isKnownKey = isEncrypting || name.equals(oldKey.subarray(0, KEY_PART_BYTES));
		const key = isEncrypting ? newKey : oldKey;
		result[resultIndexes.kTicketKeyReturnIndex] = isKnownKey ? (isEncrypting ? ACCEPT : RENEW) : UNKNOWN;
		result[resultIndexes.kTicketKeyHMACIndex] = key.subarray(KEY_PART_BYTES, 2 * KEY_PART_BYTES);
		result[resultIndexes.kTicketKeyAESIndex] = key.subarray(2 * KEY_PART_BYTES, 3 * KEY_PART_BYTES);
		result[resultIndexes.kTicketKeyNameIndex] = key.subarray(0, KEY_PART_BYTES);
		result[resultIndexes.kTicketKeyIVIndex] = randomBytes(KEY_PART_BYTES);
		return result;
	};
	internalContext.enableTicketKeyCallback();
	return true;
}

function hasAllIndexes(resultIndexes: Partial<ResultIndexes>): resultIndexes is ResultIndexes {
	const {
		kTicketKeyReturnIndex: returnIndex,
		kTicketKeyHMACIndex: hmacIndex,
		kTicketKeyAESIndex: aesIndex,
	} = resultIndexes;
	return [returnIndex, hmacIndex, aesIndex, resultIndexes.kTicketKeyNameIndex, resultIndexes.kTicketKeyIVIndex].every(
		index => typeof index === 'number',
	);
}
