/** The DNS provider `rfc2136`: dynamic updates over TCP, signed with a shared key. */
import { connect, isIP } from 'node:net';
import { IssueError } from '../issuer.ts';
import type { ChallengeRecord, DnsProvider } from './dns-provider.ts';
import { encodeUpdate, responseStatus } from './dynamic-update.ts';
import { signMessage, type TransactionKey, verifyResponse } from './transaction-signature.ts';

/** Timeout of an exchange in milliseconds. */
const TIMEOUT_MS = 15_000;

export function rfc2136Provider(settings: { readonly [setting: string]: unknown }): DnsProvider {
	const { host, port } = serverAddress(String(settings.server ?? ''));
	const key = transactionKey(settings);
	const zone = typeof settings.zone === 'string' ? settings.zone.toLowerCase().replace(/\.$/, '') : undefined;
	const update = async (record: ChallengeRecord, action: 'add' | 'remove', signal?: AbortSignal): Promise<void> => {
		const message = encodeUpdate(record, action);
		const signed = key ? signMessage(message, key, Math.floor(Date.now() / 1000)) : undefined;
		const answer = await exchange(host, port, signed?.message ?? message, signal);
		if (key && signed) verifyResponse(answer, key, signed.mac);
		const status = responseStatus(answer);
		if (status === 'NOERROR') return;
		throw new IssueError('dns/refused', `The name server \`${host}\` refused the update: ${status}.`);
	};
	return {
		zone,
		async add(record, signal) {
			await update(record, 'add', signal);
			return () => update(record, 'remove');
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
function exchange(host: string, port: number, message: Buffer, signal: AbortSignal | undefined): Promise<Buffer> {
	return new Promise((resolve, reject) => {
		const socket = connect({ host, port });
		let received: Buffer = Buffer.alloc(0);
		const fail = (reason: string): void => {
			socket.destroy();
			reject(new IssueError('dns/unreachable', `The name server \`${host}\` cannot be reached: ${reason}.`));
		};
		const onAbort = (): void => {
			socket.destroy();
			reject(signal!.reason);
		};
		signal?.addEventListener('abort', onAbort, { once: true });
		socket.once('close', () => signal?.removeEventListener('abort', onAbort));
		socket.setTimeout(TIMEOUT_MS, () => fail('timed out'));
		socket.once('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
		socket.once('end', () => fail('the connection was closed'));
		socket.once('connect', () => {
			const length = Buffer.alloc(2);
			length.writeUInt16BE(message.length);
			socket.write(Buffer.concat([length, message]));
		});
		socket.on('data', (chunk: Buffer) => {
			received = Buffer.concat([received, chunk]);
			if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
			resolve(received.subarray(2, 2 + received.readUInt16BE(0)));
			socket.destroy();
		});
	});
}
