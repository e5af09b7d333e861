/**
 * The listening sockets inherited from the predecessor. For a moment, both processes listen on the same sockets, so that every
 * queued connection is accepted by one of them. A second socket bound to the address would have a queue of its own, so the
 * successor binds no sockets of its own.
 */
import { lookup } from 'node:dns/promises';
import { closeSync, fstatSync } from 'node:fs';
import { isIP } from 'node:net';
import { formatIp, parseIp } from '../../compiler/exchange/ip-address.ts';
import {
	type BequeathedListener,
	type BequeathedSocket,
	type BequeathedSockets,
	descriptorsOf,
} from '../sockets/bequeathed-sockets.ts';
import type { ListenerAddress } from './listener-address.ts';
import { socketAddresses } from './socket-addresses.ts';

/** The inherited sockets that the successor has not taken over yet. */
export class InheritedSockets {
	readonly #listenersByKey: ReadonlyMap<string, BequeathedListener>;
	readonly #heldByKey: ReadonlyMap<string, BequeathedSocket>;
	/** The inherited keys of the listeners that {@link findDeferred} has returned, by the keys in the new configuration. */
	readonly #inheritedKeys = new Map<string, string>();
	/** The inherited listeners by canonical keys, in which a host name is replaced by the address to which its sockets are bound. */
	readonly #listenersByCanonicalKey: ReadonlyMap<string, readonly BequeathedListener[]>;
	/** The IP addresses of host names in the new configuration, as they are written in keys. */
	readonly #addressByName = new Map<string, string>();
	readonly #addressOfName: (name: string) => Promise<string | undefined>;
	/** The keys of the inherited listeners whose sockets a service manager has passed. */
	readonly #passedKeys: ReadonlySet<string>;

	/**
	 * @param addressesOf Returns the addresses of listening sockets; see {@link socketAddresses}.
	 * @param addressOfName Resolves to the address to which Node binds for a host name; undefined if the name cannot be resolved.
	 */
	constructor({ listeners, held, passed }: BequeathedSockets, addressesOf = socketAddresses, addressOfName = lookUp) {
		this.#addressOfName = addressOfName;
		this.#listenersByKey = new Map(listeners.map(listener => [listener.key, listener]));
		this.#heldByKey = new Map(held.map(socket => [socket.key, socket]));
		const passedInodes = new Set(passed.map(({ descriptor }) => fstatSync(descriptor).ino));
		const passedListeners = listeners.filter(
			({ descriptors }) => passedInodes.size > 0 && descriptors.some(number => passedInodes.has(fstatSync(number).ino)),
		);
		this.#passedKeys = new Set(passedListeners.map(({ key }) => key));
		const named = listeners.filter(({ key }) => hostNameOf(key) !== undefined);
		const boundAddresses = addressesOf(named.flatMap(({ descriptors }) => descriptors.slice(0, 1)));
		this.#listenersByCanonicalKey = Map.groupBy(listeners, ({ key, descriptors }) => {
			const boundAddress = boundAddresses.get(descriptors[0]!);
			return canonicalKey(boundAddress === undefined ? key : `${networkOf(key)}/${boundAddress}`);
		});
	}

	/**
	 * Resolves host names among the addresses of the new configuration, so that {@link findDeferred} finds the sockets for
	 * `127.0.0.1` if the predecessor's address was `localhost`, and the reverse. A name that cannot be resolved is omitted: binding it
	 * will fail. Names whose address cannot matter are not looked up, because a name server that does not answer would delay the
	 * handover.
	 */
	async resolveNames(addresses: readonly ListenerAddress[]): Promise<void> {
		const ports = new Set([...this.#listenersByKey.values()].map(({ port }) => port));
		const names = addresses.flatMap(({ key, port }) =>
			ports.has(port) && !this.#listenersByKey.has(key) ? (hostNameOf(key) ?? []) : [],
		);
		await Promise.all(
			[...new Set(names)].map(async name => {
				const address = await this.#addressOfName(name);
				if (address !== undefined) this.#addressByName.set(name, address);
			}),
		);
	}

	/** Returns the keys of the inherited listeners that the new configuration does not use, given the keys that it uses. */
	unusedKeys(keys: ReadonlySet<string>): string[] {
		const usedKeys = new Set(this.#inheritedKeys.values());
		return [
			...[...this.#listenersByKey.keys()].filter(key => !usedKeys.has(key)),
			...[...this.#heldByKey.keys()].filter(key => !keys.has(key)),
		];
	}

	/** Returns the key with which a listener's sockets were inherited; the same key if they were not. */
	inheritedKeyOf(key: string): string {
		return this.#inheritedKeys.get(key) ?? key;
	}

	/**
	 * If the address's sockets are inherited, or an inherited listener has the same port and would conflict with it, returns the
	 * address, marked so that threads do not use it before this process takes over. Otherwise returns undefined.
	 */
	findDeferred(address: ListenerAddress): ListenerAddress | undefined {
		const inheritedListener = this.#findListener(address.key);
		if (inheritedListener) {
			this.#inheritedKeys.set(address.key, inheritedListener.key);
			const { port, descriptors: inherited, datagrams } = inheritedListener;
			return { ...address, port, inherited, ...(datagrams && { datagrams }), deferred: true };
		}
		const { port } = address;
		for (const listener of this.#listenersByKey.values())
			if (listener.port === port) return { ...address, deferred: true };
		return undefined;
	}

	/** Returns the listener with this key; otherwise, one for the same address. Omits those whose sockets another key uses already. */
	#findListener(key: string): BequeathedListener | undefined {
		const usedKeys = new Set<string>();
		for (const [otherKey, inheritedKey] of this.#inheritedKeys) if (otherKey !== key) usedKeys.add(inheritedKey);
		const address = this.#addressByName.get(hostNameOf(key) ?? '');
		const sameAddress = this.#listenersByCanonicalKey.get(canonicalKey(key, address)) ?? [];
		// A process that is started by the service manager does not serve host names with passed sockets, so no successor does.
		const usable = address === undefined ? sameAddress : sameAddress.filter(one => !this.#passedKeys.has(one.key));
		return [this.#listenersByKey.get(key), ...usable].find(
			listener => listener !== undefined && !usedKeys.has(listener.key),
		);
	}

	/** Returns the inherited socket with this listener key, among those that the main thread holds. */
	findHeld(key: string): BequeathedSocket | undefined {
		return this.#heldByKey.get(key);
	}

	/** Returns the inherited sockets that the new configuration does not use, given the keys that it uses. */
	findAbandoned(keys: ReadonlySet<string>): BequeathedSocket[] {
		return [...this.#heldByKey.values()].filter(socket => !keys.has(socket.key));
	}

	/** Closes the inherited descriptors of TCP and UDP sockets. The threads have duplicates of the sockets that they serve. */
	close(): void {
		for (const { descriptors, datagrams = [] } of this.#listenersByKey.values()) {
			for (const descriptor of descriptors) closeSync(descriptor);
			for (const datagramSocket of datagrams)
				for (const descriptor of descriptorsOf(datagramSocket)) closeSync(descriptor);
		}
	}
}

/** Addresses in fe80::/10. */
const LINK_LOCAL = /^fe[89ab][0-9a-f]:/i;

/** The key of a TCP listener: its network, host and port. */
const TCP_KEY = /^(tcp6?)\/(.*):(\d+)$/;

const networkOf = (key: string): string => key.slice(0, key.indexOf('/'));

/** Returns the host name in the key of a TCP listener; undefined if it has an IP address or none. */
function hostNameOf(key: string): string | undefined {
	const host = TCP_KEY.exec(key)?.[2];
	return host === undefined || host === '' || host.startsWith('[') || isIP(host) !== 0 ? undefined : host;
}

/** Looks up the address to which Node binds for a host name: the first that is not link-local, if there is one. */
async function lookUp(name: string): Promise<string | undefined> {
	const results = await lookup(name, { all: true }).catch(() => []);
	const result = results.find(({ address }) => !LINK_LOCAL.test(address)) ?? results[0];
	return result?.family === 6 ? `[${result.address}]` : result?.address;
}

/**
 * Returns the key that stands for all ways to write an address: `tcp/[::]:80` for `tcp/:80`.
 * @param address Replaces the key's host; without it, a host name is not resolved.
 */
function canonicalKey(key: string, address?: string): string {
	const [, network, ownHost, port] = TCP_KEY.exec(key) ?? [];
	if (ownHost === undefined) return key;
	const host = address ?? ownHost;
	const ip = host.startsWith('[') ? parseIp(host.slice(1, -1)) : undefined;
	const canonicalHost = ip ? `[${formatIp(ip)}]` : host.toLowerCase() || '[::]';
	return `${network}/${canonicalHost}:${port}`;
}

/**
 * Returns the addresses for one of `threadCount` threads, with its share of the inherited sockets. Every socket is assigned to a
 * thread. If there are more sockets than threads, a thread gets several; if there are fewer, threads share a TCP socket. For UDP
 * sockets, see `withBranches`.
 */
export function addressesForThread(
	listeners: readonly ListenerAddress[],
	threadIndex: number,
	threadCount: number,
): ListenerAddress[] {
	const shareOf = <T>(sockets: readonly T[]): T[] => sockets.filter((_, at) => at % threadCount === threadIndex);
	return listeners.map(listener => {
		const { inherited: inheritedSockets, datagrams } = listener;
		if (inheritedSockets === undefined || inheritedSockets.length === 0) return listener;
		const ownSockets = shareOf(inheritedSockets);
		return {
			...listener,
			inherited: ownSockets.length > 0 ? ownSockets : [inheritedSockets[threadIndex % inheritedSockets.length]!],
			...(datagrams && { datagrams: shareOf(datagrams) }),
		};
	});
}

/** Returns an address without the properties that apply only during a handover, for use in later loads. */
export function withoutHandoverParts({
	inherited: _,
	datagrams: __,
	deferred: ___,
	...address
}: ListenerAddress): ListenerAddress {
	return address;
}
