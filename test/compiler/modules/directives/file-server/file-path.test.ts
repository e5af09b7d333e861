/** Decoding of request paths to file paths. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseFilePath } from '../../../../../compiler/modules/directives/file-server/file-path.ts';

const decoding = suite('file paths from request paths');
const PATH_CASES: readonly [encoded: string, expected: string, slash?: boolean][] = [
	['/', '', true],
	['', ''],
	['/a/b.txt', '/a/b.txt'],
	['a', '/a'],
	['/a/', '/a', true],
	['//a///b//', '/a/b', true],
	['/a%20b', '/a b'],
	['/%C3%A4', '/ä'],
	['/%c3%a4%F0%9F%98%80', '/ä😀'],
	['/%e9', '/\udce9'],
	['/a%e9%C3%A4%ff', '/a\udce9ä\udcff'],
	['/%EF%BF%BD', '/\ufffd'],
	['/%EF%BB%BFa', '/\ufeffa'],
	['/%ff%EF%BB%BFa', '/\udcff\ufeffa'],
	['/%c0%ae%c0%ae/x', '/\udcc0\udcae\udcc0\udcae/x'],
	['/%ed%a0%80', '/\udced\udca0\udc80'],
	['/a/./b', '/a/b'],
	['/a/../b', '/b'],
	['/../../etc/passwd', '/etc/passwd'],
	['/%2e%2e/%2E%2e/etc/passwd', '/etc/passwd'],
	['/a/.%2e/b', '/b'],
	['/a/..', '', true],
	['/a/.', '/a', true],
	['/a/%2E', '/a', true],
	['/a/../', '', true],
	['/...', '/...'],
	['/.hidden', '/.hidden'],
	['/..dots/a', '/..dots/a'],
	['/%252e%252e/x', '/%2e%2e/x'],
	['/a%2fb', 'encoded-slash'],
	['/..%2f..%2fetc%2fpasswd', 'encoded-slash'],
	['/%2F', 'encoded-slash'],
	['/a/%2e%2e%2fb', 'encoded-slash'],
	['/a%5cb', '/a\\b'],
	['/..\\..\\etc', '/..\\..\\etc'],
	['/%2e%2e%5cetc', '/..\\etc'],
	['/a%00b', 'malformed'],
	['/a\0b', 'malformed'],
	['/%', 'malformed'],
	['/%zz', 'malformed'],
	['/%4', 'malformed'],
	['/a%ff%z', 'malformed'],
	['/%u0041', 'malformed'],
];
for (const [encoded, expected, slash = false] of PATH_CASES) {
	decoding(JSON.stringify(encoded), () => {
		const result = parseFilePath(encoded);
		if (typeof result === 'string') assert.is(result, expected);
		else assert.equal(result, { path: expected, endsWithSlash: slash });
	});
}
decoding.run();
