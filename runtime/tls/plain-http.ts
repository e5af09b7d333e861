/** HTTP without TLS on a port that speaks it: told so, or sent to the right place. */
import type { Socket } from 'node:net';
import { parseAuthority } from '../../compiler/exchange/authority.ts';

/** Bytes of a head that is read for a redirect. */
const LONGEST_HEAD = 16 * 1024;
/** Milliseconds for it to come. */
const HEAD_LIMIT = 5000;

const METHOD = /^[A-Z]{2,20} /;
const EXPLANATION = 'Client sent an HTTP request to an HTTPS server.\n';

/** True when the first bytes are the beginning of a request. */
export function looksLikeHttp(bytes: Buffer): boolean {
	return METHOD.test(bytes.toString('latin1', 0, 24));
}

/** Answers and closes: 400, or 308 to HTTPS when that is wanted and the host is known. `first` are the bytes that came. */
export function answerPlainHttp(socket: Socket, first: Buffer, redirect: boolean, port: number): void {
	if (!redirect) {
		finish(socket, '400 Bad Request', '', EXPLANATION);
		return;
	}
	let head = first.toString('latin1');
	const timer = setTimeout(() => socket.destroy(), HEAD_LIMIT).unref();
	const look = (): void => {
		const end = head.indexOf('\r\n\r\n');
		if (end === -1 && head.length <= LONGEST_HEAD) return;
		clearTimeout(timer);
		socket.off('data', more);
		const target = end === -1 ? undefined : redirectTarget(head.slice(0, end), port);
		if (target === undefined) finish(socket, '400 Bad Request', '', EXPLANATION);
		else finish(socket, '308 Permanent Redirect', `Location: ${target}\r\n`, '');
	};
	const more = (bytes: Buffer): void => {
		head += bytes.toString('latin1');
		look();
	};
	socket.once('close', () => clearTimeout(timer));
	socket.on('data', more);
	socket.resume();
	look();
}

/** Where a request is redirected to; undefined for what is no request with a host. */
function redirectTarget(head: string, port: number): string | undefined {
	const [line = '', ...fields] = head.split('\r\n');
	const target = /^[A-Z]+ (\/[\x21-\x7e]*) HTTP\/1\.[01]$/.exec(line)?.[1];
	const hosts = fields.filter(field => /^host:/i.test(field));
	if (target === undefined || hosts.length !== 1) return undefined;
	const authority = parseAuthority(hosts[0]!.slice(5).trim());
	if (!authority || authority.host === '') return undefined;
	const host = authority.host.includes(':') ? `[${authority.host}]` : authority.host;
	return `https://${host}${port === 443 ? '' : `:${port}`}${target}`;
}

function finish(socket: Socket, status: string, fields: string, body: string): void {
	const type = body === '' ? '' : 'Content-Type: text/plain; charset=utf-8\r\n';
	socket.end(
		`HTTP/1.1 ${status}\r\n${fields}${type}Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
		'latin1',
	);
	// What the client still sends is let go by for a moment: closing at once could take the answer from it.
	socket.resume();
	setTimeout(() => socket.destroy(), 1000).unref();
}
