/** Certificates replace one another, each after a handshake. Replaced certificates must not stay in memory. */
import { connect } from 'node:tls';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TestAuthority } from '../certificates.ts';
import { startTlsListener } from '../runtime/tls/one-listener.ts';

const ROUNDS = 1500;
/** Permitted growth of resident memory in bytes. A TLS context takes about 60 KB. */
const MAX_GROWTH_BYTES = 24 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const replaced = suite('replaced certificates');

function handshake(port: number): Promise<string> {
	return new Promise((resolve, reject) => {
		const socket = connect({ port, host: '127.0.0.1', servername: 'a.test', rejectUnauthorized: false }, () => {
			const { fingerprint256 } = socket.getPeerX509Certificate()!;
			socket.destroy();
			resolve(fingerprint256);
		});
		socket.on('error', reject);
	});
}

replaced('leave no memory behind', async () => {
	const authority = await TestAuthority.make();
	const pairs = await Promise.all([1, 2, 3].map(() => authority.issue({ names: ['a.test'] })));
	const listener = await startTlsListener({}, []);
	const round = async (at: number): Promise<string> => {
		const { certificate, key } = pairs[at % pairs.length]!;
		const set = [{ id: 'one', names: ['a.test'], chain: certificate, key }];
		listener.tls.applyUpdate({ kind: 'certificates', set, dropped: [] });
		return handshake(listener.port);
	};
	const resident = async (): Promise<number> => {
		for (let turn = 0; turn < 4; turn++) {
			collectGarbage();
			await new Promise(resolve => setTimeout(resolve, 50));
		}
		return process.memoryUsage.rss();
	};
	const seen = new Set<string>();
	// Warms up until the C library's heap has reached its final size.
	for (let at = 0; at < 1200; at++) seen.add(await round(at));
	assert.is(seen.size, pairs.length);
	const before = await resident();
	for (let at = 0; at < ROUNDS; at++) await round(at);
	const grown = (await resident()) - before;
	console.log(`${ROUNDS} replacements: ${(grown / 1024 / 1024).toFixed(1)} MiB more`);
	listener.close();
	assert.ok(grown < MAX_GROWTH_BYTES, `${grown} bytes`);
});

replaced.run();
