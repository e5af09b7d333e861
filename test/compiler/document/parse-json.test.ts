/** JSON parsing: the position of the first syntax error. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Diagnostic } from '../../../compiler/diagnostics/diagnostic.ts';
import { parseJson } from '../../../compiler/document/parse-json.ts';

function mistakeOf(text: string): [number, string] {
	const diagnostics: Diagnostic[] = [];
	assert.is(
		parseJson(text, 'x.json', undefined, diagnostic => diagnostics.push(diagnostic)),
		undefined,
	);
	assert.is(diagnostics.length, 1);
	return [diagnostics[0]!.span!.start, diagnostics[0]!.message];
}

const json = suite('JSON text');

json('the position of the first syntax error is reported', () => {
	assert.equal(mistakeOf(''), [0, 'The text ends where a value is expected.']);
	assert.equal(mistakeOf('{"a": }'), [6, 'Found `}` where a value is expected.']);
	assert.equal(mistakeOf('{"a": 1 "b"}'), [
		8,
		'This string is not closed, or contains a character that must be escaped.',
	]);
	assert.equal(mistakeOf('{"a": 1,}'), [8, 'Found `}` where a key in double quotes is expected.']);
	assert.equal(mistakeOf('[1,]'), [3, 'Found `]` where a value is expected.']);
	assert.equal(mistakeOf("{'a': 1}"), [1, "Found `'` where a key in double quotes or `}` is expected."]);
	assert.equal(mistakeOf('{"a" 1}'), [5, 'Found `1` where `:` is expected.']);
	assert.equal(mistakeOf('[1] 2'), [4, 'There is text after the end of the document.']);
	assert.equal(mistakeOf('{"a": [1, 2}'), [11, 'Found `}` where `,` or the end of the list or object is expected.']);
	assert.equal(mistakeOf('[tru]'), [1, 'Found `t` where a value or `]` is expected.']);
});

json('every broken text gives exactly one position, inside the text', () => {
	const good = '{"a": [1, -2.5e3, "x\\u00e9\\n", null, true], "b": {"c": {}}}';
	for (let at = 0; at < good.length; at++) {
		for (const other of ['', '}', ',', '"', 'x', '\u0001']) {
			const text = good.slice(0, at) + other + good.slice(at + 1);
			try {
				JSON.parse(text);
			} catch {
				const [offset] = mistakeOf(text);
				assert.ok(offset >= 0 && offset <= text.length);
			}
		}
	}
});

json('a byte order mark is skipped', () => {
	assert.equal(
		parseJson('\uFEFF{"sites":[]}', 'x', undefined, () => {}),
		{ sites: [] },
	);
});

json.run();
