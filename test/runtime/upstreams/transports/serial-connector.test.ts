/** What becomes of calls that wait for one of as many connections as there may be. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UpstreamError } from '../../../../compiler/exchange/leases.ts';
import type { ClientCall, ConnectionKeeper, KeptConnection } from '../../../../runtime/protocols/http1/client-call.ts';
import type { DialOwner } from '../../../../runtime/sockets/dialer.ts';
import type { UpstreamSocket } from '../../../../runtime/sockets/upstream-socket.ts';
import { NO_CARRIER } from '../../../../runtime/upstreams/transports/connector.ts';
import { SerialConnector } from '../../../../runtime/upstreams/transports/serial-connector.ts';

const links = suite('connections that carry one call at a time');

/** A link to an upstream of which the test says when and how dialing ends. */
function setUp(maxConnections: number) {
	const dials: DialOwner[] = [];
	const told: string[] = [];
	const connections: { keeper: ConnectionKeeper; connection: KeptConnection }[] = [];
	const dialer = {
		dial(owner: DialOwner) {
			dials.push(owner);
			return { abandon: () => void told.push('abandoned') };
		},
	};
	const open = (_wire: UpstreamSocket, keeper: ConnectionKeeper): KeptConnection => {
		const connection: KeptConnection = {
			idleSince: 0,
			usable: true,
			send: call => void told.push(`sent ${(call as unknown as { name: string }).name}`),
			destroy() {},
			cancel() {},
		};
		connections.push({ keeper, connection });
		return connection;
	};
	const link = new SerialConnector(dialer, {
		open,
		limits: { timeout: 1000, count: 10 },
		maxConnections,
		onIdle: () => true,
	});
	const call = (name: string): ClientCall => {
		const made = {
			...{ name, request: undefined as never, carrier: NO_CARRIER, connectTime: -1 },
			...{ informed() {}, answered() {}, released() {} },
			failed: (error: UpstreamError) => void told.push(`${name} failed: ${error.message}`),
		};
		link.send(made, false);
		return made;
	};
	return { dials, told, connections, call };
}

const TIMEOUT = new UpstreamError('timeout', 'connecting timed out', undefined, true);

links('waiting requests share the failure of the last connection attempt, instead of one timeout each', () => {
	const { dials, told, call } = setUp(2);
	for (const name of ['a', 'b', 'c', 'd', 'e']) call(name);
	assert.is(dials.length, 2);
	dials[0]!.dialFailed(TIMEOUT);
	assert.equal(told, ['a failed: connecting timed out'], 'the other may come about');
	dials[1]!.dialFailed(TIMEOUT);
	assert.is(dials.length, 2, 'nobody dials for those that waited');
	assert.equal(
		told.sort(),
		[...'abcde'].map(name => `${name} failed: connecting timed out`),
	);
	call('f');
	assert.is(dials.length, 3, 'who comes later finds out anew');
});

links('if one connection exists, requests wait for it and for others', () => {
	const { dials, told, connections, call } = setUp(2);
	for (const name of ['a', 'b', 'c', 'd']) call(name);
	dials[0]!.dialed(undefined as unknown as UpstreamSocket);
	dials[1]!.dialFailed(TIMEOUT);
	assert.equal(told, ['sent a', 'b failed: connecting timed out']);
	assert.is(dials.length, 3, 'one is dialed for c');
	const [first] = connections;
	first!.keeper.connectionIdle(first!.connection);
	assert.is(told.at(-1), 'sent d');
});

links('a request canceled while waiting for its connection gives its slot to the next', () => {
	const { dials, told, call } = setUp(1);
	const first = call('a');
	call('b');
	first.carrier.cancel(first);
	assert.ok(told.includes('abandoned'));
	assert.is(dials.length, 2);
	dials[1]!.dialed(undefined as unknown as UpstreamSocket);
	assert.is(told.at(-1), 'sent b');
});

links.run();
