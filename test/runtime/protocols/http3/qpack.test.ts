/** QPACK and HTTP/3 frames by themselves: the examples of RFC 9204, round trips, and random bytes. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HeaderList } from '../../../../compiler/exchange/header-list.ts';
import { DecodedField } from '../../../../runtime/protocols/http2/field.ts';
import { StringMemory } from '../../../../runtime/protocols/http2/hpack-decoder.ts';
import { huffmanEncode, huffmanLength } from '../../../../runtime/protocols/http2/huffman.ts';
import { FREQUENT_NAMES, knownName } from '../../../../runtime/protocols/http2/known-names.ts';
import { ResponseFields } from '../../../../runtime/protocols/http2/response-fields.ts';
import { FrameReader } from '../../../../runtime/protocols/http3/frame-reader.ts';
import { QpackDecoder } from '../../../../runtime/protocols/http3/qpack-decoder.ts';
import {
	QPACK_FIELD_FORMAT,
	writeSectionLength,
	writeSectionStart,
} from '../../../../runtime/protocols/http3/qpack-encoder.ts';
import { QPACK_STATIC_COUNT, QPACK_STATIC_FIELDS } from '../../../../runtime/protocols/http3/qpack-static-table.ts';
import { MAX_VARINT, VarintReader, varintLength, writeVarint } from '../../../../runtime/protocols/http3/varint.ts';
import { data, encodePrefixedInteger, frame, headers, varint } from './frames.ts';

const test = suite('QPACK and frames');
const decoder = new QpackDecoder(new StringMemory(65_536));

function decode(bytes: Buffer): [string, string][] | undefined {
	const found: [string, string][] = [];
	const whole = decoder.decode(bytes, 0, bytes.length, {
		onField: ({ name, value }: DecodedField) => found.push([name, value]),
	});
	return whole ? found : undefined;
}

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');

test('RFC 9204 B.1: a literal with the name of a static entry', () => {
	assert.equal(decode(hex('0000 510b 2f69 6e64 6578 2e68 746d 6c')), [[':path', '/index.html']]);
});

test('RFC 9204 B.2 to B.5: references to the dynamic table are refused, because its capacity is 0', () => {
	for (const section of ['0381 10 11', '0500 80 c1 81', '0500 80 81', '0505 80 81', '0600 10']) {
		assert.is(decode(hex(section)), undefined);
	}
});

test('the static table has all entries in order', () => {
	assert.is(QPACK_STATIC_FIELDS.length, QPACK_STATIC_COUNT * 2);
	const at = (index: number) => decode(Buffer.concat([Buffer.of(0, 0), encodePrefixedInteger(0xc0, 6, index)]))?.[0];
	assert.equal(at(0), [':authority', '']);
	assert.equal(at(17), [':method', 'GET']);
	assert.equal(at(25), [':status', '200']);
	assert.equal(at(31), ['accept-encoding', 'gzip, deflate, br']);
	assert.equal(at(52), ['content-type', 'text/html; charset=utf-8']);
	assert.equal(at(63), [':status', '100']);
	assert.equal(at(71), [':status', '500']);
	assert.equal(at(83), ['alt-svc', 'clear']);
	assert.equal(at(92), ['server', '']);
	assert.equal(at(98), ['x-frame-options', 'sameorigin']);
	assert.is(at(99), undefined);
});

test('frequent names are found by their bytes, and decoded as any other name, Huffman-coded or not', () => {
	for (const frequentName of FREQUENT_NAMES) {
		const bytes = Buffer.from(`xx${frequentName}xx`);
		assert.is(knownName(bytes, 2, bytes.length - 2)?.name, frequentName);
		for (const name of [
			frequentName,
			`${frequentName.slice(0, 1)}_${frequentName.slice(2)}`,
			frequentName.toUpperCase(),
		]) {
			const coded = Buffer.alloc(huffmanLength(name));
			huffmanEncode(name, coded, 0);
			for (const [flags, nameBytes] of [
				[0x20, Buffer.from(name)],
				[0x28, coded],
			] as const) {
				const fields: DecodedField[] = [];
				const start = encodePrefixedInteger(flags, 3, nameBytes.length);
				const section = Buffer.concat([Buffer.of(0, 0), start, nameBytes, Buffer.of(1), Buffer.from('v')]);
				assert.ok(decoder.decode(section, 0, section.length, { onField: field => fields.push(field) }));
				assert.equal(fields, [new DecodedField(name, 'v')]);
			}
		}
	}
	assert.is(knownName(Buffer.from('abc'), 0, 3), undefined);
});

test('Huffman-coded names and values, and names of every length, are decoded', () => {
	// `custom-key: custom-value`, encoded as in RFC 7541 C.4.3.
	const name = hex('25a849e95ba97d7f');
	const value = hex('25a849e95bb8e8b4bf');
	const section = Buffer.concat([
		Buffer.of(0, 0),
		encodePrefixedInteger(0x28, 3, name.length),
		name,
		encodePrefixedInteger(0x80, 7, value.length),
		value,
	]);
	assert.equal(decode(section), [['custom-key', 'custom-value']]);
	for (const length of [1, 6, 7, 8, 127, 128, 300]) {
		const text = 'n'.repeat(length);
		const bytes = Buffer.concat([
			Buffer.of(0, 0),
			encodePrefixedInteger(0x20, 3, length),
			Buffer.from(text),
			Buffer.of(0),
		]);
		assert.equal(decode(bytes), [[text, '']]);
	}
});

test('encoded response fields decode to the same fields', () => {
	const fields = new ResponseFields(() => {}, QPACK_FIELD_FORMAT);
	const list = new HeaderList();
	const wanted: [string, string][] = [
		['server', 'svc'],
		['x-odd', 'ÿ{}~|'],
		['content-type', 'text/html; charset=utf-8'],
		['x-name-that-is-long-enough-for-two-bytes', 'v'.repeat(200)],
		['set-cookie', 'secret=1'],
		['a', ''],
	];
	for (const [name, value] of wanted) list.add(name, value);
	for (const status of [100, 103, 200, 204, 302, 404, 418, 500, 503, 999]) {
		const bytes = Buffer.alloc(4096);
		const { bytes: encoded } = fields.encode(list);
		let at = writeSectionStart(bytes, 0, status);
		bytes.set(encoded, at);
		at = writeSectionLength(bytes, at + encoded.length, 1_234_567);
		const got = decode(bytes.subarray(0, at))!;
		assert.equal(got[0], [':status', String(status)]);
		assert.equal(got.at(-1), ['content-length', '1234567']);
		assert.equal(
			got.slice(1, -1).filter(([name]) => name !== 'x-odd'),
			wanted.filter(([name]) => name !== 'x-odd'),
		);
	}
});

test('variable-length integers survive a round trip', () => {
	for (const value of [0, 63, 64, 16_383, 16_384, 1_073_741_823, 1_073_741_824, 2 ** 53 - 1]) {
		const bytes = Buffer.alloc(8);
		const end = writeVarint(bytes, 0, value);
		assert.is(end, varintLength(value));
		const reader = new VarintReader();
		for (let i = 0; i < end - 1; i++) assert.not.ok(reader.push(bytes[i]!));
		assert.ok(reader.push(bytes[end - 1]!));
		assert.is(reader.value, value);
	}
	assert.is(varintLength(MAX_VARINT), 8);
	assert.throws(() => writeVarint(Buffer.alloc(8), 0, MAX_VARINT + 1), 'too large');
	assert.equal([...varint(494_878_333)], [0x9d, 0x7f, 0x3e, 0x7d]);
});

test('frames are read the same however their bytes are split', () => {
	const bytes = Buffer.concat([
		frame(0x21, Buffer.from('grease')),
		headers(),
		data('hello'),
		data(''),
		headers([['a', 'b']]),
	]);
	const read = (sizes: () => number): string => {
		let receivedData = '';
		const reader = new FrameReader({
			onFrame: (type, length) => {
				receivedData += `${type}:${length} `;
				return type === 0 ? 'stream' : type === 1 ? 'gather' : 'skip';
			},
			onPayloadPart: (piece, start, end) => {
				receivedData += piece.toString('latin1', start, end);
				return true;
			},
			onWholePayload: (_type, piece, start, end) => {
				receivedData += `[${piece.toString('hex', start, end)}]`;
				return true;
			},
		});
		for (let at = 0; at < bytes.length; ) {
			const size = sizes();
			assert.ok(reader.read(bytes.subarray(at, at + size)));
			at += size;
		}
		assert.not.ok(reader.isIncomplete);
		return receivedData;
	};
	const whole = read(() => bytes.length);
	for (let size = 1; size < 20; size++)
		assert.is(
			read(() => size),
			whole,
		);
});

test('half a million random sections and frames do no harm', () => {
	let seed = 11;
	const random = (): number => {
		seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
		return seed >>> 16;
	};
	const bytes = Buffer.alloc(48);
	const sink = {
		onFrame: (type: number, length: number) =>
			length > 1000
				? ('stop' as const)
				: type % 3 === 0
					? ('stream' as const)
					: type % 3 === 1
						? ('gather' as const)
						: ('skip' as const),
		onPayloadPart: () => true,
		onWholePayload: () => true,
	};
	let decoded = 0;
	for (let i = 0; i < 500_000; i++) {
		const length = random() % bytes.length;
		for (let at = 0; at < length; at++) bytes[at] = random();
		if (i % 2 === 0) bytes.fill(0, 0, 2);
		if (decode(bytes.subarray(0, length)) !== undefined) decoded++;
		new FrameReader(sink).read(bytes.subarray(0, length));
	}
	assert.ok(decoded > 100);
});

test.run();
