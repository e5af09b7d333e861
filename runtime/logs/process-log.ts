/** The log of the process itself: what happens to configuration, listeners and threads, and errors of handlers. */
import type { Settings, SiteLog } from '../../compiler/document/document.ts';
import type { LogEntry, LogLevel } from '../threads/messages.ts';
import { type Encoder, encoderOf, LEVEL_RANK, levelRank, members } from './encoders.ts';
import { LogOutputError, type LogOutputSettings, type LogSinks, sinkKey } from './log-sinks.ts';
import type { LogWriter } from './log-writer.ts';

interface Target {
	readonly writer: LogWriter;
	readonly key: string;
	readonly encoder: Encoder;
	readonly rank: number;
	readonly include: readonly string[];
	readonly exclude: readonly string[];
}

/** Outputs of a configuration, open but not written to yet. */
export interface PreparedProcessLog {
	readonly targets: readonly Target[];
}

/** Writes process entries to the logs that the settings name; to standard error until then. */
export class ProcessLog {
	readonly #sinks: LogSinks;
	readonly #terminal: boolean;
	readonly #verbose: boolean;
	#targets: readonly Target[];

	/** `terminal`: standard error is one, so entries are for eyes. `verbose`: level debug whatever the settings say. */
	constructor(sinks: LogSinks, terminal: boolean, verbose: boolean) {
		this.#sinks = sinks;
		this.#terminal = terminal;
		this.#verbose = verbose;
		this.#targets = this.prepare({}).targets;
	}

	/** Opens the outputs of a configuration, to be taken by `use` or given up by `giveUp`. Throws LogOutputError. */
	prepare(settings: Settings): PreparedProcessLog {
		const logs = settings.logs ?? {};
		const targets: Target[] = [];
		const prepared = { targets };
		try {
			for (const [name, log] of Object.entries({ ...logs, default: logs.default ?? {} })) {
				targets.push(this.#target(name, log, settings));
			}
		} catch (error) {
			this.giveUp(prepared);
			throw error;
		}
		return prepared;
	}

	/** Writes to these outputs from now on and closes those before. */
	use(prepared: PreparedProcessLog): void {
		const before = this.#targets;
		this.#targets = prepared.targets;
		this.giveUp({ targets: before });
	}

	/** Closes outputs that are not used after all. */
	giveUp(prepared: PreparedProcessLog): void {
		for (const target of prepared.targets) this.#sinks.release(target.key);
	}

	/** Ends logging. */
	close(): void {
		this.giveUp({ targets: this.#targets });
		this.#targets = [];
	}

	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void {
		this.entry({ level, logger, message, fields });
	}

	entry({ level, logger, message, fields }: LogEntry): void {
		const rank = LEVEL_RANK[level]!;
		let json: string | undefined;
		for (const target of this.#targets) {
			if (rank < target.rank || !accepts(target, logger)) continue;
			json ??= members(fields);
			target.writer.write(target.encoder.encode(level, logger, message, json, Date.now()));
		}
	}

	#target(name: string, log: SiteLog & { include?: unknown; exclude?: unknown }, settings: Settings): Target {
		const output: LogOutputSettings = log.output ?? { writer: 'stderr' };
		const format = log.format?.encoder ?? (this.#terminal && output.writer === 'stderr' ? 'console' : 'json');
		const encoder = encoderOf(format);
		if (!encoder) throw new LogOutputError(`There is no log format \`${format}\` (log \`${name}\`).`);
		const level = log.level ?? (settings.debug ? 'debug' : 'info');
		return {
			writer: this.#sinks.acquire(output),
			key: sinkKey(output),
			encoder,
			rank: this.#verbose ? 0 : levelRank(level),
			include: strings(log.include),
			exclude: strings(log.exclude),
		};
	}
}

function strings(value: unknown): readonly string[] {
	return Array.isArray(value) ? value.filter(item => typeof item === 'string') : [];
}

/** Namespaces match as prefixes of whole parts; the longest match decides. */
function accepts(target: Target, logger: string): boolean {
	const longest = (names: readonly string[]) =>
		names.reduce(
			(length, name) => (logger === name || logger.startsWith(`${name}.`) ? Math.max(length, name.length) : length),
			-1,
		);
	const included = longest(target.include);
	if (target.include.length > 0 && included === -1) return false;
	const excluded = longest(target.exclude);
	return excluded === -1 || included > excluded;
}
