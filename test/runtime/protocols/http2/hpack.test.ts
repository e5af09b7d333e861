/** Header compression: the examples of RFC 7541, and field blocks that exceed the limits. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HeaderList } from '../../../../compiler/exchange/header-list.ts';
import type { DecodedField } from '../../../../runtime/protocols/http2/field.ts';
import { HpackDecoder, StringMemory } from '../../../../runtime/protocols/http2/hpack-decoder.ts';
import { huffmanDecode, huffmanEncode, huffmanLength } from '../../../../runtime/protocols/http2/huffman.ts';
import { ResponseFields } from '../../../../runtime/protocols/http2/response-fields.ts';

const test = suite('HPACK');

const memory = new StringMemory(65_536);

/** Decodes a field block, given in hexadecimal, into `name: value` strings. Returns undefined if it is malformed. */
function decode(decoder: HpackDecoder, hexadecimal: string): string[] | undefined {
	const bytes = Buffer.from(hexadecimal.replaceAll(' ', ''), 'hex');
	const fields: string[] = [];
	const sink = { onField: ({ name, value }: DecodedField) => void fields.push(`${name}: ${value}`) };
	return decoder.decode(bytes, 0, bytes.length, sink) ? fields : undefined;
}

test('requests without Huffman code (RFC 7541 C.3)', () => {
	const decoder = new HpackDecoder(memory);
	const first = [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'];
	assert.equal(decode(decoder, '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d'), first);
	assert.equal(decode(decoder, '8286 84be 5808 6e6f 2d63 6163 6865'), [...first, 'cache-control: no-cache']);
	assert.equal(decode(decoder, '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65'), [
		':method: GET',
		':scheme: https',
		':path: /index.html',
		':authority: www.example.com',
		'custom-key: custom-value',
	]);
});

test('requests with Huffman code (RFC 7541 C.4)', () => {
	const decoder = new HpackDecoder(memory);
	const first = [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'];
	assert.equal(decode(decoder, '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff'), first);
	assert.equal(decode(decoder, '8286 84be 5886 a8eb 1064 9cbf'), [...first, 'cache-control: no-cache']);
	assert.equal(decode(decoder, '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf'), [
		':method: GET',
		':scheme: https',
		':path: /index.html',
		':authority: www.example.com',
		'custom-key: custom-value',
	]);
});

test('a table that is too small drops its oldest entries', () => {
	const decoder = new HpackDecoder(memory);
	// The table has room for a single entry of 1 + 1 + 32 bytes.
	assert.equal(decode(decoder, '3f03 4001 6101 31'), ['a: 1']);
	assert.equal(decode(decoder, 'be'), ['a: 1']);
	assert.equal(decode(decoder, '4001 6201 32 be'), ['b: 2', 'b: 2']);
	assert.is(decode(decoder, 'bf'), undefined);
	// An entry that is larger than the table empties the table.
	assert.equal(decode(new HpackDecoder(memory), '3f03 4001 6101 31 4001 6102 3131'), ['a: 1', 'a: 11']);
	const emptied = new HpackDecoder(memory);
	decode(emptied, '3f03 4001 6101 31 4001 6102 3131');
	assert.is(decode(emptied, 'be'), undefined);
});

test('a table holds its 128 entries, and a 129th drops the first', () => {
	const decoder = new HpackDecoder(memory);
	// Entries with an empty name and value take 32 bytes each.
	for (let i = 0; i < 128; i++) assert.equal(decode(decoder, '400000'), [': ']);
	assert.equal(decode(decoder, 'ff7f'), undefined);
	assert.equal(decode(decoder, 'ff3e'), [': ']);
	decode(decoder, '4001 6100');
	assert.equal(decode(decoder, 'be'), ['a: ']);
	assert.is(decode(decoder, 'ff3e'), undefined);
});

test('every byte survives Huffman coding, alone and combined with others', () => {
	const to = Buffer.alloc(2048);
	const back = Buffer.alloc(2048);
	for (let byte = 0; byte < 256; byte++) {
		for (const text of [
			String.fromCharCode(byte),
			`x${String.fromCharCode(byte)}y`,
			String.fromCharCode(byte).repeat(40),
		]) {
			const end = huffmanEncode(text, to, 0);
			assert.is(end, huffmanLength(text));
			const length = huffmanDecode(to, 0, end, back);
			assert.is(back.toString('latin1', 0, length), text);
		}
	}
});

test('a string larger than the string memory is refused', () => {
	const to = Buffer.alloc(64);
	const end = huffmanEncode('0'.repeat(50), to, 0);
	assert.is(huffmanDecode(to, 0, end, Buffer.alloc(40)), -1);
	assert.is(huffmanDecode(to, 0, end, Buffer.alloc(52)), 50);
});

test('encoded fields decode to the same fields', () => {
	const encoder = new ResponseFields(() => {});
	const headers = new HeaderList([
		...['Server', 'svc', 'Content-Type', 'text/html; charset=utf-8', 'Set-Cookie', 'a=b; Path=/', 'X-Empty', ''],
		...['X-Long', 'ab\u00e9~'.repeat(5000), 'ETag', '"0123456789abcdef"'],
	]);
	for (let i = 0; i < 2; i++) {
		const decoder = new HpackDecoder(memory);
		const hexadecimal = Buffer.from(encoder.encode(headers).bytes).toString('hex');
		const fields = decode(decoder, hexadecimal)!;
		assert.equal(
			fields,
			[...headers].map(([name, value]) => `${name.toLowerCase()}: ${value}`),
		);
		// The server's encoder never adds anything to the client's dynamic table.
		assert.is(decode(decoder, 'be'), undefined);
	}
	assert.is(encoder.encode(new HeaderList()).bytes.length, 0);
});

test.run();
