/** Records metrics of one listener's exchanges on one thread. Allocates and sends messages only when a series is created. */
import type { Settings } from '../../compiler/document/document.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { HTTP_FAMILIES, type SeriesFamily, slotsPerSeries } from './families.ts';
import type { SeriesPages, SeriesPlace } from './series-pages.ts';

const METHODS: readonly string[] = ['GET', 'POST', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'];
const OTHER_METHOD = METHODS.length;

/** Maximum number of hosts without a site that get series of their own. It is limited, because clients can send any host. */
const MAX_OTHER_HOSTS = 1000;

interface CodeSeries {
	readonly duration: SeriesPlace;
	readonly responseDuration: SeriesPlace;
	readonly requestSize: SeriesPlace;
	readonly responseSize: SeriesPlace;
}

interface HandlerSeries {
	readonly labels: { readonly [name: string]: string };
	readonly requests: SeriesPlace;
	readonly errors: SeriesPlace;
	/** The series for each combination of status and method. */
	readonly seriesByCode: Map<number, CodeSeries>;
}

/** The series that the previous exchange used, with the properties by which they were chosen. */
interface LastSeries {
	readonly servedHosts: ReadonlySet<string> | undefined;
	readonly host: string;
	readonly handler: string;
	readonly method: string;
	readonly status: number;
	readonly series: HandlerSeries;
	readonly codeSeries: CodeSeries;
}

/** Records metrics of one listener's exchanges. */
export class HttpObserver {
	readonly #pages: SeriesPages;
	readonly #serverLabel: string;
	readonly #labelsHosts: boolean;
	readonly #observesAllHosts: boolean;
	readonly #otherHosts = new Set<string>();
	/** Series by the value of the label `host` and then by handler. */
	readonly #seriesByHost = new Map<string, Map<string, HandlerSeries>>();
	readonly #inFlightGauge: SeriesPlace;
	#lastSeries: LastSeries | undefined;

	/** @param server The listener's address, used as a label. */
	constructor(pages: SeriesPages, server: string, settings: NonNullable<Settings['metrics']>) {
		this.#pages = pages;
		this.#serverLabel = server;
		this.#labelsHosts = settings.per_host === true;
		this.#observesAllHosts = settings.observe_catchall_hosts === true;
		this.#inFlightGauge = pages.allocate(HTTP_FAMILIES.inFlight.name, { server }, 1);
	}

	onExchangeBegan(): void {
		this.#inFlightGauge.page[this.#inFlightGauge.slot]!++;
	}

	/**
	 * Records a finished exchange. `servedHosts` are the hosts that the configuration names, or undefined without `per_host`.
	 * `answeredAt` is when the handlers returned, by performance.now(), or 0 if the exchange ended at the same time.
	 */
	onExchangeEnded(
		x: Exchange,
		servedHosts: ReadonlySet<string> | undefined,
		answeredAt: number,
		hasFailed: boolean,
	): void {
		this.#inFlightGauge.page[this.#inFlightGauge.slot]!--;
		const { series, codeSeries } = this.#seriesOf(x, servedHosts);
		series.requests.page[series.requests.slot]!++;
		if (hasFailed) series.errors.page[series.errors.slot]!++;
		const now = performance.now();
		const durationSeconds = (now - x.startedAt) / 1000;
		addToHistogram(codeSeries.duration, HTTP_FAMILIES.duration.buckets, durationSeconds);
		const responseSeconds = answeredAt === 0 ? durationSeconds : (answeredAt - x.startedAt) / 1000;
		addToHistogram(codeSeries.responseDuration, HTTP_FAMILIES.responseDuration.buckets, responseSeconds);
		addToHistogram(codeSeries.requestSize, HTTP_FAMILIES.requestSize.buckets, x.bytesReceived);
		addToHistogram(codeSeries.responseSize, HTTP_FAMILIES.responseSize.buckets, x.response.bytesSent);
	}

	#hostLabel(host: string, servedHosts: ReadonlySet<string> | undefined): string {
		if (servedHosts?.has(host)) return host;
		if (!this.#observesAllHosts) return 'other';
		if (this.#otherHosts.has(host)) return host;
		if (this.#otherHosts.size >= MAX_OTHER_HOSTS) return 'other';
		this.#otherHosts.add(host);
		return host;
	}

	/**
	 * Returns the series of an exchange. They are usually the series of the previous exchange. Checking that first is cheaper than
	 * looking them up in four hash tables.
	 */
	#seriesOf(x: Exchange, servedHosts: ReadonlySet<string> | undefined): LastSeries {
		const { host } = x.request;
		const { method } = x.received;
		const { status } = x.response;
		const lastSeries = this.#lastSeries;
		if (
			lastSeries !== undefined &&
			lastSeries.servedHosts === servedHosts &&
			lastSeries.handler === x.answeredBy &&
			lastSeries.status === status &&
			lastSeries.method === method &&
			(!this.#labelsHosts || lastSeries.host === host)
		) {
			return lastSeries;
		}
		const hostLabel = this.#labelsHosts ? this.#hostLabel(host, servedHosts) : '';
		const series = this.#handlerSeries(hostLabel, x.answeredBy);
		const codeSeries = this.#codeSeries(series, status, method);
		this.#lastSeries = { servedHosts, host, handler: x.answeredBy, method, status, series, codeSeries };
		return this.#lastSeries;
	}

	#handlerSeries(host: string, handler: string): HandlerSeries {
		let seriesByHandler = this.#seriesByHost.get(host);
		if (!seriesByHandler) {
			seriesByHandler = new Map();
			this.#seriesByHost.set(host, seriesByHandler);
		}
		let series = seriesByHandler.get(handler);
		if (!series) {
			const labels = this.#createLabels(host, handler);
			series = {
				labels,
				requests: this.#allocateSeries(HTTP_FAMILIES.requests, labels),
				errors: this.#allocateSeries(HTTP_FAMILIES.errors, labels),
				seriesByCode: new Map(),
			};
			seriesByHandler.set(handler, series);
		}
		return series;
	}

	#codeSeries(handler: HandlerSeries, status: number, methodName: string): CodeSeries {
		const methodIndex = METHODS.indexOf(methodName);
		const methodNumber = methodIndex === -1 ? OTHER_METHOD : methodIndex;
		const codeKey = status * 16 + methodNumber;
		let series = handler.seriesByCode.get(codeKey);
		if (!series) {
			const labels = {
				...handler.labels,
				code: String(status),
				method: METHODS[methodNumber] ?? 'OTHER',
			};
			series = {
				duration: this.#allocateSeries(HTTP_FAMILIES.duration, labels),
				responseDuration: this.#allocateSeries(HTTP_FAMILIES.responseDuration, labels),
				requestSize: this.#allocateSeries(HTTP_FAMILIES.requestSize, labels),
				responseSize: this.#allocateSeries(HTTP_FAMILIES.responseSize, labels),
			};
			handler.seriesByCode.set(codeKey, series);
		}
		return series;
	}

	#createLabels(host: string, handler: string): { [name: string]: string } {
		return this.#labelsHosts ? { server: this.#serverLabel, handler, host } : { server: this.#serverLabel, handler };
	}

	#allocateSeries(family: SeriesFamily, labels: { readonly [name: string]: string }): SeriesPlace {
		return this.#pages.allocate(family.name, labels, slotsPerSeries(family));
	}
}

/** Adds a value to a histogram: to its bucket, and to the sum. The scrape makes the buckets cumulative. */
function addToHistogram(series: SeriesPlace, buckets: readonly number[], value: number): void {
	let bucket = 0;
	while (bucket < buckets.length && value > buckets[bucket]!) bucket++;
	series.page[series.slot + bucket]!++;
	series.page[series.slot + buckets.length + 1]! += value;
}
