/** Checks on the main thread whether UDP can be bound beside a TCP listener, because the threads' shared binding would not fail. */
import { isIP } from 'node:net';
import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import { quicSupport } from '../sockets/quic/quic-library.ts';
import type { ListenerAddress } from './listener-address.ts';
import { ListenError } from './port-probe.ts';

/** Decides which listeners speak HTTP/3. */
export class Http3Probe {
	readonly #log: (entry: LogEntry) => void;
	/** Keys of listeners whose UDP sockets are the threads'. */
	readonly #ours = new Set<string>();
	/** What has been logged, by listener key, or '' for the whole process. */
	readonly #logged = new Map<string, string>();

	constructor(log: (entry: LogEntry) => void) {
		this.#log = log;
	}

	/**
	 * Returns the address without its wish for HTTP/3 if that is only the default and cannot be fulfilled, which is logged once.
	 * Rejects with ListenError if a configuration names HTTP/3.
	 */
	async checked(address: ListenerAddress): Promise<ListenerAddress> {
		const { key, http3, ...rest } = address;
		if (http3 === undefined) return address;
		const { missing } = quicSupport();
		let cause = missing;
		let code = 'ENOSYS';
		if (missing === undefined) {
			// The process that this one succeeds still has the port, and shares it.
			if (address.deferred) this.#ours.add(key);
			if (this.#ours.has(key)) return address;
			const refused = await bindUdpBriefly(address);
			if (refused === undefined) {
				this.#ours.add(key);
				this.#logged.delete(key);
				return address;
			}
			code = refused;
			cause =
				refused === 'EADDRINUSE' ? 'another program has the UDP port' : `the UDP port cannot be bound (${refused})`;
		}
		if (http3 === 'named') throw http3Unavailable(code, address, cause!);
		// What the machine lacks is one fact about the process, not one about each listener.
		const subject = missing === undefined ? key : '';
		if (this.#logged.get(subject) !== cause) {
			this.#logged.set(subject, cause!);
			this.#log(missing === undefined ? withoutHttp3(address, cause!) : lacking(missing));
		}
		return { key, ...rest };
	}

	/** Forgets the UDP sockets of listeners that are not served. */
	keep(keys: ReadonlySet<string>): void {
		for (const key of this.#ours) if (!keys.has(key)) this.#ours.delete(key);
	}
}

/** The error of a listener whose HTTP/3 is written in the configuration. */
export function http3Unavailable(code: string, address: ListenerAddress, cause: string): ListenError {
	return new ListenError(code, socketText(address), `HTTP/3 (\`h3\`) is unavailable, because ${cause}`);
}

/** The log entry about a listener that could not get UDP, where HTTP/3 is the default. */
export function withoutHttp3(address: ListenerAddress, cause: string): LogEntry {
	const fields = { address: socketText(address), cause };
	return { level: 'warn', logger: 'http', message: 'serving without HTTP/3', fields };
}

function lacking(cause: string): LogEntry {
	return { level: 'info', logger: 'http', message: 'HTTP/3 is unavailable', fields: { cause } };
}

/** Binds the UDP port without sharing it and releases it again. Resolves to the system's error, or undefined. */
async function bindUdpBriefly({ host, port, only6 }: ListenerAddress): Promise<string | undefined> {
	const { createSocket } = await import('node:dgram');
	const families = host === '' ? [6, 4] : [isIP(host) || 4];
	for (const family of families) {
		const refused = await new Promise<string | undefined>(resolve => {
			const socket = createSocket({ type: family === 6 ? 'udp6' : 'udp4', ipv6Only: only6 === true });
			const address = host || (family === 6 ? '::' : '0.0.0.0');
			socket.once('error', (error: NodeJS.ErrnoException) => {
				socket.close();
				resolve(error.code ?? 'EIO');
			});
			socket.bind({ port, address, exclusive: true }, () => socket.close(() => resolve(undefined)));
		});
		// Without IPv6 on this machine, every interface means those of IPv4.
		if (refused === undefined) return undefined;
		if (refused !== 'EAFNOSUPPORT' && refused !== 'EADDRNOTAVAIL') return refused;
		if (family === families.at(-1)) return refused;
	}
	return undefined;
}
