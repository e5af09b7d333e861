/** What pages do with texts. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { markData, splitMarked } from '../../../../compiler/directives/templates/page-source.ts';
import {
	humanize,
	pathEscape,
	splitFrontMatter,
	stripHtml,
} from '../../../../compiler/directives/templates/page-texts.ts';

const texts = suite('texts of pages');

const STRIPPED: readonly (readonly [html: string, text: string])[] = [
	['a <b>c</b> d', 'a c d'],
	['<p title="a > b">x</p>', 'x'],
	['a < b', 'a < b'],
	['a <<b>c', 'a <c'],
	['', ''],
];
for (const [html, text] of STRIPPED) texts(`stripHTML ${html}`, () => assert.is(stripHtml(html), text));

const NOW = Date.UTC(2026, 0, 2, 12);
const HUMAN: readonly (readonly [format: string, data: string, text: string])[] = [
	['size', '0', '0 B'],
	['size', '9', '9 B'],
	['size', '999', '999 B'],
	['size', '1000', '1.0 kB'],
	['size', '2048', '2.0 kB'],
	['size', '82854982', '83 MB'],
	['size', '18446744073709551615', '18 EB'],
	['time', 'Fri, 02 Jan 2026 12:00:00 +0000', 'now'],
	['time', 'Fri, 02 Jan 2026 12:59:00 +0100', '1 minute ago'],
	['time:2006-01-02 15:04', '2026-01-02 09:00', '3 hours ago'],
	['time:2006-01-02', '2026-01-03', '12 hours from now'],
	['time:2006-01-02', '2025-12-01', '1 month ago'],
	['time:2006-01-02', '2023-01-01', '3 years ago'],
	['time:2006-01-02', '1900-01-01', 'a long while ago'],
];
for (const [format, data, text] of HUMAN) {
	texts(`humanize ${format} ${data}`, () => assert.is(humanize(format, data, NOW), text));
}
texts('humanize refuses what it cannot read', () => {
	assert.throws(() => humanize('size', '-1', NOW), /size cannot be parsed: "-1"/);
	assert.throws(() => humanize('time', 'yesterday', NOW), /time cannot be parsed/);
	assert.throws(() => humanize('mood', '', NOW), /no known function/);
});

texts('paths are escaped as segments', () => assert.is(pathEscape("a b/ü?;'+"), 'a%20b%2F%C3%BC%3F%3B%27+'));

texts('front matter', () => {
	const { meta, body } = splitFrontMatter('{\n"a": {"__proto__": [1, true]}\n}\nbody\n');
	assert.equal([...(meta.get('a') as Map<string, unknown>)], [['__proto__', [1, true]]]);
	assert.is(body, '\nbody\n');
	assert.is(splitFrontMatter('no front matter\n---\n').body, 'no front matter\n---\n');
	assert.is(splitFrontMatter('---').body, '---');
	assert.throws(() => splitFrontMatter('---\na: 1\n---\nx'), /YAML front matter is not part of this build yet/);
	assert.throws(() => splitFrontMatter('+++\na = 1\n+++\nx'), /TOML front matter is not part of this build yet/);
	assert.throws(() => splitFrontMatter('{\n"a":\n}\nx'), /^Error: JSON front matter|JSON front matter/);
	assert.throws(() => splitFrontMatter('---\na: 1\n'), /unterminated front matter/);
});

texts('data is taken out of a text and put back', () => {
	const marked = `a${markData('1')}b${markData('\ufdd0{{\ufdd1')}${markData('')}c`;
	assert.equal(splitMarked(marked), {
		source: {
			text: 'abc',
			data: [
				{ at: 1, value: '1' },
				{ at: 2, value: '\ufffd{{\ufffd' },
				{ at: 2, value: '' },
			],
		},
		text: 'a1b\ufffd{{\ufffdc',
	});
});

texts.run();
