/** Compares `url_pattern`, which compiles expressions of its own, with the built-in `URLPattern`. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compileRegexp } from '../../../../compiler/codegen/regexp/regexp.ts';
import { translateComponent } from '../../../../compiler/modules/matchers/url-pattern-parts.ts';
import { SeededChance } from '../../../fuzz/chance.ts';
import { roundCount } from '../../../round-count.ts';

/** Number of random patterns to compare. */
const ROUNDS = roundCount({ few: 300, many: 3000 });

const urlPattern = suite('url_pattern and URLPattern');

const PATTERN_PIECES = [
	'/',
	'a',
	'b',
	'.',
	'-',
	'é',
	'\\:',
	'\\.',
	'%41',
	':x',
	':y',
	':z',
	':a1',
	'*',
	'(\\d+)',
	'(a|b)',
	'([^-]*)',
];
const GROUPS = ['{/:p}', '{/:q}?', '{a:r}*', '{-:s(\\d+)-}+', '{/*}?', '{.}?', '{:t}', '{ab}+'];
const MODIFIERS = ['', '', '', '?', '*', '+'];
const ANY_URL = new URLPattern({});
const COMPONENTS = ['pathname', 'search', 'hash', 'hostname', 'protocol', 'port'] as const;

function randomPattern(chance: SeededChance): string {
	let text = chance.once(3) ? '' : '/';
	for (let count = 1 + chance.below(6); count > 0; count--) {
		const piece = chance.once(4) ? chance.of(GROUPS) : chance.of(PATTERN_PIECES);
		text += piece + (/[)*}\w]$/.test(piece) && piece.length > 1 ? chance.of(MODIFIERS) : '');
	}
	return text;
}

function randomSubject(chance: SeededChance): string {
	let text = '';
	for (let count = chance.below(8); count > 0; count--) {
		text += chance.of(['/', '/', 'a', 'b', '.', '-', '1', '23', ':', 'ab', 'A', '/a', '-1-', '%C3%A9', 'é']);
	}
	return text;
}

urlPattern('components match and capture the same as in the built-in URLPattern', () => {
	const chance = new SeededChance(20);
	let compared = 0;
	let matched = 0;
	for (let round = 0; round < ROUNDS; round++) {
		const component = chance.of(COMPONENTS);
		const text = randomPattern(chance);
		let pattern: URLPattern;
		try {
			pattern = new URLPattern({ [component]: text });
		} catch {
			continue;
		}
		const { source, groupNames: names } = translateComponent(component, pattern[component]);
		const regexp = compileRegexp(source);
		for (let subjects = 0; subjects < 10; subjects++) {
			const subject = randomSubject(chance);
			const canonical = ANY_URL.exec({ [component]: subject });
			if (!canonical) continue;
			const { input } = canonical[component];
			const expected = pattern.exec({ [component]: subject })?.[component];
			const match = regexp.exec(input);
			const told = `${component} ${pattern[component]} of ${text} on ${input}`;
			assert.is(match !== null, expected !== undefined, told);
			compared++;
			if (!match || !expected) continue;
			matched++;
			for (const [at, name] of names.entries()) {
				assert.is(match[at + 1] ?? '', expected.groups[name] ?? '', `${told}: ${name}`);
			}
			assert.equal([...names].sort(), Object.keys(expected.groups).sort(), told);
		}
	}
	assert.ok(compared > ROUNDS && matched > ROUNDS / 6, `${compared} ${matched}`);
});

urlPattern.run();
