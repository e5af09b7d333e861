/** Records metrics of one listener's exchanges on one thread. Allocates and sends messages only when a series is created. */
import type { Settings } from '../../compiler/document/document.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { HTTP_FAMILIES, type SeriesFamily, slotsPerSeries } from './families.ts';
import type { SeriesPages, SeriesPlace } from './series-pages.ts';

const METHODS: readonly string[] = ['GET', 'POST', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'];
const OTHER_METHOD = METHODS.length;

/** Maximum hosts without a site that get their own series. Clients can choose these hosts freely. */
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
	readonly codes: Map<number, CodeSeries>;
}

/** The series that the previous exchange used, with the properties by which they were chosen. */
interface LastSeries {
	readonly servedHosts: ReadonlySet<string> | undefined;
	readonly host: string;
	readonly handler: string;
	readonly method: string;
	readonly status: number;
	readonly series: HandlerSeries;
	readonly codes: CodeSeries;
}

/** Records metrics of one listener's exchanges. */
export class HttpObserver {
	readonly #pages: SeriesPages;
	readonly #server: string;
	readonly #perHost: boolean;
	readonly #observesAll: boolean;
	readonly #otherHosts = new Set<string>();
	/** Series by the value of the label `host` and then by handler. */
	readonly #hosts = new Map<string, Map<string, HandlerSeries>>();
	readonly #inFlight: SeriesPlace;
	#lastSeries: LastSeries | undefined;

	/** `server` is the listener's address, used as a label. */
	constructor(pages: SeriesPages, server: string, settings: NonNullable<Settings['metrics']>) {
		this.#pages = pages;
		this.#server = server;
		this.#perHost = settings.per_host === true;
		this.#observesAll = settings.observe_catchall_hosts === true;
		this.#inFlight = pages.allocate(HTTP_FAMILIES.inFlight.name, { server }, 1);
	}

	exchangeBegan(): void {
		this.#inFlight.page[this.#inFlight.slot]!++;
	}

	/**
	 * Records a finished exchange. `servedHosts` are the hosts that the configuration names, or undefined without `per_host`.
	 * `answeredAt` is when the response ended, by performance.now(), or 0 if the exchange ended at the same time.
	 */
	exchangeEnded(
		x: Exchange,
		servedHosts: ReadonlySet<string> | undefined,
		answeredAt: number,
		hasFailed: boolean,
	): void {
		this.#inFlight.page[this.#inFlight.slot]!--;
		const { series, codes } = this.#seriesOf(x, servedHosts);
		series.requests.page[series.requests.slot]!++;
		if (hasFailed) series.errors.page[series.errors.slot]!++;
		const now = performance.now();
		const durationSeconds = (now - x.startedAt) / 1000;
		observe(codes.duration, HTTP_FAMILIES.duration.buckets, durationSeconds);
		const responseSeconds = answeredAt === 0 ? durationSeconds : (answeredAt - x.startedAt) / 1000;
		observe(codes.responseDuration, HTTP_FAMILIES.responseDuration.buckets, responseSeconds);
		observe(codes.requestSize, HTTP_FAMILIES.requestSize.buckets, x.bytesReceived);
		observe(codes.responseSize, HTTP_FAMILIES.responseSize.buckets, x.response.bytesSent);
	}

	#hostLabel(host: string, servedHosts: ReadonlySet<string> | undefined): string {
		if (servedHosts?.has(host)) return host;
		if (!this.#observesAll) return 'other';
		if (this.#otherHosts.has(host)) return host;
		if (this.#otherHosts.size >= MAX_OTHER_HOSTS) return 'other';
		this.#otherHosts.add(host);
		return host;
	}

	/**
	 * Returns the series of an exchange. They are usually those of the previous exchange, and comparing is cheaper than looking
	 * them up in four hash tables.
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
			(!this.#perHost || lastSeries.host === host)
		) {
			return lastSeries;
		}
		const hostLabel = this.#perHost ? this.#hostLabel(host, servedHosts) : '';
		const series = this.#handlerSeries(hostLabel, x.answeredBy);
		const codes = this.#codeSeries(series, status, method);
		this.#lastSeries = { servedHosts, host, handler: x.answeredBy, method, status, series, codes };
		return this.#lastSeries;
	}

	#handlerSeries(host: string, handler: string): HandlerSeries {
		let handlers = this.#hosts.get(host);
		if (!handlers) {
			handlers = new Map();
			this.#hosts.set(host, handlers);
		}
		let series = handlers.get(handler);
		if (!series) {
			const labels = this.#labels(host, handler);
			series = {
				labels,
				requests: this.#allocate(HTTP_FAMILIES.requests, labels),
				errors: this.#allocate(HTTP_FAMILIES.errors, labels),
				codes: new Map(),
			};
			handlers.set(handler, series);
		}
		return series;
	}

	#codeSeries(handler: HandlerSeries, status: number, methodName: string): CodeSeries {
		const methodIndex = METHODS.indexOf(methodName);
		const methodNumber = methodIndex === -1 ? OTHER_METHOD : methodIndex;
		const key = status * 16 + methodNumber;
		let series = handler.codes.get(key);
		if (!series) {
			const labels = {
				...handler.labels,
				code: String(status),
				method: METHODS[methodNumber] ?? 'OTHER',
			};
			series = {
				duration: this.#allocate(HTTP_FAMILIES.duration, labels),
				responseDuration: this.#allocate(HTTP_FAMILIES.responseDuration, labels),
				requestSize: this.#allocate(HTTP_FAMILIES.requestSize, labels),
				responseSize: this.#allocate(HTTP_FAMILIES.responseSize, labels),
			};
			handler.codes.set(key, series);
		}
		return series;
	}

	#labels(host: string, handler: string): { [name: string]: string } {
		return this.#perHost ? { server: this.#server, handler, host } : { server: this.#server, handler };
	}

	#allocate(family: SeriesFamily, labels: { readonly [name: string]: string }): SeriesPlace {
		return this.#pages.allocate(family.name, labels, slotsPerSeries(family));
	}
}

/** Adds a value to a histogram: to its bucket, and to the sum. The scrape makes the buckets cumulative. */
function observe(series: SeriesPlace, buckets: readonly number[], value: number): void {
	let bucket = 0;
	while (bucket < buckets.length && value > buckets[bucket]!) bucket++;
	series.page[series.slot + bucket]!++;
	series.page[series.slot + buckets.length + 1]! += value;
}
