/**
 * The keys that session tickets are sealed with (RFC 5077), the same on every thread: a new one from time to time, and the
 * one before it for as long again, so that a change of keys ends no session.
 */
import { randomBytes } from 'node:crypto';

/** Bytes of a key as Node takes it: its name, then the secrets for HMAC and AES. */
const KEY_BYTES = 48;
/** Bytes of the name, with which every ticket begins. */
const NAME_BYTES = 16;
/** Keys that tickets are opened with: the one that seals and the one before. */
const KEPT = 2;

/** Makes keys; the main thread has one. */
export class TicketKeys {
	#keys: readonly Uint8Array[] = [randomBytes(KEY_BYTES)];

	/** The newest first. */
	get current(): readonly Uint8Array[] {
		return this.#keys;
	}

	/** A new key seals from now on; what it replaces still opens, what that had replaced is forgotten. */
	rotate(): readonly Uint8Array[] {
		this.#keys = [randomBytes(KEY_BYTES), ...this.#keys.slice(0, KEPT - 1)];
		return this.#keys;
	}
}

/** Which of the keys a ticket was sealed with; 0, the newest, when it is none of them or there is no ticket. */
export function keyOfTicket(keys: readonly Uint8Array[], ticket: Buffer | undefined): number {
	if (ticket === undefined || ticket.length < NAME_BYTES) return 0;
	for (let at = 1; at < keys.length; at++) {
		if (ticket.compare(keys[at]!, 0, NAME_BYTES, 0, NAME_BYTES) === 0) return at;
	}
	return 0;
}
