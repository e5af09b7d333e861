/** gRPC through the server, with the real client and server of @grpc/grpc-js. The upstream uses plain text or TLS. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import * as grpc from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder, until } from '../../../harness.ts';
import { testAuthority } from './certificates.ts';

const test = suite('gRPC');

const bytes = { serialize: (value: Buffer) => value, deserialize: (value: Buffer) => value };

function method(name: string, requestStream: boolean, responseStream: boolean): grpc.MethodDefinition<Buffer, Buffer> {
	return {
		path: `/test.Echo/${name}`,
		requestStream,
		responseStream,
		requestSerialize: bytes.serialize,
		requestDeserialize: bytes.deserialize,
		responseSerialize: bytes.serialize,
		responseDeserialize: bytes.deserialize,
	};
}

const SERVICE = {
	one: method('One', false, false),
	gather: method('Gather', true, false),
	spread: method('Spread', false, true),
	talk: method('Talk', true, true),
	wait: method('Wait', false, true),
};

let cancelled = 0;

const implementation: grpc.UntypedServiceImplementation = {
	one: ((call, done) => {
		const text = call.request.toString();
		const trailers = new grpc.Metadata();
		trailers.set('x-trailer', `for ${text}`);
		if (text === 'bad') done({ code: grpc.status.FAILED_PRECONDITION, details: 'it is bad: 100%', metadata: trailers });
		else done(null, Buffer.from(`${text} ${call.metadata.get('x-meta')}`), trailers);
	}) as grpc.handleUnaryCall<Buffer, Buffer>,
	gather: ((call, done) => {
		let text = '';
		call.on('data', piece => {
			text += piece;
		});
		call.on('end', () => done(null, Buffer.from(text)));
	}) as grpc.handleClientStreamingCall<Buffer, Buffer>,
	spread: (call => {
		for (let i = 0; i < 100; i++) call.write(Buffer.from(`${call.request} ${i}`));
		call.end();
	}) as grpc.handleServerStreamingCall<Buffer, Buffer>,
	talk: (call => {
		call.on('data', piece => call.write(piece));
		call.on('end', () => call.end());
	}) as grpc.handleBidiStreamingCall<Buffer, Buffer>,
	wait: (call => {
		call.write(Buffer.from('begun'));
		call.on('cancelled', () => cancelled++);
	}) as grpc.handleServerStreamingCall<Buffer, Buffer>,
};

const Client = grpc.makeGenericClientConstructor(SERVICE, 'Echo');
const folder = temporaryFolder();
const clients: grpc.Client[] = [];
const servers: grpc.Server[] = [];
let server: ServerProcess | undefined;
let plain: grpc.Client & Record<string, (...args: never[]) => never>;
let secure: typeof plain;

test.before(async () => {
	const authority = await testAuthority();
	const leaf = await authority.issue(['localhost']);
	writeFileSync(path.join(folder, 'root.pem'), authority.cert);
	const pair = { cert_chain: Buffer.from(leaf.cert), private_key: Buffer.from(leaf.key) };
	const listen = (credentials: grpc.ServerCredentials): Promise<number> => {
		const made = new grpc.Server();
		servers.push(made);
		made.addService(SERVICE, implementation);
		return new Promise((resolve, reject) =>
			made.bindAsync('127.0.0.1:0', credentials, (error, port) => (error ? reject(error) : resolve(port))),
		);
	};
	const one = await listen(grpc.ServerCredentials.createInsecure());
	const two = await listen(grpc.ServerCredentials.createSsl(null, [pair]));
	const [a, b] = await freePorts(2);
	const lines = [
		...['{', 'admin off', 'threads 1', 'servers {', 'protocols h1 h2c', '}', '}'],
		...[`http://127.0.0.1:${a} {`, `reverse_proxy h2c://127.0.0.1:${one}`, '}'],
		...[`http://127.0.0.1:${b} {`, `reverse_proxy https://localhost:${two} {`, 'transport http {'],
		...['tls_trust_pool file root.pem', '}', '}', '}'],
	];
	writeFileSync(path.join(folder, 'Configfile'), `${lines.join('\n')}\n`);
	server = await serve(['Configfile'], a!, { cwd: folder });
	const clientOf = (port: number): grpc.Client => {
		const made = new Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
		clients.push(made);
		return made;
	};
	plain = clientOf(a!) as never;
	secure = clientOf(b!) as never;
});

test.after(async () => {
	for (const client of clients) client.close();
	for (const one of servers) one.forceShutdown();
	await server?.stop();
});

for (const name of ['plain', 'secure'] as const) {
	const client = () =>
		(name === 'plain' ? plain : secure) as never as {
			one(value: Buffer, meta: grpc.Metadata, done: grpc.requestCallback<Buffer>): grpc.ClientUnaryCall;
			gather(done: grpc.requestCallback<Buffer>): grpc.ClientWritableStream<Buffer>;
			spread(value: Buffer): grpc.ClientReadableStream<Buffer>;
			talk(): grpc.ClientDuplexStream<Buffer, Buffer>;
			wait(value: Buffer): grpc.ClientReadableStream<Buffer>;
		};

	test(`${name}: unary calls pass metadata, trailers and errors`, async () => {
		const call = (text: string): Promise<{ error: grpc.ServiceError | null; value: string; trailers: grpc.Metadata }> =>
			new Promise(resolve => {
				const meta = new grpc.Metadata();
				meta.set('x-meta', 'given');
				let outcome: { error: grpc.ServiceError | null; value: string };
				const made = client().one(Buffer.from(text), meta, (error, value) => {
					outcome = { error, value: String(value) };
				});
				made.on('status', ({ metadata }) => setImmediate(() => resolve({ ...outcome, trailers: metadata })));
			});
		const good = await call('hello');
		assert.equal([good.error, good.value, good.trailers.get('x-trailer')], [null, 'hello given', ['for hello']]);
		const bad = await call('bad');
		assert.is(bad.error!.code, grpc.status.FAILED_PRECONDITION);
		assert.is(bad.error!.details, 'it is bad: 100%');
		assert.equal(bad.error!.metadata.get('x-trailer'), ['for bad']);
	});

	test(`${name}: client, server and bidirectional streaming work`, async () => {
		const gathered = await new Promise<string>((resolve, reject) => {
			const call = client().gather((error, value) => (error ? reject(error) : resolve(String(value))));
			for (const piece of ['a', 'b', 'c']) call.write(Buffer.from(piece));
			call.end();
		});
		assert.is(gathered, 'abc');
		let count = 0;
		const spread = client().spread(Buffer.from('n'));
		spread.on('data', piece => assert.is(String(piece), `n ${count++}`));
		await new Promise(resolve => spread.on('end', resolve as never));
		assert.is(count, 100);
		const talk = client().talk();
		for (let i = 0; i < 5; i++) {
			// Each message is sent only after the previous one has been echoed, which shows that nothing is buffered.
			const echoed = new Promise(resolve => talk.once('data', resolve));
			talk.write(Buffer.from(`message ${i}`));
			assert.is(String(await echoed), `message ${i}`);
		}
		const whenEnded = new Promise(resolve => talk.on('end', resolve as never));
		talk.end();
		await whenEnded;
	});

	test(`${name}: a canceled call is canceled at the upstream at once`, async () => {
		const before = cancelled;
		const call = client().wait(Buffer.from('x'));
		call.on('error', () => {});
		await new Promise(resolve => call.once('data', resolve));
		call.cancel();
		await until('the upstream sees the cancellation', () => cancelled > before);
		assert.is(cancelled, before + 1);
	});
}

test.run();
