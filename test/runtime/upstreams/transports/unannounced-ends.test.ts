/**
 * Responses over TLS whose end is only the end of the connection: an end without `close_notify` may be forged, so that the response
 * is incomplete.
 */
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { type SecureVersion, TLSSocket } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isDirectIo } from '../../../../runtime/sockets/io-mode.ts';
import { temporaryFolder } from '../../../harness.ts';
import { eventually, type TestServer, withServer } from '../../running-server.ts';
import { type TestCertificate, testAuthority } from './certificates.ts';

const test = suite('ends of TLS connections to upstreams');

const trust = path.join(temporaryFolder(), 'root.pem');
let leaf: TestCertificate;

test.before(async () => {
	const authority = await testAuthority();
	leaf = await authority.issue(['127.0.0.1']);
	writeFileSync(trust, authority.cert);
});

/** How the upstream ends a response. `within a record` is an end of the TCP connection in the middle of a TLS record. */
type End = 'close_notify' | 'end of TCP' | 'within a record';

interface Upstream {
	readonly port: number;
	requestCount(): number;
	close(): Promise<void>;
}

/**
 * Starts an upstream whose responses have these fields and end as `end` says. With `hasProxyHeader`, connections begin with a PROXY
 * header, which is skipped.
 */
async function startUpstream(
	fields: string,
	end: End,
	maxVersion: SecureVersion,
	hasProxyHeader = false,
): Promise<Upstream> {
	const sockets = new Set<Socket>();
	let requests = 0;
	const startTls = (connection: Socket): void => {
		const tls = new TLSSocket(connection, { isServer: true, ...leaf, maxVersion });
		tls.on('error', () => {});
		tls.once('data', () => {
			requests++;
			tls.write(`HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n${fields}\r\nhello`, () => {
				if (end === 'close_notify') tls.end();
				else if (end === 'end of TCP') connection.end();
				else connection.end(Buffer.from([23, 3, 3, 0, 100, 1, 2, 3]));
			});
		});
	};
	const accept = (connection: Socket): void => {
		sockets.add(connection);
		connection.on('error', () => {});
	};
	const server = createServer({ allowHalfOpen: true }, connection => {
		accept(connection);
		startTls(connection);
	});
	await listen(server);
	const { port: tlsPort } = server.address() as AddressInfo;
	const relay = createServer({ allowHalfOpen: true }, connection => {
		const upstream = connect({ port: tlsPort, host: '127.0.0.1', allowHalfOpen: true });
		accept(connection);
		accept(upstream);
		connection.once('data', (bytes: Buffer) => {
			upstream.write(bytes.subarray(bytes.indexOf('\n') + 1));
			connection.pipe(upstream);
			upstream.pipe(connection);
		});
	});
	await listen(relay);
	return {
		port: hasProxyHeader ? (relay.address() as AddressInfo).port : tlsPort,
		requestCount: () => requests,
		close: async () => {
			for (const socket of sockets) socket.destroy();
			await Promise.all([server, relay].map(one => new Promise(resolve => one.close(resolve))));
		},
	};
}

function listen(server: Server): Promise<void> {
	return new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
}

/** Runs a server with a cache in front of the upstream, which is closed at the end. */
async function withCachingServer(
	{ port, close }: Upstream,
	transport: string,
	use: (server: TestServer, get: () => Promise<string>) => Promise<void>,
): Promise<void> {
	const text = `{
	admin off
}
http://:0 {
	bind 127.0.0.1
	log
	cache
	reverse_proxy https://127.0.0.1:${port} {
		transport http {
			versions 1.1
			tls_trust_pool file ${trust}
			${transport}
		}
	}
}
`;
	const input = { format: 'configfile' as const, text, name: 'Configfile' };
	try {
		await withServer(undefined, { input, threads: 1 }, async server => {
			await use(server, async () => {
				const response = await fetch(`http://127.0.0.1:${server.port}/`, { headers: { connection: 'close' } });
				return `${response.status} ${await response.text().catch(() => 'broken')}`;
			});
		});
	} finally {
		await close();
	}
}

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
	test(`over ${version}, a response that ends with close_notify is complete and stored`, async () => {
		for (const hasProxyHeader of [false, true]) {
			const upstream = await startUpstream('', 'close_notify', version, hasProxyHeader);
			await withCachingServer(upstream, hasProxyHeader ? 'proxy_protocol v1' : '', async ({ log }, get) => {
				assert.equal([await get(), await get()], ['200 hello', '200 hello']);
				// If it cannot be known how the connection has ended, nothing is stored.
				assert.is(upstream.requestCount(), isDirectIo() ? 1 : 2);
				assert.not.match(log.text(), 'cut short');
			});
		}
	});

	for (const end of ['end of TCP', 'within a record'] as const) {
		test(`over ${version}, a response without a length is incomplete if the connection ends by an ${end}`, async () => {
			for (const hasProxyHeader of [false, true]) {
				const upstream = await startUpstream('', end, version, hasProxyHeader);
				await withCachingServer(upstream, hasProxyHeader ? 'proxy_protocol v1' : '', async ({ log }, get) => {
					const body = isDirectIo() ? '200 broken' : '200 hello';
					assert.equal([await get(), await get()], [body, body]);
					assert.is(upstream.requestCount(), 2, 'it is not stored');
					if (!isDirectIo()) return;
					await eventually('it is logged', () => log.text().includes('a response was cut short'));
					const { level, cause } = log.entries.find(({ msg }) => msg === 'a response was cut short')!;
					assert.equal(
						[level, cause],
						['warn', 'the connection was closed without close_notify, so the response may be incomplete'],
					);
				});
			}
		});
	}

	test(`over ${version}, a response with a length or chunks is complete without close_notify`, async () => {
		const upstream = await startUpstream('Connection: close\r\nContent-Length: 5\r\n', 'end of TCP', version);
		await withCachingServer(upstream, '', async (_server, get) => {
			assert.equal([await get(), await get()], ['200 hello', '200 hello']);
			assert.is(upstream.requestCount(), 1);
		});
	});
}

test.run();
