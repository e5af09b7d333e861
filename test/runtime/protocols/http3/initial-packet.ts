/** Makes Initial packets (RFC 9001 §5) that no client library would send. */
import { createCipheriv, createHmac, randomBytes } from 'node:crypto';
import { varintLength, writeVarint } from '../../../../runtime/protocols/http3/varint.ts';

const SALT = Buffer.from('38762cf7f55934b34d179ae6a4c80cadccbb7f0a', 'hex');
const VERSION = 1;

/** Computes HKDF-Expand-Label with SHA-256 (RFC 8446 §7.1), without context. */
export function expandLabel(secret: Buffer, label: string, length: number): Buffer {
	const full = Buffer.from(`tls13 ${label}`);
	const info = Buffer.concat([Buffer.of(length >> 8, length & 0xff, full.length), full, Buffer.of(0, 1)]);
	return createHmac('sha256', secret).update(info).digest().subarray(0, length);
}

function keysOf(destination: Buffer): PacketKeys {
	const initial = createHmac('sha256', SALT).update(destination).digest();
	return packetKeys(expandLabel(initial, 'client in', 32));
}

/** Returns a variable-length integer. */
export function varintOf(value: number): Buffer {
	const bytes = Buffer.alloc(varintLength(value));
	writeVarint(bytes, 0, value);
	return bytes;
}

export interface InitialProperties {
	readonly destination?: Buffer;
	readonly source?: Buffer;
	readonly token?: Buffer;
	readonly packetNumber?: number;
	/** The frames in the packet. They are padded until the datagram has at least `size` bytes. */
	readonly frames: Buffer;
	readonly size?: number;
}

/** Returns a datagram with one Initial packet of a client. Its encryption keys follow from the destination connection ID. */
export function initialPacket(properties: InitialProperties): Buffer {
	const {
		destination = randomBytes(8),
		source = randomBytes(8),
		token = Buffer.alloc(0),
		packetNumber = 0,
		frames,
		size = 1200,
	} = properties;
	const head = Buffer.concat([
		Buffer.of(0xc3, 0, 0, 0, VERSION, destination.length),
		destination,
		Buffer.of(source.length),
		source,
		varintOf(token.length),
		token,
	]);
	const padding = Math.max(0, size - head.length - 2 - 4 - frames.length - 16);
	const payload = Buffer.concat([frames, Buffer.alloc(padding)]);
	const length = 4 + payload.length + 16;
	const number = Buffer.alloc(4);
	number.writeUInt32BE(packetNumber);
	const header = Buffer.concat([head, Buffer.of(0x40 | (length >> 8), length & 0xff), number]);
	return seal(header, packetNumber, payload, keysOf(destination));
}

/** Keys for packets in one direction (RFC 9001 §5.1). */
export interface PacketKeys {
	readonly key: Buffer;
	readonly iv: Buffer;
	readonly hp: Buffer;
}

/** Returns the keys that are derived from a secret. */
export function packetKeys(secret: Buffer): PacketKeys {
	return {
		key: expandLabel(secret, 'quic key', 16),
		iv: expandLabel(secret, 'quic iv', 12),
		hp: expandLabel(secret, 'quic hp', 16),
	};
}

/** Encrypts a packet with AES-128-GCM and protects its header. The header ends with a packet number of four bytes. */
export function seal(header: Buffer, packetNumber: number, payload: Buffer, { key, iv, hp }: PacketKeys): Buffer {
	const nonce = Buffer.from(iv);
	nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ packetNumber) >>> 0, 8);
	const cipher = createCipheriv('aes-128-gcm', key, nonce);
	cipher.setAAD(header);
	const sealed = Buffer.concat([cipher.update(payload), cipher.final(), cipher.getAuthTag()]);
	const mask = createCipheriv('aes-128-ecb', hp, null).update(sealed.subarray(0, 16));
	const packet = Buffer.concat([header, sealed]);
	packet[0]! ^= mask[0]! & (packet[0]! & 0x80 ? 0x0f : 0x1f);
	for (let i = 0; i < 4; i++) packet[header.length - 4 + i]! ^= mask[1 + i]!;
	return packet;
}
