/** Spans on the main thread: a bounded queue before the exporter, which is loaded when a thread first traces a request. */
import type { SpanRecord } from '../../compiler/exchange/leases.ts';
import type { LogLevel } from '../logs/log-entry.ts';
import type { SpanExporter } from './otlp-exporter.ts';
import { isTracingDisabled, samplerProblem } from './sampler.ts';

/** Writes an entry about exports to the process log. */
export type SpanExportLogger = (
	level: LogLevel,
	message: string,
	fields?: { readonly [name: string]: unknown },
) => void;

/** Minimum milliseconds between two log entries about failed exports. */
const REMINDER = 60_000;

/** Settings for queueing spans: the `OTEL_BSP_…` variables of the OpenTelemetry specification. */
interface BatchSettings {
	readonly delay: number;
	readonly queue: number;
	readonly batch: number;
	readonly timeout: number;
}

/** Queues the spans of all threads and exports them in batches. */
export class SpanExport {
	/** Number of spans that a collector has accepted. */
	exported = 0;
	/** Number of spans that found the queue full or whose export failed. */
	dropped = 0;
	readonly #environment: { readonly [name: string]: string | undefined };
	readonly #tell: SpanExportLogger;
	readonly #settings: BatchSettings;
	readonly #queue: SpanRecord[] = [];
	#exporter: Promise<SpanExporter | undefined> | undefined;
	#underWay: Promise<void> | undefined;
	#timer: NodeJS.Timeout | undefined;
	#closed = false;
	#failing = false;
	#toldAt = Number.NEGATIVE_INFINITY;
	#unreported = 0;

	constructor(environment: { readonly [name: string]: string | undefined }, tell: SpanExportLogger) {
		this.#environment = environment;
		this.#tell = tell;
		this.#settings = batchSettings(environment);
	}

	/** Called when a thread begins to trace. Loads the exporter, and logs mistakes in the environment. */
	open(): void {
		this.#exporter ??= this.#load();
	}

	/** Queues `spans` spans, given as comma-separated JSON objects. */
	take(text: string, spans: number): void {
		const room = this.#closed ? 0 : this.#settings.queue - this.#queue.length;
		if (room > 0) {
			const all = JSON.parse(`[${text}]`) as SpanRecord[];
			for (let i = 0; i < all.length && i < room; i++) this.#queue.push(all[i]!);
		}
		this.#drop(Math.max(0, spans - room));
		this.#schedule();
	}

	/** Exports the queued spans, for at most `limit` milliseconds. No more spans are accepted. */
	async close(limit: number): Promise<void> {
		this.#closed = true;
		clearTimeout(this.#timer);
		if (!this.#exporter) return;
		const finish = async (): Promise<void> => {
			await this.#underWay;
			// If no collector responds, every batch would wait for its timeout.
			while (this.#queue.length > 0 && !this.#failing) await this.#exportBatch();
			await (await this.#exporter)?.close();
		};
		await withinLimit(finish(), limit);
		this.#drop(this.#queue.splice(0).length);
	}

	#schedule(): void {
		if (this.#underWay || this.#queue.length === 0 || this.#closed) return;
		if (this.#queue.length >= this.#settings.batch) {
			clearTimeout(this.#timer);
			this.#timer = undefined;
			this.#start();
		} else {
			this.#timer ??= setTimeout(() => {
				this.#timer = undefined;
				this.#start();
			}, this.#settings.delay).unref();
		}
	}

	#start(): void {
		this.#underWay ??= this.#exportBatch().finally(() => {
			this.#underWay = undefined;
			this.#schedule();
		});
	}

	async #exportBatch(): Promise<void> {
		const exporter = await this.#exporter;
		const spans = this.#queue.splice(0, this.#settings.batch);
		if (!exporter || spans.length === 0) return;
		try {
			await exporter.export(spans, this.#settings.timeout);
		} catch (error) {
			this.#failing = true;
			this.#drop(spans.length, error);
			return;
		}
		this.exported += spans.length;
		if (!this.#failing) return;
		this.#failing = false;
		this.#toldAt = Number.NEGATIVE_INFINITY;
		this.#tell('info', 'spans are exported again');
	}

	#drop(spans: number, error?: unknown): void {
		if (spans === 0) return;
		this.dropped += spans;
		this.#unreported += spans;
		const now = performance.now();
		if (now - this.#toldAt < REMINDER) return;
		this.#toldAt = now;
		const cause = error instanceof Error ? error.message : error === undefined ? undefined : String(error);
		const message =
			error === undefined
				? 'spans were dropped: they come faster than they are exported'
				: 'spans could not be exported';
		this.#tell('warn', message, { dropped: this.#unreported, ...(cause === undefined ? {} : { cause: shown(cause) }) });
		this.#unreported = 0;
	}

	async #load(): Promise<SpanExporter | undefined> {
		const problem = samplerProblem(this.#environment);
		if (problem !== undefined) this.#tell('warn', problem);
		const wanted = this.#environment.OTEL_TRACES_EXPORTER?.trim() ?? '';
		if (isTracingDisabled(this.#environment) || wanted === 'none') return undefined;
		if (wanted !== '' && wanted !== 'otlp') {
			this.#tell('warn', `OTEL_TRACES_EXPORTER names no exporter that there is: \`${shown(wanted)}\`; otlp is used.`);
		}
		try {
			const { openOtlpExporter } = await import('./otlp-exporter.ts');
			return openOtlpExporter(this.#environment, message => this.#tell('warn', shown(message)));
		} catch (error) {
			this.#tell('error', 'the exporter of spans could not be made', { cause: shown(String(error)) });
			return undefined;
		}
	}
}

/** Returns a message without parts that may be secret, on one line and of limited length. */
function shown(message: string): string {
	return message
		.replace(/\/\/[^@\s/]*@/g, '//[redacted]@')
		.replace(/\s+/g, ' ')
		.slice(0, 300);
}

function batchSettings(environment: { readonly [name: string]: string | undefined }): BatchSettings {
	const number = (name: string, otherwise: number, least: number, most: number): number => {
		const value = Number(environment[name] ?? '');
		return environment[name]?.trim() && Number.isInteger(value) && value >= least && value <= most ? value : otherwise;
	};
	const queue = number('OTEL_BSP_MAX_QUEUE_SIZE', 2048, 1, 1_000_000);
	return {
		queue,
		batch: Math.min(queue, number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, 1, 100_000)),
		delay: number('OTEL_BSP_SCHEDULE_DELAY', 5000, 0, 3_600_000),
		timeout: number('OTEL_BSP_EXPORT_TIMEOUT', 30_000, 1, 3_600_000),
	};
}

async function withinLimit(promise: Promise<void>, limit: number): Promise<void> {
	let timer: NodeJS.Timeout | undefined;
	const end = new Promise<void>(resolve => {
		timer = setTimeout(resolve, limit);
	});
	await Promise.race([promise.catch(() => {}), end]);
	clearTimeout(timer);
}
