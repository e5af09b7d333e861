/** Addresses that system calls store in memory are read as text, whether or not they were read before. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readSocketAddress, writeSocketAddress } from '../../../runtime/sockets/socket-address.ts';
import { SocketAddressMemory } from '../../../runtime/sockets/socket-address-memory.ts';

const addresses = suite('addresses of sockets');

/** Stores an address as a system call would: a shorter address leaves the end of the previous one in memory. */
function store(memory: SocketAddressMemory, address: string, port: number): void {
	memory.prepare();
	assert.is(memory.bytes.readUInt32LE(0), 28);
	memory.bytes.set(writeSocketAddress(address, port)!, 4);
}

addresses('an address after another one is its own, also if the two share parts', () => {
	const memory = new SocketAddressMemory();
	const wanted = [
		['127.0.0.1', '127.0.0.1'],
		['::ffff:127.0.0.1', '127.0.0.1'],
		['2001:db8::1', '2001:db8::1'],
		['::1', '::1'],
		['1.0.0.0', '1.0.0.0'],
		['2001:db8:0:1::', '2001:db8:0:1::'],
		['2001:db8:1::', '2001:db8:1::'],
		['::', '::'],
		['0.0.0.0', '0.0.0.0'],
	] as const;
	for (let turn = 0; turn < 3; turn++) {
		for (const [at, [address, text]] of wanted.entries()) {
			store(memory, address, 1000 + at * 256 + turn);
			assert.is(memory.address, text);
			assert.is(memory.address, text);
			assert.is(memory.port, 1000 + at * 256 + turn);
		}
	}
});

addresses('more addresses than are cached have the same texts as without a cache', () => {
	const memory = new SocketAddressMemory();
	for (let turn = 0; turn < 2; turn++) {
		for (let i = 0; i < 2000; i++) {
			const address =
				i % 2 ? `10.${i % 3}.${i >> 8}.${i & 255}` : `2001:db8:${i.toString(16)}::${(i * 7).toString(16)}`;
			store(memory, address, i);
			assert.equal(
				{ address: memory.address, port: memory.port },
				readSocketAddress(writeSocketAddress(address, i)!, 0),
			);
		}
	}
});

addresses.run();
