/**
 * Session ticket keys (RFC 5077) of one process, which all its threads share. The previous key is kept until the next rotation,
 * so that sessions can still be resumed after a rotation.
 */
import { randomKey } from '../sockets/random-key.ts';

/** Size of a key in bytes, in Node's format: the key name, the HMAC secret and the AES secret. */
export const TICKET_KEY_BYTES = 48;
/** Size, in bytes, of the key name, with which every ticket begins. */
const KEY_NAME_BYTES = 16;
/** Number of keys that decrypt tickets: the current one and the previous one. */
const MAX_KEYS = 2;

/** Generates and rotates ticket keys, on the main thread. */
export class TicketKeys {
	#keys: readonly Uint8Array[];

	/** @param inheritedKeys The keys of the predecessor, whose sessions can then be resumed. */
	constructor(inheritedKeys: readonly Uint8Array[] = []) {
		this.#keys = inheritedKeys.length > 0 ? inheritedKeys : [randomKey(TICKET_KEY_BYTES)];
	}

	/** All keys, newest first. The newest one encrypts. */
	get current(): readonly Uint8Array[] {
		return this.#keys;
	}

	/** Adds a new key and drops the oldest one. */
	rotate(): readonly Uint8Array[] {
		this.#keys = [randomKey(TICKET_KEY_BYTES), ...this.#keys.slice(0, MAX_KEYS - 1)];
		return this.#keys;
	}
}

/**
 * Returns the index of the key that encrypted a ticket; 0, the one that encrypts, if there is no ticket or its key is unknown.
 */
export function ticketKeyIndex(keys: readonly Uint8Array[], ticket: Buffer | undefined): number {
	if (ticket === undefined || ticket.length < KEY_NAME_BYTES) return 0;
	for (let at = 1; at < keys.length; at++) {
		if (ticket.compare(keys[at]!, 0, KEY_NAME_BYTES, 0, KEY_NAME_BYTES) === 0) return at;
	}
	return 0;
}
