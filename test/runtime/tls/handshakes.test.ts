/** Handshakes without a full server: ticket keys, choice of certificate by key type, and rate limits. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HANDSHAKE_SLOT_COUNT, HandshakeRate } from '../../../runtime/tls/handshake-rate.ts';
import { TicketKeys } from '../../../runtime/tls/ticket-keys.ts';
import { TestAuthority } from '../../certificates.ts';
import { until } from '../../harness.ts';
import { startTlsListener } from './one-listener.ts';
import { tlsFailure, tlsGet } from './tls-client.ts';

const authority = await TestAuthority.make();
const publishCertificate = async (id: string, names: readonly string[], rsa = false) => {
	const { certificate, key } = await authority.issue({ names, rsa });
	return { id, names, chain: certificate, key };
};

const handshakes = suite('handshakes');

handshakes(
	'a session resumed after a key rotation gets a ticket under the new key and survives the next rotation',
	async () => {
		for (const stapled of [false, true]) {
			const keys = new TicketKeys();
			const answer = stapled ? { ocsp: new Uint8Array([48, 3, 10, 1, 6]) } : {};
			const one = await startTlsListener({}, [{ ...(await publishCertificate('one', ['a.test'])), ...answer }]);
			try {
				one.tls.applyUpdate({ kind: 'tickets', keys: keys.current });
				for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
					const options = { servername: 'a.test', maxVersion };
					let { session } = await tlsGet(one.port, options);
					for (let change = 0; change < 4; change++) {
						one.tls.applyUpdate({ kind: 'tickets', keys: keys.rotate() });
						const resumed = await tlsGet(one.port, { ...options, session: session! });
						assert.ok(resumed.reused, `${maxVersion}, change ${change + 1}`);
						assert.ok(resumed.session, `${maxVersion}: a ticket under the new key`);
						session = resumed.session;
					}
				}
			} finally {
				one.close();
			}
		}
	},
);

handshakes('one rotation of ticket keys ends no session on any thread; the second one does', async () => {
	const certificates = [await publishCertificate('one', ['a.test'])];
	const threads = [await startTlsListener({}, certificates), await startTlsListener({}, certificates)];
	const keys = new TicketKeys();
	const tell = (now: readonly Uint8Array[]) => {
		for (const { tls } of threads) tls.applyUpdate({ kind: 'tickets', keys: now });
	};
	tell(keys.current);
	for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
		const get = (thread: number, session?: Buffer) =>
			tlsGet(threads[thread]!.port, { servername: 'a.test', maxVersion, ...(session ? { session } : {}) });
		const { session: before } = await get(0);
		assert.ok((await get(1, before)).reused, `${maxVersion} before`);
		tell(keys.rotate());
		for (let tries = 0; tries < 10; tries++) assert.ok((await get(tries % 2, before)).reused, `${maxVersion} after`);
		// A client without a ticket gets one that is sealed with the new key.
		const { session: after } = await get(0);
		tell(keys.rotate());
		assert.ok((await get(1, after)).reused, `${maxVersion}, sealed after the first change`);
		assert.not((await get(0, before)).reused, `${maxVersion} after two changes`);
	}
	for (const thread of threads) thread.close();
});

handshakes('of two certificates for a name, a client gets one that it can verify', async () => {
	const certificates = [
		await publishCertificate('file /rsa', ['both.test', '*.both.test'], true),
		await publishCertificate('file /curve', ['both.test', '*.both.test']),
	];
	const chosen = { policies: [{}, { certificates: certificates.map(({ id }) => id) }], names: { 'x.both.test': 1 } };
	const listener = await startTlsListener(chosen, certificates);
	const kind = async (servername: string, more: object) => {
		const { cipher, sigalgs } = more as { cipher?: string; sigalgs?: string };
		const { keyKind } = await tlsGet(listener.port, {
			servername,
			...(cipher ? { ciphers: cipher, maxVersion: 'TLSv1.2' } : {}),
			...(sigalgs ? { sigalgs } : {}),
		});
		return keyKind;
	};
	for (const name of ['both.test', 'any.both.test', 'x.both.test']) {
		assert.is(await kind(name, {}), 'ec', name);
		assert.is(await kind(name, { sigalgs: 'rsa_pss_rsae_sha256:RSA+SHA256' }), 'rsa', name);
		assert.is(await kind(name, { cipher: 'ECDHE-RSA-AES128-GCM-SHA256' }), 'rsa', name);
		assert.is(await kind(name, { cipher: 'ECDHE-ECDSA-AES128-GCM-SHA256' }), 'ec', name);
	}
	// After one of two certificates for a name is removed, the other one is used.
	listener.tls.applyUpdate({ kind: 'certificates', set: [], dropped: ['file /curve'] });
	assert.is(await kind('both.test', {}), 'rsa');
	assert.is(await kind('x.both.test', {}), 'rsa');
	listener.close();
});

handshakes('handshakes beyond the limit of a client per second are closed and counted', async () => {
	const listener = await startTlsListener({}, [await publishCertificate('one', ['a.test'])]);
	/** A rate limiter whose clock stands still, so that all handshakes count in the same second. */
	class FrozenRate extends HandshakeRate {
		override admits(address: string): boolean {
			return super.admits(address, 5000);
		}
	}
	const rate = new FrozenRate(new SharedArrayBuffer(4 * HANDSHAKE_SLOT_COUNT));
	rate.configure({ handshakes_per_client: 3 });
	listener.server.limitHandshakes(rate);
	const outcomes: boolean[] = [];
	for (let tries = 0; tries < 5; tries++) {
		outcomes.push((await tlsFailure(listener.port, { servername: 'a.test' })).startsWith('answered'));
	}
	assert.equal(outcomes, [true, true, true, false, false]);
	assert.equal(listener.failures, ['rate_limited', 'rate_limited']);
	listener.close();
});

handshakes('rates are counted per client and per listener, across all threads', () => {
	const memory = new SharedArrayBuffer(4 * HANDSHAKE_SLOT_COUNT);
	const threads = [new HandshakeRate(memory), new HandshakeRate(memory)];
	const admitted = (addresses: readonly string[], now: number) =>
		addresses.filter((address, at) => threads[at % 2]!.admits(address, now)).length;
	const times = (address: string, count: number) => Array.from({ length: count }, () => address);
	// By default, a client may make a thousand handshakes per second, and loopback addresses have no limit.
	assert.is(admitted(times('192.0.2.1', 1200), 5000), 1000);
	assert.is(admitted(times('127.0.0.1', 1200), 5000), 1200);
	assert.is(admitted(times('192.0.2.1', 1200), 6000), 1000);
	for (const thread of threads) thread.configure({ handshakes_per_client: 2, handshakes: 5 });
	assert.is(admitted(times('127.0.0.1', 10), 7000), 2);
	assert.is(admitted(['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5', '192.0.2.6'], 8000), 5);
	// Rejected handshakes of one client do not count against the others.
	assert.is(admitted([...times('192.0.2.1', 20), '192.0.2.2', '192.0.2.3'], 11_000), 4);
	// All addresses of an IPv6 /64 count as one client.
	assert.is(admitted(['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8:0:1::1'], 9000), 3);
	for (const thread of threads) thread.configure({ handshakes_per_client: 0 });
	assert.is(admitted(times('192.0.2.1', 5000), 10_000), 5000);
});

handshakes('a handshake past its deadline is closed', async () => {
	const listener = await startTlsListener({}, [await publishCertificate('one', ['a.test'])]);
	listener.server.limitHandshakes(undefined, 100);
	const startedAt = performance.now();
	const socket = connect(listener.port, '127.0.0.1', () => socket.write(Buffer.from([22, 3, 1])));
	await new Promise(resolve => socket.on('close', resolve));
	assert.ok(performance.now() - startedAt < 8000);
	assert.equal(listener.failures, ['timeout']);
	listener.close();
});

handshakes('what a handshake creates with settings that a reload has replaced is freed', async () => {
	const listener = await startTlsListener({}, [await publishCertificate('one', ['a.test'])]);
	const { server } = listener;
	const raw = connect(listener.port, '127.0.0.1');
	await until('the connection is accepted', () => server.connections === 1);
	const { handshakers } = server.selector;
	const settings = { policies: [{}], names: {}, other: 0, strict_sni_host: false, default_sni: 'a.test' };
	server.configure(JSON.stringify(settings));
	const client = connectTls({ socket: raw, servername: 'a.test', rejectUnauthorized: false });
	await once(client, 'secureConnect');
	await until('the handshaker is freed', () => handshakers.size === 0);
	client.destroy();
	listener.close();
});

handshakes('a client that disconnects during its handshake is released at once', async () => {
	const listener = await startTlsListener({}, [await publishCertificate('one', ['a.test'])]);
	for (let tries = 0; tries < 10; tries++) {
		await new Promise<void>((resolve, reject) => {
			// The client closes the connection before it sends its last flight. The server sees a half-open connection that stays
			// silent.
			const options = { port: listener.port, host: '127.0.0.1', servername: 'a.test', rejectUnauthorized: false };
			const socket = connectTls(options, () => resolve(void socket.destroy()));
			socket.on('error', reject);
		});
	}
	await until('all connections are closed', () => listener.server.connections === 0);
	listener.close();
});

handshakes.run();
