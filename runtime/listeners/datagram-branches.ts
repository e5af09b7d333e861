/** Channels for threads that get no UDP socket of their own after a handover; see `SocketSharing`. */
import type { InheritedDatagrams } from '../sockets/bequeathed-sockets.ts';
import { createRelayPair } from '../sockets/quic/datagram-relay.ts';
import { quicSupport } from '../sockets/quic/quic-library.ts';
import type { ListenerAddress } from './listener-address.ts';

/**
 * Returns listeners whose inherited UDP sockets are distributed over `threadCount` threads. If there are more threads than
 * sockets, the last threads have no socket, but a channel to a thread that has one. The caller must close the channels'
 * descriptors once all threads have duplicated them. If no descriptors are free for channels, the threads without a socket get no
 * HTTP/3 connections.
 */
export function withBranches(
	listeners: readonly ListenerAddress[],
	threadCount: number,
): { readonly listeners: readonly ListenerAddress[]; readonly channels: readonly number[] } {
	const channels: number[] = [];
	const withSockets = listeners.map(listener => {
		const { datagrams = [] } = listener;
		const { library } = datagrams.length > 0 && datagrams.length < threadCount ? quicSupport() : {};
		if (library === undefined) return listener;
		const branches = datagrams.map((): number[] => []);
		const branchDatagrams: InheritedDatagrams[] = [];
		for (let thread = datagrams.length; thread < threadCount; thread++) {
			const pair = createRelayPair(library);
			if (pair === undefined) break;
			channels.push(...pair);
			const at = thread % datagrams.length;
			branches[at]!.push(pair[0]);
			branchDatagrams.push({ descriptor: datagrams[at]!.descriptor, trunk: pair[1] });
		}
		const trunkDatagrams = datagrams.map((datagramSocket, at) => ({ ...datagramSocket, branches: branches[at]! }));
		return { ...listener, datagrams: [...trunkDatagrams, ...branchDatagrams] };
	});
	return { listeners: withSockets, channels };
}
