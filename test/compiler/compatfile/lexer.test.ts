/** The lexer of the compatible language: a test for each statement of its documentation. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseInMemory } from '../syntax/memory-config.ts';

/**
 * A statement of the documentation, lines of a site, and the tree into which they are parsed. Quoted words keep their quotes;
 * heredocs are in `<>`.
 */
const TOKENS: readonly (readonly [statement: string, lines: string, outline: string])[] = [
	['a comment begins at the start of a word', 'a #b c\nd', ' a\n d\n'],
	['and not inside of one', 'a#b c', ' a#b c\n'],
	['a comment that ends in a backslash continues the line', 'a #b \\\nc', ' a c\n'],
	['a carriage return is nothing, not even between words', 'a\rb c\r\nd', ' ab c\n d\n'],
	['but stays in double quotes', '"a\rb"', ' "a\rb"\n'],
	['and in backquotes', '`a\rb`', ' `a\rb`\n'],
	['quotes inside of a word are text', 'a"b c"', ' a"b c"\n'],
	['a closing quote ends the word', '"a"b', ' "a" b\n'],
	['quotes may hold nothing', 'a ""', ' a ""\n'],
	['a quote goes over lines', 'a "b\nc" d', ' a "b\nc" d\n'],
	['an escaped quote', 'a "b \\"c\\" d"', ' a "b "c" d"\n'],
	['no other escape', 'a "b\\nc \\\\"', ' a "b\\nc \\\\"\n'],
	['a backslash consumes what follows it', 'a "b\\\\" c', ' a "b\\\\" c\n'],
	['backquotes have no escapes', 'a `b\\`c', ' a `b\\` c\n'],
	['a quote that does not end is a word', 'a "b c', ' a b c\n'],
	['a lone quote at the end is not a word', 'a "', ' a\n'],
	['a backslash before the line end continues the line', 'a \\\nb \\\n\\\nc\nd', ' a b c\n d\n'],
	['elsewhere a backslash stays', 'a foo\\bar \\x', ' a foo\\bar \\x\n'],
	['it does not keep words together', 'foo\\ bar', ' foo bar\n'],
	['escaped quotes inside a word', 'a b\\"x', ' a b\\"x\n'],
	['a backslash right before a quote that begins a word', '\\"""', ' """\n'],
	['a backslash before < is dropped, and there is no heredoc', 'a \\<<X', ' a <<X\n'],
	['a quoted brace is an argument', 'a "{" `}`', ' a "{" `}`\n'],
	['glued braces are text', 'foo{ }bar {foo} a{}b', ' foo{ }bar {foo} a{}b\n'],
	['white space of Unicode separates', 'a\u00a0b\u2003c\u3000d', ' a b c d\n'],
	['a heredoc: padding goes, more stays', 'a <<E\n\t\tx\n\t\t\ty\n\n\t\tE 200', ' a <x\n\ty\n> 200\n'],
	['a heredoc with no line is empty', 'a <<E\nE b', ' a <> b\n'],
	['it ends at the first place of its marker', 'a <<E\nxEy', ' a <> y\n'],
	['carriage returns in a heredoc go', 'a <<E\r\nx\ry\r\nE', ' a <xy>\n'],
	['a heredoc holds quotes, braces and comments', 'a <<E\n"x" { } # y\nE', ' a <"x" { } # y>\n'],
	['a marker may hold dashes, underscores and digits', 'a <<A-b_1\nx\nA-b_1', ' a <x>\n'],
	['white space before the line end makes it a word', 'a <<E \nb', ' a <<E\n b\n'],
	['and so does anything after it', 'a <<E b\nc', ' a <<E b\n c\n'],
	['a quoted << is text', 'a "<<E"\nb', ' a "<<E"\n b\n'],
	['the end of the text makes it a word', 'a <<E', ' a <<E\n'],
	['words after a quote over lines are on its line', 'a "b\nc" d\ne', ' a "b\nc" d\n e\n'],
	['words after a heredoc are on its line', 'a <<E\n1\n2\n3\nE d\ne', ' a <1\n2\n3> d\n e\n'],
];

const tokens = suite('lexer');
for (const [statement, lines, outline] of TOKENS) {
	tokens(statement, () => {
		const { outline: tree, messages } = parseInMemory(`:80\n${lines}`, 'compatfile');
		assert.is(tree, `site :80\n${outline}`, messages.join('\n'));
	});
}

/** An invalid file, and the expected message. */
const ERRORS: readonly (readonly [statement: string, text: string, message: string])[] = [
	['nothing at all', '', 'EOF'],
	[
		'a heredoc without a marker',
		':80\nrespond <<\nx\n',
		'missing opening heredoc marker on line #2; must contain only alphanumeric characters, dashes and underscores; got empty string',
	],
	['a third <', ':80\nrespond <<<X\nx\nX\n', "too many '<' for heredoc on line #2; only use two, for example <<END"],
	[
		'a heredoc marker with an invalid character',
		':80\nrespond <<a!\nx\na!\n',
		"heredoc marker on line #2 must contain only alphanumeric characters, dashes and underscores; got 'a!'",
	],
	[
		'a heredoc marker with a tab',
		':80\nrespond <<a\t\nx\n',
		"heredoc marker on line #2 must contain only alphanumeric characters, dashes and underscores; got 'a\t'",
	],
	[
		'heredoc lines with different indentation',
		':80\nrespond <<E\n\t\tx\n  y\n\t\tE\n',
		'mismatched leading whitespace in heredoc <<E on line #4 [  y], expected whitespace [\t\t] to match the closing marker',
	],
	['an unclosed heredoc', ':80\nrespond <<E\nx\n', 'incomplete heredoc <<E on line #4, expected ending marker E'],
];

const refused = suite('lexer errors');
for (const [statement, text, message] of ERRORS) {
	refused(statement, () => {
		const { messages } = parseInMemory(text, 'compatfile');
		assert.ok(
			messages.some(one => one.includes(message)),
			`wants ${message}\ngot   ${messages.join('\n      ')}`,
		);
	});
}

refused('a file with only white space and comments is an empty configuration', () => {
	for (const text of ['\n', '# x', ' \t\n# x\n', '\ufeff'])
		assert.equal(parseInMemory(text, 'compatfile').messages, [], text);
});

const ENVIRONMENT: readonly (readonly [statement: string, lines: string, outline: string])[] = [
	['its value', 'a {$A} x{$A}y "{$A}" `{$A}`', ' a 1 x1y "1" `1`\n'],
	['nothing where it is unset', 'a [{$NONE}] "{$NONE}"', ' a [] ""\n'],
	['a default for what is unset', 'a {$NONE:b}', ' a b\n'],
	['an empty value is no reason for the default', 'a [{$EMPTY:b}]', ' a []\n'],
	['name and default part at the first colon', 'a {$NONE:b:c}', ' a b:c\n'],
	['a default cannot hold a brace', 'a {$NONE:{b}}', ' a {b}\n'],
	['{$} stays', 'a {$}', ' a {$}\n'],
	['without its brace it stays', 'a {$A', ' a {$A\n'],
	['what is inserted is not looked at again', 'a {$NESTED}', ' a {$A}\n'],
	['it may bring words, lines and braces', '{$LINES}', ' a {\n  b\n }\n c d\n'],
	['it may bring quotes', 'a {$QUOTED}', ' a "b c"\n'],
	['a backslash does not keep it', 'a \\{$A}', ' a \\1\n'],
	['in heredocs', 'a <<E\n{$A}\nE', ' a <1>\n'],
	['in comments too', '# {$NEWLINE}b', ' b\n'],
];
const environment = suite('environment spans');
for (const [statement, lines, outline] of ENVIRONMENT) {
	environment(statement, () => {
		const env = { A: '1', EMPTY: '', NESTED: '{$A}', LINES: 'a {\nb\n}\nc d', QUOTED: '"b c"', NEWLINE: '\n' };
		assert.is(parseInMemory(`:80\n${lines}`, 'compatfile', env).outline, `site :80\n${outline}`);
	});
}

tokens.run();
refused.run();
environment.run();
