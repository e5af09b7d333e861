/** A preflight check that builds a generation as a worker thread would. Its leases are real, but connect to nothing. */

import type { Plan } from '../../compiler/codegen/plan/plan.ts';
import { StepPlaceTable } from '../../compiler/exchange/step-place.ts';
import { CacheMemory } from '../cache/cache-memory.ts';
import { machineText } from '../logs/machine-text.ts';
import { createCounterRow } from '../metrics/counter-row.ts';
import { ModuleCounters } from '../metrics/module-counters.ts';
import { SeriesPages } from '../metrics/series-pages.ts';
import { CONTROL_SLOTS } from '../threads/control-words.ts';
import { hostFacts } from '../threads/host-facts.ts';
import { SharedRows } from '../threads/shared-rows.ts';
import { createSampler } from '../tracing/sampler.ts';
import { SpanExport } from '../tracing/span-export.ts';
import { toBuildProblem } from '../worker/build-problem.ts';
import { createDocumentImage, generationDelta } from '../worker/document-image.ts';
import { Generations } from '../worker/generation.ts';
import { GenerationBuild } from '../worker/generation-builder.ts';
import { ThreadLeases } from '../worker/thread-leases.ts';
import type { MessageFromWorker } from '../worker/worker-messages.ts';
import type { PreflightFinding, TargetMachine } from './finding.ts';

/** Rejects requests to the main thread. None are made while a generation is built. */
const rejectRequest = (): Promise<never> => Promise.reject(new Error('There is no main thread.'));

/** Returns what would prevent the generation from being built, and warnings about tracing. */
export async function buildFindings(plan: Plan, machine: TargetMachine): Promise<PreflightFinding[]> {
	const { workingDirectory, environment } = machine;
	const facts = hostFacts(workingDirectory, environment);
	const sharedRows = new SharedRows(1, undefined, CACHE_WATCHER);
	let isTracing = false;
	const handleMessage = (message: MessageFromWorker): void => {
		if (message.type === 'tracing_opened') isTracing = true;
		if (message.type !== 'memory_wanted') return;
		const { key, request: memoryRequest } = message;
		// Answers asynchronously, as another thread would.
		setImmediate(() => leases.handleMemory(key, sharedRows.takeMemory(key, memoryRequest, 0)));
	};
	const controlWords = new Int32Array(new SharedArrayBuffer(CONTROL_SLOTS * Int32Array.BYTES_PER_ELEMENT));
	const discardingPort = {
		postText: () => {},
		postSegment: () => {},
		reportDropped: () => {},
		charsInTransit: controlWords,
		charsInTransitSlot: 0,
	};
	const leases: ThreadLeases = new ThreadLeases({
		index: 0,
		rowCount: 1,
		threadCount: 1,
		counters: new Float64Array(createCounterRow()),
		moduleCounters: new ModuleCounters(
			new SeriesPages(
				() => {},
				() => {},
			),
		),
		accessLogs: { isTerminal: false, clientIp: () => '', expand: machineText(facts) },
		pools: {
			clientIp: () => '',
			trustsPeer: () => false,
			environment,
			provideTls: rejectRequest,
			onCutShort: () => {},
			onStderr: () => {},
			upstreamObserver: undefined,
		},
		sendMessage: handleMessage,
		askMainThread: rejectRequest,
		batchPort: () => discardingPort,
		sampler: createSampler(environment),
		spanPort: discardingPort,
	});
	const delta = generationDelta(undefined, createDocumentImage(plan.document, plan));
	const sharedParts = { settings: {}, upstreams: {}, routes: {} };
	try {
		const build = new GenerationBuild(leases, facts, () => {}, new StepPlaceTable(''));
		await build.run(delta, 1, new Generations(controlWords, leases.leaseRegistry), sharedParts);
		return isTracing ? await tracingFindings(environment) : [];
	} catch (error) {
		return [{ ...toBuildProblem(error), severity: 'error' }];
	} finally {
		leases.leaseRegistry.closeAll();
	}
}

/** Prepares the memory of response caches, without their disk tier. */
const CACHE_WATCHER = {
	onCacheOpened: (_key: string, _settings: unknown, buffer: SharedArrayBuffer): void => CacheMemory.prepare(buffer),
	onCacheClosed: (): void => {},
	onThreadEnded: (): void => {},
	onDiskEvent: (): void => {},
	onClusterFetchEnded: (): void => {},
};

/** Returns mistakes in the environment variables that configure the export of spans. */
async function tracingFindings(environment: TargetMachine['environment']): Promise<PreflightFinding[]> {
	const findings: PreflightFinding[] = [];
	const spanExport = new SpanExport(environment, (_level, message) => {
		findings.push({ code: 'tracing/environment', severity: 'warning', message });
	});
	spanExport.openExporter();
	await spanExport.close(0);
	return findings;
}
