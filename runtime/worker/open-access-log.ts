/** Opens an access log on a thread. Logs with the same output share a batch of lines. */
import type { AccessLogSettings } from '../../compiler/document/log-namespaces.ts';
import { AccessBatch } from '../logs/access-batch.ts';
import { AccessLogger } from '../logs/access-log.ts';
import { LogSampler, SAMPLER_SLOTS } from '../logs/log-sampler.ts';
import { sinkKey } from '../logs/log-sinks.ts';
import type { LeaseRegistry } from '../threads/lease-registry.ts';
import type { LeaseMemory, LeaseThreadDeps, OpenLease } from './lease-deps.ts';

export function openAccessLog(
	settings: AccessLogSettings,
	handle: string,
	deps: LeaseThreadDeps,
	memory: LeaseMemory,
	leaseRegistry: LeaseRegistry,
): OpenLease<AccessLogger> {
	const { sampling } = settings;
	const samplerCounts = sampling && new Int32Array(memory.take(handle, { slots: SAMPLER_SLOTS }));
	const sink = sinkKey(settings.output);
	const batchHandle = `batch ${sink}`;
	const batch = leaseRegistry.acquire(batchHandle, () => {
		const newBatch = new AccessBatch(deps.batchPort(sink));
		deps.sendMessage({ type: 'sink_opened', sink, output: settings.output });
		const close = () => {
			newBatch.flush();
			deps.sendMessage({ type: 'sink_released', sink });
		};
		return { value: newBatch, close };
	});
	const close = () => {
		leaseRegistry.release(batchHandle);
		if (samplerCounts) memory.release(handle);
	};
	try {
		const sampler = samplerCounts && new LogSampler(sampling, samplerCounts);
		return { value: new AccessLogger(settings, batch, deps.accessLogs, sampler), close };
	} catch (error) {
		close();
		throw error;
	}
}
