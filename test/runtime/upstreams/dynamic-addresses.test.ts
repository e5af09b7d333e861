/** Dynamic upstream addresses, looked up at a name server that the test runs. */
import { createSocket, type Socket } from 'node:dgram';
import { AUTHORITATIVE_ANSWER, decode, encode, RECURSION_AVAILABLE } from 'dns-packet';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { DynamicSource } from '../../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { DynamicAddresses } from '../../../runtime/upstreams/dynamic/dynamic-addresses.ts';
import { createUpstreamPool } from '../../../runtime/upstreams/upstream-pool.ts';
import { waitForClock } from '../../harness.ts';
import { eventually } from '../running-server.ts';
import { fakeClientExchange } from './scripted-upstream.ts';

const test = suite('dynamic addresses');

interface NameServer {
	readonly address: string;
	asked: number;
	/** DNS records by `TYPE name`. If undefined, the name server does not respond. */
	records: { [question: string]: readonly (string | { target: string; port: number })[] } | undefined;
}

const sockets: Socket[] = [];

test.after.each(() => {
	for (const socket of sockets.splice(0)) socket.close();
});

async function nameServer(records: NameServer['records']): Promise<NameServer> {
	const socket = createSocket('udp4');
	sockets.push(socket);
	await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve));
	const server: NameServer = { address: `127.0.0.1:${socket.address().port}`, asked: 0, records };
	socket.on('message', (bytes, from) => {
		const query = decode(bytes);
		const question = query.questions![0]!;
		server.asked++;
		if (!server.records) return;
		const found = server.records[`${question.type} ${question.name}`];
		const answers = (found ?? []).map(data => ({
			type: question.type as 'A',
			name: question.name,
			ttl: 1,
			data: (typeof data === 'string' ? data : { ...data, priority: 1, weight: 1 }) as string,
		}));
		socket.send(
			encode({
				type: 'response',
				id: query.id ?? 0,
				flags: RECURSION_AVAILABLE | AUTHORITATIVE_ANSWER | (found ? 0 : 3),
				questions: [question],
				answers,
			}),
			from.port,
			from.address,
		);
	});
	return server;
}

test('A and AAAA records are combined with a port and sorted, and looked up only once while fresh', async () => {
	const server = await nameServer({ 'A app.test': ['10.0.0.2', '10.0.0.1'], 'AAAA app.test': ['2001:db8::1'] });
	const addresses = new DynamicAddresses({ source: 'a', name: 'app.test', resolvers: [server.address] });
	const found = addresses.lookUp(['app.test 8080']);
	assert.instance(found, Promise);
	const list = await found;
	assert.equal(list, ['10.0.0.1:8080', '10.0.0.2:8080', '[2001:db8::1]:8080']);
	assert.is(addresses.lookUp(['app.test 8080']), list);
	assert.is(server.asked, 2);
	const four = new DynamicAddresses({ source: 'a', name: 'app.test', resolvers: [server.address], versions: ['ipv4'] });
	assert.equal(await four.lookUp(['app.test 80']), ['10.0.0.1:80', '10.0.0.2:80']);
});

test('SRV records are looked up, and several sources are merged into one list', async () => {
	const server = await nameServer({
		'SRV _http._tcp.app.test': [
			{ target: 'b.test', port: 2 },
			{ target: 'a.test', port: 1 },
		],
		'A app.test': ['10.0.0.1'],
		'AAAA app.test': [],
	});
	const resolvers = [server.address];
	const source: DynamicSource = {
		source: 'multi',
		sources: [
			{ source: 'srv', name: 'app.test', service: 'http', proto: 'tcp', resolvers },
			{ source: 'a', name: 'app.test', resolvers },
		],
	};
	const addresses = new DynamicAddresses(source);
	assert.equal(await addresses.lookUp(['_http._tcp.app.test', 'app.test 80']), ['a.test:1', 'b.test:2', '10.0.0.1:80']);
	assert.is(await addresses.lookUp(['_none._tcp.app.test', 'none.test 80']), undefined);
});

test('stale addresses are used while new ones are looked up, and then the new ones', async () => {
	const server = await nameServer({ 'A app.test': ['10.0.0.1'], 'AAAA app.test': [] });
	const addresses = new DynamicAddresses({ source: 'a', name: 'app.test', refresh: 60, resolvers: [server.address] });
	const names = ['app.test 80'];
	assert.equal(await addresses.lookUp(names), ['10.0.0.1:80']);
	server.records = { 'A app.test': ['10.0.0.9'], 'AAAA app.test': [] };
	await waitForClock(70);
	// In the second interval, a request gets the known addresses at once, and a lookup runs in the background.
	assert.equal(addresses.lookUp(names), ['10.0.0.1:80']);
	await eventually('the new address is known', () => {
		const found = addresses.lookUp(names);
		return !(found instanceof Promise) && found?.[0] === '10.0.0.9:80';
	});
});

test('changes are reported with all known addresses, the latest names first', async () => {
	const server = await nameServer({ 'A a.test': ['10.0.0.1'], 'A b.test': ['10.0.0.2'] });
	const reports: (readonly string[])[] = [];
	const source = { source: 'a', name: '', refresh: 0, versions: ['ipv4'], resolvers: [server.address] } as const;
	const addresses = new DynamicAddresses(source, found => reports.push(found));
	await addresses.lookUp(['a.test 80']);
	await addresses.lookUp(['b.test 80']);
	await addresses.lookUp(['b.test 80']);
	await addresses.lookUp(['none.test 80']);
	server.records = { 'A b.test': ['10.0.0.2'] };
	await addresses.lookUp(['a.test 80']);
	assert.equal(reports, [['10.0.0.1:80'], ['10.0.0.2:80', '10.0.0.1:80'], ['10.0.0.2:80']]);
});

test('if lookups fail, known addresses are used for the grace period, and then the configured ones', async () => {
	const server = await nameServer({ 'SRV s.test': [{ target: 'a.test', port: 1 }] });
	const source = {
		source: 'srv',
		name: 's.test',
		refresh: 50,
		grace_period: 200,
		resolvers: [server.address],
	} as const;
	const addresses = new DynamicAddresses(source);
	assert.equal(await addresses.lookUp(['s.test']), ['a.test:1']);
	server.records = {};
	await waitForClock(110);
	assert.equal(await addresses.lookUp(['s.test']), ['a.test:1']);
	await eventually('the known addresses are dropped', async () => (await addresses.lookUp(['s.test'])) === undefined);
	server.records = { 'SRV s.test': [{ target: 'b.test', port: 1 }] };
	await eventually('new addresses are used', async () => (await addresses.lookUp(['s.test']))?.[0] === 'b.test:1');
});

test('an unresponsive name server delays requests by one timeout in total, not one each', async () => {
	const server = await nameServer(undefined);
	const addresses = new DynamicAddresses({
		source: 'a',
		name: 'x.test',
		dial_timeout: 50,
		resolvers: [server.address],
	});
	const all = await Promise.all(Array.from({ length: 20 }, () => addresses.lookUp(['x.test 80'])));
	assert.ok(all.every(found => found === undefined));
	// The lookups share their queries. If each lookup had its own timeout, each would also send its own queries.
	assert.ok(server.asked <= 8, `${server.asked}`);
	const { asked } = server;
	assert.is(await addresses.lookUp(['x.test 80']), undefined);
	assert.is(server.asked, asked);
});

test('a pool keeps its upstreams and their counts if a lookup finds the same addresses', async () => {
	const server = await nameServer({ 'A app.test': ['127.0.0.1', '127.0.0.2'], 'AAAA app.test': [] });
	const dynamic = { source: 'a', name: 'app.test', refresh: 30, resolvers: [server.address] } as const;
	const pool = createUpstreamPool({ to: ['10.9.9.9:1'], dynamic, balance: { policy: 'first' } });
	const found = await pool.lookUp!(['app.test 80']);
	const first = pool.select(fakeClientExchange(), undefined, found)!;
	assert.is(first.address, '127.0.0.1:80');
	await waitForClock(40);
	await pool.lookUp!(['app.test 80']);
	await waitForClock(40);
	assert.is(pool.select(fakeClientExchange(), undefined, await pool.lookUp!(['app.test 80'])), first);
	assert.is(pool.select(fakeClientExchange())!.address, '10.9.9.9:1');
	pool.close();
});

test.run();
