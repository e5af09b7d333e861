/** Calls that wait for a connection because the number of connections is limited. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UpstreamError } from '../../../../compiler/exchange/leases.ts';
import type { ClientCall, ConnectionKeeper, KeptConnection } from '../../../../runtime/protocols/http1/client-call.ts';
import type { DialOwner } from '../../../../runtime/sockets/dialer.ts';
import type { UpstreamSocket } from '../../../../runtime/sockets/upstream-socket.ts';
import { NO_CARRIER } from '../../../../runtime/upstreams/transports/connector.ts';
import { SerialConnector } from '../../../../runtime/upstreams/transports/serial-connector.ts';

const connectors = suite('connector for one call per connection');

/** Creates a connector. The test determines the results of its dials. */
function createConnector(maxConnections: number) {
	const dials: DialOwner[] = [];
	const events: string[] = [];
	const connections: { keeper: ConnectionKeeper; connection: KeptConnection }[] = [];
	const dialer = {
		dial(owner: DialOwner) {
			dials.push(owner);
			return { abandon: () => void events.push('abandoned') };
		},
	};
	const open = (_wire: UpstreamSocket, keeper: ConnectionKeeper): KeptConnection => {
		const connection: KeptConnection = {
			idleSince: 0,
			usable: true,
			send: call => void events.push(`sent ${(call as unknown as { name: string }).name}`),
			destroy() {},
			cancel() {},
		};
		connections.push({ keeper, connection });
		return connection;
	};
	const link = new SerialConnector(dialer, {
		createConnection: open,
		limits: { timeoutMs: 1000, maxCount: 10 },
		maxConnections,
		onIdle: () => true,
	});
	const call = (name: string): ClientCall => {
		const made = {
			...{ name, request: undefined as never, carrier: NO_CARRIER, connectTime: -1 },
			...{ onInterimResponse() {}, onResponse() {}, onReleased() {} },
			onFailure: (error: UpstreamError) => void events.push(`${name} failed: ${error.message}`),
		};
		link.send(made, false);
		return made;
	};
	return { dials, events, connections, call };
}

const TIMEOUT = new UpstreamError('timeout', 'connecting timed out', undefined, true);

connectors('waiting requests share the failure of the last connection attempt, instead of one timeout each', () => {
	const { dials, events, call } = createConnector(2);
	for (const name of ['a', 'b', 'c', 'd', 'e']) call(name);
	assert.is(dials.length, 2);
	dials[0]!.onDialFailed(TIMEOUT);
	assert.equal(events, ['a failed: connecting timed out'], 'the other requests failed before the last dial did');
	dials[1]!.onDialFailed(TIMEOUT);
	assert.is(dials.length, 2, 'there was a new dial for the requests that had waited');
	assert.equal(
		events.sort(),
		[...'abcde'].map(name => `${name} failed: connecting timed out`),
	);
	call('f');
	assert.is(dials.length, 3, 'a later request did not dial again');
});

connectors('if one connection exists, waiting requests use it or newly dialed ones', () => {
	const { dials, events, connections, call } = createConnector(2);
	for (const name of ['a', 'b', 'c', 'd']) call(name);
	dials[0]!.onDialed(undefined as unknown as UpstreamSocket);
	dials[1]!.onDialFailed(TIMEOUT);
	assert.equal(events, ['sent a', 'b failed: connecting timed out']);
	assert.is(dials.length, 3, 'no connection was dialed for c');
	const [first] = connections;
	first!.keeper.onConnectionIdle(first!.connection);
	assert.is(events.at(-1), 'sent d');
});

connectors('a request canceled while waiting for its connection gives its slot to the next', () => {
	const { dials, events, call } = createConnector(1);
	const first = call('a');
	call('b');
	first.carrier.cancel(first);
	assert.ok(events.includes('abandoned'));
	assert.is(dials.length, 2);
	dials[1]!.onDialed(undefined as unknown as UpstreamSocket);
	assert.is(events.at(-1), 'sent b');
});

connectors.run();
