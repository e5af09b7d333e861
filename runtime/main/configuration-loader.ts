/** The queue in which loads, edits and previews of a running server's configuration run, one at a time. */

import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Settings } from '../../compiler/document/document.ts';
import type { PrepareResult } from '../compile/compiler-messages.ts';
import type { ConfigEdit, EditRefused, LoadPreview, LoadTerms, RestartReason } from '../compile/load-results.ts';
import { ListenError } from '../listeners/port-probe.ts';
import { CompilerFailure } from './compiler-client.ts';
import type { LoadOutcome } from './control.ts';
import {
	createLoadEntry,
	createWarningEntries,
	refusedOutcome,
	STOPPING_OUTCOME,
	tooManyThreadsReason,
} from './load-outcomes.ts';
import type { RuntimeComponents } from './runtime-components.ts';
import type { LifePhase, ServedConfiguration } from './served-configuration.ts';
import { NoResponsiveThread } from './worker-pool-host.ts';

/** The components that the loader uses directly. */
type LoaderComponents = Pick<
	RuntimeComponents,
	'compiler' | 'loadRecord' | 'processLog' | 'threadPools' | 'tlsControl'
>;

/** Applies requested changes to the configuration, and records and returns their outcomes. */
export class ConfigurationLoader {
	readonly #components: LoaderComponents;
	readonly #served: ServedConfiguration;
	readonly #phase: LifePhase;
	/** True if the process was started without a configuration. */
	readonly #isUnconfigured: boolean;
	/** Settles after the last queued operation. */
	#lastOperation: Promise<unknown> = Promise.resolve();

	constructor(components: LoaderComponents, served: ServedConfiguration, phase: LifePhase, isUnconfigured: boolean) {
		this.#components = components;
		this.#served = served;
		this.#phase = phase;
		this.#isUnconfigured = isUnconfigured;
	}

	/** Compiles and applies a configuration. */
	load(input: ConfigInput, terms: LoadTerms): Promise<LoadOutcome> {
		const { compiler } = this.#components;
		const recordedOutcome = this.#recordChange(input.name, async () => {
			const previousDocument = terms.reversible ? compiler.runningDocument : undefined;
			const outcome = await this.#applyCandidate(() =>
				compiler.ask('prepare', { input, unconfigured: this.#isUnconfigured, ...terms }),
			);
			return outcome.result === 'applied' && previousDocument !== undefined
				? { ...outcome, replacedDocument: previousDocument }
				: outcome;
		});
		return recordedOutcome as Promise<LoadOutcome>;
	}

	/** Changes a part of the running document, compiles and applies it. */
	edit(edit: ConfigEdit): Promise<LoadOutcome | EditRefused> {
		const prepare = () => this.#components.compiler.ask('edit', { edit, unconfigured: this.#isUnconfigured });
		return this.#recordChange(`${edit.method} of the Admin API`, () => this.#applyCandidate(prepare));
	}

	/** Returns what {@link load} would do with the same arguments, without applying anything. */
	preview(input: ConfigInput, terms: LoadTerms): Promise<LoadPreview> {
		// Previews wait for loads, because the compile thread keeps only one candidate document.
		return this.runBetweenLoads(async () => {
			const request = { input, unconfigured: this.#isUnconfigured, ...terms };
			const { preview, facts } = await this.#components.compiler.ask('preview', request);
			const reason = preview.result === 'swap' && facts && this.#threadShortage(facts.settings);
			return reason ? { ...preview, result: 'restart_required', reasons: [reason] } : preview;
		});
	}

	/** Runs an operation while no load runs: it waits for loads that were requested earlier, and later loads wait for it. */
	runBetweenLoads<T>(operation: () => Promise<T>): Promise<T> {
		const operationResult = this.#lastOperation.then(operation);
		this.#lastOperation = operationResult.catch(() => {});
		return operationResult;
	}

	/** Resolves once everything that has been requested so far has succeeded or failed. Never rejects. */
	async whenIdle(): Promise<void> {
		await this.#lastOperation;
	}

	/** Makes a change once all earlier changes are complete, and records its outcome. */
	#recordChange(source: string, apply: () => Promise<LoadOutcome | EditRefused>): Promise<LoadOutcome | EditRefused> {
		const { loadRecord, processLog } = this.#components;
		return this.runBetweenLoads(async () => {
			const outcome = await apply();
			if (outcome.result === 'edit_refused') return outcome;
			loadRecord.recordLoad(outcome);
			processLog.writeEntry(createLoadEntry(source, outcome));
			if (outcome.result === 'applied' && !outcome.unchanged)
				for (const entry of createWarningEntries(outcome.diagnostics)) processLog.writeEntry(entry);
			return outcome;
		});
	}

	/**
	 * Applies the candidate that `prepare` creates on the compile thread. If no worker thread responds, tries once more, with
	 * `isRetry`.
	 */
	async #applyCandidate(
		prepare: () => Promise<PrepareResult | EditRefused>,
		isRetry = false,
	): Promise<LoadOutcome | EditRefused> {
		if (this.#phase.isStopping()) return STOPPING_OUTCOME;
		const { compiler, processLog, threadPools, tlsControl } = this.#components;
		try {
			const candidate = await prepare();
			if (candidate.result === 'unchanged') {
				const { diagnostics } = candidate;
				await tlsControl.checkTrust();
				return { result: 'applied', generation: this.#served.generation, unchanged: true, diagnostics };
			}
			if (candidate.result !== 'swap') return candidate;
			if (this.#phase.isStopping()) return STOPPING_OUTCOME;
			const { settings } = candidate.facts;
			const reason = this.#threadShortage(settings);
			if (reason) {
				await compiler.ask('discard', {});
				return { result: 'restart_required', reasons: [reason], diagnostics: candidate.diagnostics };
			}
			threadPools.closeIdleConnections();
			const outcome = await this.#served.replace(candidate);
			const threadCount = threadPools.threadCountFor(settings);
			return outcome.result === 'applied' && threadCount !== threadPools.servingThreadCount
				? await this.#served.changeThreadCount(threadCount, outcome)
				: outcome;
		} catch (error) {
			if (error instanceof NoResponsiveThread) {
				if (isRetry) return { result: 'failed', message: error.message };
				const startedThreads = (await threadPools.servingPool?.whenStarted()) ?? [];
				for (const index of startedThreads) await this.#served.bringUpThread(index);
				return this.#applyCandidate(prepare, true);
			}
			if (error instanceof ListenError) return refusedOutcome('listen', error.message);
			if (error instanceof CompilerFailure) {
				processLog.log('error', 'runtime', 'compiling failed', { cause: error.stackTrace ?? error.message });
				return { result: 'failed', message: error.message };
			}
			throw error;
		}
	}

	/** Returns the reason for a restart if this process cannot start the threads that the settings ask for. */
	#threadShortage(settings: Settings): RestartReason | undefined {
		const { threadPools } = this.#components;
		const threadCount = threadPools.threadCountFor(settings);
		const { freeThreads } = threadPools;
		return threadCount !== threadPools.servingThreadCount && threadCount > freeThreads
			? tooManyThreadsReason(threadCount, freeThreads)
			: undefined;
	}
}
