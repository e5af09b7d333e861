/**
 * compile() with malicious text and JSON: the result comes quickly, is short enough to read, and reveals nothing of the
 * environment.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type CompileResult, compile } from '../../compiler/compiler.ts';
import { toReport } from '../../compiler/diagnostics/diagnostic-report.ts';
import type { ConfigFormat } from '../../compiler/dialects/dialect.ts';
import { ReadError, type Reader } from '../../compiler/source/reader.ts';

/** Returns the CPU milliseconds that this process has used; the load of other processes does not matter. */
const cpuMilliseconds = (): number => process.cpuUsage().user / 1000;

const SECRET = 's3cr3t, of {the} Environment';

const reader: Reader = {
	readText: path => {
		throw new ReadError('ENOENT', path);
	},
	readBytes: path => {
		throw new ReadError('ENOENT', path);
	},
	list: path => {
		throw new ReadError('ENOENT', path);
	},
	kind: () => undefined,
	env: name => (name === 'SECRET' ? SECRET : name === 'PORT' ? '99999' : undefined),
	workingDirectory: '/work',
};

function compiled(format: ConfigFormat, text: string): CompileResult {
	return compile({ format, text, name: 'input' }, reader);
}

function codes(format: ConfigFormat, text: string): string[] {
	return compiled(format, text).diagnostics.map(({ code }) => code);
}

/** Returns the text of everything that a compilation shows to the user. */
function shownText({ diagnostics }: CompileResult): string {
	return diagnostics.map(diagnostic => JSON.stringify(toReport(diagnostic))).join('\n');
}

const nesting = suite('nesting');

const site = (inside: string): string => `:8080 {\n${inside}\n}\n`;
const nested = (open: string, levels: number): string => `${open} {\n`.repeat(levels) + '}\n'.repeat(levels);
const group = (levels: number): string =>
	`{"sites":[{"addresses":[":80"],"pipeline":[${'{"handler":"group","pipeline":['.repeat(levels)}${']}'.repeat(levels)}]}]}`;

nesting('the deepest allowed blocks compile on the stack of the command line', () => {
	for (const open of ['route', 'handle', 'when path /a']) {
		assert.equal(codes('configfile', site(nested(open, 127))), [], open);
	}
	assert.equal(codes('json', group(400)), []);
});

nesting('deeper nesting is rejected, in text and in JSON', () => {
	assert.equal(codes('configfile', site(nested('route', 10_000))), ['syntax/nesting-too-deep']);
	assert.equal(codes('json', group(1000)), ['document/too-deep']);
	assert.equal(codes('json', `${'['.repeat(100_000)}${']'.repeat(100_000)}`), ['document/too-deep']);
});

nesting('matchers may be nested up to a limit, directly and by name', () => {
	const deep = (open: string, close: string, levels: number): string =>
		site(`@a ${`${open} `.repeat(levels)}path /a ${`${close} `.repeat(levels)}\nrespond @a x`);
	const chain = (levels: number): string =>
		site(
			`${Array.from({ length: levels }, (_, at) => `@m${at} not @m${at + 1}`).join('\n')}\n@m${levels} path /a\nrespond @m0 x`,
		);
	assert.equal(codes('configfile', deep('not', '', 60)), []);
	assert.equal(codes('configfile', deep('(', ')', 60)), []);
	assert.equal(codes('configfile', chain(30)), []);
	for (const text of [deep('not', '', 5000), deep('(', ')', 5000), chain(5000)]) {
		assert.equal(codes('configfile', text), ['matcher/too-deep']);
	}
});

nesting.run();

const growth = suite('growth');

growth('names that refer to each other twice do not exhaust the memory', () => {
	const lines = Array.from({ length: 40 }, (_, at) => `@m${at} @m${at + 1} or @m${at + 1}`);
	assert.equal(codes('configfile', site(`${lines.join('\n')}\n@m40 path /a\nrespond @m0 x`)), ['matcher/too-many']);
});

growth('a word as long as the file takes linear, not quadratic, time', () => {
	const started = cpuMilliseconds();
	for (const text of ['{$'.repeat(200_000), '{$A:'.repeat(200_000), '{'.repeat(1_000_000), '}'.repeat(1_000_000)]) {
		const { document, diagnostics } = compiled('configfile', text);
		assert.equal(document, undefined);
		assert.ok(shownText({ diagnostics } as CompileResult).length < 10_000, 'the word is not repeated in full');
	}
	assert.ok(cpuMilliseconds() - started < 4000);
});

growth('at most a thousand mistakes are reported, and a text with more warnings is still accepted', () => {
	const { diagnostics } = compiled('configfile', site('foo\n'.repeat(3000)));
	assert.is(diagnostics.length, 1001);
	assert.ok(diagnostics.some(({ code }) => code === 'document/too-many-mistakes'));
	const warned = compiled('configfile', site(Array.from({ length: 1500 }, (_, at) => `@m${at} path /`).join('\n')));
	assert.ok(warned.document);
	assert.is(warned.diagnostics.length, 1001);
});

growth('a text of millions of lines is refused before it is parsed', () => {
	const started = cpuMilliseconds();
	assert.equal(codes('configfile', 'x\n'.repeat(3_000_000)), ['syntax/too-many-lines']);
	assert.equal(codes('compatfile', '{\n'.repeat(3_000_000)), ['syntax/too-many-lines']);
	assert.ok(cpuMilliseconds() - started < 4000);
});

growth.run();

const keys = suite('keys of JSON');

keys('names of Object.prototype are treated like any other key', () => {
	for (const key of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
		for (const text of [
			`{"${key}":{"a":1}}`,
			`{"settings":{"${key}":{}}}`,
			`{"sites":[{"addresses":[":80"],"pipeline":[],"${key}":{"pipeline":[]}}]}`,
			`{"sites":[{"addresses":[":80"],"pipeline":[{"handler":"respond","${key}":{"status":200}}]}]}`,
		]) {
			assert.equal(codes('json', text), ['document/unknown-key'], text);
		}
		assert.equal(codes('json', `{"sites":[{"addresses":[":80"],"pipeline":[{"handler":"${key}"}]}]}`), [
			'document/unknown-handler',
		]);
	}
});

keys('a number that overflows is not accepted as a number', () => {
	for (const field of ['"grace_period":1e999', '"threads":-1e999', '"http_port":1e400']) {
		assert.equal(codes('json', `{"settings":{${field}}}`), ['document/wrong-type'], field);
	}
});

keys('a value that matches none of several types is a single mistake', () => {
	const step = (status: string): string =>
		`{"sites":[{"addresses":[":80"],"pipeline":[{"handler":"respond","status":${status}}]}]}`;
	const messages = (status: string): string[] =>
		compiled('json', step(status)).diagnostics.map(({ message }) => message);
	assert.equal(messages('true'), ['`true` is not a whole number or a text.']);
	assert.equal(messages('200.5'), ['`200.5` is not a whole number or a text.']);
	assert.equal(messages('1000'), ['`1000` is out of range: it must be <= 599.']);
	assert.equal(messages('""'), ['This text cannot be empty.']);
	assert.equal(messages('101'), ['Status 101 does not end a response: use a status of 200 or above, or 103.']);
	assert.equal(messages('103'), []);
});

keys('a secret of the wrong type is not shown', () => {
	for (const secret of ['["s3cr3t"]', '{"a":"s3cr3t"}']) {
		const set = `{"set":[{"name":"X-Api-Key","value":${secret}}]}`;
		const text = `{"settings":{"admin":{"token":${secret}}},"sites":[{"addresses":[":80"],"pipeline":[{"handler":"edit_headers","response":${set}}]}]}`;
		const result = compiled('json', text);
		assert.equal(
			result.diagnostics.map(({ code }) => code),
			['document/wrong-type', 'document/wrong-type'],
		);
		assert.not.match(shownText(result), 's3cr3t');
	}
});

keys('a mistake in or after a string of megabytes is found', () => {
	const long = 'a\\u00e4'.repeat(2_000_000);
	assert.equal(codes('json', `{"a":"${long}`), ['json/syntax']);
	const [found] = compiled('json', `{"a":"${long}",}`).diagnostics;
	assert.is(found!.span!.start, long.length + 8);
});

keys('old retry fields of the wrong type are refused', () => {
	const proxy = (fields: string): string =>
		`{"sites":[{"addresses":[":80"],"pipeline":[{"handler":"proxy","upstreams":{"to":["127.0.0.1:1"]},${fields}}]}]}`;
	assert.equal(codes('json', proxy('"retry_connect_errors":false')), []);
	assert.ok(codes('json', proxy('"retry_methods":["GET"],"retry_statuses":"5xx"')).includes('document/unknown-key'));
});

keys.run();

const environment = suite('environment');

environment('the value of a variable never appears in a message, hint or code frame', () => {
	const v = '{$SECRET}';
	const text = `{
	grace_period "${v}"
	admin "${v}"
	threads "${v}"
	log { level "${v}" }
}
"${v}" {
}
:80 {
	"${v}" x
	@a "${v}" x
	@b remote_ip "${v}"
	@c path_regexp "(${v}"
	redir / /x "${v}"
	respond x "${v}"
	header "${v} x" y
	reverse_proxy "${v}" {
		lb_policy "${v}"
		"${v}" x
	}
	use "${v}"
	import "${v}"
	{let.${v}}
	respond "{${v}}"
}
`;
	for (const format of ['configfile', 'compatfile'] as const) {
		const shown = shownText(compiled(format, text));
		assert.ok(shown.includes('{$SECRET}'));
		assert.not.match(shown, /s3cr3t|Environment/i, format);
	}
});

environment('no part of a long value is shown that stands in an expression with a mistake', () => {
	const value = 's3cr3t'.repeat(20);
	const environment: Reader = { ...reader, env: () => value };
	for (const expression of ['{header.x} = "{$KEY}"', "{header.x} == '{$KEY}", '{header.x} {$KEY} == "a"']) {
		const text = `:80 {\n\t@a expression {path} == "a" && ${expression}\n\trespond @a a\n}\n`;
		const result = compile({ format: 'compatfile', text, name: 'input' }, environment);
		assert.equal(
			result.diagnostics.map(({ code }) => code),
			['expression/invalid'],
		);
		assert.not.match(shownText(result), 's3cr3t');
	}
});

environment('short values such as ports are shown', () => {
	assert.match(shownText(compiled('configfile', ':{$PORT} {\n}\n')), /99999/);
});

environment('a token whose variable is not set does not leave the Admin API without a token', () => {
	for (const format of ['configfile', 'compatfile'] as const) {
		for (const token of ['{$UNSET}', '"{$UNSET}"', '{$UNSET:}']) {
			const found = codes(format, `{\n\tadmin 127.0.0.1:2019 ${token} {\n\t\tenforce_origin\n\t}\n}\n`);
			assert.is(found.length, 1, token);
			assert.ok(['admin/empty-token', 'document/empty'].includes(found[0]!), token);
		}
		assert.equal(codes(format, '{\n\tadmin 127.0.0.1:2019 {$SECRET:x}\n}\n').includes('admin/empty-token'), false);
		assert.equal(codes(format, '{\n\tadmin 127.0.0.1:2019 {\n\t\tenforce_origin\n\t}\n}\n'), []);
	}
});

environment.run();

const suggestions = suite('suggestions');

suggestions('a name that is suggested for a misspelled one is not reported as unused', () => {
	assert.equal(codes('configfile', site('@old path /a\nredir @odl /b')), ['matcher/unknown-name']);
});

suggestions('the same holds for upstreams and named routes', () => {
	const upstream = 'upstream orders {\n to 127.0.0.1:1\n}\n';
	const unknown = compiled('configfile', `${upstream}${site('reverse_proxy upstream://oders')}`).diagnostics;
	assert.equal(
		unknown.map(({ code, label }) => `${code}: ${label}`),
		['upstream/unknown: did you mean `orders`?'],
	);
	assert.equal(codes('configfile', `&(checks) {\n respond x\n}\n${site('invoke cheks')}`), ['route/unknown']);
});

suggestions('a misspelled operator is a single mistake', () => {
	const { diagnostics } = compiled('configfile', site('@a path /a adn method GET POST\nrespond @a x'));
	assert.equal(
		diagnostics.map(({ code, label }) => `${code}: ${label}`),
		['path/no-slash: did you mean `and`?'],
	);
});

suggestions('a misspelled name without a close match does not suppress the warning', () => {
	assert.equal(codes('configfile', site('@old path /a\nredir @something /b')), [
		'matcher/unused',
		'matcher/unknown-name',
	]);
});

suggestions.run();
