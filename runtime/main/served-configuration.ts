/** The configuration that the server serves. Replaces it on all worker threads, and passes it on to new ones. */

import type { Settings } from '../../compiler/document/document.ts';
import type { PrepareResult } from '../compile/compiler-messages.ts';
import type { PreparedProcessLog } from '../logs/process-log.ts';
import { CONTROL_GENERATION } from '../threads/control-words.ts';
import type { LoadOutcome } from './control.ts';
import type { HandoverStep } from './handover/handover-protocol.ts';
import { outcomeOfError, threadsUnchangedWarning } from './load-outcomes.ts';
import type { RuntimeComponents } from './runtime-components.ts';
import { type GenerationBuildRequest, WorkerLostError } from './worker-pool-host.ts';

/** A configuration that has been compiled and may replace the one that is being served. */
export type CompiledCandidate = Extract<PrepareResult, { result: 'swap' }>;

/** Reports whether the process is stopping or waiting to take over, which decides how a configuration is applied. */
export interface LifePhase {
	/**
	 * Returns true once a stop has begun, a handover has succeeded, or the start has failed. From then on, no configuration is
	 * applied.
	 */
	isStopping(): boolean;
	/** Returns true in a successor until it takes over from its predecessor. */
	awaitsTakeover(): boolean;
}

/** The components that applying a configuration uses. */
type ServingComponents = Pick<
	RuntimeComponents,
	| 'compiler'
	| 'controlWords'
	| 'listenerSockets'
	| 'logOutputErrors'
	| 'logSinks'
	| 'openCluster'
	| 'optimizerSettings'
	| 'processLog'
	| 'recordVitals'
	| 'threadPools'
	| 'tlsControl'
	| 'upstreamPools'
>;

/** The configuration that is being served. Its asynchronous methods must not run concurrently. */
export class ServedConfiguration {
	readonly #components: ServingComponents;
	readonly #phase: LifePhase;
	readonly #onStep: ((step: HandoverStep) => void) | undefined;
	#generation = 0;
	#settings: Settings = {};
	#files: readonly string[] = [];

	/** @param onStep Called when this process, as a successor, begins a step of the handover. */
	constructor(components: ServingComponents, phase: LifePhase, onStep?: (step: HandoverStep) => void) {
		this.#components = components;
		this.#phase = phase;
		this.#onStep = onStep;
	}

	/** Number of the generation that is being served; 0 before the first. */
	get generation(): number {
		return this.#generation;
	}

	/** Settings of the running document. */
	get settings(): Settings {
		return this.#settings;
	}

	/** Absolute paths of the files that the configuration was read from, including imports. */
	get files(): readonly string[] {
		return this.#files;
	}

	/** Applies the settings of the configuration that is about to be served. */
	useSettings(settings: Settings): void {
		this.#settings = settings;
		if (settings.metrics) this.#components.recordVitals();
	}

	/**
	 * Replaces the generation in two phases: first every thread builds the new one, then one store to shared memory activates it on
	 * all threads. If a thread cannot build it, nothing changes. Rejects with ListenError and `NoResponsiveThread`.
	 */
	async replace({ facts, delta, diagnostics }: CompiledCandidate): Promise<LoadOutcome> {
		const { compiler, listenerSockets, logSinks, optimizerSettings, processLog, tlsControl } = this.#components;
		const pool = this.#components.threadPools.servingPool!;
		const generation = this.#generation + 1;
		const { logOutputErrors } = this.#components;
		logOutputErrors.length = 0;
		let preparedLog: PreparedProcessLog | undefined;
		try {
			preparedLog = processLog.prepare(facts.settings);
			const listeners = await listenerSockets.prepareAddresses(facts.listeners);
			this.#components.openCluster(facts.settings);
			if (this.#phase.awaitsTakeover()) this.#onStep?.('threads');
			// All certificates and trusted authorities are sent to the threads before any of them builds the generation.
			await tlsControl.prepare(facts.certificates, facts.settings);
			// The threads load the code of directives and options that they have not needed before.
			await optimizerSettings.whileStarting(() => pool.prepareAll({ generation, delta, listeners }));
			// A mistake in the configuration is reported before problems of this machine.
			const logOutputError = logOutputErrors.find(({ code }) => code === 'log/invalid-output') ?? logOutputErrors[0];
			if (logOutputError) throw logOutputError;
			await logSinks.whenAllOpened();
			await compiler.commitCandidate(facts.certificates?.names ?? []);
			if (this.#phase.isStopping()) throw new WorkerLostError('The server is stopping.');
			this.#generation = generation;
			this.useSettings(facts.settings);
			this.#files = facts.files;
			Atomics.store(this.#components.controlWords, CONTROL_GENERATION, generation);
			this.#components.upstreamPools.setNamedPools(facts.pools);
			pool.activateAll();
			// Until this process takes over, the predecessor manages certificates and answers challenges.
			if (!this.#phase.awaitsTakeover()) tlsControl.activate();
			processLog.activate(preparedLog);
			listenerSockets.serve(listeners);
			return { result: 'applied', generation, unchanged: false, diagnostics };
		} catch (error) {
			pool.discardAll();
			tlsControl.discard();
			if (preparedLog) processLog.release(preparedLog);
			listenerSockets.discardUnserved();
			await compiler.ask('discard', {}).catch(() => {});
			return outcomeOfError(error, diagnostics);
		}
	}

	/**
	 * Changes the number of threads after a load that asks for it. If the change fails, the load is in effect nevertheless, and its
	 * outcome contains a warning.
	 */
	async changeThreadCount(
		threadCount: number,
		outcome: Extract<LoadOutcome, { result: 'applied' }>,
	): Promise<LoadOutcome> {
		const { optimizerSettings, processLog, threadPools } = this.#components;
		const previousThreads = threadPools.servingThreadCount;
		try {
			const request = await this.#createBuildRequest();
			const gracePeriodMs = this.#settings.grace_period;
			await optimizerSettings.whileStarting(() => threadPools.resize(threadCount, request, gracePeriodMs));
			processLog.log('info', 'runtime', 'changed the number of worker threads', {
				threads: threadCount,
				before: previousThreads,
			});
			return outcome;
		} catch (error) {
			const cause = error instanceof Error ? error.message : String(error);
			processLog.log('error', 'runtime', 'the number of worker threads could not be changed', {
				threads: previousThreads,
				cause,
			});
			return { ...outcome, diagnostics: [...outcome.diagnostics, threadsUnchangedWarning(previousThreads, cause)] };
		}
	}

	/** Makes a new thread serve what the other threads serve. If it cannot, it is ended and replaced. */
	async bringUpThread(index: number): Promise<void> {
		const { processLog, threadPools } = this.#components;
		const pool = threadPools.servingPool;
		if (!pool || this.#phase.isStopping() || this.#generation === 0) return;
		try {
			if (await pool.bringUp(index, await this.#createBuildRequest()))
				processLog.log('info', 'runtime', 'a worker thread was replaced', { thread: index });
		} catch (error) {
			if (this.#phase.isStopping()) return;
			const cause = error instanceof Error ? error.message : String(error);
			processLog.log('error', 'runtime', 'a worker thread could not load the configuration', { thread: index, cause });
			pool.giveUp(index);
		}
	}

	/** Returns the request that makes a thread build all that is being served. */
	async #createBuildRequest(): Promise<GenerationBuildRequest> {
		const { facts, delta } = await this.#components.compiler.ask('snapshot', {});
		const listeners = await this.#components.listenerSockets.prepareAddresses(facts.listeners);
		return { generation: this.#generation, delta, listeners };
	}
}
