/**
 * Determines the addresses of inherited listening sockets. Node reports an address only for a socket on which it accepts
 * connections.
 */
import { fstatSync, readFileSync } from 'node:fs';

/** State of a listening TCP socket in /proc/net/tcp. */
const LISTEN_STATE = '0A';

/**
 * Returns the addresses of listening sockets by descriptor: `127.0.0.1:80`, `[::]:80` or the path of a Unix socket. Omits
 * descriptors that are not listening sockets. Without /proc, the result is empty.
 */
export function socketAddresses(descriptors: readonly number[]): ReadonlyMap<number, string> {
	const addresses = new Map<number, string>();
	if (descriptors.length === 0) return addresses;
	const addressByInode = listeningAddresses();
	for (const descriptor of descriptors) {
		try {
			const address = addressByInode.get(String(fstatSync(descriptor).ino));
			if (address !== undefined) addresses.set(descriptor, address);
		} catch {
			// A descriptor that is not open has no address, so it is omitted.
		}
	}
	return addresses;
}

/**
 * Returns the addresses of all listening sockets by inode, as {@link socketAddresses} writes them, including those of other processes.
 */
export function listeningAddresses(): ReadonlyMap<string, string> {
	const addressByInode = new Map<string, string>();
	for (const family of ['tcp', 'tcp6']) {
		for (const [, localAddress, , state, , , , , , inode] of readProcRows(family)) {
			if (state === LISTEN_STATE && inode !== undefined) addressByInode.set(inode, tcpAddress(localAddress!));
		}
	}
	for (const [, , , , , , inode, ...path] of readProcRows('unix')) {
		if (inode !== undefined && path.length > 0) addressByInode.set(inode, path.join(' '));
	}
	return addressByInode;
}

function readProcRows(file: string): string[][] {
	try {
		const lines = readFileSync(`/proc/self/net/${file}`, 'utf8').split('\n');
		return lines.slice(1).map(line => line.trim().split(/\s+/));
	} catch {
		return [];
	}
}

/**
 * Converts an address from /proc/net/tcp, such as `0100007F:0050`. Its 32-bit words are in the machine's byte order, which is
 * little-endian wherever the server runs.
 */
function tcpAddress(text: string): string {
	const [address = '', port = ''] = text.split(':');
	const bytes = Buffer.from(address, 'hex').swap32();
	const portNumber = Number.parseInt(port, 16);
	if (bytes.length === 4) return `${bytes.join('.')}:${portNumber}`;
	const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2).toString(16));
	// The URL parser is used because it writes an IPv6 address in its shortest form.
	return `${new URL(`http://[${groups.join(':')}]`).hostname}:${portNumber}`;
}
