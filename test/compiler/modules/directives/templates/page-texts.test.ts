/** Text functions of template pages. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseToml, parseYaml } from '../../../../../compiler/modules/directives/templates/front-matter-formats.ts';
import { createMarkdownRenderer } from '../../../../../compiler/modules/directives/templates/page-markdown.ts';
import { markData, splitMarked } from '../../../../../compiler/modules/directives/templates/page-source.ts';
import {
	humanize,
	pathEscape,
	splitFrontMatter,
	stripHtml,
} from '../../../../../compiler/modules/directives/templates/page-texts.ts';

import { formatValue } from '../../../../../compiler/modules/templates/format-value.ts';
import { ExecutionBudget, type RunDependencies, TemplateRun } from '../../../../../compiler/modules/templates/run.ts';

const texts = suite('page text functions');

const STRIPPED: readonly (readonly [html: string, text: string])[] = [
	['a <b>c</b> d', 'a c d'],
	['<p title="a > b">x</p>', 'x'],
	["<p title='a > b'>x</p>", 'x'],
	['a < b', 'a '],
	['a > b', 'a > b'],
	// The text that remains after tags are removed must not contain a tag.
	['a <<b>c', 'a '],
	['<<>img src=x onerror=alert(1)>b', 'b'],
	['<<b>script>alert(1)<<b>/script>', 'alert(1)'],
	['<a title="<b>">c', 'c'],
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
texts('humanize refuses invalid input', () => {
	assert.throws(() => humanize('size', '-1', NOW), /size cannot be parsed: "-1"/);
	assert.throws(() => humanize('time', 'yesterday', NOW), /time cannot be parsed/);
	assert.throws(() => humanize('mood', '', NOW), /no known function/);
});

texts('paths are escaped as segments', () => assert.is(pathEscape("a b/ü?;'+"), 'a%20b%2F%C3%BC%3F%3B%27+'));

const SURROUNDINGS: RunDependencies = { now: () => 0, regexp: source => new RegExp(source), hostState: undefined };
const parsers = { yaml: parseYaml, toml: parseToml };

texts('front matter is split from the body', () => {
	const { meta, body } = splitFrontMatter('{\n"a": {"__proto__": [1, true]}\n}\nbody\n', parsers);
	assert.equal([...(meta.get('a') as Map<string, unknown>)], [['__proto__', [1, true]]]);
	assert.is(body, '\nbody\n');
	assert.is(splitFrontMatter('no front matter\n---\n', parsers).body, 'no front matter\n---\n');
	assert.is(splitFrontMatter('---', parsers).body, '---');
	assert.throws(() => splitFrontMatter('{\n"a":\n}\nx', parsers), /^Error: JSON front matter|JSON front matter/);
	assert.throws(() => splitFrontMatter('---\na: 1\n', parsers), /unterminated front matter/);
});

/** Returns front matter values as a template prints them. */
function metaOf(input: string): { [key: string]: string } {
	const { meta } = splitFrontMatter(input, parsers);
	return Object.fromEntries(
		[...meta].map(([key, value]) => [
			key,
			formatValue(new TemplateRun('test', new ExecutionBudget(), SURROUNDINGS), value),
		]),
	);
}

texts('front matter in YAML is parsed', () => {
	const yaml = 'title: "A: b"\nn: 7\nx: 1.5\non: true\ntags: [a, b]\nday: 2026-01-02\n__proto__: {a: ~}';
	assert.equal(metaOf(`---\n${yaml}\n---\nbody`), {
		title: 'A: b',
		n: '7',
		x: '1.5',
		on: 'true',
		tags: '[a b]',
		day: '2026-01-02 00:00:00 +0000 UTC',
		['__proto__']: 'map[a:<nil>]',
	});
	assert.equal(metaOf('---\nbase: &b {a: 1}\nown:\n  <<: *b\n  c: 2\n...\nbody').own, 'map[a:1 c:2]');
	assert.is(splitFrontMatter('---\nnot a dictionary\n---\nbody', parsers).meta.size, 0);
});

texts('front matter in TOML is parsed', () => {
	const toml = 'title = "T"\nn = 9007199254740993\nday = 2026-01-02\nat = 10:30:00\n[deep]\nlist = [1.5, 2.5]';
	assert.equal(metaOf(`+++\n${toml}\n+++\nbody`), {
		title: 'T',
		n: '9007199254740993',
		day: '2026-01-02 00:00:00 +0000 UTC',
		at: '10:30:00.000',
		deep: 'map[list:[1.5 2.5]]',
	});
});

texts('invalid front matter is an error, and its size is bounded', () => {
	const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
		.split('')
		.map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[i]}`)}]`)
		.join('\n')}`;
	const wrong: readonly (readonly [text: string, message: RegExp])[] = [
		[`---\n${bomb}\n---\n`, /YAML front matter: Excessive alias count/],
		['---\na: 1\na: 2\n---\n', /YAML front matter: Map keys must be unique/],
		['---\na: [1\n---\n', /YAML front matter: /],
		['---\na: *none\n---\n', /YAML front matter: Unresolved alias/],
		[`---\na: ${'['.repeat(60_000)}\n---\n`, /YAML front matter: /],
		[`---\na: ${'x'.repeat(70_000)}\n---\n`, /YAML front matter: it has more than 65536 characters/],
		['+++\na = \n+++\n', /TOML front matter: /],
		[`+++\na = ${'['.repeat(60_000)}\n+++\n`, /TOML front matter: /],
		['+++\na = 1\na = 2\n+++\n', /TOML front matter: /],
	];
	for (const [text, message] of wrong) {
		const before = process.cpuUsage();
		assert.throws(() => splitFrontMatter(text, parsers), message, text.slice(0, 40));
		// Measures processor time, because other programs may run at the same time.
		const { user, system } = process.cpuUsage(before);
		assert.ok(user + system < 1_000_000, `${text.slice(0, 20)} takes long`);
	}
});

const MARKDOWN: readonly (readonly [text: string, html: string])[] = [
	['*a* **b** `c`', '<p><em>a</em> <strong>b</strong> <code>c</code></p>\n'],
	['# A & B!\n## A b', '<h1 id="a--b">A &amp; B!</h1>\n<h2 id="a-b">A b</h2>\n'],
	['# X\n# X\n# !', '<h1 id="x">X</h1>\n<h1 id="x-1">X</h1>\n<h1 id="heading">!</h1>\n'],
	['# `x` [y](/z)', '<h1 id="x-y"><code>x</code> <a href="/z">y</a></h1>\n'],
	['~~a~~', '<p><del>a</del></p>\n'],
	['# Äpfel_und Büsche', '<h1 id="pfel-und-bsche">Äpfel_und Büsche</h1>\n'],
	[
		'see www.a.example/b?c. and awww.b',
		'<p>see <a href="http://www.a.example/b?c">www.a.example/b?c</a>. and awww.b</p>\n',
	],
	[
		'- [x] a\n- [ ] *b*\n- [y] c',
		'<ul>\n<li><input checked="" disabled="" type="checkbox"> a</li>\n<li><input disabled="" type="checkbox"> <em>b</em></li>\n<li>[y] c</li>\n</ul>\n',
	],
	[
		'see https://a.example/?b, readme.md',
		'<p>see <a href="https://a.example/?b">https://a.example/?b</a>, readme.md</p>\n',
	],
	['a <b>c</b>', '<p>a <b>c</b></p>\n'],
	['[a](javascript:alert(1))', '<p>[a](javascript:alert(1))</p>\n'],
	[
		'|a|\n|-|\n|b|',
		'<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>b</td>\n</tr>\n</tbody>\n</table>\n',
	],
];
const render = createMarkdownRenderer();
for (const [text, html] of MARKDOWN) texts(`markdown ${text}`, () => assert.is(render(text), html));

texts('markdown with deep nesting takes bounded time', () => {
	for (const part of ['[', '![', '> ', '- ', '*a ', '`', '<a ', '(((']) {
		const startedAt = performance.now();
		render(part.repeat(20_000 / part.length));
		assert.ok(performance.now() - startedAt < 1500, `${part} takes long`);
	}
});

texts('data is extracted from a text and put back', () => {
	const marked = `a${markData('1')}b${markData('\ufdd0{{\ufdd1')}${markData('')}c`;
	assert.equal(splitMarked(marked), {
		source: {
			text: 'abc',
			data: [
				{ offset: 1, value: '1' },
				{ offset: 2, value: '\ufffd{{\ufffd' },
				{ offset: 2, value: '' },
			],
		},
		text: 'a1b\ufffd{{\ufffdc',
	});
});

texts.run();
