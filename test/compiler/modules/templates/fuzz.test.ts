/**
 * Random templates made of fragments of the language: each template renders, or fails with a readable message, in bounded time.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BUILTINS } from '../../../../compiler/modules/templates/builtins.ts';
import { SPRIG_FUNCTIONS } from '../../../../compiler/modules/templates/sprig/index.ts';
import { TemplateFailure } from '../../../../compiler/modules/templates/template-error.ts';
import { roundCount } from '../../../round-count.ts';
import { render } from './render-text.ts';

const NAMES = Object.keys({ ...BUILTINS, ...SPRIG_FUNCTIONS });
const FRAGMENTS: readonly string[] = [
	...['{{', '}}', '{{-', ' -}}', '{{/*', '*/}}', 'text', ' ', '\n', '"', '`', "'", '(', ')', '|', ':=', '=', ',', '.'],
	...[
		'if ',
		'else',
		'else if ',
		'with ',
		'range ',
		'end',
		'define "a"',
		'template "a" ',
		'block "b" ',
		'break',
		'continue',
	],
	...[
		'{{end}}',
		'{{else}}',
		'{{end}}',
		'{{end}}',
		'{{range 3}}',
		'{{range $i, $x := .list}}',
		'{{if .yes}}',
		'{{with .map}}',
	],
	...[
		'$',
		'$x',
		'$x := 1',
		'{{$x := .}}',
		'.text',
		'.list',
		'.map',
		'.map.a',
		'.none',
		'.number',
		'nil',
		'true',
		'and ',
		'or ',
	],
	...[
		'1',
		'-1',
		'1.5',
		'0x',
		'"s"',
		'`r`',
		"'c'",
		'"\\x4',
		'9223372036854775807',
		'1e400',
		'(list 1 2)',
		'(dict "a" 1)',
		'(now)',
	],
	...['é', '\u{1f600}', '\0', '\ufdd0', '{', '}', '__proto__', 'constructor', '"%v %*d %[3]q" '],
];
/** Returns a generator of the same pseudorandom numbers in every run (mulberry32). */
function randomNumbers(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let t = Math.imul(state ^ (state >>> 15), 1 | state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
	};
}

const fuzz = suite('random templates');
fuzz('render or fail with a sentence', () => {
	const random = randomNumbers(Number(process.env.SEED ?? 1));
	const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
	let rendered = 0;
	for (let round = 0; round < roundCount({ few: 5000, many: 100_000 }); round++) {
		let text = '';
		const count = 1 + Math.floor(random() * 12);
		for (let i = 0; i < count; i++) {
			const kind = random();
			if (kind < 0.35) text += pick(FRAGMENTS);
			else if (kind < 0.8) {
				const args = Array.from({ length: Math.floor(random() * 4) }, () => pick(FRAGMENTS.slice(-33)));
				text += `{{${pick(NAMES)} ${args.join(' ')}}}`;
			} else text += ` ${pick(NAMES)} `;
		}
		const startedAt = performance.now();
		try {
			render(text);
			rendered++;
		} catch (error) {
			assert.ok(error instanceof TemplateFailure, `${JSON.stringify(text)}: ${(error as Error).stack}`);
			assert.match((error as Error).message, /^template: t\.html:/, JSON.stringify(text));
			assert.not.match(
				(error as Error).message,
				/is not a function|undefined \(|Cannot read|\[object/,
				JSON.stringify(text),
			);
		}
		assert.ok(performance.now() - startedAt < 3000, JSON.stringify(text));
	}
	assert.ok(rendered > 100, `only ${rendered} rendered`);
});
fuzz.run();
