/** Packets are counted by client: an IPv4 address, mapped or not, or the /64 prefix of an IPv6 address. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ClientShares, COUNT_PERIOD_MS } from '../../../../runtime/sockets/quic/client-shares.ts';
import { writeSocketAddress } from '../../../../runtime/sockets/socket-address.ts';

const test = suite('shares of clients');

const address = (text: string, port = 1): Buffer => Buffer.concat([writeSocketAddress(text, port)!, Buffer.alloc(12)]);

test('ports and the last 64 bits of IPv6 addresses do not matter, everything else does', () => {
	for (const [own, same, others] of [
		['192.0.2.1', ['192.0.2.1', '::ffff:192.0.2.1'], ['192.0.2.2', '193.0.2.1']],
		[
			'2001:db8:1:2::1',
			['2001:db8:1:2::2', '2001:db8:1:2:ffff:ffff:ffff:ffff'],
			['2001:db8:1:3::1', '2001:db9:1:2::1'],
		],
	] as const) {
		// Two clients may share a counter by chance, but not with each of several seeds.
		const distinct = new Set<string>();
		for (let round = 0; round < 8; round++) {
			const shares = new ClientShares();
			assert.is(shares.countPacket(address(own), 0, 0), 1);
			assert.is(shares.countPacket(address(own, 2), 0, 1), 2);
			for (const [i, one] of same.entries()) assert.is(shares.countPacket(address(one), 0, 2), 3 + i, one);
			for (const one of others) if (shares.countPacket(address(one), 0, 3) === 1) distinct.add(one);
		}
		assert.is(distinct.size, others.length);
	}
});

test('a window ends, and a count does not overflow', () => {
	const shares = new ClientShares();
	for (let i = 0; i < 70_000; i++) shares.countPacket(address('192.0.2.1'), 0, 0);
	assert.is(shares.countPacket(address('192.0.2.1'), 0, COUNT_PERIOD_MS - 1), 65_535);
	assert.is(shares.countPacket(address('192.0.2.1'), 0, COUNT_PERIOD_MS), 1);
});

test('many clients are told apart', () => {
	const shares = new ClientShares();
	let crowded = 0;
	for (let i = 0; i < 2000; i++) {
		if (shares.countPacket(address(`10.0.${i >> 8}.${i & 255}`), 0, 0) > 3) crowded++;
	}
	assert.ok(crowded < 40, `${crowded}`);
});

test.run();
