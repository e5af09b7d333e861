/** The content coding chosen for a client. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isEncodable } from '../../../../../compiler/modules/directives/encode/encodable-media.ts';
import { preferredCoding } from '../../../../../compiler/modules/representations/accept-encoding.ts';

const codings = suite('preferred coding');

for (const [field, expected] of [
	[undefined, undefined],
	['', undefined],
	['gzip', 'gzip'],
	['GZIP', 'gzip'],
	['x-gzip', 'gzip'],
	['gzip, zstd', 'zstd'],
	['gzip, deflate, br, zstd', 'zstd'],
	['gzip;q=1, zstd;q=0.9', 'gzip'],
	['gzip;q=0.5,zstd;q=0.5', 'zstd'],
	['gzip;q=0', undefined],
	['*', 'zstd'],
	['*;q=0', undefined],
	['zstd;q=0, *', 'gzip'],
	['gzip;q=0.3, identity;q=0.5', undefined],
	['gzip;q=0.5, identity;q=0.5', 'gzip'],
	['identity', undefined],
	['deflate', undefined],
	['gzip;q=2', undefined],
	['gzip;q=x, zstd', 'zstd'],
	['gzip ; q=0.001', 'gzip'],
	['gzipp', undefined],
] as const) {
	codings(`${field} → ${expected}`, () => assert.is(preferredCoding(field, ['zstd', 'gzip']), expected));
}

const types = suite('compressible types');

types('text, data and fonts are compressed, and formats that are already compressed are not', () => {
	for (const type of [
		'text/html; charset=utf-8',
		'TEXT/CSS',
		'application/json',
		'image/svg+xml',
		'application/x+json',
	]) {
		assert.ok(isEncodable(type), type);
	}
	for (const type of ['image/png', 'video/mp4', 'application/zip', 'font/woff2', 'application/octet-stream', '']) {
		assert.not.ok(isEncodable(type), type);
	}
	assert.not.ok(isEncodable(undefined));
});

codings.run();
types.run();
