/** Compares `explain` with live serving in a short run; `npm run test:agreement` compares ten thousand requests. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findDisagreements } from './agreement.ts';
import { SeededChance } from './chance.ts';
import {
	DIRECTIVE_SAMPLES,
	directiveNames,
	MATCHER_SAMPLES,
	matcherNames,
	UNTRIED_DIRECTIVES,
} from './directive-samples.ts';
import { randomConfiguration } from './random-configuration.ts';

const agreement = suite('svc explain');

agreement('agrees with live serving on random requests and configurations', async () => {
	const { pairs, answers, disagreements } = await findDisagreements(100, 20_260_131);
	assert.is(disagreements.length, 0, disagreements[0]);
	assert.is(pairs, 100);
	// The test also fails if the run compared no responses.
	for (const handler of ['respond', 'redirect', 'proxy'])
		assert.ok((answers[handler] ?? 0) > 0, `${handler} never answered`);
});

/** Number of random configurations among which every directive and matcher must occur. */
const SAMPLED_CONFIGURATIONS = 400;

agreement('every directive and matcher occurs in the random configurations of the trial of svc diff', () => {
	const chance = new SeededChance(7);
	const [one, other] = ['127.0.0.1:9001', '127.0.0.1:9002'];
	const targets = { port: 8080, upstreams: [one, other], root: '/srv', spare: '127.0.0.1:9003' } as const;
	const words = new Set<string>();
	const firstWords = new Set<string>();
	for (let i = 0; i < SAMPLED_CONFIGURATIONS; i++) {
		const text = randomConfiguration(chance, 'configfile', targets);
		for (const word of text.split(/\s+/)) words.add(word);
		// Some names belong to both a directive and a matcher. Blocks that define matchers are removed, because they contain no
		// directives.
		for (const line of text.replace(/^@\w+ \{\n(?:.*\n)*?\}\n/gm, '').split('\n'))
			firstWords.add(line.split(' ', 1)[0]!);
	}
	const untriedDirectives = directiveNames().filter(name => !firstWords.has(name));
	assert.equal(untriedDirectives.sort(), Object.keys(UNTRIED_DIRECTIVES).sort());
	assert.equal(
		matcherNames().filter(name => !words.has(name)),
		[],
	);
	const known = new Set([...directiveNames(), ...matcherNames()]);
	const samples = [DIRECTIVE_SAMPLES, MATCHER_SAMPLES, UNTRIED_DIRECTIVES].flatMap(list => Object.keys(list));
	assert.equal(
		samples.filter(name => !known.has(name)),
		[],
	);
});

agreement.run();
