/** The sizes of commands and replies in Redis' protocol (RESP2), in bytes. */
import type { RedisReply } from '../../runtime/cluster/redis-connection.ts';

export function commandBytes(args: readonly (string | Buffer)[]): number {
	let bytes = headBytes(args.length);
	for (const arg of args) bytes += textBytes(typeof arg === 'string' ? Buffer.byteLength(arg) : arg.length);
	return bytes;
}

export function replyBytes(reply: RedisReply): number {
	if (reply === null) return 5;
	if (typeof reply === 'number') return headBytes(reply);
	if (Buffer.isBuffer(reply)) return textBytes(reply.length);
	let bytes = headBytes(reply.length);
	for (const element of reply) bytes += replyBytes(element);
	return bytes;
}

/** Returns the bytes of a text: its length, the text, and a line break. */
function textBytes(length: number): number {
	return headBytes(length) + length + 2;
}

/** Returns the bytes of a line with a type character and a number. */
function headBytes(number: number): number {
	return 3 + String(number).length;
}
