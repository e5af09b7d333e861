/**
 * The process's listening sockets. Threads bind TCP ports themselves, whereas the main thread holds Unix sockets and inherited
 * sockets, and every thread listens on duplicates of them.
 */
import { chmodSync, closeSync, fstatSync, lstatSync, renameSync, type Stats, statSync, unlinkSync } from 'node:fs';
import path from 'node:path';
import { DEFAULT_SOCKET_MODE, parseListenHost } from '../../compiler/document/listen-host.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import type { ExpandText } from '../logs/machine-text.ts';
import type { BequeathedDatagrams, BequeathedSocket, BequeathedSockets } from '../sockets/bequeathed-sockets.ts';
import { type HeldSocket, holdUnixSocket } from '../sockets/held-socket.ts';
import { LISTEN_BACKLOG } from '../sockets/node-listening-socket.ts';
import { Http3Probe } from './http3-probe.ts';
import { InheritedSockets, withoutHandoverParts } from './inherited-sockets.ts';
import type { ListenerAddress } from './listener-address.ts';
import { PassedSockets, SocketNotPassed } from './passed-sockets.ts';
import { type ListenError, listenError, probeListener } from './port-probe.ts';
import { someoneListens } from './someone-listens.ts';

/** Maximum bytes of a Unix socket's path (`sun_path` without its terminating zero). */
const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103;

interface HeldListener {
	readonly descriptor: number;
	/** The Unix socket and its file; undefined for an inherited socket, which this process must not close. */
	readonly unix: { readonly socket: HeldSocket; readonly file: SocketFile } | undefined;
}

/** The file of a Unix socket: its path and inode, by which it is recognized, and its permissions. */
interface SocketFile {
	readonly path: string;
	readonly inode: bigint;
	mode: number;
	/**
	 * True if this process may change and delete the file. Before a handover, the file belongs to the predecessor; afterwards, to
	 * the successor.
	 */
	isOurs: boolean;
}

/** What a process has done with the sockets of its predecessor, by the predecessor's keys. */
export interface TakenSockets {
	/** The sockets that it serves; see `UnconfirmedTerms.used`. */
	readonly used: readonly string[];
	/** The keys of the listeners that it does not use. */
	readonly abandoned: readonly string[];
}

export class ListenerSockets {
	readonly #expand: ExpandText;
	readonly #log: (entry: LogEntry) => void;
	readonly #passedSockets: PassedSockets;
	readonly #http3Probe: Http3Probe;
	#servedAddresses = new Map<string, ListenerAddress>();
	readonly #heldListeners = new Map<string, HeldListener>();
	/** The predecessor's sockets, until this process accepts connections. */
	#inheritedSockets: InheritedSockets | undefined;

	/**
	 * @param expand Expands placeholders in addresses.
	 * @param log Receives failures to change or remove files.
	 * @param passedSockets Sockets from a service manager.
	 * @param bequeathedSockets Sockets of the predecessor.
	 */
	constructor(
		expand: ExpandText,
		log: (entry: LogEntry) => void,
		passedSockets: PassedSockets = new PassedSockets(undefined),
		bequeathedSockets?: BequeathedSockets,
	) {
		this.#passedSockets = passedSockets;
		this.#inheritedSockets = bequeathedSockets && new InheritedSockets(bequeathedSockets);

		this.#expand = expand;
		this.#log = log;
		this.#http3Probe = new Http3Probe(log);
	}

	get servedAddresses(): ListenerAddress[] {
		return [...this.#servedAddresses.values()];
	}

	/**
	 * Resolves to addresses on which threads can listen, with their final ports. Addresses that are not served yet are checked to be
	 * free. Rejects with ListenError.
	 */
	async prepareAddresses(requestedAddresses: readonly ListenerAddress[]): Promise<ListenerAddress[]> {
		await this.#inheritedSockets?.resolveNames(requestedAddresses);
		const listeners: ListenerAddress[] = [];
		for (const address of requestedAddresses) {
			if (address.host.includes('/')) {
				listeners.push(await this.#openHeldListener(address));
				continue;
			}
			const knownAddress =
				this.#servedAddresses.get(address.key) ??
				this.#inheritedSockets?.findDeferred(address) ??
				this.#findPassed(address);
			const { http3: _, ...boundAddress } = knownAddress ?? (await this.#probe(address));
			const { http3 } = address;
			listeners.push(await this.#http3Probe.check(http3 === undefined ? boundAddress : { ...boundAddress, http3 }));
		}
		return listeners;
	}

	/**
	 * Must be called when exactly these listeners are served from now on. Sets the permissions of their socket files, and closes
	 * the sockets held for other listeners.
	 */
	serve(listeners: readonly ListenerAddress[]): void {
		this.#servedAddresses = new Map(listeners.map(listener => [listener.key, withoutHandoverParts(listener)]));
		this.#keepOnly(listeners);
	}

	/** Takes over from the predecessor. All threads must be listening. */
	takeOver(): TakenSockets {
		const inherited = this.#inheritedSockets;
		if (!inherited) return { used: [], abandoned: [] };
		this.#inheritedSockets = undefined;
		inherited.close();
		for (const socket of inherited.findAbandoned(new Set(this.#heldListeners.keys())))
			this.#heldListeners.set(socket.key, toHeldListener(socket));
		this.#setFileOwnership(true);
		this.#keepOnly(this.#servedAddresses.values());
		const used = this.servedAddresses.flatMap(({ key, http3 }) => {
			const inheritedKey = inherited.inheritedKeyOf(key);
			return http3 === undefined ? [inheritedKey] : [inheritedKey, `udp ${inheritedKey}`];
		});
		return { used, abandoned: inherited.unusedKeys(new Set(this.#servedAddresses.keys())) };
	}

	/** Returns the served listeners that have these keys, without those whose sockets belong to a service manager. */
	findOwned(keys: readonly string[]): ListenerAddress[] {
		return keys.flatMap(key => {
			const address = this.#servedAddresses.get(key);
			if (address === undefined) return [];
			const isOwned = address.host.includes('/')
				? this.#heldListeners.get(key)?.unix !== undefined
				: this.#findPassed(address) === undefined;
			return isOwned ? [address] : [];
		});
	}

	/** Leaves the files of Unix sockets to the successor, so that this process does not delete them. */
	leaveFiles(): void {
		this.#setFileOwnership(false);
	}

	#setFileOwnership(isOurs: boolean): void {
		for (const { unix } of this.#heldListeners.values()) if (unix) unix.file.isOurs = isOurs;
	}

	/**
	 * Returns the sockets that a successor inherits. `threadDescriptorsOf` returns the descriptors of all threads'
	 * sockets for a listener; `datagrams` has the threads' UDP sockets.
	 */
	toBequeathedSockets(
		threadDescriptorsOf: (key: string) => number[],
		datagrams: ReadonlyMap<string, readonly BequeathedDatagrams[]>,
	): BequeathedSockets {
		const listeners = this.servedAddresses
			.filter(({ host }) => !host.includes('/'))
			.map(({ key, port }) => ({
				key,
				port,
				descriptors: distinctSockets(threadDescriptorsOf(key)),
				datagrams: datagrams.get(key),
			}));
		const held = [...this.#heldListeners].map(([key, { descriptor, unix }]) => {
			const file = unix && { path: unix.file.path, inode: String(unix.file.inode), mode: unix.file.mode };
			return { key, descriptor, ...(file && { file }) };
		});
		return { listeners, held, passed: this.#passedSockets.toBequeathedSockets() };
	}

	/** True if a service manager has passed sockets, which stay open when this process ends. */
	get hasPassedSockets(): boolean {
		return this.#passedSockets.hasAny;
	}

	/** Closes the sockets that were opened for a load that has failed. */
	discardUnserved(): void {
		this.#keepOnly(this.#servedAddresses.values());
	}

	/** Closes the sockets that the main thread holds, and removes socket files. Idempotent. */
	close(): void {
		this.#keepOnly([]);
	}

	/** Returns a TCP address with the socket that a service manager has bound to it, if any. */
	#findPassed(address: ListenerAddress): ListenerAddress | undefined {
		const { host, port } = address;
		if (port === 0) return undefined;
		// A socket that systemd binds to a port without an address accepts IPv6 and IPv4, or only IPv4 on a system without IPv6.
		const hosts = host === '' ? ['[::]', '0.0.0.0'] : [host.includes(':') ? `[${host}]` : host];
		for (const hostText of hosts) {
			const descriptor = this.#passedSockets.descriptorAt(`${hostText}:${port}`);
			if (descriptor !== undefined) return { ...address, descriptor };
		}
		return undefined;
	}

	/** Checks that an address is free. If a passed socket occupies it, the error says so. */
	async #probe(address: ListenerAddress): Promise<ListenerAddress> {
		try {
			return await probeListener(address);
		} catch (error) {
			const hosts = (error as ListenError).code === 'EADDRINUSE' ? this.#passedSockets.hostsAt(address.port) : [];
			if (hosts.length === 0) throw error;
			const passedAddresses = hosts.map(host => `${host}:${address.port}`).join(' and ');
			const message = `the service manager passed a socket at ${passedAddresses}, which serves only sites with \`bind ${hosts.join(' ')}\``;
			throw listenError(new SocketNotPassed(message), address);
		}
	}

	async #openHeldListener(address: ListenerAddress): Promise<ListenerAddress> {
		let heldListener = this.#heldListeners.get(address.key);
		if (!heldListener) {
			const inherited = this.#inheritedSockets?.findHeld(address.key);
			heldListener = inherited
				? toHeldListener(inherited)
				: await this.#bindHeldListener(address).catch(error => {
						throw listenError(error, address);
					});
			this.#heldListeners.set(address.key, heldListener);
		}
		const deferred = this.#inheritedSockets?.findHeld(address.key) !== undefined;
		return { ...address, descriptor: heldListener.descriptor, ...(deferred && { deferred }) };
	}

	#keepOnly(addresses: Iterable<ListenerAddress>): void {
		const keptKeys = new Set<string>();
		for (const { key, mode = DEFAULT_SOCKET_MODE } of addresses) {
			keptKeys.add(key);
			const file = this.#heldListeners.get(key)?.unix?.file;
			if (!file || file.mode === mode || !file.isOurs) continue;
			this.#tryFileChange(key, () => isSameFile(file) && chmodSync(file.path, mode));
			file.mode = mode;
		}
		this.#http3Probe.keepOnly(keptKeys);
		for (const key of [...this.#heldListeners.keys()]) if (!keptKeys.has(key)) this.#closeHeldListener(key);
	}

	#closeHeldListener(key: string): void {
		const heldListener = this.#heldListeners.get(key);
		this.#heldListeners.delete(key);
		if (!heldListener?.unix) return;
		const { file, socket } = heldListener.unix;
		// The file is deleted only if it is still the file of this socket: another server may have replaced it.
		if (file.isOurs) this.#tryFileChange(key, () => isSameFile(file) && unlinkSync(file.path));
		socket.close();
	}

	#tryFileChange(key: string, change: () => void): void {
		try {
			change();
		} catch (error) {
			const fields = { address: key, cause: (error as NodeJS.ErrnoException).code };
			this.#log({ level: 'warn', logger: 'runtime', message: 'a socket file could not be changed', fields });
		}
	}

	async #bindHeldListener({ host, mode = DEFAULT_SOCKET_MODE }: ListenerAddress): Promise<HeldListener> {
		const listenHost = parseListenHost(this.#expandHost(host));
		if ('network' in listenHost && listenHost.network === 'fd') {
			const descriptor = this.#passedSockets.descriptorOf(listenHost.descriptor);
			// `fstatSync` throws EBADF if the descriptor is not open. Whether it is a listening socket is known only when a thread tries
			// to listen on it.
			if (!fstatSync(descriptor).isSocket()) throw systemError('ENOTSOCK');
			return { descriptor, unix: undefined };
		}
		if ('network' in listenHost && listenHost.network === 'unix') {
			const descriptor = this.#passedSockets.descriptorAt(listenHost.path);
			return descriptor === undefined ? bindUnix(listenHost.path, mode) : { descriptor, unix: undefined };
		}
		throw systemError('EINVAL');
	}

	#expandHost(host: string): string {
		return this.#expand(host, () => {
			throw systemError('EINVAL');
		});
	}
}

/** Converts an inherited socket to a `HeldListener`. */
function toHeldListener({ descriptor, file }: BequeathedSocket): HeldListener {
	if (!file) return { descriptor, unix: undefined };
	const socket = { descriptor, close: () => closeSync(descriptor) };
	return {
		descriptor,
		unix: { socket, file: { path: file.path, inode: BigInt(file.inode), mode: file.mode, isOurs: false } },
	};
}

/**
 * Returns one descriptor for each distinct socket. Several of the descriptors may refer to the same socket, because threads may
 * share a socket.
 */
export function distinctSockets(descriptors: readonly number[]): number[] {
	const inodes = new Set<number>();
	return descriptors.filter(descriptor => {
		const { ino } = fstatSync(descriptor);
		return !inodes.has(ino) && inodes.add(ino);
	});
}

/**
 * Returns the error code with which binding a Unix socket at a path would fail; undefined if no problem can be seen without
 * binding.
 */
export function unixSocketErrorCode(socketPath: string): string | undefined {
	if (Buffer.byteLength(socketPath) > MAX_PATH_BYTES) return 'ENAMETOOLONG';
	try {
		// For a missing folder, `statSync` throws ENOENT, which describes the problem better than the EACCES with which Node's `listen`
		// fails.
		if (!statSync(path.dirname(socketPath)).isDirectory()) return 'ENOTDIR';
		const stats = statsOf(socketPath);
		return stats && !stats.isSocket() ? 'EEXIST' : undefined;
	} catch (error) {
		return (error as NodeJS.ErrnoException).code ?? 'EIO';
	}
}

/**
 * Binds a socket under a temporary name and renames it, so that the socket never has other permissions, and a socket left behind
 * by another server is replaced atomically.
 */
async function bindUnix(socketPath: string, mode: number): Promise<HeldListener> {
	const errorCode = unixSocketErrorCode(socketPath);
	if (errorCode !== undefined) throw systemError(errorCode);
	const stats = statsOf(socketPath);
	if (stats && (await someoneListens(socketPath))) throw systemError('EADDRINUSE');
	const temporaryPath = path.join(path.dirname(socketPath), `.${process.pid.toString(36)}~`);
	if (statsOf(temporaryPath)?.isSocket()) unlinkSync(temporaryPath);
	let inode = 0n;
	const socket = await holdUnixSocket(temporaryPath, LISTEN_BACKLOG, () => {
		chmodSync(temporaryPath, mode);
		inode = lstatSync(temporaryPath, { bigint: true }).ino;
		renameSync(temporaryPath, socketPath);
	});
	return { descriptor: socket.descriptor, unix: { socket, file: { path: socketPath, inode, mode, isOurs: true } } };
}

function isSameFile({ path: file, inode }: { readonly path: string; readonly inode: bigint }): boolean {
	return lstatSync(file, { bigint: true, throwIfNoEntry: false })?.ino === inode;
}

function statsOf(file: string): Stats | undefined {
	return lstatSync(file, { throwIfNoEntry: false });
}

function systemError(code: string): Error {
	return Object.assign(new Error(code), { code });
}
