/** "Did you mean" suggestions: close names only. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { nearestName, nearestNames } from '../../../compiler/diagnostics/suggest.ts';

const names = ['respond', 'redirect', 'reverse_proxy', 'root', 'route', 'tls', 'log', 'header'];
const near = suite('suggest');
for (const [word, expected] of [
	['respnd', 'respond'],
	['repsond', 'respond'],
	['Respond', 'respond'],
	['revers_prxy', 'reverse_proxy'],
	['tsl', 'tls'],
	['rooot', 'root'],
	['headers', 'header'],
	['xyz', undefined],
	['completely_else', undefined],
	['', undefined],
] as const) {
	near(`${word || 'nothing'} suggests ${expected ?? 'nothing'}`, () => assert.is(nearestName(word, names), expected));
}
near('the nearest of several wins, not the first', () =>
	assert.is(nearestName('route2', ['routes2x', 'route']), 'route'),
);
near('a single letter is near to nothing', () => assert.is(nearestName('a', ['b', 'c']), undefined));
near('suggestions start with the nearest name, then names that contain the word', () => {
	assert.equal(nearestNames('prox', names, 2), ['reverse_proxy', 'root']);
	assert.equal(nearestNames('x'.repeat(100_000), names, 1).length, 1);
});
near.run();
