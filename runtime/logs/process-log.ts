/** The process log: events of the configuration, of listeners and of threads, and errors of handlers. */
import type { Settings, SiteLog } from '../../compiler/document/document.ts';
import { includesLogger } from '../../compiler/document/log-namespaces.ts';
import { jsonMembers, LEVEL_RANK, levelRank } from './encoders.ts';
import type { LogEntry, LogLevel } from './log-entry.ts';
import { compileLogFormat, type LineFormat, UnknownEncoder } from './log-format.ts';
import { LogSampler, SAMPLER_SLOTS } from './log-sampler.ts';
import { LogOutputError, type LogOutputSettings, type LogSinks, sinkKey } from './log-sinks.ts';
import type { LogWriter } from './log-writer.ts';
import type { ExpandText } from './machine-text.ts';

/** An open log that receives entries of the process log. */
interface LogTarget {
	readonly writer: LogWriter;
	readonly key: string;
	readonly format: LineFormat;
	readonly minRank: number;
	readonly sampler: LogSampler | undefined;
	readonly log: Pick<SiteLog, 'include' | 'exclude'>;
}

/** Outputs of a configuration, opened but not in use yet. */
export interface PreparedProcessLog {
	readonly targets: readonly LogTarget[];
}

/** Maximum number of entries of the start that are kept for the outputs of the first configuration. */
const MAX_START_ENTRIES = 1000;

/**
 * Writes process log entries to the logs in the settings. Until there are settings, entries are written to standard error, so that
 * they are visible if the start fails or takes long; the outputs of the first configuration get them, too, when it is activated.
 */
export class ProcessLog {
	readonly #sinks: LogSinks;
	readonly #isTerminal: boolean;
	readonly #isVerbose: boolean;
	readonly #expand: ExpandText;
	#targets: readonly LogTarget[];
	readonly #standardError: LogTarget;
	/** What has been logged during the start, with its times in milliseconds since 1970; undefined after the first activation. */
	#startEntries: { readonly entry: LogEntry; readonly time: number }[] | undefined = [];

	/**
	 * @param isTerminal True if standard error is a terminal, so that entries written there are human-readable.
	 * @param isVerbose True to write entries of level debug, whatever the settings say.
	 */
	constructor(sinks: LogSinks, isTerminal: boolean, isVerbose: boolean, expand: ExpandText = text => text) {
		this.#sinks = sinks;
		this.#isTerminal = isTerminal;
		this.#isVerbose = isVerbose;
		this.#expand = expand;
		this.#standardError = this.#openTarget('default', {}, {});
		this.#targets = this.prepare({}).targets;
	}

	/** Opens the outputs of a configuration, which must be passed to `activate` or `release`. Throws LogOutputError. */
	prepare(settings: Settings): PreparedProcessLog {
		const logs = settings.logs ?? {};
		const targets: LogTarget[] = [];
		const preparedLog = { targets };
		try {
			for (const [name, log] of Object.entries({ ...logs, default: logs.default ?? {} })) {
				targets.push(this.#openTarget(name, log, settings));
			}
		} catch (error) {
			this.release(preparedLog);
			throw error;
		}
		return preparedLog;
	}

	/** Switches to the given outputs, and closes the previous outputs. */
	activate(prepared: PreparedProcessLog): void {
		const previousTargets = this.#targets;
		this.#targets = prepared.targets;
		this.release({ targets: previousTargets });
		// The background server's standard error is discarded, so a log file must not lack what went wrong during the start.
		const newTargets = prepared.targets.filter(target => target.key !== this.#standardError.key);
		for (const { entry, time } of this.#startEntries ?? []) writeTo(newTargets, entry, time);
		this.#startEntries = undefined;
	}

	/** Closes the outputs of a configuration that is not activated after all. */
	release(prepared: PreparedProcessLog): void {
		for (const target of prepared.targets) this.#sinks.release(target.key);
	}

	close(): void {
		this.release({ targets: [...this.#targets, this.#standardError] });
		this.#targets = [];
	}

	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void {
		this.writeEntry({ level, logger, message, fields });
	}

	writeEntry(entry: LogEntry): void {
		const time = Date.now();
		if (this.#startEntries && this.#startEntries.length < MAX_START_ENTRIES) this.#startEntries.push({ entry, time });
		writeTo(this.#targets, entry, time);
	}

	/**
	 * Writes an entry about a failing output to the other outputs that accept it, or to standard error if only the failing output
	 * does.
	 */
	reportFailure(entry: LogEntry, failedKey: string): void {
		const { level, logger, message, fields } = entry;
		const acceptingTargets = this.#targets.filter(target => acceptsEntry(target, level, logger));
		const workingTargets = acceptingTargets.filter(target => target.key !== failedKey);
		const [target = this.#standardError, ...otherTargets] = workingTargets;
		if (acceptingTargets.length === 0 || target.key === failedKey) return;
		const json = jsonMembers(fields);
		for (const { writer, format } of [target, ...otherTargets]) {
			writer.write(format.encode(level, logger, message, json, Date.now()));
		}
	}

	#openTarget(name: string, log: SiteLog, settings: Settings): LogTarget {
		const output: LogOutputSettings = log.output ?? { writer: 'stderr' };
		const defaultEncoder = this.#isTerminal && output.writer === 'stderr' ? 'console' : 'json';
		let format: LineFormat;
		try {
			format = compileLogFormat(log.format ?? { encoder: 'default' }, defaultEncoder, this.#expand);
		} catch (error) {
			if (!(error instanceof UnknownEncoder)) throw error;
			throw new LogOutputError(`${error.message.slice(0, -1)} (log \`${name}\`).`, 'log/invalid-output');
		}
		const level = log.level ?? (settings.debug ? 'debug' : 'info');
		return {
			writer: this.#sinks.acquire(output),
			key: sinkKey(output),
			format,
			sampler: log.sampling && new LogSampler(log.sampling, new Int32Array(SAMPLER_SLOTS)),
			minRank: this.#isVerbose ? 0 : levelRank(level),
			log,
		};
	}
}

function writeTo(targets: readonly LogTarget[], { level, logger, message, fields }: LogEntry, time: number): void {
	let json: string | undefined;
	for (const target of targets) {
		if (!acceptsEntry(target, level, logger)) continue;
		if (target.sampler && !target.sampler.shouldWrite(level, message, time)) continue;
		json ??= jsonMembers(fields);
		target.writer.write(target.format.encode(level, logger, message, json, time));
	}
}

function acceptsEntry({ minRank, log }: LogTarget, level: LogLevel, logger: string): boolean {
	return LEVEL_RANK[level]! >= minRank && includesLogger(log, logger);
}
