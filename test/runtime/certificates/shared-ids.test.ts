/**
 * Configurations that want a certificate of the same name and issuer in different ways: whichever of them is dropped, the
 * certificate of the other one stays in use.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fakeApi } from './dns/fake-api.ts';
import {
	eventually,
	planOfPolicies,
	policyForNames,
	serveDocument,
	type TestManager,
	testManager,
} from './test-manager.ts';

const HOUR = 3_600_000;
const ids = suite('certificates with the same ID');

/** Policies that treat names differently but use the same issuer, so that their certificates have the same IDs. */
const plain = policyForNames(['a.internal']);
const early = policyForNames(['a.internal'], undefined, { renewal_window_ratio: 0.9 });
const onDemand = policyForNames([], undefined, { on_demand: true });

function obtain({ manager }: TestManager, name: string): Promise<boolean> {
	return manager.obtain({ name, signatureSchemes: [], cipherSuites: [], localIp: '127.0.0.1', remoteIp: '127.0.0.1' });
}

ids('a discarded configuration that has renewed a certificate early leaves the old one in use', async () => {
	let now = Date.now();
	const test = testManager({ now: () => now });
	await serveDocument(test, planOfPolicies(plain));
	const { chain } = test.sink.for('a.internal')!;
	now += 3 * HOUR;
	await test.manager.prepare(planOfPolicies(early), {});
	assert.is.not(test.sink.for('a.internal')!.chain, chain);
	test.manager.discard();
	assert.is(test.sink.for('a.internal')!.chain, chain);
	await test.manager.close();
});

ids('a discarded configuration leaves certificates on demand in use', async () => {
	const test = testManager();
	await serveDocument(test, planOfPolicies(onDemand));
	assert.ok(await obtain(test, 'a.internal'));
	const { chain } = test.sink.for('a.internal')!;
	await test.manager.prepare(planOfPolicies(plain, onDemand), {});
	test.manager.discard();
	assert.is(test.sink.for('a.internal')?.chain, chain);
	await test.manager.close();
});

ids('a site keeps its certificate if it was obtained on demand before', async () => {
	const test = testManager();
	await serveDocument(test, planOfPolicies(onDemand));
	assert.ok(await obtain(test, 'a.internal'));
	await serveDocument(test, planOfPolicies(plain));
	assert.ok(test.sink.for('a.internal'));
	await test.manager.close();
});

ids('a site keeps its certificate when the one that was obtained on demand before expires', async () => {
	let now = Date.now();
	let isAllowed = true;
	const permission = await fakeApi(() => ({ status: isAllowed ? 200 : 403 }));
	const test = testManager({ now: () => now });
	const settings = { on_demand_tls: { ask: permission.url }, renew_interval: 20 };
	await serveDocument(test, planOfPolicies(onDemand), settings);
	assert.ok(await obtain(test, 'a.internal'));
	assert.ok(await obtain(test, 'b.internal'));
	isAllowed = false;
	await serveDocument(test, planOfPolicies(plain, onDemand), settings);
	const { chain } = test.sink.for('a.internal')!;
	now += 9 * HOUR;
	await eventually('renewed', () => test.sink.for('a.internal')!.chain !== chain);
	now += 4 * HOUR;
	await eventually('expired', () => test.sink.for('b.internal') === undefined);
	assert.ok(test.sink.for('a.internal'));
	await test.manager.close();
	await permission.close();
});

ids.run();
