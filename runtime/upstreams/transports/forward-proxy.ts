/** Connections through forward proxies: CONNECT (RFC 9110 §9.3.6) and SOCKS5 (RFC 1928, RFC 1929). */
import { isIP, type Socket } from 'node:net';
import { IpRanges, parseIpRange } from '../../../compiler/exchange/ip-ranges.ts';
import { parseForwardProxy } from '../../../compiler/modules/directives/reverse-proxy/transports/forward-proxy.ts';
import type {
	ForwardProxySettings,
	HttpTransportSettings,
} from '../../../compiler/modules/directives/reverse-proxy/transports/transport-settings.ts';
import { ipAddressBytes } from './proxy-header.ts';
import type { SetUpTunnel } from './socket-dialer.ts';

/** Maximum bytes of a response to CONNECT. */
const MAX_RESPONSE_BYTES = 16_384;

/** Returns the proxy for a target: the one in the settings, or else the one in the environment. */
export function forwardProxyFor(
	settings: HttpTransportSettings,
	target: { readonly host: string; readonly port: number },
	environment: { readonly [name: string]: string | undefined },
): ForwardProxySettings | undefined {
	if (settings.forward_proxy === 'none') return undefined;
	if (settings.forward_proxy) return settings.forward_proxy;
	const variableNames = settings.tls ? ['HTTPS_PROXY', 'https_proxy'] : ['HTTP_PROXY', 'http_proxy'];
	const proxyUrl = variableNames.map(name => environment[name]).find(value => value !== undefined && value !== '');
	if (proxyUrl === undefined || isLocal(target.host) || isExcluded(target, environment)) return undefined;
	const parsedProxy = parseForwardProxy(proxyUrl);
	return typeof parsedProxy === 'string' ? undefined : parsedProxy;
}

/** Returns the host and port in a proxy's URL. */
export function proxyTarget(proxy: ForwardProxySettings): { readonly host: string; readonly port: number } {
	const url = new URL(proxy.url);
	const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
	return { host: url.hostname.replace(/^\[|\]$/g, ''), port };
}

/** Returns the value of `Proxy-Authorization`; undefined if the settings name no user. */
export function proxyCredentials(proxy: ForwardProxySettings): string | undefined {
	if (proxy.username === undefined) return undefined;
	return `Basic ${Buffer.from(`${proxy.username}:${proxy.password ?? ''}`, 'utf8').toString('base64')}`;
}

/** Returns a function that sets up a tunnel through the proxy to a target. */
export function tunnelThrough(
	proxy: ForwardProxySettings,
	target: { readonly host: string; readonly port: number },
): SetUpTunnel {
	return proxy.url.startsWith('socks5:') ? socks5Tunnel(proxy, target) : connectTunnel(proxy, target);
}

function isLocal(host: string): boolean {
	return host === 'localhost' || host.startsWith('127.') || host === '::1';
}

/** Evaluates `NO_PROXY`: hosts, domains with or without a leading dot, `host:port`, CIDR ranges, `*`. */
function isExcluded(
	{ host, port }: { readonly host: string; readonly port: number },
	environment: { readonly [name: string]: string | undefined },
): boolean {
	const noProxyList = environment.NO_PROXY ?? environment.no_proxy ?? '';
	return noProxyList.split(',').some(entry => {
		const pattern = entry.trim().toLowerCase();
		if (pattern === '') return false;
		if (pattern === '*') return true;
		if (pattern.includes('/')) return parseIpRange(pattern) !== undefined && new IpRanges([pattern]).contains(host);
		const [, name, onlyPort] = /^(.*?)(?::(\d+))?$/.exec(pattern)!;
		if (onlyPort !== undefined && Number(onlyPort) !== port) return false;
		const domain = name!.replace(/^\*?\./, '');
		return host.toLowerCase() === domain || host.toLowerCase().endsWith(`.${domain}`);
	});
}

function authorityOf({ host, port }: { readonly host: string; readonly port: number }): string {
	return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

function connectTunnel(
	proxy: ForwardProxySettings,
	target: { readonly host: string; readonly port: number },
): SetUpTunnel {
	const authority = authorityOf(target);
	let request = `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n`;
	const credentials = proxyCredentials(proxy);
	if (credentials !== undefined) request += `Proxy-Authorization: ${credentials}\r\n`;
	return (socket, done) => {
		socket.write(`${request}\r\n`, 'latin1');
		let head = '';
		const onData = (bytes: Buffer): void => {
			head += bytes.toString('latin1');
			const headEnd = head.indexOf('\r\n\r\n');
			if (headEnd === -1) {
				if (head.length > MAX_RESPONSE_BYTES) finish(new Error("the proxy's response to CONNECT is too long"));
				return;
			}
			const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1];
			if (status === undefined) finish(new Error("the proxy's response to CONNECT is not HTTP"));
			else if (!status.startsWith('2')) finish(new Error(`the proxy answered CONNECT with status ${status}`));
			else {
				const tunnelBytes = Buffer.from(head.slice(headEnd + 4), 'latin1');
				finish(undefined);
				if (tunnelBytes.length > 0) socket.unshift(tunnelBytes);
			}
		};
		const finish = (error: Error | undefined): void => {
			socket.off('data', onData);
			socket.pause();
			done(error);
		};
		socket.on('data', onData);
	};
}

/** Reads from a socket exactly as many bytes as each caller asks for. */
class ExactReader {
	readonly #socket: Socket;
	#bufferedBytes: Buffer = Buffer.alloc(0);
	#waitingRead: { readonly count: number; readonly callback: (bytes: Buffer) => void } | undefined = undefined;

	constructor(socket: Socket) {
		this.#socket = socket;
		socket.on('data', this.#onData);
	}

	readExactly(count: number, callback: (bytes: Buffer) => void): void {
		this.#waitingRead = { count, callback };
		this.#deliver();
	}

	/** Stops reading from the socket. */
	end(): void {
		this.#socket.off('data', this.#onData);
		this.#socket.pause();
		if (this.#bufferedBytes.length > 0) this.#socket.unshift(this.#bufferedBytes);
	}

	readonly #onData = (bytes: Buffer): void => {
		this.#bufferedBytes = Buffer.concat([this.#bufferedBytes, bytes]);
		this.#deliver();
	};

	#deliver(): void {
		const waitingRead = this.#waitingRead;
		if (!waitingRead || this.#bufferedBytes.length < waitingRead.count) return;
		this.#waitingRead = undefined;
		const bytes = this.#bufferedBytes.subarray(0, waitingRead.count);
		this.#bufferedBytes = this.#bufferedBytes.subarray(waitingRead.count);
		waitingRead.callback(bytes);
	}
}

function socks5Tunnel(
	proxy: ForwardProxySettings,
	target: { readonly host: string; readonly port: number },
): SetUpTunnel {
	return (socket, done) => {
		const reader = new ExactReader(socket);
		const finish = (message: string | undefined): void => {
			reader.end();
			done(message === undefined ? undefined : new Error(message));
		};
		const sendRequest = (): void => {
			const family = isIP(target.host);
			const hostBytes = family === 0 ? Buffer.from(target.host, 'latin1') : ipAddressBytes(target.host);
			const addressHeader = family === 4 ? [1] : family === 6 ? [4] : [3, hostBytes.length];
			const portBytes = Buffer.from([target.port >> 8, target.port & 255]);
			socket.write(Buffer.concat([Buffer.from([5, 1, 0, ...addressHeader]), hostBytes, portBytes]));
			reader.readExactly(5, head => {
				if (head[0] !== 5) return finish('the proxy does not speak SOCKS5');
				if (head[1] !== 0) return finish(`the SOCKS5 proxy refused with code ${head[1]}`);
				const remainingCount = head[3] === 1 ? 5 : head[3] === 4 ? 17 : head[4]! + 2;
				reader.readExactly(remainingCount, () => finish(undefined));
			});
		};
		const hasUser = proxy.username !== undefined;
		socket.write(Buffer.from(hasUser ? [5, 2, 0, 2] : [5, 1, 0]));
		reader.readExactly(2, ([version, method]) => {
			if (version !== 5) return finish('the proxy does not speak SOCKS5');
			if (method === 0) return sendRequest();
			if (method !== 2 || !hasUser) return finish('the SOCKS5 proxy requires an unsupported authentication method');
			const user = Buffer.from(proxy.username!, 'utf8');
			const password = Buffer.from(proxy.password ?? '', 'utf8');
			if (user.length > 255 || password.length > 255) return finish('the SOCKS5 credentials are too long');
			socket.write(Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([password.length]), password]));
			reader.readExactly(2, reply => {
				if (reply[1] !== 0) return finish('the SOCKS5 proxy refused the credentials');
				sendRequest();
			});
		});
	};
}
