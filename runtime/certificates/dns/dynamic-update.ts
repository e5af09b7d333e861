/** Dynamic update messages (RFC 2136) for a TXT record. */
import { randomInt } from 'node:crypto';
import { IssueError } from '../issuer.ts';
import type { ChallengeRecord } from './dns-provider.ts';

const OPCODE_UPDATE = 5 << 11;
const TYPE_TXT = 16;
const TYPE_SOA = 6;
const CLASS_IN = 1;
const CLASS_NONE = 254;

/** Names of response codes (RFC 2136 §2.2), by number. */
const STATUS_NAMES = [
	...['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED', 'YXDOMAIN', 'YXRRSET', 'NXRRSET'],
	...['NOTAUTH', 'NOTZONE'],
];

/** Encodes a message that adds a TXT record to a zone or removes exactly that record (§2.5.1, §2.5.4). */
export function encodeUpdate({ zone, name, value, ttl }: ChallengeRecord, action: 'add' | 'remove'): Buffer {
	const header = encodeUint16s(randomInt(65_536), OPCODE_UPDATE, 1, 0, 1, 0);
	const valueBytes = Buffer.from(value, 'latin1');
	const recordData = Buffer.concat([Buffer.of(valueBytes.length), valueBytes]);
	const isAdding = action === 'add';
	return Buffer.concat([
		header,
		encodeName(zone),
		encodeUint16s(TYPE_SOA, CLASS_IN),
		encodeName(name),
		encodeUint16s(TYPE_TXT, isAdding ? CLASS_IN : CLASS_NONE),
		encodeUint32(isAdding ? ttl : 0),
		encodeUint16s(recordData.length),
		recordData,
	]);
}

/** Returns the status in a response's header: `NOERROR`, `REFUSED`, … Throws IssueError if the message is not a response. */
export function responseStatus(message: Buffer): string {
	if (message.length < 12 || (message[2]! & 0x80) === 0) {
		throw new IssueError('dns/refused', 'The name server did not return a DNS response.');
	}
	const code = message[3]! & 15;
	return STATUS_NAMES[code] ?? `status ${code}`;
}

/** Encodes a name in wire format, in lowercase and without compression (RFC 1035 §3.1). Throws IssueError if it is too long. */
export function encodeName(name: string): Buffer {
	const labels = name
		.toLowerCase()
		.split('.')
		.filter(label => label !== '');
	const encodedLabels = labels.map(label => {
		const bytes = Buffer.from(label, 'latin1');
		if (bytes.length > 63) throw new IssueError('dns/name', `\`${name}\` is not a domain name.`);
		return Buffer.concat([Buffer.of(bytes.length), bytes]);
	});
	const encodedName = Buffer.concat([...encodedLabels, Buffer.of(0)]);
	if (encodedName.length > 255) throw new IssueError('dns/name', `\`${name}\` is not a domain name.`);
	return encodedName;
}

/** Encodes big-endian 16-bit numbers. */
export function encodeUint16s(...values: readonly number[]): Buffer {
	const bytes = Buffer.alloc(values.length * 2);
	for (const [at, value] of values.entries()) bytes.writeUInt16BE(value, at * 2);
	return bytes;
}

/** Encodes a big-endian 32-bit number. */
export function encodeUint32(value: number): Buffer {
	const bytes = Buffer.alloc(4);
	bytes.writeUInt32BE(value);
	return bytes;
}
