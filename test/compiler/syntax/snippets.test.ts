/** The named parameters and constants of the Configfile language. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseInMemory } from './memory-config.ts';

const SECURE =
	'(secure) max_age policy="default-src self" {\n\theader Age "max-age={param.max_age}"\n\theader Policy {param.policy}\n}\n';

const parameters = suite('snippet parameters');
parameters('are passed by name, with defaults', () => {
	const { outline, messages } = parseInMemory(
		`${SECURE}a.com {\n\tuse secure max_age=600 policy="default-src 'none'"\n\tuse secure max_age=1\n}\n`,
	);
	assert.equal(messages, []);
	assert.is(
		outline,
		'site a.com\n header Age "max-age=600"\n header Policy "default-src \'none\'"\n header Age "max-age=1"\n header Policy "default-src self"\n',
	);
});
for (const [name, line, code, message] of [
	[
		'one that is missing',
		'use secure',
		'snippet/missing-parameter',
		'The snippet `secure` needs a value for `max_age`.',
	],
	[
		'one that is unknown',
		'use secure max_age=1 x=2',
		'snippet/unknown-parameter',
		'The snippet `secure` has no parameter `x`.',
	],
	[
		'one that is misspelt',
		'use secure max_aeg=1',
		'snippet/unknown-parameter',
		'The snippet `secure` has no parameter `max_aeg`.',
	],
	[
		'one that is repeated',
		'use secure max_age=1 max_age=2',
		'snippet/repeated-parameter',
		'The parameter `max_age` is given more than once.',
	],
	['one without a name', 'use secure max_age=1 600', 'snippet/positional', '`600` is not `name=value`.'],
	['an unknown snippet', 'use secur max_age=1', 'snippet/unknown', 'There is no snippet `secur`.'],
	['no snippet', 'use', 'import/no-argument', "wrong argument count or unexpected line ending after 'use'."],
	[
		'a missing one at an import',
		'import secure',
		'snippet/missing-parameter',
		'The snippet `secure` needs a value for `max_age`.',
	],
] as const) {
	parameters(`${name} is one mistake`, () => {
		const { diagnostics } = parseInMemory(`${SECURE}a.com {\n\t${line}\n\trespond hi\n}\n`);
		assert.equal(
			diagnostics.map(({ code, message }) => [code, message]),
			[[code, message]],
		);
	});
}
parameters('the head of a snippet is checked', () => {
	const { places } = parseInMemory('(x) a a=1 "b c" 9d {\n\trespond {param.a}\n}\na.com {\n\tuse x a=1\n}\n');
	assert.equal(places, [
		'error snippet/repeated-parameter main:1:7',
		'error snippet/parameter-name main:1:11',
		'error snippet/parameter-name main:1:17',
	]);
});
parameters('a name the snippet does not have is found inside it, once however often it is used', () => {
	const { diagnostics } = parseInMemory(
		'(x) color {\n\trespond {param.colour}\n}\na.com {\n\tuse x color=1\n\tuse x color=2\n}\n',
	);
	assert.is(diagnostics.length, 1);
	assert.is(diagnostics[0]!.label, 'did you mean `{param.color}`?');
	assert.is(diagnostics[0]!.span!.source.importedAs, 'x');
});
parameters('outside of a snippet there are none', () => {
	assert.equal(parseInMemory('a.com {\n\trespond {param.x}\n}\n').messages, [
		'`{param.x}` is used outside of a snippet.',
	]);
});
parameters('Compatfile knows nothing of them', () => {
	const { outline } = parseInMemory(
		'a.com {\n\tuse secure max_age=1\n\tlet x 1\n\trespond {let.x} {param.y}\n}\n',
		'compatfile',
	);
	assert.is(outline, 'site a.com\n use secure max_age=1\n let x 1\n respond {let.x} {param.y}\n');
});
parameters.run();

const constants = suite('constants');
constants('stand for one value or a list, in addresses too', () => {
	const { outline, messages } = parseInMemory(
		'let port 8080\nlet nets 10.0.0.0/8 "a b"\n:{let.port} {\n\tallow {let.nets} x{let.port}y "{let.port} z"\n}\n',
	);
	assert.equal(messages, []);
	assert.is(outline, 'site :8080\n allow 10.0.0.0/8 "a b" x8080y "8080 z"\n');
});
constants('of a site hide those of the file, there only', () => {
	const { outline, messages } = parseInMemory('let x 1\na.com {\n\tlet x 2\n\ta {let.x}\n}\nb.com {\n\ta {let.x}\n}\n');
	assert.equal(messages, []);
	assert.is(outline, 'site a.com\n a 2\nsite b.com\n a 1\n');
});
constants('may be made of others', () => {
	assert.is(
		parseInMemory('let a 1\nlet b {let.a}2 {let.a}\nc.com {\n\tx {let.b}\n}\n').outline,
		'site c.com\n x 12 1\n',
	);
});
constants('are not replaced in what they hold', () => {
	assert.is(
		parseInMemory('(s) {\n\tx {args[0]}\n}\nc.com {\n\timport s "{host}"\n}\n').outline,
		'site c.com\n x "{host}"\n',
	);
});
for (const [name, text, expected] of [
	['unknown', 'let port 1\na.com {\n\tx {let.prot} {let.port}\n}\n', 'error let/unknown main:3:4'],
	['defined twice', 'let x 1\nlet x 2\na.com {\n\ty {let.x}\n}\n', 'error let/defined-twice main:2:5'],
	['used before it is defined', 'a.com {\n\ty {let.x}\n}\nlet x 1\n', 'error let/unknown main:2:4'],
	['a list inside a word', 'let x 1 2\na.com {\n\ty z{let.x}\n}\n', 'error let/list-inside-word main:3:4'],
	['without a value', 'let x\na.com {\n}\n', 'error let/no-value main:1:5'],
	['without a proper name', 'let 1x 2\na.com {\n}\n', 'error let/name main:1:5'],
	['in a nested block', 'a.com {\n\thandle {\n\t\tlet x 1\n\t}\n}\n', 'error let/misplaced main:3:3'],
	['never used', 'let x 1\na.com {\n\tlet y 2\n\tz {let.y}\n}\n', 'warning let/unused main:1:5'],
] as const) {
	constants(`one that is ${name} is reported`, () => assert.equal(parseInMemory(text).places, [expected]));
}
constants('a snippet never used is a warning, unless something else is wrong or it came from a file', () => {
	assert.equal(parseInMemory('(x) {\n}\na.com {\n}\n').places, ['warning snippet/unused main:1:1']);
	assert.equal(parseInMemory('(x) {\n}\na.com {\n\timport y\n}\n').places, ['error import/not-found main:4:9']);
	assert.equal(parseInMemory({ main: 'import lib\na.com {\n}\n', lib: '(x) {\n}\n' }).places, []);
});
constants.run();
