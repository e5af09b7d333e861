/** Which requests are sampled, depending on the environment. */
import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createSampler, samplerProblem } from '../../../runtime/tracing/sampler.ts';

const sampler = suite('samplers');

const TRACE = '0af7651916cd43dd8448eb211c80319c';

sampler('samplers follow the parent or ignore it, according to their names', () => {
	const verdicts = (environment: { [name: string]: string }) => {
		const samples = createSampler(environment);
		return [undefined, true, false].map(parent => samples(TRACE, parent));
	};
	assert.equal(verdicts({}), [true, true, false]);
	assert.equal(verdicts({ OTEL_TRACES_SAMPLER: 'parentbased_always_on' }), [true, true, false]);
	assert.equal(verdicts({ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }), [false, true, false]);
	assert.equal(verdicts({ OTEL_TRACES_SAMPLER: 'always_on' }), [true, true, true]);
	assert.equal(verdicts({ OTEL_TRACES_SAMPLER: 'always_off' }), [false, false, false]);
	assert.equal(verdicts({ OTEL_TRACES_SAMPLER: 'no_such' }), [true, true, false]);
	assert.equal(verdicts({ OTEL_SDK_DISABLED: 'TRUE' }), [false, true, false]);
	const none = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' };
	assert.equal(verdicts(none), [false, true, false]);
});

sampler('ratio samplers sample the configured fraction', () => {
	const samples = createSampler({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' });
	let taken = 0;
	for (let i = 0; i < 4000; i++) if (samples(randomBytes(16).toString('hex'), undefined)) taken++;
	assert.ok(taken > 800 && taken < 1200, `${taken} of 4000`);
	const all = createSampler({ OTEL_TRACES_SAMPLER: 'traceidratio' });
	assert.ok(all('f'.repeat(32), undefined));
});

sampler('invalid environment variables are reported', () => {
	assert.is(samplerProblem({}), undefined);
	assert.is(samplerProblem({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' }), undefined);
	assert.match(samplerProblem({ OTEL_TRACES_SAMPLER: 'xray' })!, 'xray');
	const bad = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' };
	assert.match(samplerProblem(bad)!, 'OTEL_TRACES_SAMPLER_ARG');
});

sampler.run();
