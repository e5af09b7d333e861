/** Spans on the main thread: a bounded queue before the exporter, which is loaded when a thread first traces a request. */
import type { SpanRecord } from '../../compiler/exchange/leases.ts';
import type { LogLevel } from '../logs/log-entry.ts';
import type { SpanExporter } from './otlp-exporter.ts';
import { isTracingDisabled, samplerProblem } from './sampler.ts';

/** Writes a message about the export of spans to the process log. */
export type SpanExportLogger = (
	level: LogLevel,
	message: string,
	fields?: { readonly [name: string]: unknown },
) => void;

/** Minimum milliseconds between two log entries about failed exports. */
const REMINDER_INTERVAL_MS = 60_000;

/** Settings for queueing spans: the `OTEL_BSP_…` variables of the OpenTelemetry specification. */
interface BatchSettings {
	readonly delayMs: number;
	readonly queueSpans: number;
	readonly batchSpans: number;
	readonly timeoutMs: number;
}

/** Queues the spans of all threads and exports them in batches. */
export class SpanExport {
	/** Number of spans that a collector has accepted. */
	exportedCount = 0;
	/** Number of spans that were dropped because the queue was full, or whose export failed. */
	droppedCount = 0;
	readonly #environment: { readonly [name: string]: string | undefined };
	readonly #log: SpanExportLogger;
	readonly #settings: BatchSettings;
	readonly #queuedSpans: SpanRecord[] = [];
	#exporter: Promise<SpanExporter | undefined> | undefined;
	#currentExport: Promise<void> | undefined;
	#batchTimer: NodeJS.Timeout | undefined;
	#isClosed = false;
	#isFailing = false;
	#lastLoggedAt = Number.NEGATIVE_INFINITY;
	#unloggedDropCount = 0;

	constructor(environment: { readonly [name: string]: string | undefined }, log: SpanExportLogger) {
		this.#environment = environment;
		this.#log = log;
		this.#settings = batchSettings(environment);
	}

	/** Called when a thread begins to trace. Loads the exporter, and logs mistakes in the environment. */
	openExporter(): void {
		this.#exporter ??= this.#loadExporter();
	}

	/** Queues `spanCount` spans, given as comma-separated JSON objects. */
	queueSpans(text: string, spanCount: number): void {
		const freeSpans = this.#isClosed ? 0 : this.#settings.queueSpans - this.#queuedSpans.length;
		if (freeSpans > 0) {
			const records = JSON.parse(`[${text}]`) as SpanRecord[];
			for (let i = 0; i < records.length && i < freeSpans; i++) this.#queuedSpans.push(records[i]!);
		}
		this.#countDropped(Math.max(0, spanCount - freeSpans));
		this.#scheduleExport();
	}

	/** Exports the queued spans, for at most `limitMs`. No more spans are accepted. */
	async close(limitMs: number): Promise<void> {
		this.#isClosed = true;
		clearTimeout(this.#batchTimer);
		if (!this.#exporter) return;
		const finishExports = async (): Promise<void> => {
			await this.#currentExport;
			// Stops at the first failed batch: if no collector responds, every further batch would wait for its timeout.
			while (this.#queuedSpans.length > 0 && !this.#isFailing) await this.#exportBatch();
			await (await this.#exporter)?.close();
		};
		await withinLimit(finishExports(), limitMs);
		this.#countDropped(this.#queuedSpans.splice(0).length);
	}

	#scheduleExport(): void {
		if (this.#currentExport || this.#queuedSpans.length === 0 || this.#isClosed) return;
		if (this.#queuedSpans.length >= this.#settings.batchSpans) {
			clearTimeout(this.#batchTimer);
			this.#batchTimer = undefined;
			this.#startExport();
		} else {
			this.#batchTimer ??= setTimeout(() => {
				this.#batchTimer = undefined;
				this.#startExport();
			}, this.#settings.delayMs).unref();
		}
	}

	#startExport(): void {
		this.#currentExport ??= this.#exportBatch().finally(() => {
			this.#currentExport = undefined;
			this.#scheduleExport();
		});
	}

	async #exportBatch(): Promise<void> {
		const exporter = await this.#exporter;
		const spans = this.#queuedSpans.splice(0, this.#settings.batchSpans);
		if (!exporter || spans.length === 0) return;
		try {
			await exporter.export(spans, this.#settings.timeoutMs);
		} catch (error) {
			this.#isFailing = true;
			this.#countDropped(spans.length, error);
			return;
		}
		this.exportedCount += spans.length;
		if (!this.#isFailing) return;
		this.#isFailing = false;
		this.#lastLoggedAt = Number.NEGATIVE_INFINITY;
		this.#log('info', 'spans are exported again');
	}

	#countDropped(spanCount: number, error?: unknown): void {
		if (spanCount === 0) return;
		this.droppedCount += spanCount;
		this.#unloggedDropCount += spanCount;
		const now = performance.now();
		if (now - this.#lastLoggedAt < REMINDER_INTERVAL_MS) return;
		this.#lastLoggedAt = now;
		const cause = error instanceof Error ? error.message : error === undefined ? undefined : String(error);
		const message =
			error === undefined
				? 'spans were dropped: they come faster than they are exported'
				: 'spans could not be exported';
		this.#log('warn', message, {
			dropped: this.#unloggedDropCount,
			...(cause === undefined ? {} : { cause: withoutSecrets(cause) }),
		});
		this.#unloggedDropCount = 0;
	}

	async #loadExporter(): Promise<SpanExporter | undefined> {
		const problem = samplerProblem(this.#environment);
		if (problem !== undefined) this.#log('warn', problem);
		const exporterName = this.#environment.OTEL_TRACES_EXPORTER?.trim() ?? '';
		if (isTracingDisabled(this.#environment) || exporterName === 'none') return undefined;
		if (exporterName !== '' && exporterName !== 'otlp') {
			this.#log(
				'warn',
				`OTEL_TRACES_EXPORTER names no exporter that there is: \`${withoutSecrets(exporterName)}\`; otlp is used.`,
			);
		}
		try {
			const { openOtlpExporter } = await import('./otlp-exporter.ts');
			return openOtlpExporter(this.#environment, message => this.#log('warn', withoutSecrets(message)));
		} catch (error) {
			this.#log('error', 'the exporter of spans could not be made', { cause: withoutSecrets(String(error)) });
			return undefined;
		}
	}
}

/** Returns a message without parts that may be secret, on one line and of limited length. */
function withoutSecrets(message: string): string {
	return message
		.replace(/\/\/[^@\s/]*@/g, '//[redacted]@')
		.replace(/\s+/g, ' ')
		.slice(0, 300);
}

function batchSettings(environment: { readonly [name: string]: string | undefined }): BatchSettings {
	const readNumber = (name: string, fallback: number, min: number, max: number): number => {
		const value = Number(environment[name] ?? '');
		return environment[name]?.trim() && Number.isInteger(value) && value >= min && value <= max ? value : fallback;
	};
	const maxQueuedSpans = readNumber('OTEL_BSP_MAX_QUEUE_SIZE', 2048, 1, 1_000_000);
	return {
		queueSpans: maxQueuedSpans,
		batchSpans: Math.min(maxQueuedSpans, readNumber('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, 1, 100_000)),
		delayMs: readNumber('OTEL_BSP_SCHEDULE_DELAY', 5000, 0, 3_600_000),
		timeoutMs: readNumber('OTEL_BSP_EXPORT_TIMEOUT', 30_000, 1, 3_600_000),
	};
}

async function withinLimit(promise: Promise<void>, limitMs: number): Promise<void> {
	let timer: NodeJS.Timeout | undefined;
	const timeLimit = new Promise<void>(resolve => {
		timer = setTimeout(resolve, limitMs);
	});
	await Promise.race([promise.catch(() => {}), timeLimit]);
	clearTimeout(timer);
}
