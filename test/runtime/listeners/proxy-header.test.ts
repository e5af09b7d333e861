/** The PROXY header parser with valid headers, invalid ones, and other input. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { crc32c } from '../../../runtime/listeners/crc32c.ts';
import { parseProxyHeader } from '../../../runtime/listeners/proxy-header.ts';

const headers = suite('PROXY header');
const SIGNATURE = '0d0a0d0a000d0a515549540a';

function parseHeader(text: string) {
	return parseProxyHeader(Buffer.from(text, 'latin1'));
}

function parseHex(...parts: string[]) {
	return parseProxyHeader(Buffer.from(parts.join('').replaceAll(' ', ''), 'hex'));
}

const LINES: readonly (readonly [text: string, kind: string, address?: string])[] = [
	['PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n', 'header', '192.0.2.1:56324 198.51.100.2:443'],
	['PROXY TCP4 192.0.2.1 198.51.100.2 0 65535\r\nGET', 'header', '192.0.2.1:0 198.51.100.2:65535'],
	['PROXY TCP6 2001:DB8::1 2001:db8:0::2 1 2\r\n', 'header', '2001:db8::1:1 2001:db8::2:2'],
	['PROXY UNKNOWN\r\n', 'header'],
	['PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n', 'header'],
	['', 'incomplete'],
	['P', 'incomplete'],
	['PROXY TCP4 192.0.2.1', 'incomplete'],
	['PROXY TCP4 192.0.2.1 198.51.100.2 1 2\r', 'incomplete'],
	['POST / HTTP/1.1\r\n', 'none'],
	['GET / HTTP/1.1\r\n', 'none'],
	['PROXY TCP4 192.0.2.1 198.51.100.2 1 2\n', 'malformed'],
	['PROXY  TCP4 192.0.2.1 198.51.100.2 1 2\r\n', 'malformed'],
	['PROXY TCP4 192.0.2.01 198.51.100.2 1 2\r\n', 'malformed'],
	['PROXY TCP4 192.0.2.1 198.51.100.2 01 2\r\n', 'malformed'],
	['PROXY TCP4 192.0.2.1 198.51.100.2 1 65536\r\n', 'malformed'],
	['PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n', 'malformed'],
	['PROXY TCP6 192.0.2.1 198.51.100.2 1 2\r\n', 'malformed'],
	['PROXY TCP4 192.0.2.1 198.51.100.2 1 2 3\r\n', 'malformed'],
	['PROXY UDP4 192.0.2.1 198.51.100.2 1 2\r\n', 'malformed'],
	[`PROXY UNKNOWN ${'x'.repeat(100)}\r\n`, 'malformed'],
	[`PROXY TCP4 ${'1'.repeat(200)}`, 'malformed'],
];

for (const [text, kind, address] of LINES) {
	headers(`version 1: ${JSON.stringify(text.slice(0, 70))} is ${kind}`, () => {
		const header = parseHeader(text);
		assert.is(header.kind, kind);
		if (header.kind !== 'header') return;
		const { peer } = header;
		const shown = peer && `${peer.remoteAddress}:${peer.remotePort} ${peer.localAddress}:${peer.localPort}`;
		assert.is(shown, address);
		assert.is(header.length, text.indexOf('\r\n') + 2);
	});
}

headers('version 2 names IPv4 and IPv6 clients', () => {
	const v4 = parseHex(SIGNATURE, '21 11 000c c0000201 c6336402 dc04 01bb', '474554');
	assert.equal(v4, {
		kind: 'header',
		length: 28,
		peer: { remoteAddress: '192.0.2.1', remotePort: 56_324, localAddress: '198.51.100.2', localPort: 443 },
	});
	const one = '20010db8000000000000000000000001';
	const v6 = parseHex(SIGNATURE, '21 21 0024', one, one, '0001 0002');
	assert.is(v6.kind === 'header' && v6.peer?.remoteAddress, '2001:db8::1');
	const mapped = parseHex(SIGNATURE, '21 21 0024', '00000000000000000000ffffc0000201', one, '0001 0002');
	assert.is(mapped.kind === 'header' && mapped.peer?.remoteAddress, '192.0.2.1');
});

headers('version 2 without a client: LOCAL, unspecified, unix', () => {
	assert.equal(parseHex(SIGNATURE, '20 00 0000'), { kind: 'header', length: 16, peer: undefined });
	assert.equal(parseHex(SIGNATURE, '20 11 000c c0000201 c6336402 dc04 01bb').kind, 'header');
	assert.equal(parseHex(SIGNATURE, '21 00 0000'), { kind: 'header', length: 16, peer: undefined });
	const unix = parseHex(SIGNATURE, '21 31 00d8', '00'.repeat(216));
	assert.is(unix.kind === 'header' && unix.peer?.remoteAddress, '');
});

headers('an invalid version 2 header is malformed', () => {
	const ipv4 = 'c0000201 c6336402 dc04 01bb';
	for (const [what, hex] of [
		['another version', `11 11 000c ${ipv4}`],
		['another command', `22 11 000c ${ipv4}`],
		['datagrams', `21 12 000c ${ipv4}`],
		['another family', `21 41 000c ${ipv4}`],
		['too short for its addresses', '21 11 000b c0000201c6336402dc0401'],
		['longer than the limit', '21 11 ffff'],
		['a truncated extension', `21 11 000e ${ipv4} 0400`],
		['an extension longer than the header', `21 11 000f ${ipv4} 040001`],
		['a wrong checksum', `21 11 0013 ${ipv4} 03000400000000`],
	] as const) {
		assert.is(parseHex(SIGNATURE, hex).kind, 'malformed', what);
	}
});

headers('a correct checksum is accepted', () => {
	assert.is(crc32c(Buffer.from('123456789')), 0xe3069283);
	const bytes = Buffer.from(
		`${SIGNATURE}21110018c0000201c6336402dc0401bb030004000000000400026162`.replaceAll(' ', ''),
		'hex',
	);
	bytes.writeUInt32BE(crc32c(bytes), 31);
	assert.is(parseProxyHeader(bytes).kind, 'header');
});

headers('the result is the same wherever the input is split', () => {
	const whole = [
		Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n'),
		Buffer.from(`${SIGNATURE}2111000cc0000201c6336402dc0401bb`, 'hex'),
	];
	for (const bytes of whole) {
		for (let cut = 0; cut < bytes.length; cut++) {
			assert.is(parseProxyHeader(bytes.subarray(0, cut)).kind, 'incomplete', `${cut} bytes`);
		}
		assert.is(parseProxyHeader(bytes).kind, 'header');
	}
});

headers.run();
