/** Every form of upstream address, and every error in one. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	parseResolvedUpstream,
	parseUpstream,
} from '../../../../../compiler/modules/directives/reverse-proxy/upstream-address.ts';

const addresses = suite('upstream addresses');

addresses('every form is parsed', () => {
	const table: [text: string, expected: string[]][] = [
		['host', ['host:80']],
		['host:8080', ['host:8080']],
		[':8080', ['localhost:8080']],
		['127.0.0.1:1', ['127.0.0.1:1']],
		['[::1]:8080', ['[::1]:8080']],
		['[::1]', ['[::1]:80']],
		['host:8001-8003', ['host:8001', 'host:8002', 'host:8003']],
		['http://host', ['host:80']],
		['HTTP://host:3000', ['host:3000']],
		['http://host:8001-8002', ['host:8001', 'host:8002']],
		['tcp/host:90', ['host:90']],
		['unix//run/app.sock', ['unix//run/app.sock']],
		['unix/app.sock', ['unix/app.sock']],
		['https://host', ['host:443']],
		['h2c://host', ['host:80']],
		['unix+h2c//s', ['unix//s']],
	];
	for (const [text, expected] of table) {
		const parsed = parseUpstream(text);
		assert.is(parsed.kind, 'static', text);
		if (parsed.kind === 'static') {
			assert.equal(
				parsed.addresses.map(({ address }) => address),
				expected,
			);
		}
	}
	const socket = parseUpstream('unix//run/app.sock');
	assert.equal(socket.kind === 'static' && socket.addresses[0]!.path, '/run/app.sock');
});

addresses('addresses may be templates', () => {
	for (const [text, expected] of [
		['{x}', ['{x}']],
		['{x}:80', ['{x}:80']],
		['h:6{x}', ['h:6{x}']],
		['{x}:8001-8002', ['{x}:8001', '{x}:8002']],
		['unix/{x}', ['unix/{x}']],
	] as const) {
		assert.equal(parseUpstream(text), { kind: 'template', texts: expected });
	}
	assert.is(parseResolvedUpstream('h:80')?.address, 'h:80');
	assert.is(parseResolvedUpstream('unix//a')?.path, '/a');
	for (const text of ['', 'h', 'h:', 'h:0', 'h:1-2', 'h:99999', 'http://h:1', 'a b:1', 'h:80/x', 'unix/', 'h\n:80']) {
		assert.is(parseResolvedUpstream(text), undefined, text);
	}
});

addresses('invalid addresses are refused', () => {
	const table: [text: string, code: string, message: string][] = [
		['ws://h', 'upstream/browser-scheme', 'the scheme ws:// is only supported in browsers; use http:// instead'],
		['wss://h', 'upstream/browser-scheme', 'the scheme wss:// is only supported in browsers; use https:// instead'],
		['someInvalidPrefix://h', 'upstream/unknown-scheme', 'unsupported URL scheme someinvalidprefix://'],
		[
			'http://h/',
			'upstream/url-with-path',
			'for now, URLs for proxy upstreams only support scheme, host, and port components',
		],
		[
			'http://h:443',
			'upstream/conflicting-port',
			'upstream address has conflicting scheme (http://) and port (:443, the HTTPS port)',
		],
		[
			'https://h:80',
			'upstream/conflicting-port',
			'upstream address has conflicting scheme (https://) and port (:80, the HTTP port)',
		],
		[
			'h2c://h:443',
			'upstream/conflicting-port',
			'upstream address has conflicting scheme (h2c://) and port (:443, the HTTPS port)',
		],
		[
			'http://{x}',
			'upstream/placeholder-in-url',
			'due to parsing difficulties, placeholders are not allowed when an upstream address contains a scheme',
		],
		['fd/3', 'directive/unavailable', 'an upstream over `fd/` is not supported by this build yet'],
		['h:0', 'upstream/invalid-port', '`0` is not a port'],
		['h:65536', 'upstream/invalid-port', '`65536` is not a port'],
		['h:9-8', 'upstream/invalid-port', '`9-8` is not a port range'],
		['::1', 'upstream/invalid-address', 'the address has too many colons'],
		['[h]:1', 'upstream/invalid-address', '`[h]` is not an IPv6 address'],
		['a_b c:1', 'upstream/invalid-address', '`a_b c` is not a host name or IP address'],
		['', 'upstream/invalid-address', 'the address is empty'],
		['unix/', 'upstream/invalid-address', 'the path of the Unix socket is missing'],
	];
	for (const [text, code, message] of table) {
		const parsed = parseUpstream(text);
		assert.is(parsed.kind, 'invalid', text);
		if (parsed.kind === 'invalid') assert.equal([parsed.code, parsed.message], [code, message]);
	}
});

addresses.run();
