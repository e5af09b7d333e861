/**
 * Checks on the main thread whether UDP can be bound along with a TCP listener. The threads share the port, so their own binding
 * would succeed even if another process used it.
 */
import { isIP } from 'node:net';
import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import { quicSupport } from '../sockets/quic/quic-library.ts';
import type { ListenerAddress } from './listener-address.ts';
import { ListenError } from './port-probe.ts';

/** Decides which listeners offer HTTP/3. */
export class Http3Probe {
	readonly #log: (entry: LogEntry) => void;
	/** Keys of listeners whose UDP ports our threads have bound. */
	readonly #boundKeys = new Set<string>();
	/** The cause that was logged last, by listener key. The key '' stands for a cause that concerns the whole process. */
	readonly #loggedCauses = new Map<string, string>();

	constructor(log: (entry: LogEntry) => void) {
		this.#log = log;
	}

	/**
	 * Resolves to the address. If HTTP/3 is unavailable and enabled only by default, resolves to the address without HTTP/3, and
	 * logs the cause once. Rejects with ListenError if HTTP/3 is unavailable but the configuration names it.
	 */
	async check(address: ListenerAddress): Promise<ListenerAddress> {
		const { key, http3, ...addressWithoutHttp3 } = address;
		if (http3 === undefined) return address;
		const { missing } = quicSupport();
		let cause = missing;
		let code = 'ENOSYS';
		if (missing === undefined) {
			// In a handover, the predecessor still uses the port and shares it with this process, so the check below would fail.
			if (address.deferred) this.#boundKeys.add(key);
			if (this.#boundKeys.has(key)) return address;
			const errorCode = await bindUdpBriefly(address);
			if (errorCode === undefined) {
				this.#boundKeys.add(key);
				this.#loggedCauses.delete(key);
				return address;
			}
			code = errorCode;
			cause =
				errorCode === 'EADDRINUSE' ? 'another program has the UDP port' : `the UDP port cannot be bound (${errorCode})`;
		}
		if (http3 === 'named') throw http3UnavailableError(code, address, cause!);
		// If this machine lacks a system function that HTTP/3 needs, no listener can offer it. This cause is logged once, not for
		// each listener.
		const causeKey = missing === undefined ? key : '';
		if (this.#loggedCauses.get(causeKey) !== cause) {
			this.#loggedCauses.set(causeKey, cause!);
			this.#log(missing === undefined ? withoutHttp3Entry(address, cause!) : unavailableEntry(missing));
		}
		return { key, ...addressWithoutHttp3 };
	}

	/** Forgets the listeners that are no longer served, so that their ports are checked again. */
	keepOnly(keys: ReadonlySet<string>): void {
		for (const key of this.#boundKeys) if (!keys.has(key)) this.#boundKeys.delete(key);
	}
}

/** Returns the error for a listener that cannot offer HTTP/3 although its configuration names it. */
export function http3UnavailableError(code: string, address: ListenerAddress, cause: string): ListenError {
	return new ListenError(code, socketText(address), `HTTP/3 (\`h3\`) is unavailable, because ${cause}`);
}

/**
 * Returns the log entry for a listener that serves without HTTP/3, which is enabled only by default, because UDP could not be
 * bound.
 */
export function withoutHttp3Entry(address: ListenerAddress, cause: string): LogEntry {
	const fields = { address: socketText(address), cause };
	return { level: 'warn', logger: 'http', message: 'serving without HTTP/3', fields };
}

function unavailableEntry(cause: string): LogEntry {
	return { level: 'info', logger: 'http', message: 'HTTP/3 is unavailable', fields: { cause } };
}

/**
 * Binds the UDP port without sharing it, and releases it again. Resolves to the system's error code, or to undefined if the port
 * is free.
 */
async function bindUdpBriefly({ host, port, only6 }: ListenerAddress): Promise<string | undefined> {
	const { createSocket } = await import('node:dgram');
	const families = host === '' ? [6, 4] : [isIP(host) || 4];
	for (const family of families) {
		const errorCode = await new Promise<string | undefined>(resolve => {
			const socket = createSocket({ type: family === 6 ? 'udp6' : 'udp4', ipv6Only: only6 === true });
			const address = host || (family === 6 ? '::' : '0.0.0.0');
			socket.once('error', (error: NodeJS.ErrnoException) => {
				socket.close();
				resolve(error.code ?? 'EIO');
			});
			socket.bind({ port, address, exclusive: true }, () => socket.close(() => resolve(undefined)));
		});
		// A listener for every interface first tries IPv6 together with IPv4, then only IPv4, for machines without IPv6.
		if (errorCode === undefined) return undefined;
		if (errorCode !== 'EAFNOSUPPORT' && errorCode !== 'EADDRNOTAVAIL') return errorCode;
		if (family === families.at(-1)) return errorCode;
	}
	return undefined;
}
