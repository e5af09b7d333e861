/** The listening sockets that a process hands over to its successor; see runtime/main/handover. */

/**
 * A UDP socket that a process hands over, and the channels through which the successor passes on the packets of connections that
 * stay with earlier processes.
 */
export interface BequeathedDatagrams {
	readonly descriptor: number;
	/** Channel to the process that hands over the socket; undefined if that process has no connections left. */
	readonly relay?: number | undefined;
	/** Channels to even earlier processes (from previous handovers) that still have connections on this socket. */
	readonly older?: readonly number[] | undefined;
}

/** Returns the descriptors of a UDP socket and of all its channels. */
export function descriptorsOf(datagrams: BequeathedDatagrams): number[] {
	return [datagrams.descriptor, ...channelsOf(datagrams)];
}

/** Returns the descriptors of all channels of a UDP socket. */
export function channelsOf({ relay, older = [] }: BequeathedDatagrams): number[] {
	return [...(relay === undefined ? [] : [relay]), ...older];
}

/** A UDP socket for one thread of the successor, and the channels that it uses. */
export interface InheritedDatagrams extends BequeathedDatagrams {
	/**
	 * Channels to threads that have no UDP socket of their own. This thread passes each of them the packets of its share of the
	 * connections.
	 */
	readonly branches?: readonly number[] | undefined;
	/**
	 * Only for a thread without a UDP socket of its own: the channel to the thread that reads the socket and passes packets to this
	 * thread.
	 */
	readonly trunk?: number | undefined;
}

/** A TCP listener and all its sockets. The process that bound them has one socket for each thread. */
export interface BequeathedListener {
	/** The key of the listener, such as `tcp/127.0.0.1:8080`; see `PlannedSocket.key`. */
	readonly key: string;
	readonly port: number;
	readonly descriptors: readonly number[];
	/** The UDP sockets of a listener that speaks HTTP/3. The process that bound them has one socket for each thread. */
	readonly datagrams?: readonly BequeathedDatagrams[] | undefined;
}

/** A socket that the main thread keeps open for the worker threads, such as a Unix socket. */
export interface BequeathedSocket {
	/** The key of the listener, such as `unix//run/svc.sock` or `fd/3`. */
	readonly key: string;
	readonly descriptor: number;
	/** The file of a Unix socket. `inode` is a decimal string, because a JSON number may lose precision. */
	readonly file?: { readonly path: string; readonly inode: string; readonly mode: number };
}

/** A socket that a service manager passed to the first process, before any handover. */
export interface BequeathedPassedSocket {
	/** The number by which configurations refer to the socket. */
	readonly number: number;
	readonly name: string;
	readonly descriptor: number;
}

/** All sockets that a server hands over. */
export interface BequeathedSockets {
	readonly listeners: readonly BequeathedListener[];
	readonly held: readonly BequeathedSocket[];
	readonly passed: readonly BequeathedPassedSocket[];
}
