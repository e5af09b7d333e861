/** IP addresses and ranges: strict parsing, both families, merging, zones. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { formatIp, parseIp } from '../../../compiler/exchange/ip-address.ts';
import { IpRanges, maskedAddress, parseIpRange } from '../../../compiler/exchange/ip-ranges.ts';

const test = suite('ip ranges');

test('addresses are parsed strictly and written canonically', () => {
	for (const [text, canonical] of [
		['1.2.3.4', '1.2.3.4'],
		['::ffff:1.2.3.4', '1.2.3.4'],
		['::', '::'],
		['0:0:0:0:0:0:0:1', '::1'],
		['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
		['1:2:3:4:5:6:7:0', '1:2:3:4:5:6:7:0'],
		['fe80::1%eth0', 'fe80::1%eth0'],
	]) {
		assert.is(formatIp(parseIp(text!)!), canonical, text);
	}
	for (const text of [
		'',
		'1.2.3',
		'1.2.3.4.5',
		'01.2.3.4',
		'1.2.3.256',
		'1.2.3.-4',
		' 1.2.3.4',
		'1::2::3',
		':::',
		'1:2:3:4:5:6:7',
		'1:2:3:4:5:6:7:8:9',
		'12345::',
		'g::',
		'1.2.3.4::',
		'fe80::1%',
		'0x7f.0.0.1',
		'127.1',
	]) {
		assert.is(parseIp(text), undefined, text);
	}
});

test('invalid ranges are reported', () => {
	for (const text of ['10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/08', '10.0.0/8', 'x', '/8']) {
		assert.is(parseIpRange(text), undefined, text);
	}
	assert.throws(() => new IpRanges(['1.1.1.1', 'x']), /`x`/);
});

test('membership agrees with checking each range by itself, however the ranges overlap', () => {
	const texts = [
		'10.0.0.0/8',
		'10.5.0.0/16',
		'9.255.255.255',
		'11.0.0.0/32',
		'0.0.0.0/32',
		'255.255.255.255',
		'2001:db8::/33',
		'::ffff:192.0.2.0/120',
		'fc00::/7',
	];
	const all = new IpRanges(texts);
	const single = texts.map(text => new IpRanges([text]));
	const addresses = [
		'9.255.255.254',
		'9.255.255.255',
		'10.0.0.0',
		'10.255.255.255',
		'11.0.0.0',
		'11.0.0.1',
		'0.0.0.0',
		'0.0.0.1',
		'255.255.255.255',
		'2001:db8::',
		'2001:db8:7fff:ffff:ffff:ffff:ffff:ffff',
		'2001:db8:8000::',
		'192.0.2.9',
		'192.0.3.0',
		'fdff::1',
		'fe00::',
		'::',
	];
	for (const address of addresses) {
		assert.is(
			all.contains(address),
			single.some(ranges => ranges.contains(address)),
			address,
		);
	}
	assert.is(new IpRanges(['0.0.0.0/0']).contains('::1'), false);
	assert.is(new IpRanges(['::/0']).contains('1.2.3.4'), true);
	assert.is(new IpRanges([]).contains('1.2.3.4'), false);
});

test('an address matches a range with a zone only if it has the same zone', () => {
	assert.is(new IpRanges(['fe80::/10']).contains('fe80::1%eth0'), true);
	assert.is(new IpRanges(['fe80::1%eth0']).contains('fe80::1%eth0'), true);
	assert.is(new IpRanges(['fe80::1%eth0']).contains('fe80::1%eth1'), false);
	assert.is(new IpRanges(['fe80::1%eth*']).contains('fe80::1%eth1'), true);
	assert.is(new IpRanges(['fe80::1%eth0']).contains('fe80::1'), false);
});

test('addresses are truncated to prefixes', () => {
	assert.is(maskedAddress('10.1.2.3', 16, 64), '10.1.0.0/16');
	assert.is(maskedAddress('2001:db8:1:2:3::', 16, 48), '2001:db8:1::/48');
	assert.is(maskedAddress('10.1.2.3', 0, 0), '0.0.0.0/0');
	assert.is(maskedAddress('', 16, 48), undefined);
});

test.run();
