/** A TLS client for tests. It sends one request on its own connection, and returns the facts of the handshake with the response. */
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';

/** The outcome of a request. */
export interface TlsAnswer {
	readonly text: string;
	readonly body: string;
	readonly status: number;
	/** The common name and alternative names of the server's certificate. */
	readonly names: string;
	readonly protocol: string | false | null;
	readonly version: string | null;
	readonly reused: boolean;
	/** The last session ticket received. */
	readonly session: Buffer | undefined;
	readonly local: string;
	/** The key type of the server's certificate: `ec` or `rsa`. */
	readonly keyKind: string;
}

/** Sends a GET over TLS and reads to the end. Rejects if the handshake or the request fails. */
export function tlsGet(
	port: number,
	options: ConnectionOptions & { readonly hostHeader?: string; readonly path?: string },
): Promise<TlsAnswer> {
	return new Promise((resolve, reject) => {
		const { hostHeader, path = '/', ...rest } = options;
		let session: Buffer | undefined;
		const socket: TLSSocket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...rest }, () => {
			socket.write(
				`GET ${path} HTTP/1.1\r\nHost: ${hostHeader ?? options.servername ?? '127.0.0.1'}\r\nConnection: close\r\n\r\n`,
			);
		});
		socket.on('session', given => {
			session = given;
		});
		const facts = () => ({
			names: socket.getPeerX509Certificate()?.subjectAltName ?? '',
			protocol: socket.alpnProtocol,
			version: socket.getProtocol(),
			reused: socket.isSessionReused(),
			local: `${socket.localPort}`,
			keyKind: socket.getPeerX509Certificate()?.publicKey.asymmetricKeyType ?? '',
		});
		let known: ReturnType<typeof facts> | undefined;
		socket.on('secureConnect', () => {
			known = facts();
			// Node emits no event for a new ticket when a TLS 1.2 session is resumed.
			if (known.version === 'TLSv1.2') session = socket.getSession();
		});
		let text = '';
		socket.setEncoding('latin1').on('data', chunk => {
			text += chunk;
		});
		socket.setTimeout(8000, () => socket.destroy(new Error('no answer in time')));
		socket.on('error', reject);
		socket.on('close', () => {
			if (!known || text === '') {
				reject(new Error('closed without an answer'));
				return;
			}
			const status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
			resolve({ ...known, text, status, body: text.slice(text.indexOf('\r\n\r\n') + 4), session });
		});
	});
}

/** Sends a request that must fail. Returns the error code. */
export async function tlsFailure(port: number, options: Parameters<typeof tlsGet>[1]): Promise<string> {
	try {
		const { text } = await tlsGet(port, options);
		return `answered: ${text.slice(0, 60)}`;
	} catch (error) {
		const { code, message } = error as Error & { code?: string };
		return code ?? message;
	}
}
