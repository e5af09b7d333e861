/** Imports of snippets, files and globs, with arguments and blocks. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseInMemory } from './memory-config.ts';

const accepted = suite('imports');
accepted('a file, relative to the file that imports it', () => {
	const { outline, messages, tree } = parseInMemory({
		main: 'a.com {\n\timport sub/one\n}\n',
		'sub/one': 'respond one\nimport two\n',
		'sub/two': 'respond two\n',
	});
	assert.equal(messages, []);
	assert.is(outline, 'site a.com\n respond one\n respond two\n');
	assert.equal(tree.files, ['/config/main', '/config/sub/one', '/config/sub/two']);
});
accepted('sites and snippets from files', () => {
	const { outline, messages } = parseInMemory({
		main: 'import snippets\nimport sites/*\n',
		snippets: '(x) {\n\trespond {args[0]}\n}\n',
		'sites/b': 'b.com {\n\timport x 1\n}\n',
		'sites/a': 'a.com\n{\n\timport x 2\n}\n',
		'sites/.hidden': 'c.com {\n}\n',
	});
	assert.equal(messages, []);
	assert.is(outline, 'site a.com\n respond 2\nsite b.com\n respond 1\n');
});
accepted('globs with one wildcard in any part', () => {
	const files = {
		main: 'a.com {\n\timport sites/*/x.conf\n\timport f?\n}\n',
		'sites/1/x.conf': 'a',
		'sites/2/x.conf': 'b',
		f1: 'c',
	};
	assert.is(parseInMemory(files).outline, 'site a.com\n a\n b\n c\n');
});
accepted('arguments by index and by range, in quotes too', () => {
	const { outline, messages } = parseInMemory(
		'(x) {\n\ta {args[0]} x{args[1]}y "{args[0]} z"\n\tb {args[:]}\n\tc {args[1:]} {args[:1]} {args[0:2]}\n\td {args[2:]}\n}\na.com {\n\timport x 1 "2 3"\n}\n',
	);
	assert.equal(messages, []);
	assert.is(outline, 'site a.com\n a 1 x2 3y "1 z"\n b 1 "2 3"\n c "2 3" 1 1 "2 3"\n d\n');
});
accepted('a file imported twice with different arguments', () => {
	const files = { main: 'a.com {\n\timport f 1\n\timport f 2\n}\n', f: 'log {args[0]}\nrespond hi\n' };
	const { outline, tree } = parseInMemory(files, 'compatfile');
	assert.is(outline, 'site a.com\n log 1\n respond hi\n log 2\n respond hi\n');
	const [first, , second] = tree.sites[0]!.lines;
	assert.is(first!.span.source.importedAt!.start, 16);
	assert.is(second!.span.source.importedAt!.start, 28);
	assert.is(second!.span.source.text, files.f);
	assert.equal(tree.files, ['/config/main', '/config/f']);
});
accepted('arguments are left alone in snippets that an imported file defines', () => {
	const files = { main: 'import f file\na.com {\n\timport x own\n}\n', f: '(x) {\n\trespond {args[0]}\n}\n' };
	assert.is(parseInMemory(files).outline, 'site a.com\n respond own\n');
});
accepted('a backslash before a brace is dropped in what is imported', () => {
	const text = '(x) {\n\ta \\{b} {c}\n}\na.com {\n\timport x\n\ta \\{b} {c}\n}\n';
	assert.is(parseInMemory(text).outline, 'site a.com\n a {b} {c}\n a \\{b} {c}\n');
});
accepted('{block} and {blocks.NAME} place the lines of the import', () => {
	const text = `(x) {
	header {
		{blocks.h}
	}
	respond {blocks.r}
	handle {
		{block}
	}
	{blocks.missing}
}
a.com {
	import x {
		h {
			X-A b
			-Server
		}
		r "hello" 200
	}
	import x
}
`;
	const { outline, messages, tree } = parseInMemory(text);
	assert.equal(messages, []);
	assert.is(
		outline,
		'site a.com\n header {\n  X-A b\n  -Server\n }\n respond "hello" 200\n handle {\n  h {\n   X-A b\n   -Server\n  }\n  r "hello" 200\n }\n header {\n }\n respond\n handle {\n }\n',
	);
	const placed = tree.sites[0]!.lines[0]!.block!.lines[0]!;
	assert.is(placed.span.source.importedAt, undefined);
	assert.is(placed.span.source.text.slice(placed.span.start, placed.span.end), 'X-A b');
});
accepted('a snippet may wrap a whole site', () => {
	const text = '(site) {\n\thttps://{args[0]} { {block} }\n}\nimport site a.com {\n\trespond hi\n}\n';
	const { outline, messages } = parseInMemory(text, 'compatfile');
	assert.equal(messages, []);
	assert.is(outline, 'site https://a.com\n respond hi\n');
});
accepted('a block is passed on to the block of another snippet', () => {
	const text =
		'(inner) {\n\theader {\n\t\t{block}\n\t}\n}\n(outer) {\n\timport inner {\n\t\t{blocks.foo}\n\t}\n}\na.com {\n\timport outer {\n\t\tfoo {\n\t\t\tA b\n\t\t}\n\t}\n}\n';
	assert.is(parseInMemory(text).outline, 'site a.com\n header {\n  A b\n }\n');
});
accepted.run();

const refused = suite('imports that are wrong');
function refuses(name: string, line: string, expected: string, files: { [path: string]: string } = {}): void {
	refused(name, () => {
		const { messages, places } = parseInMemory(
			{ main: `(known) {\n}\na.com {\n\t${line}\n\trespond hi\n}\n`, ...files },
			'compatfile',
		);
		assert.is(messages.length, 1, messages.join('\n'));
		assert.ok(messages[0]!.includes(expected), messages[0]);
		assert.match(places[0]!, name === 'with an unnamed block' ? / main:5:/ : / main:4:/);
	});
}
refuses('without an argument', 'import', "wrong argument count or unexpected line ending after 'import'");
refuses('of nothing', 'import ""', 'Import requires a non-empty filepath');
refuses('of a missing file', 'import nothing', 'File to import not found: nothing');
refuses('of a folder', 'import sub', 'Could not import sub: is a directory', { 'sub/a': 'x' });
refuses('of several wildcards', 'import */*', 'Glob pattern may only contain one wildcard (*), but has others: */*');
refuses('of a character class', 'import [ab]', 'Glob pattern may only contain one wildcard (*), but has others: [ab]');
refuses('of a glob without matches, a warning', 'import *.none', 'No files match the import pattern *.none');
refuses('of a blank file, a warning', 'import blank', 'The imported file blank is blank.', { blank: '# nothing\n' });
refuses(
	'with an unnamed block',
	'import known {\n\t{\n\t\ta\n\t}\n}'.replaceAll('\n', '\n\t'),
	'anonymous blocks are not supported',
);
refused.run();

const chains = suite('import chains');
chains('a cycle of snippets names both ends', () => {
	const { messages } = parseInMemory(
		'(import1) {\n\timport import2\n}\n(import2) {\n\timport import1\n}\na.com {\n\timport import1\n}\n',
		'compatfile',
	);
	assert.is(messages.length, 1);
	assert.ok(messages[0]!.includes('a cycle of imports exists between main:import2 and main:import1'), messages[0]);
	assert.ok(
		messages[0]!.endsWith(", at main:5 import chain ['main:8 (import import1)', 'main:2 (import import2)']"),
		messages[0],
	);
});
chains('a file that imports itself, directly or not', () => {
	assert.match(
		parseInMemory({ main: 'import main\n' }).messages[0]!,
		'a cycle of imports exists between main and main',
	);
	const { messages } = parseInMemory({ main: 'import a\n', a: 'import b\n', b: 'import a\n' });
	assert.equal(messages, ['a cycle of imports exists between b and a.']);
});
chains('a snippet may be imported in the block that is passed to it', () => {
	const { outline, messages } = parseInMemory(
		'(x) {\n\ta\n\t{block}\n}\nb.com {\n\timport x {\n\t\timport x\n\t}\n}\n',
	);
	assert.equal(messages, []);
	assert.is(outline, 'site b.com\n a\n a\n');
});
chains('an unknown name suggests a snippet or a file', () => {
	const hints = parseInMemory({
		main: '(secure) {\n}\na.com {\n\timport secur\n\timport sub/fil\n}\n',
		'sub/file': 'x',
	}).diagnostics;
	assert.equal(
		hints.map(({ hint }) => hint),
		['Did you mean `secure`?', 'Did you mean `sub/file`?'],
	);
});
chains('a snippet that is defined further down is distinguished from a missing one', () => {
	const { diagnostics } = parseInMemory('a.com {\n\timport late\n}\n(late) {\n}\n', 'compatfile');
	assert.match(diagnostics[0]!.hint!, 'is defined further down');
});
chains('arguments out of range stay and are a warning in Compatfile, an error in Configfile', () => {
	const text = '(x) {\n\ta {args[1]} {args[1:5]} {args.0}\n}\na.com {\n\timport x 1\n}\n';
	const compat = parseInMemory(text, 'compatfile');
	assert.is(compat.outline, 'site a.com\n a {args[1]} {args[1:5]} 1\n');
	assert.equal(
		compat.places.map(place => place.split(' ').slice(0, 2).join(' ')),
		['warning import/no-such-argument', 'warning import/no-such-argument', 'warning import/old-argument'],
	);
	assert.ok(parseInMemory(text).diagnostics.every(({ severity }) => severity === 'error'));
});
for (const [name, head, step] of [
	['lines', '(s0) {\n\ta\n\tb\n}\n', (at: number) => `(s${at}) {\n\timport s${at - 1}\n\timport s${at - 1}\n}\n`],
	['words', '(s0) {\n\ta {args[:]}\n}\n', (at: number) => `(s${at}) {\n\timport s${at - 1} {args[:]} {args[:]}\n}\n`],
	['text', '(s0) {\n\ta {args[0]}\n}\n', (at: number) => `(s${at}) {\n\timport s${at - 1} {args[0]}{args[0]}\n}\n`],
] as const) {
	chains(`imports that double their ${name} again and again are stopped`, () => {
		const steps = Array.from({ length: 60 }, (_, index) => step(index + 1)).join('');
		const { places } = parseInMemory(`${head}${steps}a.com {\n\timport s60 xx yy\n}\n`);
		assert.is(places.length, 1);
		assert.match(places[0]!, /^error import\/too-much /);
	});
}
chains('a long chain of snippets is stopped, not a crash', () => {
	const steps = Array.from({ length: 5000 }, (_, at) => `(s${at + 1}) {\n\th {\n\t\timport s${at}\n\t}\n}\n`).join('');
	const { places } = parseInMemory(`(s0) {\n\ta\n}\n${steps}a.com {\n\timport s5000\n}\n`);
	assert.is(places.length, 1);
	assert.match(places[0]!, /^error import\/too-deep /);
});
chains.run();
