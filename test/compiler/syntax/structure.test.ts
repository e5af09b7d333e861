/** The top level of a configuration and the rules for braces, in both dialects. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Dialect } from '../../../compiler/dialects/dialect.ts';
import { parseInMemory } from './memory-config.ts';

const accepted = suite('structure that is accepted');
for (const [name, text, expected] of [
	['white space and comments', ' \n# x\n\t\n', ''],
	['a byte order mark', '\ufeffa.com {\n}\n', 'site a.com\n'],
	[
		'one site without braces',
		'a.com\nrespond hi\nhandle {\n\trespond x\n}\n',
		'site a.com\n respond hi\n handle {\n  respond x\n }\n',
	],
	['an address line alone', 'a.com', 'site a.com\n'],
	['snippets before a site without braces', '(x) {\n\ty\n}\na.com\nimport x\n', 'site a.com\n y\n'],
	['commas and blanks between addresses', 'a.com, b.com c.com , d.com {\n}\n', 'site a.com b.com c.com d.com\n'],
	[
		'addresses over several lines',
		'a.com,\nb.com,\n\nc.com\n{\n\trespond hi\n}\n',
		'site a.com b.com c.com\n respond hi\n',
	],
	['two sites on one line', 'a.com {\n} b.com {\n}\n', 'site a.com\nsite b.com\n'],
	['content after the brace of a site', 'a.com { respond hi\n}\n', 'site a.com\n respond hi\n'],
	['a snippet on one line', '(x) { respond hi }\na.com {\n\timport x\n}\n', 'site a.com\n respond hi\n'],
	['options after snippets', '(x) {\n}\n{\n\timport x\n\tadmin off\n}\n', 'options\n admin off\n'],
	['a named route', '&(r) {\n\trespond hi\n}\n', 'route r\n respond hi\n'],
	['a scheme keeps a directive name from being one', 'http://handle {\n}\n', 'site http://handle\n'],
	['quoted braces', 'a.com {\n\trespond "{" `}`\n}\n', 'site a.com\n respond "{" `}`\n'],
	['glued braces as text', 'a.com {\n\trespond {host}{uri} a{b\n}\n', 'site a.com\n respond {host}{uri} a{b\n'],
	['a line that a comment continues', 'a.com {\n\trespond hi # \\\n\t200\n}\n', 'site a.com\n respond hi 200\n'],
] as const) {
	for (const dialect of ['configfile', 'compatfile'] as const) {
		accepted(`${name} (${dialect})`, () => {
			const { outline, messages } = parseInMemory(text, dialect);
			assert.equal(messages, []);
			assert.is(outline, expected);
		});
	}
}
accepted("Configfile's own blocks", () => {
	const { outline, messages } = parseInMemory('upstream api {\n\tto a:1\n}\ntest "it works" {\n\tGET /\n}\n');
	assert.equal(messages, []);
	assert.is(outline, 'upstream api\n to a:1\ntest it works\n GET /\n');
});
accepted('else goes on with the line of its brace', () => {
	const { tree, messages } = parseInMemory(
		'a.com {\n\twhen x {\n\t\ta\n\t} else when y {\n\t\tb\n\t} else {\n\t\tc\n\t}\n}\n',
	);
	assert.equal(messages, []);
	const [line] = tree.sites[0]!.lines;
	assert.is(line!.alternative!.words.map(word => word.text).join(' '), 'else when y');
	assert.is(line!.alternative!.alternative!.words.map(word => word.text).join(' '), 'else');
	assert.is(line!.alternative!.alternative!.block!.lines[0]!.words[0]!.text, 'c');
});
accepted('tests and snippets may follow a site without braces in Configfile', () => {
	const { outline, messages } = parseInMemory('a.com\nrespond hi\ntest "x" {\n\tGET /\n}\n');
	assert.equal(messages, []);
	assert.is(outline, 'test x\n GET /\nsite a.com\n respond hi\n');
});
accepted('a site knows whether it has braces', () => {
	assert.is(parseInMemory('a.com\nx\n').tree.sites[0]!.hasBraces, false);
	assert.is(parseInMemory('a.com {\n}\n').tree.sites[0]!.hasBraces, true);
});
accepted.run();

const refused = suite('structure that is refused');
function refuses(name: string, text: string, message: string, place: string, dialect: Dialect = 'compatfile'): void {
	refused(name, () => {
		const { messages, places } = parseInMemory(text, dialect);
		assert.is(messages.length, 1, messages.join('\n'));
		assert.ok(messages[0]!.includes(message), messages[0]);
		assert.ok(places[0]!.endsWith(` main:${place}`), places[0]);
	});
}
refuses('an empty file', '', 'EOF', '1:1');
refuses(
	'text after {',
	'a.com {\n\thandle { respond hi\n\t}\n}\n',
	"Unexpected next token after '{' on same line, at main:2",
	'2:11',
);
refuses(
	'{ on a new line',
	'a.com {\n\thandle\n\t{\n\t\trespond hi\n\t}\n}\n',
	"Unexpected '{' on a new line; did you mean to place the '{' on the previous line?",
	'3:2',
);
refuses('{} at the end of a line', 'a.com {\n\thandle {}\n}\n', "Unexpected '{}' at end of line", '2:9');
refuses('} behind words', 'a.com {\n\trespond hi }\n', "Unexpected '}' because no matching opening brace", '2:13');
refuses('} that closes nothing', 'a.com {\n}\n}\n', "Unexpected '}' because no matching opening brace", '3:1');
refuses(
	'text after }',
	'a.com {\n\thandle {\n\t} respond hi\n}\n',
	"Unexpected next token after '}' on same line",
	'3:2',
);
refuses('a block that is not closed', 'a.com {\n\trespond hi\n', "unexpected token 'hi', expecting '}'", '1:7');
refuses(
	'an inner block that is not closed',
	'a.com {\n\thandle {\n\t\trespond x\n}\nb.com {\n\trespond hi\n}\n',
	'unexpected EOF',
	'2:9',
);
refuses('a } too many', 'a.com {\n\thandle {\n\t}\n\t}\n\trespond hi\n}\n', 'no matching opening brace', '4:2');
refuses('a comma at the end', 'a.com,\n', 'unexpected EOF', '1:6');
refuses(
	'a snippet without braces',
	'(x)\n(y) {\n}\n',
	"syntax error: unexpected token '(y)', expecting '{', at main:2",
	'1:1',
);
refuses(
	'a snippet that is not closed',
	'(x) {\n\trespond hi\n',
	"syntax error: unexpected token 'hi', expecting '}', at main:2 import chain: ['']",
	'1:5',
);
refuses(
	'a second global block',
	'{\n\tdebug\n}\n{\n\tadmin off\n}\n',
	'server block without any key is global configuration, and if used, it must be first',
	'4:1',
);
refuses('a global block after a site', 'a.com {\n}\n{\n\tdebug\n}\n', 'server block without any key', '3:1');
refuses('a global block after a named route', '&(x) {\n}\n{\n\tdebug\n}\n', 'server block without any key', '3:1');
refuses(
	'a brace glued to an address',
	'a.com{\n\trespond hi\n}\n',
	"Site addresses cannot end with a curly brace: 'a.com{' - put a space between the token and the brace",
	'1:1',
);
refuses('a brace glued to the last word of a block', 'a.com {\n\trespond hi}\n', "Unexpected '}'", '2:12');
refuses('parameters of a snippet in Compatfile', '(x) a {\n}\nb.com {\n\timport x\n}\n', "found 'a'", '1:5');
refuses(
	'a comma inside an address',
	'a.com,b.com {\n}\n',
	"Site addresses cannot contain a comma ',': 'a.com,b.com' - put a space after the comma to separate site addresses",
	'1:1',
);
refuses(
	'a comma before {',
	'a.com, {\n\trespond hi\n}\n',
	"Expected another address but had '{' - check for extra comma",
	'1:6',
);
refuses(
	'a matcher outside of a site',
	'@foo {\n\tpath /\n}\n',
	'request matchers may not be defined globally, they must be in a site block; found @foo, at main:1',
	'1:1',
);
refuses(
	'directives outside of a site, once for those in a row',
	'\nhandle {\n\trespond hi\n}\nrespond hi\na.com {\n}\n',
	"main:2: parsed 'handle' as a site address, but it is a known directive; directives must appear in a site block",
	'2:1',
);
refuses('a named route twice', '&(x) {\n}\n&(x) {\n}\n', 'cannot have duplicate named_routes: x', '3:1');
refuses('a snippet twice', '(x) {\n}\n(x) {\n}\n', 'redeclaration of previously declared snippet x', '3:1');
refuses(
	'else on a line of its own',
	'a.com {\n\twhen x {\n\t}\n\telse {\n\t}\n}\n',
	'`else` has no `}` before it',
	'4:2',
	'configfile',
);
refuses('an upstream without a name', 'upstream {\n}\n', "after 'upstream'", '1:1', 'configfile');
refuses('a test without quotes', 'test it works {\n}\n', 'takes only one name', '1:9', 'configfile');
refuses('a quote that never closes', 'a.com {\n\trespond "hi\n}\n', 'never closed', '2:10', 'configfile');
refused('outside of blocks a quote that never closes only earns a warning in Compatfile', () => {
	const { places } = parseInMemory('a.com\nrespond "hi\n', 'compatfile');
	assert.equal(places, ['warning syntax/unterminated-quote main:2:9']);
});
refuses('a quote that never closes in a block', 'a.com {\n\trespond "hi\n}\n', "expecting '}'", '2:10');
refuses('a } after a site whose brace is on the next line', 'a.com\n{\n}\n}\n', 'no matching opening brace', '4:1');
refused('a } at the end of a site without braces only earns a warning in Compatfile', () => {
	for (const text of ['a.com\nrespond hi\n}\n', 'a.com,\nb.com\n}\n# The end.\n', 'import x\na.com\nhandle {\n}\n}']) {
		const { places } = parseInMemory(text, 'compatfile');
		assert.equal(
			places.filter(place => !place.includes('import')).map(place => place.replace(/\d+:\d+$/, '')),
			['warning syntax/stray-close main:'],
			text,
		);
		assert.match(parseInMemory(text, 'configfile').places.join(' '), 'error syntax/stray-close');
	}
});
refused('Configfile messages leave the place to the frame', () => {
	assert.equal(parseInMemory('a.com {\n}\n}\n').messages, ["Unexpected '}' because no matching opening brace."]);
});
refused('a directive with a block on the next line keeps its block', () => {
	assert.is(parseInMemory('a.com {\n\thandle\n\t{\n\t\tx\n\t}\n}\n').outline, 'site a.com\n handle {\n  x\n }\n');
});
refused('blocks nested too deep are one mistake, however deep', () => {
	for (const depth of [130, 20_000]) {
		const { places } = parseInMemory(`${'a {\n'.repeat(depth)}${'}\n'.repeat(depth)}`);
		assert.is(places.length, 1);
		assert.match(places[0]!, /^error syntax\/nesting-too-deep main:129:/);
	}
	assert.equal(parseInMemory(`${'a {\n'.repeat(128)}${'}\n'.repeat(128)}`).messages, []);
});
refused('a flood of mistakes is cut', () => {
	const { diagnostics } = parseInMemory('}\n'.repeat(5000));
	assert.is(diagnostics.length, 1000);
	assert.ok(diagnostics.some(({ code }) => code === 'syntax/too-many-mistakes'));
});
refused.run();

const environment = suite('structure and the environment');
environment('a value may bring whole directives, and spans point at its name', () => {
	const text = 'a.com {\n\t{$LINES}\n\trespond hi }\n';
	const { outline, places } = parseInMemory(text, 'compatfile', { LINES: 'root /a\nheader B c' });
	assert.is(outline, 'site a.com\n root /a\n header B c\n respond hi\n');
	assert.equal(places, ['error syntax/close-after-words main:3:13']);
});
environment('no value gets into a span', () => {
	const { tree } = parseInMemory('{$HOST} {\n\trespond {$SECRET}\n}\n', 'configfile', {
		HOST: 'a.com',
		SECRET: 'hunter2',
	});
	const { span, text } = tree.sites[0]!.lines[0]!.words[1]!;
	assert.is(text, 'hunter2');
	assert.is(span.source.text.slice(span.start, span.end), '{$SECRET}');
});
environment.run();
