/** For any text, splitting a configuration at its top level gives pieces that together have the same tokens as the whole text. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Dialect } from '../../../compiler/dialects/dialect.ts';
import { Source } from '../../../compiler/source/source.ts';
import { parseSubstitutedText } from '../../../compiler/syntax/config-parser.ts';
import { cutAtTopLevel } from '../../../compiler/syntax/cut-text.ts';
import { tokenize } from '../../../compiler/syntax/tokens.ts';
import { outlineLines } from './memory-config.ts';
import { Random, randomFragments, randomWellFormedText } from './random-text.ts';

function cutPieces(text: string, dialect: Dialect = 'configfile'): string[] | undefined {
	return cutAtTopLevel(text, dialect)?.map(({ start, end }) => text.slice(start, end));
}

/** Returns all tokens except line ends, with their offsets and, for words, their quote and value. */
function tokenTexts(text: string, dialect: Dialect, offset = 0): string[] {
	return tokenize(text, dialect)
		.filter(({ tokenType }) => tokenType.name !== 'Newline')
		.map(({ tokenType, image, startOffset, payload }) =>
			JSON.stringify([tokenType.name, startOffset + offset, image, payload?.quote, payload?.text]),
		);
}

/** Parses the given texts one after another. Returns their lines and the codes of structural errors. */
function structureOf(texts: readonly string[], dialect: Dialect): { lines: string; mistakes: string[] } {
	const mistakes: string[] = [];
	let lines = '';
	for (const text of texts) {
		const whole = new Source({ name: 'f', text });
		const source =
			texts.length === 1 ? whole : new Source({ name: 'f', text, cutPlace: { wholeText: whole, offset: 0 } });
		const unchanged = { text, originalStart: (offset: number) => offset, originalEnd: (offset: number) => offset };
		const file = parseSubstitutedText(source, unchanged, dialect, ({ code }) => mistakes.push(code));
		// Leaves out lines without words, which come from a `{` at the beginning of a line.
		const named = file.lines.filter(line => line.words.length > 0);
		lines += outlineLines(named, 0);
	}
	return { lines, mistakes };
}

const cutting = suite('cutting');

cutting('a piece ends with the line on which a block of file level closes', () => {
	assert.equal(cutPieces('{\n\tdebug\n}\n(s) {\n\ta\n}\n\na.com {\n\tb {\n\t\tc\n\t}\n} # end\nlet x 1\nb.com {\n}'), [
		'{\n\tdebug\n}\n',
		'(s) {\n\ta\n}\n',
		'a.com {\n\tb {\n\t\tc\n\t}\n} # end\n',
		'let x 1\n',
		'b.com {\n}',
	]);
});
cutting('comments and blank lines before a piece are not part of it', () => {
	assert.equal(cutPieces('# a\n\n  # b\na {\n}\n\n# c\n'), ['a {\n}\n']);
	assert.equal(cutPieces('# a \\\nb {\n# c\n}\n'), ['# a \\\nb {\n# c\n}\n']);
	assert.equal(cutPieces('# a\n'), []);
});
cutting('quotes, heredocs, comments and continued lines hide braces', () => {
	for (const hidden of ['"\n}\na {\n"', '`}\n{\n`', '<<E\n}\n} {\n\tE', '# }\n', '# { \\\n', 'x{y}', '\\\n}x']) {
		const text = `a.com {\n\trespond ${hidden}\n}\nb.com {\n}\n`;
		assert.equal(cutPieces(text)?.length, 2, hidden);
	}
	assert.equal(cutPieces('(s) a="}\n{\n" {\n}\nb {\n}\n')?.length, 2);
	assert.equal(cutPieces('use s a="\n}\n"\nb {\n}\n'), ['use s a="\n}\n"\n', 'b {\n}\n']);
	assert.equal(cutPieces('import s {\n\tx\n}\na.com,\nb.com {\n}\n'), ['import s {\n\tx\n}\n', 'a.com,\nb.com {\n}\n']);
});
cutting('text after a closing brace stays with it', () => {
	assert.equal(cutPieces('a {\n} b {\n}\nc {\n}\n'), ['a {\n} b {\n}\n', 'c {\n}\n']);
	assert.equal(cutPieces('a {\n} # \\\nb {\n}\nc {\n}\n'), ['a {\n} # \\\nb {\n}\n', 'c {\n}\n']);
});
cutting('braces that do not balance cannot be cut', () => {
	assert.is(cutPieces('a {\n'), undefined);
	assert.is(cutPieces('}\na {\n}\n'), undefined);
	assert.is(cutPieces('a {\n}}\n'), undefined);
});
cutting('tokens and structure of the pieces are those of the whole', () => {
	const random = new Random(11);
	let cut = 0;
	for (let round = 0; round < 1500; round++) {
		const text =
			random.below(2) === 0
				? randomFragments(random)
				: Array.from({ length: 1 + random.below(4) }, () => randomWellFormedText(random, 0)).join(
						random.of(['', '\n', ' ']),
					);
		for (const dialect of ['configfile', 'compatfile'] as const) {
			const extents = cutAtTopLevel(text, dialect);
			if (!extents || extents.length < 2) continue;
			cut++;
			const parts = extents.map(({ start, end }) => text.slice(start, end));
			const found = parts.flatMap((part, index) => tokenTexts(part, dialect, extents[index]!.start));
			assert.equal(found, tokenTexts(text, dialect), JSON.stringify(text));
			assert.equal(structureOf(parts, dialect), structureOf([text], dialect), JSON.stringify(text));
		}
	}
	assert.ok(cut > 400, `only ${cut} texts were cut`);
});

cutting.run();
