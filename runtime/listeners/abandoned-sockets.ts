/**
 * Listening sockets that a process gives up because its successor does not listen on their addresses. Closing a listening socket
 * resets the connections in its queue and those whose handshake has not ended, so the process first makes sure that there are none.
 */
import { fstatSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { divertConnections } from '../sockets/divert-connections.ts';
import { listeningAddresses } from './socket-addresses.ts';

/**
 * Maximum milliseconds to wait for handshakes. By then, the system has repeated an unanswered SYN-ACK twice, after 1 s and after 3 s.
 */
const HANDSHAKE_LIMIT_MS = 5000;
/** Milliseconds between two looks at the handshakes. */
const CHECK_INTERVAL_MS = 50;

/** A row of /proc/net/tcp: the local and the remote address of a connection in the state SYN_RECV. */
const HANDSHAKE_ROW = /: ([0-9A-F]{8,32}:([0-9A-F]{4}) [0-9A-F]{8,32}:[0-9A-F]{4}) 03 /g;

/**
 * Makes clients that connect from now on reach other sockets than these TCP listening sockets, see {@link divertConnections}.
 *
 * Does nothing for a socket whose address another socket has, too. Such sockets form a group, from which the system first chooses one
 * and does not look for another if that one is restricted to an interface.
 */
export function divertFromAbandoned(descriptors: readonly number[]): void {
	const addressByInode = listeningAddresses();
	const descriptorsByInode = new Map(descriptors.map(descriptor => [String(fstatSync(descriptor).ino), descriptor]));
	const otherAddresses = new Set(
		[...addressByInode].filter(([inode]) => !descriptorsByInode.has(inode)).map(([, address]) => address),
	);
	const divertibleDescriptors = [...descriptorsByInode].flatMap(([inode, descriptor]) => {
		const address = addressByInode.get(inode);
		return address === undefined || otherAddresses.has(address) ? [] : [descriptor];
	});
	divertConnections(divertibleDescriptors);
}

/**
 * Resolves when the handshakes that are in progress on the ports have ended, or after `limitMs`. Without /proc, resolves at once.
 */
export async function whenHandshakesEnd(
	ports: ReadonlySet<number>,
	limitMs: number = HANDSHAKE_LIMIT_MS,
): Promise<void> {
	const end = performance.now() + limitMs;
	let handshakes = await findHandshakes(ports);
	while (handshakes.size > 0 && performance.now() < end) {
		await delay(CHECK_INTERVAL_MS, undefined, { ref: false });
		// Handshakes that have begun meanwhile belong to other sockets on the port.
		handshakes = handshakes.intersection(await findHandshakes(ports));
	}
}

/** Returns the handshakes in progress on the ports, each as the text of its addresses. */
async function findHandshakes(ports: ReadonlySet<number>): Promise<Set<string>> {
	const tables = await Promise.all(
		['tcp', 'tcp6'].map(family => readFile(`/proc/self/net/${family}`, 'latin1').catch(() => '')),
	);
	const handshakes = new Set<string>();
	for (const table of tables)
		for (const [, addresses, port] of table.matchAll(HANDSHAKE_ROW))
			if (ports.has(Number.parseInt(port!, 16))) handshakes.add(addresses!);
	return handshakes;
}
