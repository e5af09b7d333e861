/** The ClientHello parser with the messages of real clients, which are split and corrupted at every byte. */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ClientHelloCollector, readClientHello } from '../../../runtime/tls/client-hello.ts';

/** Captures the ClientHello of Node's own client. */
async function captureHello(servername: string, ALPNProtocols: string[]): Promise<Buffer> {
	const server = createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const client = connect({
		port: (server.address() as { port: number }).port,
		host: '127.0.0.1',
		servername,
		ALPNProtocols,
	});
	client.on('error', () => {});
	const [socket] = (await once(server, 'connection')) as [Socket];
	const [bytes] = (await once(socket, 'data')) as [Buffer];
	client.destroy();
	socket.destroy();
	server.close();
	return bytes;
}

const bytes = await captureHello('Sub.Example.COM', ['h2', 'http/1.1']);
const hello = suite('client hello');

hello('name, protocols, suites and signature schemes', () => {
	const read = readClientHello(bytes);
	if (typeof read === 'string') throw new Error(read);
	assert.is(read.serverName, 'sub.example.com');
	assert.equal(read.alpn, ['h2', 'http/1.1']);
	assert.ok(read.cipherSuites.includes('1301'));
	assert.ok(read.signatureSchemes.includes('0403'));
	assert.not(read.offersAcmeTls);
});

hello('the protocol of TLS-ALPN-01 challenges is recognized at any position', async () => {
	const offers = [['acme-tls/1'], ['h2', 'acme-tls/1'], ['acme-tls/1', 'h2'], ['acme-tls/2'], ['acme-tls/1x']];
	const results: boolean[] = [];
	for (const protocols of offers) {
		const read = readClientHello(await captureHello('example.com', protocols));
		if (typeof read === 'string') throw new Error(read);
		assert.equal(read.alpn, protocols);
		results.push(read.offersAcmeTls);
	}
	assert.equal(results, [true, true, true, false, false]);
});

hello('a ClientHello is incomplete until its last byte, however it is split, and may span several records', () => {
	for (let length = 0; length < bytes.length; length++) {
		assert.is(readClientHello(bytes.subarray(0, length)), 'incomplete', `${length} bytes`);
	}
	const message = bytes.subarray(5);
	const pieces: Uint8Array[] = [];
	for (let at = 0; at < message.length; at += 100) {
		const piece = message.subarray(at, at + 100);
		pieces.push(Buffer.from([22, 3, 1, piece.length >> 8, piece.length & 255]), piece);
	}
	const read = readClientHello(Buffer.concat(pieces));
	assert.is(typeof read === 'string' ? read : read.serverName, 'sub.example.com');
});

/** Returns the processor time of this process. Only the sum is exact: the kernel divides it into the two parts by its clock ticks. */
function processorMicroseconds(): number {
	const { user, system } = process.cpuUsage();
	return user + system;
}

hello('an endless ClientHello in one-byte records costs little to parse', () => {
	const most = Buffer.alloc(9000);
	most.writeUInt32BE(0x0100ffff - 3);
	const records = Buffer.concat([...most].map(byte => Buffer.from([22, 3, 1, 0, 1, byte])));
	const looks = 200;
	const before = processorMicroseconds();
	for (let look = 0; look < looks; look++) assert.is(readClientHello(records), 'incomplete');
	const spent = (processorMicroseconds() - before) / 1000;
	assert.ok(spent < looks * 2, `${spent} ms for ${looks} looks`);
	const whole = bytes.subarray(5);
	const cut = Buffer.concat([...whole].map(byte => Buffer.from([22, 3, 1, 0, 1, byte])));
	for (let length = 0; length < cut.length; length++) {
		assert.is(readClientHello(cut.subarray(0, length)), 'incomplete', `${length} bytes`);
	}
	const read = readClientHello(cut);
	assert.is(typeof read === 'string' ? read : read.serverName, 'sub.example.com');
});

/** Collects bytes one by one, and returns the last result. */
function collectByteByByte(records: Buffer): ReturnType<ClientHelloCollector['add']> {
	const collector = new ClientHelloCollector(records.subarray(0, 1));
	for (let at = 1; at < records.length; at++) {
		const result = collector.add(records.subarray(at, at + 1));
		if (result !== 'incomplete' || at === records.length - 1) {
			assert.equal(collector.bytes, records.subarray(0, at + 1));
			return result;
		}
	}
	throw new Error('there are too few bytes');
}

/** Returns the processor time, in microseconds, in which this many one-byte records are collected byte by byte. */
function collectingCost(recordCount: number): number {
	const message = Buffer.alloc(recordCount);
	message.writeUInt32BE(0x0100ffff - 3);
	const records = Buffer.concat([...message].map(byte => Buffer.from([22, 3, 1, 0, 1, byte])));
	const before = processorMicroseconds();
	assert.is(collectByteByByte(records), 'incomplete');
	return processorMicroseconds() - before;
}

hello('a ClientHello that arrives byte by byte is parsed like a whole one', () => {
	const oneByteRecords = Buffer.concat([...bytes.subarray(5)].map(byte => Buffer.from([22, 3, 1, 0, 1, byte])));
	for (const records of [bytes, oneByteRecords]) {
		const read = collectByteByByte(records);
		assert.is(typeof read === 'string' ? read : read.serverName, 'sub.example.com');
	}
	const malformed = Buffer.concat([oneByteRecords.subarray(0, 60), Buffer.from([23, 3, 1, 0, 1, 0])]);
	assert.is(collectByteByByte(malformed), 'malformed');
	for (const start of ['GET / HTTP/1.1', '\x16\x02\x00', '\x16\x03\x01\x00\x00', '\x16\x03\x01\x00\x01\x02']) {
		const last = collectByteByByte(Buffer.from(start, 'latin1'));
		assert.is(last, readClientHello(Buffer.from(start, 'latin1')), JSON.stringify(start));
	}
});

hello('the cost of a ClientHello that arrives byte by byte grows in proportion to its length', () => {
	const cheapest = (recordCount: number): number =>
		Math.min(...Array.from({ length: 5 }, () => collectingCost(recordCount)));
	cheapest(2000);
	const few = cheapest(1250);
	const many = cheapest(10_000);
	// Eight times the bytes cost eight times the work, or 64 times if the records are parsed again, or copied, for each byte.
	assert.ok(many < 24 * few, `${few} µs for 1,250 records, ${many} µs for 10,000`);
});

hello('other input is classified', () => {
	assert.is(readClientHello(Buffer.from('GET / HTTP/1.1\r\n')), 'not-tls');
	assert.is(readClientHello(Buffer.from([22, 2, 0])), 'not-tls');
	assert.is(readClientHello(Buffer.from([22, 3, 1, 0, 0])), 'malformed');
	assert.is(readClientHello(Buffer.from([22, 3, 1, 255, 255])), 'malformed');
	assert.is(readClientHello(Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0])), 'malformed');
	assert.is(readClientHello(Buffer.from([22, 3, 1, 0, 4, 1, 255, 255, 255])), 'malformed');
});

hello('no corruption makes the parser throw', () => {
	let seed = 1;
	const random = (bound: number): number => {
		seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
		return seed % bound;
	};
	for (let round = 0; round < 20_000; round++) {
		const changed = Buffer.from(bytes);
		for (let changes = 0; changes <= random(4); changes++) changed[random(changed.length)] = random(256);
		const read = readClientHello(changed.subarray(0, random(8) === 0 ? random(changed.length) : changed.length));
		if (typeof read === 'string') continue;
		assert.match(read.serverName, /^[a-z0-9._:-]{0,255}$/);
		assert.ok(read.cipherSuites.every(id => id.length === 4));
		assert.ok(read.alpn.every(name => name.length > 0));
	}
});

hello.run();
