/** Log formats with settings, field filters, and sampling. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { LogFilter, LogFormat } from '../../../compiler/document/log-settings.ts';
import { jsonMembers } from '../../../runtime/logs/encoders.ts';
import { compileLogFilters } from '../../../runtime/logs/log-filters.ts';
import { compileLogFormat, UnknownEncoder } from '../../../runtime/logs/log-format.ts';
import { LogSampler, SAMPLER_SLOTS } from '../../../runtime/logs/log-sampler.ts';
import { machineText } from '../../../runtime/logs/machine-text.ts';
import { createDurationFormatter, formatNanoseconds } from '../../../runtime/logs/time-text.ts';

const AT = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
const HOSTILE = 'a\nb\r\u001b[31m\u2028"';

function formatLine(format: LogFormat, fields = '"a":1'): string {
	return compileLogFormat(format, 'json', text => text.replace('{env.X}', 'x"y')).encode('warn', 'l', 'm', fields, AT);
}

const formats = suite('log formats');

const LINES: readonly (readonly [LogFormat, string])[] = [
	[{ encoder: 'default' }, '{"level":"warn","ts":1767323045.006,"logger":"l","msg":"m","a":1}\n'],
	[{ encoder: 'console' }, '2026/01/02 03:04:05.006\tWARN\tl\tm\t{"a":1}\n'],
	[
		{ encoder: 'json', level_key: 'L', time_key: 'T', name_key: 'N', message_key: 'M', line_ending: '|' },
		'{"L":"warn","T":1767323045.006,"N":"l","M":"m","a":1}|',
	],
	[{ encoder: 'json', level_key: '', time_key: '', name_key: '', message_key: '' }, '{"a":1}\n'],
	[{ encoder: 'console', level_key: '', name_key: '', time_format: 'wall' }, '2026/01/02 03:04:05\tm\t{"a":1}\n'],
	[{ encoder: 'journald', wrap: { encoder: 'console', time_key: '' } }, '<4>WARN\tl\tm\t{"a":1}\n'],
	[
		{ encoder: 'append', fields: { n: 1, b: true, t: '{env.X}' } },
		'{"level":"warn","ts":1767323045.006,"logger":"l","msg":"m","a":1,"n":1,"b":true,"t":"x\\"y"}\n',
	],
	[
		{ encoder: 'append', wrap: { encoder: 'filter', fields: { a: { filter: 'delete' } } }, fields: { b: 2 } },
		'{"level":"warn","ts":1767323045.006,"logger":"l","msg":"m","b":2}\n',
	],
	[{ encoder: 'json', level_key: '', time_key: '', name_key: '', level_format: 'upper' }, '{"msg":"m","a":1}\n'],
	[{ encoder: 'console', time_key: '', level_format: 'color' }, '\u001b[33mWARN\u001b[0m\tl\tm\t{"a":1}\n'],
];

for (const [format, expected] of LINES) {
	formats(JSON.stringify(format), () => assert.is(formatLine(format), expected));
}

const TIMES: readonly (readonly [string, unknown])[] = [
	['unix_seconds_float', 1767323045.006],
	['unix_milli_float', 1767323045006],
	['unix_nano', 1767323045006000000],
	['iso8601', '2026-01-02T03:04:05.006Z'],
	['rfc3339', '2026-01-02T03:04:05Z'],
	['rfc3339_nano', '2026-01-02T03:04:05.006Z'],
	['wall', '2026/01/02 03:04:05'],
	['wall_milli', '2026/01/02 03:04:05.006'],
	['wall_nano', '2026/01/02 03:04:05.006000000'],
	['common_log', '02/Jan/2026:03:04:05 +0000'],
	['02 Jan 06 15:04', '02 Jan 26 03:04'],
];

for (const [time_format, expected] of TIMES) {
	formats(`time ${time_format}`, () => {
		assert.equal((JSON.parse(formatLine({ encoder: 'json', time_format })) as { ts: unknown }).ts, expected);
	});
}

formats('durations', () => {
	assert.equal(
		(['s', 'ms', 'ns', 'string'] as const).map(format => createDurationFormatter(format)(1.5)),
		['0.001500000', '1.5', '1500000', '"1.5ms"'],
	);
	assert.equal([0, 750, 1500, 2e6, 1.5e9, 6.1e10, 3.6e12 + 1e9].map(formatNanoseconds), [
		'0s',
		'750ns',
		'1.5µs',
		'2ms',
		'1.5s',
		'1m1s',
		'1h0m1s',
	]);
});

formats('in no format can a value start a new line or contain control characters', () => {
	const risky = jsonMembers({ a: HOSTILE, deep: { [HOSTILE]: [HOSTILE] } });
	for (const encoder of ['json', 'console'] as const) {
		for (const format of [
			{ encoder, time_format: 'wall' },
			{ encoder: 'filter', wrap: { encoder }, fields: { deep: { filter: 'rename', name: HOSTILE } } },
		] as LogFormat[]) {
			const text = compileLogFormat(format, 'json', value => value).encode('info', HOSTILE, HOSTILE, risky, AT);
			assert.is(text.split('\n').length, 2);
			for (const risk of ['\r', '\u001b', '\u2028']) assert.not(text.includes(risk));
		}
	}
});

const REQUEST = jsonMembers({
	request: {
		...{
			remote_ip: '10.0.0.9',
			client_ip: '10.0.0.1',
			method: 'GET',
			host: 'a.example:81',
			uri: '/x?y=1',
			proto: 'HTTP/1.1',
		},
		headers: {
			'user-agent': ['q"\\\n\u0000\u00e9'],
			Accept: ['a', 'b'],
			ACCEPT: ['c'],
			Cookie: ['REDACTED'],
			'X-Empty': [''],
		},
	},
	...{
		user_id: 'é',
		size: 5,
		status: 200,
		resp_headers: { Server: ['svc'] },
		upstream: { address: 'b:1' },
		team: 'a b',
	},
});

const TEXTS: readonly (readonly [string, string])[] = [
	['plain \\{x\\} {open', 'plain {x} {open'],
	['{request>headers>User-Agent}', 'q\\x22\\x5C\\x0A\\x00\\xE9'],
	['{header.accept}|{request>headers>Accept>[1]}|{request>headers>accept>[7]}', 'a, b, c|b|-'],
	['{header.Cookie} {header.X-Empty} {header.none}', 'REDACTED - -'],
	['{user_id} {http.auth.user.id} {team} {none} {none>x}', '\\xC3\\xA9 \\xC3\\xA9 a b - -'],
	['{method} {uri} {path} {query} {host} {header.Host} {scheme}', 'GET /x?y=1 /x y=1 a.example a.example:81 http'],
	['{remote_host} {client_ip} {http.response.status} {size} {resp_headers>server>[0]}', '10.0.0.9 10.0.0.1 200 5 svc'],
	['{upstream>address} {upstream_hostport} {upstream}', 'b:1 b:1 {\\x22address\\x22:\\x22b:1\\x22}'],
	['{level} {logger} {msg} {ts} {env.X}', 'warn l m 02/Jan/2026:03:04:05 +0000 x"y'],
	['{request_line}', 'GET /x?y=1 HTTP/1.1'],
];

for (const [text, expected] of TEXTS) {
	formats(`text ${text}`, () => assert.is(formatLine({ encoder: 'text', text }, REQUEST), `${expected}\n`));
}

formats('combined and common, and what filters leave of them', () => {
	const common = '10.0.0.1 - \\xC3\\xA9 [02/Jan/2026:03:04:05 +0000] "GET /x?y=1 HTTP/1.1" 200 5';
	assert.is(formatLine({ encoder: 'common' }, REQUEST), `${common}\n`);
	assert.is(formatLine({ encoder: 'combined' }, REQUEST), `${common} "-" "q\\x22\\x5C\\x0A\\x00\\xE9"\n`);
	const fields = {
		'request>client_ip': { filter: 'ip_mask', ipv4: 8 },
		'request>uri': { filter: 'delete' },
		user_id: { filter: 'delete' },
	} as const;
	const filtered = formatLine({ encoder: 'filter', wrap: { encoder: 'common' }, fields }, REQUEST);
	assert.is(filtered, '10.0.0.0 - - [02/Jan/2026:03:04:05 +0000] "GET HTTP/1.1" 200 5\n');
});

formats('text writes entries that are not about a request as console does', () => {
	for (const fields of ['', '"a":1', '"request":"x"']) {
		assert.is(formatLine({ encoder: 'text', text: '{msg}' }, fields), formatLine({ encoder: 'console' }, fields));
	}
});

formats('no client can begin a line of text, or control a terminal', () => {
	const every = Array.from({ length: 0x120 }, (_, code) => String.fromCharCode(code)).join('');
	const hostile = `${every}${HOSTILE}\ud800`;
	const entry = jsonMembers({
		request: { method: hostile, uri: hostile, host: hostile, headers: { A: [hostile], [hostile]: [hostile] } },
		...{ user_id: hostile, more: { [hostile]: hostile }, list: [hostile] },
	});
	const text = '{request_line}{host}{path}{query}{header.A}{user_id}{more}{list}{request}';
	assert.match(formatLine({ encoder: 'text', text }, entry), /^[ !#-~]*\n$/);
});

formats('an unknown encoder is refused', () => {
	assert.throws(
		() => compileLogFormat({ encoder: 'xml' } as unknown as LogFormat, 'json', text => text),
		(error: unknown) => error instanceof UnknownEncoder,
	);
});

formats('machine placeholders are expanded once, not recursively', () => {
	const facts = { hostname: 'h', os: '', arch: '', workingDirectory: '', env: () => '{system.hostname}' };
	const missing: string[] = [];
	const expand = machineText(facts);
	assert.is(
		expand('\\{a} {env.X} {system.hostname} {http.request.uri}|', name => missing.push(name)),
		'{a} {system.hostname} h |',
	);
	assert.equal(missing, ['{http.request.uri}']);
});

formats.run();

const filters = suite('log filters');

const FOO_HASH = '2c26b46b'; // The beginning of the SHA-256 hash of `foo`.

const FILTER_CASES: readonly (readonly [what: string, LogFilter, value: unknown, expected: unknown])[] = [
	['replace', { filter: 'replace', value: 'x' }, ['a', 'b'], 'x'],
	['hash', { filter: 'hash' }, 'foo', FOO_HASH],
	['hash of a list', { filter: 'hash' }, ['foo', 'foo'], [FOO_HASH, FOO_HASH]],
	['ip_mask', { filter: 'ip_mask', ipv4: 16, ipv6: 32 }, '192.0.2.9', '192.0.0.0'],
	['ip_mask IPv6', { filter: 'ip_mask', ipv4: 16, ipv6: 32 }, '2001:db8:1:2::3', '2001:db8::'],
	[
		'ip_mask of a list',
		{ filter: 'ip_mask', ipv4: 8 },
		'192.0.2.9:80, [2001:db8::1]:443,x',
		'192.0.0.0, 2001:db8::1, x',
	],
	['ip_mask of fields', { filter: 'ip_mask', ipv4: 0 }, ['10.1.2.3'], ['0.0.0.0']],
	[
		'query',
		{
			filter: 'query',
			actions: [
				{ action: 'delete', name: 'd' },
				{ action: 'hash', name: 'h' },
				{ action: 'replace', name: 'r', value: 'R&' },
			],
		},
		'/p?r=1&z=%20&h=foo&d=1&d=2',
		`/p?h=${FOO_HASH}&r=R%26&z=+`,
	],
	['query without one', { filter: 'query', actions: [{ action: 'delete', name: 'd' }] }, '/p', '/p'],
	[
		'query whose only parameter is deleted',
		{ filter: 'query', actions: [{ action: 'delete', name: 'd' }] },
		'/p?d=1',
		'/p',
	],
	[
		'query with percent-encoded names',
		{ filter: 'query', actions: [{ action: 'delete', name: 'd' }] },
		'/p?%64=1&e=2',
		'/p?e=2',
	],
	['malformed query', { filter: 'query', actions: [{ action: 'delete', name: 'd' }] }, '/p?d=1&x=%zz', '/p'],
	[
		'cookie',
		{
			filter: 'cookie',
			actions: [
				{ action: 'delete', name: 'd' },
				{ action: 'replace', name: 'r', value: 'x' },
			],
		},
		['a=1; d=2; r=3; d=4'],
		['a=1; r=x'],
	],
	[
		'set_cookie',
		{ filter: 'set_cookie', actions: [{ action: 'hash', name: 's' }] },
		['s=foo; Path=/; HttpOnly', 't=1'],
		[`s=${FOO_HASH}; Path=/; HttpOnly`, 't=1'],
	],
	[
		'regexp',
		{
			filter: 'regexp',
			rules: [
				// biome-ignore lint/suspicious/noTemplateCurlyInString: group reference syntax of replacements
				{ find: '(\\d)(\\d)', replace: '$2${1}' },
				{ find: 'x', replace: '$$' },
			],
		},
		'12 34 x',
		'21 43 $',
	],
	['regexp of a number', { filter: 'regexp', rules: [{ find: '^2', replace: '3' }] }, 200, '300'],
];

for (const [what, filter, value, expected] of FILTER_CASES) {
	filters(what, () => {
		const fields = { request: { headers: { 'X-A': value, other: value } }, 'X-A': value };
		compileLogFilters({ 'request>headers>x-a': filter })(fields);
		assert.equal(fields.request.headers['X-A'], expected);
		assert.equal(fields.request.headers.other, value);
		assert.equal(fields['X-A'], value);
	});
}

filters('delete and rename', () => {
	const fields: { [name: string]: unknown } = { a: 1, b: { c: 2, d: 3 }, e: 4 };
	compileLogFilters({
		a: { filter: 'delete' },
		'b>c': { filter: 'rename', name: '__proto__' },
		gone: { filter: 'delete' },
	})(fields);
	assert.is(JSON.stringify(fields), '{"b":{"d":3,"__proto__":2},"e":4}');
});

filters.run();

const sampling = suite('log sampling');

sampling('writes the first entries, then every nth, and starts over with each interval', () => {
	const sampler = new LogSampler({ interval: 1000, first: 2, thereafter: 3 }, new Int32Array(SAMPLER_SLOTS));
	const taken = (at: number, count: number) =>
		Array.from({ length: count }, () => sampler.shouldWrite('info', 'm', at));
	assert.equal(taken(5000, 9), [true, true, false, false, true, false, false, true, false]);
	assert.equal(taken(6000, 3), [true, true, false]);
	assert.is(sampler.shouldWrite('error', 'm', 6000), true);
});

sampling('with 0, nothing more is written in the interval, and all threads share one count', () => {
	const counts = new Int32Array(new SharedArrayBuffer(SAMPLER_SLOTS * 4));
	const samplers = [1, 2].map(() => new LogSampler({ first: 3, thereafter: 0, interval: 60_000 }, counts));
	const taken = Array.from({ length: 10 }, (_, i) => samplers[i % 2]!.shouldWrite('info', 'm', 1_000_000));
	assert.is(taken.filter(Boolean).length, 3);
});

sampling.run();
