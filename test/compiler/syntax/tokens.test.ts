/** Words and line ends: quoting, escapes, comments, continuations, heredocs, and tokens that are always separate words. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Dialect } from '../../../compiler/dialects/dialect.ts';
import { tokenize } from '../../../compiler/syntax/tokens.ts';

/**
 * Returns tokens as text: a quoted word as the first letter of the quote's name and the word in JSON, such as `d"a"`, braces that
 * open and close blocks as `<{>` and `<}>`, and line ends as `⏎`.
 */
function tokenText(text: string, dialect: Dialect = 'compatfile'): string {
	const tokens = tokenize(text, dialect).map(({ tokenType, image, payload }) => {
		if (tokenType.name === 'Newline') return '⏎';
		if (tokenType.name === 'Open' || tokenType.name === 'Close') return `<${image[0]}>`;
		if (!payload) return image;
		if (payload.text === undefined) return undefined;
		return payload.quote === 'none' ? payload.text : `${payload.quote[0]}${JSON.stringify(payload.text)}`;
	});
	return tokens.filter(token => token !== undefined).join(' ');
}

const words = suite('words');
for (const [text, expected] of [
	['a b\tc\u00a0d\u3000e', 'a b c d e'],
	['a\r\nb', 'a ⏎ b'],
	['a\rb c', 'ab c'],
	['{\rx y', '{x y'],
	['a#b # c\nd', 'a#b ⏎ d'],
	['"a"#b\nc', 'd"a" ⏎ c'],
	['a"b c"', 'a"b c"'],
	['"a"b', 'd"a" b'],
	['""', 'd""'],
	['"a\nb"', 'd"a\\nb"'],
	['"a\\"b\\n\\\\"', 'd"a\\"b\\\\n\\\\\\\\"'],
	['"a\r\n"', 'd"a\\r\\n"'],
	['`a\\`b', 'b"a\\\\" b'],
	['\\"x', '\\x'],
	['foo\\ bar', 'foo bar'],
	['foo\\"x', 'foo\\"x'],
	['\\"""', 'd"\\""'],
	['{ } {a} {} "{" a{ }b', '<{> <}> {a} {} d"{" a{ }b'],
	['{\\\nx', '<{> x'],
	['a \\\n  b', 'a b'],
	['a\\\n\\\nb', 'a b'],
	['a \\\r\n b', 'a b'],
	['a # c \\\nb', 'a b'],
	['a # c\nb', 'a ⏎ b'],
	['\\<<E\nx', '<<E ⏎ x'],
	['<a <<E x', '<a <<E x'],
	['<<', '<<'],
	['"open', 'open'],
	['a "', 'a'],
	['"', ''],
	['a \\', 'a'],
	['', ''],
] as const) {
	words(`${JSON.stringify(text)} is ${expected || 'nothing'}`, () => {
		assert.is(tokenText(text), expected);
	});
}
words('a quote inside a word opens a value only after NAME= in the head of a snippet and after use', () => {
	assert.is(tokenText('use a b="c d"e', 'configfile'), 'use a b=c d e');
	assert.is(tokenText('(a) b=`c d`', 'configfile'), '(a) b=c d');
	assert.is(tokenText('x b="c d"', 'configfile'), 'x b="c d"');
	assert.is(tokenText('"use" b="c d"', 'configfile'), 'd"use" b="c d"');
	assert.is(tokenText('use a b="c d"', 'compatfile'), 'use a b="c d"');
});
words.run();

const heredocs = suite('heredocs');
for (const [text, expected] of [
	['<<E\na\nE', 'h"a"'],
	['<<E\n  a\n\n    b\n  E 200', 'h"a\\n\\n  b" 200'],
	['<<E\nE', 'h""'],
	['<<E\na\nEb', 'h"a" b'],
	['<<E\r\na\r\nb\r\nE', 'h"a\\nb"'],
	['<<E\n{ "a` # \\\nE', 'h"{ \\"a` # \\\\"'],
	['<<E-1_x\na\nE-1_x', 'h"a"'],
	['<<E \na', '<<E ⏎ a'],
	['<<E', '<<E'],
] as const) {
	heredocs(`${JSON.stringify(text)} is ${expected}`, () => assert.is(tokenText(text), expected));
}
for (const [name, text, message] of [
	[
		'no marker',
		'\n\nx <<\n',
		'missing opening heredoc marker on line #3; must contain only alphanumeric characters, dashes and underscores; got empty string',
	],
	['three signs', 'x <<<END\n', "too many '<' for heredoc on line #1; only use two, for example <<END"],
	[
		'a marker of other characters',
		'x <<END!\n',
		"heredoc marker on line #1 must contain only alphanumeric characters, dashes and underscores; got 'END!'",
	],
	[
		'a tab in the marker',
		'x <<E\tx\n',
		"heredoc marker on line #1 must contain only alphanumeric characters, dashes and underscores; got 'E\tx'",
	],
	[
		'indentation of another kind',
		'x\ny <<END\n  a\n\tb\n  END',
		'mismatched leading whitespace in heredoc <<END on line #4 [\tb], expected whitespace [  ] to match the closing marker',
	],
	['no end', 'x <<END\na\nEN D', 'incomplete heredoc <<END on line #3, expected ending marker END'],
] as const) {
	heredocs(`${name} is a mistake`, () => {
		const problems = tokenize(text, 'compatfile').flatMap(({ payload }) => payload?.problem ?? []);
		assert.equal(
			problems.map(problem => problem.message(text.slice(0, problem.lineOffset).split('\n').length)),
			[message],
		);
	});
}
heredocs('the text of a heredoc with a bad marker is not read as directives', () => {
	assert.is(tokenText('a <<<END\nb c\nEND 200\nd'), 'a <<<END 200 ⏎ d');
});
heredocs.run();
