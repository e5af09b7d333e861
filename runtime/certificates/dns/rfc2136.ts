/** The DNS provider `rfc2136`: dynamic updates over TCP, signed with a shared key. */
import { connect, isIP } from 'node:net';
import { IssueError } from '../issuer.ts';
import type { ChallengeRecord, DnsProvider } from './dns-provider.ts';
import { encodeUpdate, responseStatus } from './dynamic-update.ts';
import { signMessage, type TransactionKey, verifyResponse } from './transaction-signature.ts';

/** Timeout, in milliseconds, for sending a message and receiving its response. */
const EXCHANGE_TIMEOUT_MS = 15_000;

export function rfc2136Provider(settings: { readonly [setting: string]: unknown }): DnsProvider {
	const { host, port } = serverAddress(String(settings.server ?? ''));
	const key = transactionKey(settings);
	const zone = typeof settings.zone === 'string' ? settings.zone.toLowerCase().replace(/\.$/, '') : undefined;
	const sendUpdate = async (record: ChallengeRecord, action: 'add' | 'remove', signal?: AbortSignal): Promise<void> => {
		const message = encodeUpdate(record, action);
		const signedMessage = key ? signMessage(message, key, Math.floor(Date.now() / 1000)) : undefined;
		const answer = await exchangeMessages(host, port, signedMessage?.message ?? message, signal);
		if (key && signedMessage) verifyResponse(answer, key, signedMessage.mac);
		const status = responseStatus(answer);
		if (status === 'NOERROR') return;
		throw new IssueError('dns/refused', `The name server \`${host}\` refused the update: ${status}.`);
	};
	return {
		zone,
		async add(record, signal) {
			await sendUpdate(record, 'add', signal);
			return () => sendUpdate(record, 'remove');
		},
	};
}

function transactionKey(settings: { readonly [setting: string]: unknown }): TransactionKey | undefined {
	const { key, key_name: name, key_alg: algorithm } = settings;
	if (typeof key !== 'string' || key === '') return undefined;
	if (typeof name !== 'string' || name === '') {
		throw new IssueError('dns/key', 'The key of rfc2136 needs a name; set `key_name`.');
	}
	return {
		name: name.toLowerCase().replace(/\.$/, ''),
		algorithm: typeof algorithm === 'string' ? algorithm.toLowerCase().replace(/\.$/, '') : 'hmac-sha256',
		secret: Buffer.from(key, 'base64'),
	};
}

function serverAddress(text: string): { readonly host: string; readonly port: number } {
	if (isIP(text) === 6) return { host: text, port: 53 };
	const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text);
	if (!match) throw new IssueError('dns/server', `\`${text}\` is not the address of a name server.`);
	return { host: match[1] ?? match[2]!, port: Number(match[3] ?? 53) };
}

/** Sends a message and receives the response, both prefixed with their length (RFC 1035 §4.2.2). */
function exchangeMessages(
	host: string,
	port: number,
	message: Buffer,
	signal: AbortSignal | undefined,
): Promise<Buffer> {
	return new Promise((resolve, reject) => {
		const socket = connect({ host, port });
		let receivedBytes: Buffer = Buffer.alloc(0);
		const rejectUnreachable = (reason: string): void => {
			socket.destroy();
			reject(new IssueError('dns/unreachable', `The name server \`${host}\` cannot be reached: ${reason}.`));
		};
		const onAbort = (): void => {
			socket.destroy();
			reject(signal!.reason);
		};
		signal?.addEventListener('abort', onAbort, { once: true });
		socket.once('close', () => signal?.removeEventListener('abort', onAbort));
		socket.setTimeout(EXCHANGE_TIMEOUT_MS, () => rejectUnreachable('timed out'));
		socket.once('error', (error: NodeJS.ErrnoException) => rejectUnreachable(error.code ?? error.message));
		socket.once('end', () => rejectUnreachable('the connection was closed'));
		socket.once('connect', () => {
			const lengthPrefix = Buffer.alloc(2);
			lengthPrefix.writeUInt16BE(message.length);
			socket.write(Buffer.concat([lengthPrefix, message]));
		});
		socket.on('data', (chunk: Buffer) => {
			receivedBytes = Buffer.concat([receivedBytes, chunk]);
			if (receivedBytes.length < 2 || receivedBytes.length < 2 + receivedBytes.readUInt16BE(0)) return;
			resolve(receivedBytes.subarray(2, 2 + receivedBytes.readUInt16BE(0)));
			socket.destroy();
		});
	});
}
