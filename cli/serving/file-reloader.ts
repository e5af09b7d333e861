/** Reloads a server's configuration from its file: on a signal, or when a watched file has changed. */
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { LoadOutcome } from '../../runtime/main/control.ts';
import { STILL_SERVED } from '../../runtime/main/load-outcomes.ts';
import type { Runtime } from '../../runtime/main/runtime.ts';
import { firstLineOf } from '../command/failure-report.ts';
import { refusalSentence } from '../command/refusal.ts';
import { printError } from '../command/terminal.ts';
import { readConfiguration } from '../configuration/configuration.ts';
import type { StartSettings } from './handover.ts';
import { type ReloadAnswer, writeReloadAnswer } from './reload-answer.ts';
import type { ServiceManager } from './service-manager.ts';
import type { ConfigurationWatch } from './watch.ts';

/** Reloads the file of a server. Reloads requested during the start wait until it is complete. */
export class FileReloader {
	/** The file; undefined if the configuration did not come from one. */
	readonly #source: StartSettings['source'];
	readonly #isOfFleet: boolean;
	readonly #serviceManager: () => ServiceManager | undefined;
	/** Set once the start is complete. */
	#runtime: Runtime | undefined;
	#watch: ConfigurationWatch | undefined;
	/** The cause of a reload that must wait until the start is complete. */
	#pendingCause: string | undefined;
	#lastReload: Promise<void> = Promise.resolve();
	#hasEnded = false;

	/** @param serviceManager Returns the service manager, which is notified of reloads; undefined until it is known. */
	constructor({ source, fleet }: StartSettings, serviceManager: () => ServiceManager | undefined) {
		this.#source = source;
		this.#isOfFleet = fleet !== undefined;
		this.#serviceManager = serviceManager;
	}

	/** Watches the files of a configuration. Must be called before the configuration is compiled. */
	async watch(input: ConfigInput): Promise<void> {
		const { ConfigurationWatch } = await import('./watch.ts');
		this.#watch = new ConfigurationWatch(input, () => this.request('a file changed'));
	}

	/** Called when the start is complete. Carries out a reload that was requested during the start. */
	begin(runtime: Runtime): void {
		this.#runtime = runtime;
		if (this.#pendingCause) this.request(this.#pendingCause);
	}

	/** Starts no further reload, and stops watching. */
	end(): void {
		this.#hasEnded = true;
		this.#watch?.close();
	}

	/** Reloads the file. If there is none, logs and answers that nothing can be reloaded. */
	request(cause: string): void {
		const runtime = this.#runtime;
		if (!runtime) {
			this.#pendingCause = cause;
			return;
		}
		const source = this.#source;
		if (source) {
			this.#lastReload = this.#lastReload.then(() =>
				this.#hasEnded ? undefined : this.#reload(runtime, source, cause),
			);
			return;
		}
		const message = this.#isOfFleet
			? 'The configuration comes from the cluster: change it with `svc publish`. If the local file of the machine has changed, stop and start the server.'
			: 'The configuration did not come from a file.';
		runtime.log('warn', 'signals', 'nothing can be reloaded', { cause: message });
		writeAnswer(runtime, { began: timeNow(), isServed: false, message, details: '' });
	}

	async #reload(runtime: Runtime, source: NonNullable<StartSettings['source']>, cause: string): Promise<void> {
		runtime.log('info', 'config', 'reloading', { cause, source: source.name });
		this.#serviceManager()?.notifyReloading();
		const began = timeNow();
		let answer: Omit<ReloadAnswer, 'began'>;
		try {
			const input = await readConfiguration(source);
			this.#watch?.follow(input);
			const outcome = await runtime.load(input);
			answer = answerOf(outcome, input.name);
			// Whoever saves the file or sends a signal sees only the log.
			if (outcome.result === 'restart_required') runtime.log('warn', 'config', RESTART_HINT, { source: source.name });
			// The log has the messages; a terminal also gets the source excerpts.
			if (outcome.result === 'refused' && process.stderr.isTTY) printError(`${answer.details}${answer.message}\n`);
		} catch (error) {
			answer = { isServed: false, message: firstLineOf(error), details: '' };
			runtime.log('error', 'config', `the configuration could not be reloaded; ${STILL_SERVED}`, {
				cause: answer.message,
			});
		}
		this.#serviceManager()?.notifyReloaded(answer.isServed ? answer.message : `Reload failed: ${answer.message}`);
		writeAnswer(runtime, { began, ...answer });
	}
}

/** Logged after the reasons why a file cannot be loaded into this process. */
const RESTART_HINT =
	'the previous configuration stays in use; to apply the new one without downtime, run: svc reload --handover';

/** Returns the time as {@link ReloadAnswer.began} contains it. */
function timeNow(): string {
	return String(process.hrtime.bigint());
}

/** Returns the answer for the outcome of reloading the file `name`. */
function answerOf(outcome: LoadOutcome, name: string): Omit<ReloadAnswer, 'began'> {
	if (outcome.result === 'applied') {
		const stateText = outcome.unchanged ? 'has not changed' : 'is now being served';
		return { isServed: true, message: `${name} ${stateText} (generation ${outcome.generation}).`, details: '' };
	}
	if (outcome.result === 'failed') return { isServed: false, message: outcome.message, details: '' };
	if (outcome.result === 'restart_required') {
		const reasons = outcome.reasons.map(({ message }) => message).join(' ');
		return { isServed: false, message: `${name} needs a restart or a handover: ${reasons}`, details: '' };
	}
	const diagnostics = 'diagnostics' in outcome ? (outcome.diagnostics ?? []) : [];
	const details = diagnostics.map(({ text }) => `${text}\n\n`).join('');
	return { isServed: false, message: refusalSentence(name, diagnostics), details };
}

function writeAnswer(runtime: Runtime, answer: ReloadAnswer): void {
	try {
		writeReloadAnswer(answer);
	} catch (error) {
		const cause = firstLineOf(error);
		runtime.log('warn', 'config', 'the answer to a reload could not be written', { cause });
	}
}
