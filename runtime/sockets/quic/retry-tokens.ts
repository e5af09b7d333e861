/**
 * Retry packets (RFC 9000 §17.2.5), which make a client prove its address before any state is kept for it. OpenSSL's listener can
 * send them, but each of our connections has a listener of its own, whose tokens no other listener accepts, because each one
 * generates its key with OpenSSL's random generator. So while such a listener is created, this thread's generator is replaced by
 * one that repeats a secret of ours. The token key is then known, and we write the same tokens as OpenSSL. If a later version uses
 * another format, the first token is rejected, and no more Retry packets are sent.
 */
import { hkdfSync, randomBytes, randomFillSync } from 'node:crypto';
import { type ForeignLibrary, findOpenssl, foreignSignature } from '../foreign-library.ts';
import { MAX_ID_LENGTH, type PacketHeader, SERVER_ID_LENGTH, VERSION_1 } from './packet-header.ts';

const P = 'pointer';
const I = 'int32';
const U64 = 'uint64';

const SIGNATURES = {
	EVP_RAND_fetch: foreignSignature(P, P, P, P),
	EVP_RAND_free: foreignSignature('void', P),
	EVP_RAND_CTX_new: foreignSignature(P, P, P),
	EVP_RAND_CTX_up_ref: foreignSignature(I, P),
	EVP_RAND_instantiate: foreignSignature(I, P, 'uint32', I, P, U64, P),
	EVP_RAND_uninstantiate: foreignSignature(I, P),
	RAND_get0_public: foreignSignature(P, P),
	RAND_set0_public: foreignSignature(I, P, P),
	SSL_new_listener: foreignSignature(P, P, U64),
	EVP_aes_128_gcm: foreignSignature(P),
	EVP_aes_256_gcm: foreignSignature(P),
	EVP_CIPHER_CTX_new: foreignSignature(P),
	EVP_EncryptInit_ex: foreignSignature(I, P, P, P, P, P),
	EVP_EncryptUpdate: foreignSignature(I, P, P, P, P, I),
	EVP_EncryptFinal_ex: foreignSignature(I, P, P, P),
	EVP_DecryptInit_ex: foreignSignature(I, P, P, P, P, P),
	EVP_DecryptUpdate: foreignSignature(I, P, P, P, P, I),
	EVP_DecryptFinal_ex: foreignSignature(I, P, P, P),
	EVP_CIPHER_CTX_ctrl: foreignSignature(I, P, I, I, P),
	ERR_clear_error: foreignSignature('void'),
} as const;

/** Maximum bytes of a Retry packet that we send. */
export const MAX_RETRY_BYTES = 160;
/**
 * Milliseconds for which a token is valid, which is long enough, because clients answer a Retry immediately. OpenSSL accepts
 * tokens for ten seconds, so it accepts every token that is valid here.
 */
const LIFETIME_MS = 8000;
const CTRL_GET_TAG = 0x10;
const CTRL_SET_TAG = 0x11;
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes of the fixed parts of a token before encryption: its kind, the time, and three lengths. */
const FIXED_TOKEN_BYTES = 12;
const MAX_TOKEN_TEXT = FIXED_TOKEN_BYTES + MAX_ID_LENGTH + SERVER_ID_LENGTH + 16;
const AF_INET = 2;
/** Key and nonce for the integrity tag of Retry packets (RFC 9001 §5.8). They are public. */
const INTEGRITY_KEY = 'be0c690b9f66575a1d766b54e368c84e';
const INTEGRITY_NONCE = '461599d35d632bf2239825bb';
/**
 * Size of the block that the replaced generator repeats. The token key has the size of two blocks, so it is the same wherever in
 * the generator's output it begins.
 */
const BLOCK_BYTES = 16;
const TAPE_BYTES = 4096;
const STRENGTH_BITS = 256;
/** Size of an `OSSL_PARAM` in bytes, and two of its data types. */
const PARAM_BYTES = 40;
const PARAM_UNSIGNED = 2;
const PARAM_BYTES_TYPE = 5;
/** Offsets in `#settings`: zero-terminated names and a value, followed by the bytes that the replaced generator repeats. */
const KIND = 3 * PARAM_BYTES;
const ENTROPY_NAME = KIND + 16;
const STRENGTH_NAME = ENTROPY_NAME + 16;
const STRENGTH = STRENGTH_NAME + 16;
const TAPE = STRENGTH + 16;
const LISTENER_VALIDATE = 0n;

/** Writes and verifies the tokens of one thread. */
export class RetryTokens {
	readonly #library: ForeignLibrary<keyof typeof SIGNATURES>;
	readonly #generator: bigint;
	/** The parameters of the replaced generator, followed by the values to which they point. */
	readonly #settings = Buffer.allocUnsafeSlow(TAPE + TAPE_BYTES).fill(0);
	readonly #settingsAt: bigint;
	readonly #sealing: bigint;
	readonly #opening: bigint;
	readonly #tagging: bigint;
	/** Input, output, nonces and lengths of the ciphers. */
	readonly #memory = Buffer.allocUnsafeSlow(1024).fill(0);
	readonly #at: bigint;
	readonly #random = Buffer.allocUnsafeSlow(4096);
	#randomLeft = 0;
	#state: 'untried' | 'accepted' | 'rejected' = 'untried';

	/** Throws if OpenSSL cannot create one of the objects that are needed. */
	constructor(library: ForeignLibrary<keyof typeof SIGNATURES>) {
		this.#library = library;
		const { functions } = library;
		const settings = this.#settings;
		const at = library.addressOf(settings);
		this.#settingsAt = at;
		settings.write('TEST-RAND', KIND, 'latin1');
		settings.write('test_entropy', ENTROPY_NAME, 'latin1');
		settings.write('strength', STRENGTH_NAME, 'latin1');
		settings.writeUInt32LE(STRENGTH_BITS, STRENGTH);
		this.#parameter(0, ENTROPY_NAME, PARAM_BYTES_TYPE, TAPE, TAPE_BYTES);
		this.#parameter(1, STRENGTH_NAME, PARAM_UNSIGNED, STRENGTH, 4);
		const fetched = functions.EVP_RAND_fetch(0n, at + BigInt(KIND), 0n) as bigint;
		this.#generator = fetched === 0n ? 0n : (functions.EVP_RAND_CTX_new(fetched, 0n) as bigint);
		if (fetched !== 0n) functions.EVP_RAND_free(fetched);
		this.#sealing = functions.EVP_CIPHER_CTX_new() as bigint;
		this.#opening = functions.EVP_CIPHER_CTX_new() as bigint;
		this.#tagging = functions.EVP_CIPHER_CTX_new() as bigint;
		if ([this.#generator, this.#sealing, this.#opening, this.#tagging].includes(0n))
			throw new Error('OpenSSL has no memory.');
		this.#at = library.addressOf(this.#memory);
		const publicKey = Buffer.allocUnsafeSlow(16);
		publicKey.write(INTEGRITY_KEY, 'hex');
		functions.EVP_EncryptInit_ex(this.#tagging, functions.EVP_aes_128_gcm(), 0n, library.addressOf(publicKey), 0n);
		this.#memory.write(INTEGRITY_NONCE, NONCE_OFFSET, 'hex');
		this.#useBlock(randomBytes(BLOCK_BYTES));
	}

	/**
	 * Derives the token key from a secret that all threads share and that successors inherit, so that this thread accepts tokens
	 * from all of them.
	 */
	useSecret(secret: Buffer): void {
		const block = Buffer.from(hkdfSync('sha256', secret, '', 'svc retry tokens of QUIC', BLOCK_BYTES));
		if (!this.#settings.subarray(TAPE, TAPE + BLOCK_BYTES).equals(block)) this.#useBlock(block);
	}

	#useBlock(block: Buffer): void {
		const { functions } = this.#library;
		for (let i = 0; i < TAPE_BYTES; i += BLOCK_BYTES) block.copy(this.#settings, TAPE + i);
		const key = this.#settingsAt + BigInt(TAPE);
		functions.EVP_EncryptInit_ex(this.#sealing, functions.EVP_aes_256_gcm(), 0n, key, 0n);
		functions.EVP_DecryptInit_ex(this.#opening, functions.EVP_aes_256_gcm(), 0n, key, 0n);
	}

	/** False once OpenSSL has rejected a token. */
	get usable(): boolean {
		return this.#state !== 'rejected';
	}

	/**
	 * Records whether OpenSSL accepted a client's token on a listener from {@link listener}. If OpenSSL rejects the first token,
	 * tokens are no longer used. Later rejections are ignored, because those tokens may have expired on their way.
	 */
	recordResult(accepted: boolean): void {
		if (accepted) this.#state = 'accepted';
		else if (this.#state === 'untried') this.#state = 'rejected';
	}

	/** Creates a listener that accepts only clients with one of our tokens. Returns 0 if OpenSSL refuses. */
	listener(context: bigint): bigint {
		const { functions } = this.#library;
		const generator = this.#generator;
		const usualGenerator = functions.RAND_get0_public(0n) as bigint;
		if (usualGenerator === 0n) return 0n;
		functions.EVP_RAND_uninstantiate(generator);
		if ((functions.EVP_RAND_instantiate(generator, STRENGTH_BITS, 0, 0n, 0n, this.#settingsAt) as number) !== 1)
			return 0n;
		// `RAND_set0_public` releases the generator that it replaces, so both generators need an additional reference.
		if (
			(functions.EVP_RAND_CTX_up_ref(usualGenerator) as number) !== 1 ||
			(functions.EVP_RAND_CTX_up_ref(generator) as number) !== 1
		)
			return 0n;
		if ((functions.RAND_set0_public(0n, generator) as number) !== 1) return 0n;
		const listener = functions.SSL_new_listener(context, LISTENER_VALIDATE) as bigint;
		// The usual generator is restored immediately, because nothing else may use the predictable one. This call cannot fail.
		functions.RAND_set0_public(0n, usualGenerator);
		return listener;
	}

	/**
	 * Writes a Retry packet in reply to an Initial packet. Returns its length, at most {@link MAX_RETRY_BYTES}.
	 * @param name Offset of the client's `sockaddr` in `names`.
	 */
	write(header: PacketHeader, names: Buffer, name: number, to: Buffer, start: number): number {
		const { functions } = this.#library;
		const { source, destination } = header;
		const memory = this.#memory;
		const random = this.#takeRandom(IV_BYTES + SERVER_ID_LENGTH + 1);
		const idAt = random + IV_BYTES;
		// The integrity tag covers the packet and, in front of it, the connection ID that the client chose (RFC 9001 §5.8).
		let at = PACKET_OFFSET;
		memory[at++] = destination.length;
		at += memory.write(destination, at, 'latin1');
		const packetAt = at;
		memory[at++] = 0xf0 | (this.#random[idAt + SERVER_ID_LENGTH]! & 0x0f);
		at = memory.writeUInt32BE(VERSION_1, at);
		memory[at++] = source.length;
		at += memory.write(source, at, 'latin1');
		memory[at++] = SERVER_ID_LENGTH;
		at += this.#random.copy(memory, at, idAt, idAt + SERVER_ID_LENGTH);

		const tokenAt = at;
		at += this.#random.copy(memory, at, random, random + IV_BYTES);
		const length = this.#writeText(destination, idAt, names, name);
		functions.EVP_EncryptInit_ex(this.#sealing, 0n, 0n, 0n, this.#at + BigInt(tokenAt));
		functions.EVP_EncryptUpdate(this.#sealing, this.#at + BigInt(at), this.#at + LENGTH, this.#at + TEXT_AT, length);
		at += length;
		functions.EVP_EncryptFinal_ex(this.#sealing, this.#at + BigInt(at), this.#at + LENGTH);
		functions.EVP_CIPHER_CTX_ctrl(this.#sealing, CTRL_GET_TAG, TAG_BYTES, this.#at + BigInt(at));
		at += TAG_BYTES;

		functions.EVP_EncryptInit_ex(this.#tagging, 0n, 0n, 0n, this.#at + NONCE_AT);
		functions.EVP_EncryptUpdate(this.#tagging, 0n, this.#at + LENGTH, this.#at + PACKET_AT, at - PACKET_OFFSET);
		functions.EVP_EncryptFinal_ex(this.#tagging, this.#at + BigInt(at), this.#at + LENGTH);
		functions.EVP_CIPHER_CTX_ctrl(this.#tagging, CTRL_GET_TAG, TAG_BYTES, this.#at + BigInt(at));
		at += TAG_BYTES;
		return memory.copy(to, start, packetAt, at);
	}

	/** Reports whether the token of an Initial packet was issued by us, recently, for this client and this connection ID. */
	accepts(bytes: Buffer, { tokenAt, tokenEnd, destination }: PacketHeader, names: Buffer, name: number): boolean {
		const length = tokenEnd - tokenAt - IV_BYTES - TAG_BYTES;
		if (length < FIXED_TOKEN_BYTES || length > MAX_TOKEN_TEXT) return false;
		const { functions } = this.#library;
		const memory = this.#memory;
		bytes.copy(memory, PACKET_OFFSET, tokenAt, tokenEnd);
		const textAt = this.#at + PACKET_AT + BigInt(IV_BYTES);
		functions.EVP_DecryptInit_ex(this.#opening, 0n, 0n, 0n, this.#at + PACKET_AT);
		functions.EVP_DecryptUpdate(this.#opening, this.#at + TEXT_AT, this.#at + LENGTH, textAt, length);
		functions.EVP_CIPHER_CTX_ctrl(this.#opening, CTRL_SET_TAG, TAG_BYTES, textAt + BigInt(length));
		if ((functions.EVP_DecryptFinal_ex(this.#opening, this.#at + PACKET_AT, this.#at + LENGTH) as number) !== 1) {
			functions.ERR_clear_error();
			return false;
		}
		const age = Date.now() - Number(memory.readBigUInt64LE(TEXT_OFFSET + 1) / 1_000_000n);
		if (memory[TEXT_OFFSET] !== 1 || age < 0 || age > LIFETIME_MS) return false;
		let at = TEXT_OFFSET + 9;
		at += 1 + memory[at]!;
		if (memory.toString('latin1', at + 1, at + 1 + memory[at]!) !== destination) return false;
		at += 1 + memory[at]!;
		const [from, end] = addressIn(names, name);
		return memory[at] === end - from && names.compare(memory, at + 1, at + 1 + end - from, from, end) === 0;
	}

	/** Writes an unencrypted token in OpenSSL's format, and returns its length. */
	#writeText(destination: string, idAt: number, names: Buffer, name: number): number {
		const memory = this.#memory;
		let at = TEXT_OFFSET;
		memory[at++] = 1;
		// OpenSSL's tokens contain the time in nanoseconds.
		at = memory.writeBigUInt64LE(BigInt(Date.now()) * 1_000_000n, at);
		memory[at++] = destination.length;
		at += memory.write(destination, at, 'latin1');
		memory[at++] = SERVER_ID_LENGTH;
		at += this.#random.copy(memory, at, idAt, idAt + SERVER_ID_LENGTH);
		const [from, end] = addressIn(names, name);
		memory[at++] = end - from;
		return at + names.copy(memory, at, from, end) - TEXT_OFFSET;
	}

	#takeRandom(count: number): number {
		if (this.#randomLeft < count) {
			randomFillSync(this.#random);
			this.#randomLeft = this.#random.length;
		}
		this.#randomLeft -= count;
		return this.#randomLeft;
	}

	/** Writes one `OSSL_PARAM`. The array of parameters ends with an entry of zeros. */
	#parameter(index: number, name: number, type: number, value: number, length: number): void {
		const at = index * PARAM_BYTES;
		this.#settings.writeBigUInt64LE(this.#settingsAt + BigInt(name), at);
		this.#settings.writeUInt32LE(type, at + 8);
		this.#settings.writeBigUInt64LE(this.#settingsAt + BigInt(value), at + 16);
		this.#settings.writeBigUInt64LE(BigInt(length), at + 24);
	}
}

/** Offsets in the memory of the ciphers. */
const PACKET_OFFSET = 0;
const TEXT_OFFSET = 512;
const NONCE_OFFSET = 768;
const PACKET_AT = BigInt(PACKET_OFFSET);
const TEXT_AT = BigInt(TEXT_OFFSET);
const NONCE_AT = BigInt(NONCE_OFFSET);
const LENGTH = 800n;

/** Returns the offsets at which the IP address in a `sockaddr` begins and ends. */
function addressIn(names: Buffer, name: number): readonly [start: number, end: number] {
	return names.readUInt16LE(name) === AF_INET ? [name + 4, name + 8] : [name + 8, name + 24];
}

/** Returns the tokens of a thread, or undefined if a function is missing. */
export function makeRetryTokens(): RetryTokens | undefined {
	const { library } = findOpenssl(SIGNATURES, []);
	try {
		return library && new RetryTokens(library);
	} catch {
		return undefined;
	}
}
