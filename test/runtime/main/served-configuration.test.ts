/** How a configuration replaces another one on the threads. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type CompiledCandidate, ServedConfiguration } from '../../../runtime/main/served-configuration.ts';

const served = suite('served configuration');

served('threads build a generation while V8 accepts code caches, because they may have to load code', async () => {
	const steps: string[] = [];
	const record =
		<T>(step: string, result?: T) =>
		(): T | undefined => {
			steps.push(step);
			return result;
		};
	const components = {
		compiler: { commitCandidate: async () => {} },
		controlWords: new Int32Array(64),
		listenerSockets: { prepareAddresses: async () => [], serve() {} },
		logOutputErrors: [],
		logSinks: { whenAllOpened: async () => {} },
		openCluster() {},
		optimizerSettings: {
			async whileStarting(start: () => Promise<unknown>) {
				record('caches accepted')();
				await start();
				record('caches rejected')();
			},
		},
		processLog: { prepare: () => undefined, activate() {}, release() {} },
		recordVitals() {},
		threadPools: { servingPool: { prepareAll: record('build', Promise.resolve()), activateAll: record('activate') } },
		tlsControl: { prepare: async () => {}, activate() {} },
		upstreamPools: { setNamedPools() {} },
	};
	const phase = { isStopping: () => false, awaitsTakeover: () => false };
	const candidate = { facts: { settings: {}, listeners: [], files: [], pools: [] }, delta: {}, diagnostics: [] };
	const configuration = new ServedConfiguration(components as never, phase);
	const outcome = await configuration.replace(candidate as unknown as CompiledCandidate);
	assert.is(outcome.result, 'applied', JSON.stringify(outcome));
	assert.equal(steps, ['caches accepted', 'build', 'caches rejected', 'activate']);
});

served.run();
