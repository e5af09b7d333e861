/**
 * A server process after its handover, until it exits: it finishes its connections, forwards signals to the process that serves,
 * and starts another successor if the first one fails before it has been confirmed.
 */
import type { PredecessorChannel } from '../../runtime/main/handover/predecessor-channel.ts';
import type { SuccessorProcess } from '../../runtime/main/handover/successor-process.ts';
import type { Runtime } from '../../runtime/main/runtime.ts';
import { EXIT_STATUS } from '../command/command.ts';
import { firstLineOf } from '../command/failure-report.ts';
import { printError } from '../command/terminal.ts';
import { type Predecessor, runningProgram, startSuccessor } from './handover.ts';
import { Keeper } from './keeper.ts';
import type { ServiceManager } from './service-manager.ts';
import type { SuccessorGuard } from './successor-guard.ts';

/** The parts of the server process that are still needed after the handover. */
export interface RetiredServerDeps {
	readonly runtime: Runtime;
	/** The description of this process for {@link startSuccessor}. */
	readonly predecessor: Predecessor;
	/** The guard of a successor that must be confirmed. */
	readonly guard: SuccessorGuard | undefined;
	/** The channel to the process from which this one took over. */
	readonly channel: PredecessorChannel | undefined;
	serviceManager(): ServiceManager | undefined;
	/** Resolves once the open connections have ended and everything has been written. */
	drain(): Promise<void>;
}

export class RetiredServer {
	/** Resolves once this process can exit. */
	readonly exitStatus: Promise<number>;
	#resolveExit: (status: number) => void = () => {};
	readonly #deps: RetiredServerDeps;
	#successor: SuccessorProcess;
	/** Set if this process was not started by a handover but by a shell or a supervisor, which waits for it; see {@link Keeper}. */
	#keeper: Keeper | undefined;
	/** True if the last signal was one that stops the successor. */
	#hasForwardedStop = false;
	/** The signals that have arrived since the start of another successor began; undefined unless one is being started. */
	#postponedSignals: NodeJS.Signals[] | undefined;

	/**
	 * @param successor The process that serves now, or that has handed over in turn.
	 * @param pid PID of the process that serves now.
	 */
	constructor(deps: RetiredServerDeps, successor: SuccessorProcess, pid: number) {
		this.#deps = deps;
		this.exitStatus = new Promise(resolve => {
			this.#resolveExit = resolve;
		});
		this.#successor = successor;
		this.#follow(successor, pid);
	}

	/** Makes `successor` the process to which signals are forwarded and whose exit is awaited. */
	#follow(successor: SuccessorProcess, pid: number): void {
		const { pipe } = successor;
		this.#successor = successor;
		this.#keeper = pipe && new Keeper(pipe, pid);
		this.#hasForwardedStop = false;
		void this.#deps.channel?.report('left');
	}

	/** Forwards a signal to the successor; while one is being started, as soon as it serves or has failed. A second signal also closes the remaining connections of this process. */
	forwardSignal(signal: NodeJS.Signals): void {
		if (this.#postponedSignals) {
			this.#postponedSignals.push(signal);
			return;
		}
		if (this.#keeper) this.#keeper.signal(signal);
		// Until the successor is confirmed, the service manager signals only this process, so the signal is forwarded.
		else if (this.#deps.guard?.isWatching) this.#successor.sendSignal(signal);
		const isStopSignal = signal !== 'SIGUSR1' && signal !== 'SIGUSR2' && signal !== 'SIGHUP';
		if (this.#hasForwardedStop) this.#deps.runtime.kill();
		// systemd has signaled the successor as well, and waits for both processes before it starts the service again.
		else if (isStopSignal && !this.#keeper)
			void this.#successor.whenExited.then(() => this.#resolveExit(EXIT_STATUS.ok));
		this.#hasForwardedStop = isStopSignal;
	}

	/**
	 * Finishes the open connections of this process. {@link exitStatus} resolves after that, or once no process serves any longer.
	 * The first process also waits for its successors.
	 */
	async finish(): Promise<void> {
		const { runtime, guard, channel } = this.#deps;
		try {
			const whenDrained = this.#deps.drain().then(() => guard?.whenSettled);
			// If no process serves any longer, the parent must learn this immediately, so that it restarts the service before the
			// last connection has ended.
			const lossStatus = await Promise.race([whenDrained, this.#waitForLoss()]);
			if (typeof lossStatus === 'number') {
				if (lossStatus !== EXIT_STATUS.forced) printError('error: the process that had taken over has failed.\n');
				// systemd restarts the service only if the main process is its own child and fails, so this process becomes the main
				// one again.
				await this.#deps.serviceManager()?.becomeMain('The process that had taken over has failed.');
				await channel?.report('lost');
				runtime.kill();
				this.#resolveExit(lossStatus);
				return;
			}
			await this.#deps.serviceManager()?.finish();
			if (!this.#keeper) {
				this.#resolveExit(EXIT_STATUS.ok);
				return;
			}
			const status = await this.#keeper.exitStatus;
			if (status === undefined) printError('error: the process that served has ended unexpectedly.\n');
			this.#resolveExit(status ?? EXIT_STATUS.endedInError);
		} catch (error) {
			printError(`error: the handover could not be completed: ${firstLineOf(error)}\n`);
			this.#resolveExit(EXIT_STATUS.endedInError);
		}
	}

	/**
	 * Resolves to an exit status once the serving process has failed. If nothing would restart the service, the promise stays
	 * pending, so that the remaining connections end by themselves.
	 */
	async #waitForLoss(): Promise<number> {
		const keeper = this.#keeper;
		const successor = this.#successor;
		const status = await (keeper ? keeper.exitStatus : successor.whenExited);
		const { guard, predecessor } = this.#deps;
		if (guard?.isWatching) {
			const isStopped = status === EXIT_STATUS.ok || status === EXIT_STATUS.forced || this.#hasForwardedStop;
			const hasReturned = !isStopped && (await this.#returnToPrevious(guard));
			guard.settle();
			if (hasReturned) return this.#waitForLoss();
		}
		const isLost =
			status !== EXIT_STATUS.ok &&
			!predecessor.startSettings.background &&
			(keeper !== undefined || !successor.hasHandedOver);
		return isLost ? (status ?? EXIT_STATUS.endedInError) : new Promise<never>(() => {});
	}

	/**
	 * After an unconfirmed successor has died, starts a process with this process's configuration. Resolves to false if that fails,
	 * too.
	 */
	async #returnToPrevious({ keptSockets, adminSocket }: SuccessorGuard): Promise<boolean> {
		if (keptSockets === undefined) return false;
		printError('error: the new process failed before it was confirmed; returning to the previous configuration.\n');
		this.#postponedSignals = [];
		const predecessor = { ...this.#deps.predecessor, adminSocket };
		const onGo = () => ({ upstreams: [], limits: [] });
		try {
			return await this.#deps.runtime.handOverAgain(keptSockets, async inheritance => {
				const successor = startSuccessor(
					{ shouldSave: false, program: runningProgram(), replacesFailed: true },
					inheritance,
					predecessor,
					onGo,
				);
				const result = await successor.run();
				if (result.result === 'failed') printError(`error: the return failed: ${result.message}\n`);
				else this.#follow(successor, result.pid);
				return result.result === 'done';
			});
		} finally {
			const signals = this.#postponedSignals;
			this.#postponedSignals = undefined;
			for (const signal of signals) this.forwardSignal(signal);
		}
	}
}
