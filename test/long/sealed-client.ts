/** A TLS 1.3 client that encrypts its own records, so that it can send anything in any order after the handshake. */
import { createCipheriv, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** Record types, which are also the content types inside encrypted records (RFC 8446 §5.1). */
export const RECORD_TYPE = { cipher: 20, alert: 21, handshake: 22, data: 23 } as const;

/** The close_notify alert: nothing more will be sent (RFC 8446 §6.1). */
export const CLOSE_NOTIFY: Uint8Array = Uint8Array.of(1, 0);

const KEY_UPDATE = 24;

/** A client that has completed the handshake. */
export interface SealedClient {
	/** The underlying TCP connection. */
	readonly raw: Socket;
	/** Returns an encrypted record. */
	seal(type: number, content: string | Uint8Array): Buffer;
	/**
	 * Returns a KeyUpdate record, which changes the client's key. With `asks`, the record also requests a KeyUpdate from the
	 * server.
	 */
	keyUpdate(asks: boolean): Buffer;
	/** Returns everything that the server has sent so far, decrypted. */
	received(): Buffer;
	/** True once the server has ended its side or the connection is closed. */
	readonly ended: boolean;
	/** The error code of the first error; undefined if there was none. */
	readonly failure: string | undefined;
}

/** Connects and performs the handshake. Rejects if the handshake fails. */
export async function sealedClient(port: number, servername: string): Promise<SealedClient> {
	const raw = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
	raw.setNoDelay(true);
	raw.on('error', () => {});
	const socket = connectTls({
		...{ socket: raw, servername, rejectUnauthorized: false, minVersion: 'TLSv1.3' },
		ciphers: 'TLS_AES_128_GCM_SHA256',
	});
	let secret: Buffer | undefined;
	socket.on('keylog', (line: Buffer) => {
		const [, hex] = /^CLIENT_TRAFFIC_SECRET_0 \S+ (\S+)/.exec(line.toString()) ?? [];
		if (hex) secret = Buffer.from(hex, 'hex');
	});
	const chunks: Buffer[] = [];
	let isEnded = false;
	socket.on('data', (bytes: Buffer) => chunks.push(bytes));
	for (const event of ['end', 'close', 'error']) {
		socket.on(event, () => {
			isEnded = true;
		});
	}
	let failure: string | undefined;
	socket.on('error', (error: Error & { code?: string }) => {
		failure ??= error.code;
	});
	await once(socket, 'secureConnect');
	// Node sends the client's Finished message only after this event.
	await new Promise(resolve => setTimeout(resolve, 5));
	const sealer = new Sealer(secret!);
	return {
		raw,
		seal: (type, content) => sealer.seal(type, Buffer.from(content)),
		keyUpdate: asks => sealer.keyUpdate(asks),
		received: () => Buffer.concat(chunks),
		get ended() {
			return isEnded;
		},
		get failure() {
			return failure;
		},
	};
}

/** Encrypts records with AES-128-GCM (RFC 8446 §5.2, §7.3). */
class Sealer {
	#secret: Buffer;
	#sequence = 0n;

	constructor(secret: Buffer) {
		this.#secret = secret;
	}

	seal(type: number, content: Buffer): Buffer {
		const inner = Buffer.concat([content, Buffer.of(type)]);
		const head = Buffer.of(RECORD_TYPE.data, 3, 3, (inner.length + 16) >> 8, (inner.length + 16) & 255);
		const nonce = expandLabel(this.#secret, 'iv', 12);
		nonce.writeBigUInt64BE(nonce.readBigUInt64BE(4) ^ this.#sequence++, 4);
		const cipher = createCipheriv('aes-128-gcm', expandLabel(this.#secret, 'key', 16), nonce);
		cipher.setAAD(head);
		return Buffer.concat([head, cipher.update(inner), cipher.final(), cipher.getAuthTag()]);
	}

	keyUpdate(asks: boolean): Buffer {
		const record = this.seal(RECORD_TYPE.handshake, Buffer.of(KEY_UPDATE, 0, 0, 1, asks ? 1 : 0));
		this.#secret = expandLabel(this.#secret, 'traffic upd', 32);
		this.#sequence = 0n;
		return record;
	}
}

/** Computes HKDF-Expand-Label, for outputs no longer than one hash. */
function expandLabel(secret: Buffer, label: string, length: number): Buffer {
	const name = Buffer.from(`tls13 ${label}`);
	const info = Buffer.concat([Buffer.of(0, length, name.length), name, Buffer.of(0, 1)]);
	return Buffer.from(createHmac('sha256', secret).update(info).digest().subarray(0, length));
}
