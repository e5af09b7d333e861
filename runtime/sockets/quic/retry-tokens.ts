/**
 * Retry packets (RFC 9000 §17.2.5), which make a client prove its address before any state is kept for it. OpenSSL's listener can
 * send them, but each of our connections has a listener of its own, whose tokens no other listener accepts, because each one
 * generates its key with OpenSSL's random generator. So while such a listener is created, this thread's generator is replaced by
 * one that repeats a secret of ours. The token key is then known, and we write the same tokens as OpenSSL. If a later version
 * uses another format, the first token is rejected, and no more Retry packets are sent.
 */
import { hkdfSync, randomBytes, randomFillSync } from 'node:crypto';
import { type ForeignLibrary, findOpenssl, foreignSignature } from '../foreign-library.ts';
import { MAX_ID_BYTES, type PacketHeader, QUIC_VERSION_1, SERVER_ID_BYTES } from './packet-header.ts';

const POINTER = 'pointer';
const INT32 = 'int32';
const UINT64 = 'uint64';

const SIGNATURES = {
	EVP_RAND_fetch: foreignSignature(POINTER, POINTER, POINTER, POINTER),
	EVP_RAND_free: foreignSignature('void', POINTER),
	EVP_RAND_CTX_new: foreignSignature(POINTER, POINTER, POINTER),
	EVP_RAND_CTX_up_ref: foreignSignature(INT32, POINTER),
	EVP_RAND_instantiate: foreignSignature(INT32, POINTER, 'uint32', INT32, POINTER, UINT64, POINTER),
	EVP_RAND_uninstantiate: foreignSignature(INT32, POINTER),
	RAND_get0_public: foreignSignature(POINTER, POINTER),
	RAND_set0_public: foreignSignature(INT32, POINTER, POINTER),
	SSL_new_listener: foreignSignature(POINTER, POINTER, UINT64),
	EVP_aes_128_gcm: foreignSignature(POINTER),
	EVP_aes_256_gcm: foreignSignature(POINTER),
	EVP_CIPHER_CTX_new: foreignSignature(POINTER),
	EVP_EncryptInit_ex: foreignSignature(INT32, POINTER, POINTER, POINTER, POINTER, POINTER),
	EVP_EncryptUpdate: foreignSignature(INT32, POINTER, POINTER, POINTER, POINTER, INT32),
	EVP_EncryptFinal_ex: foreignSignature(INT32, POINTER, POINTER, POINTER),
	EVP_DecryptInit_ex: foreignSignature(INT32, POINTER, POINTER, POINTER, POINTER, POINTER),
	EVP_DecryptUpdate: foreignSignature(INT32, POINTER, POINTER, POINTER, POINTER, INT32),
	EVP_DecryptFinal_ex: foreignSignature(INT32, POINTER, POINTER, POINTER),
	EVP_CIPHER_CTX_ctrl: foreignSignature(INT32, POINTER, INT32, INT32, POINTER),
	ERR_clear_error: foreignSignature('void'),
} as const;

/** Maximum bytes of a Retry packet that we send. */
export const MAX_RETRY_BYTES = 160;
/**
 * Milliseconds for which a token is valid, which is long enough, because clients answer a Retry immediately. OpenSSL accepts
 * tokens for ten seconds, so it accepts every token that is valid here.
 */
const TOKEN_LIFETIME_MS = 8000;
const CTRL_GET_TAG = 0x10;
const CTRL_SET_TAG = 0x11;
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes of the fixed parts of a token before encryption: its kind, the time, and three lengths. */
const FIXED_TOKEN_BYTES = 12;
const MAX_TOKEN_TEXT_BYTES = FIXED_TOKEN_BYTES + MAX_ID_BYTES + SERVER_ID_BYTES + 16;
const AF_INET = 2;
/** Key and nonce for the integrity tag of Retry packets (RFC 9001 §5.8). They are public. */
const INTEGRITY_KEY = 'be0c690b9f66575a1d766b54e368c84e';
const INTEGRITY_NONCE = '461599d35d632bf2239825bb';
/**
 * Size of the block that the replacement generator repeats. The token key has the size of two blocks, so it is the same even if
 * OpenSSL has taken other blocks from the generator before.
 */
const REPEATED_BLOCK_BYTES = 16;
const TAPE_BYTES = 4096;
const STRENGTH_BITS = 256;
/** Size of an `OSSL_PARAM` in bytes, and two of its data types. */
const PARAM_BYTES = 40;
const PARAM_UNSIGNED = 2;
const PARAM_BYTES_TYPE = 5;
/**
 * Offsets in `#generatorSettings`: zero-terminated names and a value, followed by the bytes that the replacement generator
 * repeats.
 */
const GENERATOR_NAME_OFFSET = 3 * PARAM_BYTES;
const ENTROPY_NAME_OFFSET = GENERATOR_NAME_OFFSET + 16;
const STRENGTH_NAME_OFFSET = ENTROPY_NAME_OFFSET + 16;
const STRENGTH_OFFSET = STRENGTH_NAME_OFFSET + 16;
const TAPE_OFFSET = STRENGTH_OFFSET + 16;
const LISTENER_VALIDATE = 0n;

/** Writes and verifies the tokens of one thread. */
export class RetryTokens {
	readonly #library: ForeignLibrary<keyof typeof SIGNATURES>;
	readonly #generator: bigint;
	/** The parameters of the replacement generator, followed by the values to which they point. */
	readonly #generatorSettings = Buffer.allocUnsafeSlow(TAPE_OFFSET + TAPE_BYTES).fill(0);
	readonly #settingsPointer: bigint;
	readonly #sealCipher: bigint;
	readonly #openCipher: bigint;
	readonly #tagCipher: bigint;
	/** Memory for the input, output, nonces and lengths that the ciphers use. */
	readonly #cipherMemory = Buffer.allocUnsafeSlow(1024).fill(0);
	readonly #cipherMemoryPointer: bigint;
	readonly #randomBytes = Buffer.allocUnsafeSlow(4096);
	#randomBytesLeft = 0;
	#state: 'untried' | 'accepted' | 'rejected' = 'untried';

	/** Throws if OpenSSL cannot create one of the objects that are needed. */
	constructor(library: ForeignLibrary<keyof typeof SIGNATURES>) {
		this.#library = library;
		const { functions } = library;
		const settings = this.#generatorSettings;
		const settingsPointer = library.addressOf(settings);
		this.#settingsPointer = settingsPointer;
		settings.write('TEST-RAND', GENERATOR_NAME_OFFSET, 'latin1');
		settings.write('test_entropy', ENTROPY_NAME_OFFSET, 'latin1');
		settings.write('strength', STRENGTH_NAME_OFFSET, 'latin1');
		settings.writeUInt32LE(STRENGTH_BITS, STRENGTH_OFFSET);
		this.#writeParameter(0, ENTROPY_NAME_OFFSET, PARAM_BYTES_TYPE, TAPE_OFFSET, TAPE_BYTES);
		this.#writeParameter(1, STRENGTH_NAME_OFFSET, PARAM_UNSIGNED, STRENGTH_OFFSET, 4);
		const generatorType = functions.EVP_RAND_fetch(0n, settingsPointer + BigInt(GENERATOR_NAME_OFFSET), 0n) as bigint;
		this.#generator = generatorType === 0n ? 0n : (functions.EVP_RAND_CTX_new(generatorType, 0n) as bigint);
		if (generatorType !== 0n) functions.EVP_RAND_free(generatorType);
		this.#sealCipher = functions.EVP_CIPHER_CTX_new() as bigint;
		this.#openCipher = functions.EVP_CIPHER_CTX_new() as bigint;
		this.#tagCipher = functions.EVP_CIPHER_CTX_new() as bigint;
		if ([this.#generator, this.#sealCipher, this.#openCipher, this.#tagCipher].includes(0n))
			throw new Error('OpenSSL has no memory.');
		this.#cipherMemoryPointer = library.addressOf(this.#cipherMemory);
		const publicKey = Buffer.allocUnsafeSlow(16);
		publicKey.write(INTEGRITY_KEY, 'hex');
		functions.EVP_EncryptInit_ex(this.#tagCipher, functions.EVP_aes_128_gcm(), 0n, library.addressOf(publicKey), 0n);
		this.#cipherMemory.write(INTEGRITY_NONCE, NONCE_OFFSET, 'hex');
		this.#useBlock(randomBytes(REPEATED_BLOCK_BYTES));
	}

	/**
	 * Derives the token key from a secret that all threads share and that successors inherit, so that this thread accepts tokens
	 * from all of them.
	 */
	useSecret(secret: Buffer): void {
		const block = Buffer.from(hkdfSync('sha256', secret, '', 'svc retry tokens of QUIC', REPEATED_BLOCK_BYTES));
		if (!this.#generatorSettings.subarray(TAPE_OFFSET, TAPE_OFFSET + REPEATED_BLOCK_BYTES).equals(block))
			this.#useBlock(block);
	}

	#useBlock(block: Buffer): void {
		const { functions } = this.#library;
		for (let i = 0; i < TAPE_BYTES; i += REPEATED_BLOCK_BYTES) block.copy(this.#generatorSettings, TAPE_OFFSET + i);
		const keyPointer = this.#settingsPointer + BigInt(TAPE_OFFSET);
		functions.EVP_EncryptInit_ex(this.#sealCipher, functions.EVP_aes_256_gcm(), 0n, keyPointer, 0n);
		functions.EVP_DecryptInit_ex(this.#openCipher, functions.EVP_aes_256_gcm(), 0n, keyPointer, 0n);
	}

	/** False once OpenSSL has rejected a token. */
	get isUsable(): boolean {
		return this.#state !== 'rejected';
	}

	/**
	 * Records whether OpenSSL accepted a client's token on a listener from {@link createListener}. If OpenSSL rejects
	 * the first token, tokens are no longer used. Later rejections are ignored, because those tokens may have expired
	 * on their way.
	 */
	recordResult(isAccepted: boolean): void {
		if (isAccepted) this.#state = 'accepted';
		else if (this.#state === 'untried') this.#state = 'rejected';
	}

	/** Creates a listener that accepts only clients with one of our tokens. Returns 0 if OpenSSL refuses. */
	createListener(context: bigint): bigint {
		const { functions } = this.#library;
		const generator = this.#generator;
		const usualGenerator = functions.RAND_get0_public(0n) as bigint;
		if (usualGenerator === 0n) return 0n;
		functions.EVP_RAND_uninstantiate(generator);
		if ((functions.EVP_RAND_instantiate(generator, STRENGTH_BITS, 0, 0n, 0n, this.#settingsPointer) as number) !== 1)
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
	 * @param addressOffset Offset of the client's `sockaddr` in `peerAddresses`.
	 */
	writeRetry(
		header: PacketHeader,
		peerAddresses: Buffer,
		addressOffset: number,
		target: Buffer,
		start: number,
	): number {
		const { functions } = this.#library;
		const { sourceId, destinationId } = header;
		const memory = this.#cipherMemory;
		const randomStart = this.#takeRandom(IV_BYTES + SERVER_ID_BYTES + 1);
		const idStart = randomStart + IV_BYTES;
		// The integrity tag covers the packet and, in front of it, the connection ID that the client chose (RFC 9001 §5.8).
		let at = PACKET_OFFSET;
		memory[at++] = destinationId.length;
		at += memory.write(destinationId, at, 'latin1');
		const packetStart = at;
		memory[at++] = 0xf0 | (this.#randomBytes[idStart + SERVER_ID_BYTES]! & 0x0f);
		at = memory.writeUInt32BE(QUIC_VERSION_1, at);
		memory[at++] = sourceId.length;
		at += memory.write(sourceId, at, 'latin1');
		memory[at++] = SERVER_ID_BYTES;
		at += this.#randomBytes.copy(memory, at, idStart, idStart + SERVER_ID_BYTES);

		const tokenStart = at;
		at += this.#randomBytes.copy(memory, at, randomStart, randomStart + IV_BYTES);
		const textBytes = this.#writeText(destinationId, idStart, peerAddresses, addressOffset);
		functions.EVP_EncryptInit_ex(this.#sealCipher, 0n, 0n, 0n, this.#cipherMemoryPointer + BigInt(tokenStart));
		functions.EVP_EncryptUpdate(
			this.#sealCipher,
			this.#cipherMemoryPointer + BigInt(at),
			this.#cipherMemoryPointer + LENGTH_OFFSET_BIGINT,
			this.#cipherMemoryPointer + TEXT_OFFSET_BIGINT,
			textBytes,
		);
		at += textBytes;
		functions.EVP_EncryptFinal_ex(
			this.#sealCipher,
			this.#cipherMemoryPointer + BigInt(at),
			this.#cipherMemoryPointer + LENGTH_OFFSET_BIGINT,
		);
		functions.EVP_CIPHER_CTX_ctrl(this.#sealCipher, CTRL_GET_TAG, TAG_BYTES, this.#cipherMemoryPointer + BigInt(at));
		at += TAG_BYTES;

		functions.EVP_EncryptInit_ex(this.#tagCipher, 0n, 0n, 0n, this.#cipherMemoryPointer + NONCE_OFFSET_BIGINT);
		functions.EVP_EncryptUpdate(
			this.#tagCipher,
			0n,
			this.#cipherMemoryPointer + LENGTH_OFFSET_BIGINT,
			this.#cipherMemoryPointer + PACKET_OFFSET_BIGINT,
			at - PACKET_OFFSET,
		);
		functions.EVP_EncryptFinal_ex(
			this.#tagCipher,
			this.#cipherMemoryPointer + BigInt(at),
			this.#cipherMemoryPointer + LENGTH_OFFSET_BIGINT,
		);
		functions.EVP_CIPHER_CTX_ctrl(this.#tagCipher, CTRL_GET_TAG, TAG_BYTES, this.#cipherMemoryPointer + BigInt(at));
		at += TAG_BYTES;
		return memory.copy(target, start, packetStart, at);
	}

	/** Reports whether the token of an Initial packet was issued by us, recently, for this client and this connection ID. */
	acceptsToken(
		bytes: Buffer,
		{ tokenStart: tokenAt, tokenEnd, destinationId }: PacketHeader,
		peerAddresses: Buffer,
		addressOffset: number,
	): boolean {
		const length = tokenEnd - tokenAt - IV_BYTES - TAG_BYTES;
		if (length < FIXED_TOKEN_BYTES || length > MAX_TOKEN_TEXT_BYTES) return false;
		const { functions } = this.#library;
		const memory = this.#cipherMemory;
		bytes.copy(memory, PACKET_OFFSET, tokenAt, tokenEnd);
		const encryptedPointer = this.#cipherMemoryPointer + PACKET_OFFSET_BIGINT + BigInt(IV_BYTES);
		functions.EVP_DecryptInit_ex(this.#openCipher, 0n, 0n, 0n, this.#cipherMemoryPointer + PACKET_OFFSET_BIGINT);
		functions.EVP_DecryptUpdate(
			this.#openCipher,
			this.#cipherMemoryPointer + TEXT_OFFSET_BIGINT,
			this.#cipherMemoryPointer + LENGTH_OFFSET_BIGINT,
			encryptedPointer,
			length,
		);
		functions.EVP_CIPHER_CTX_ctrl(this.#openCipher, CTRL_SET_TAG, TAG_BYTES, encryptedPointer + BigInt(length));
		if (
			(functions.EVP_DecryptFinal_ex(
				this.#openCipher,
				this.#cipherMemoryPointer + PACKET_OFFSET_BIGINT,
				this.#cipherMemoryPointer + LENGTH_OFFSET_BIGINT,
			) as number) !== 1
		) {
			functions.ERR_clear_error();
			return false;
		}
		const ageMs = Date.now() - Number(memory.readBigUInt64LE(TEXT_OFFSET + 1) / 1_000_000n);
		if (memory[TEXT_OFFSET] !== 1 || ageMs < 0 || ageMs > TOKEN_LIFETIME_MS) return false;
		let at = TEXT_OFFSET + 9;
		at += 1 + memory[at]!;
		if (memory.toString('latin1', at + 1, at + 1 + memory[at]!) !== destinationId) return false;
		at += 1 + memory[at]!;
		const [addressStart, addressEnd] = addressRange(peerAddresses, addressOffset);
		return (
			memory[at] === addressEnd - addressStart &&
			peerAddresses.compare(memory, at + 1, at + 1 + addressEnd - addressStart, addressStart, addressEnd) === 0
		);
	}

	/** Writes an unencrypted token in OpenSSL's format, and returns its length. */
	#writeText(destinationId: string, idStart: number, peerAddresses: Buffer, addressOffset: number): number {
		const memory = this.#cipherMemory;
		let at = TEXT_OFFSET;
		memory[at++] = 1;
		// OpenSSL's tokens contain the time in nanoseconds.
		at = memory.writeBigUInt64LE(BigInt(Date.now()) * 1_000_000n, at);
		memory[at++] = destinationId.length;
		at += memory.write(destinationId, at, 'latin1');
		memory[at++] = SERVER_ID_BYTES;
		at += this.#randomBytes.copy(memory, at, idStart, idStart + SERVER_ID_BYTES);
		const [addressStart, addressEnd] = addressRange(peerAddresses, addressOffset);
		memory[at++] = addressEnd - addressStart;
		return at + peerAddresses.copy(memory, at, addressStart, addressEnd) - TEXT_OFFSET;
	}

	#takeRandom(count: number): number {
		if (this.#randomBytesLeft < count) {
			randomFillSync(this.#randomBytes);
			this.#randomBytesLeft = this.#randomBytes.length;
		}
		this.#randomBytesLeft -= count;
		return this.#randomBytesLeft;
	}

	/** Writes one `OSSL_PARAM`. The array of parameters ends with an entry of zeros. */
	#writeParameter(index: number, nameOffset: number, type: number, valueOffset: number, length: number): void {
		const at = index * PARAM_BYTES;
		this.#generatorSettings.writeBigUInt64LE(this.#settingsPointer + BigInt(nameOffset), at);
		this.#generatorSettings.writeUInt32LE(type, at + 8);
		this.#generatorSettings.writeBigUInt64LE(this.#settingsPointer + BigInt(valueOffset), at + 16);
		this.#generatorSettings.writeBigUInt64LE(BigInt(length), at + 24);
	}
}

/** Offsets in `#cipherMemory`. */
const PACKET_OFFSET = 0;
const TEXT_OFFSET = 512;
const NONCE_OFFSET = 768;
const PACKET_OFFSET_BIGINT = BigInt(PACKET_OFFSET);
const TEXT_OFFSET_BIGINT = BigInt(TEXT_OFFSET);
const NONCE_OFFSET_BIGINT = BigInt(NONCE_OFFSET);
const LENGTH_OFFSET_BIGINT = 800n;

/** Returns the offsets at which the IP address in a `sockaddr` begins and ends. */
function addressRange(peerAddresses: Buffer, addressOffset: number): readonly [start: number, end: number] {
	return peerAddresses.readUInt16LE(addressOffset) === AF_INET
		? [addressOffset + 4, addressOffset + 8]
		: [addressOffset + 8, addressOffset + 24];
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
