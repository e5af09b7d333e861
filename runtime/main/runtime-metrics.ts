/** The metrics of a runtime. The code that renders them is loaded on first use. */
import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import type { ScrapeResult } from '../metrics/scrape-memory.ts';
import type { ThreadTotals } from '../metrics/thread-totals.ts';
import type { MetricsRegistry, RuntimeGauges } from './metrics-registry.ts';

/** Admin API requests with one set of labels, counted before the registry was loaded. */
interface AdminRequests {
	readonly path: string;
	readonly method: string;
	readonly status: number;
	count: number;
}

/** Counts Admin API requests from the start, and renders all metrics on request. */
export class RuntimeMetrics {
	readonly #totals: ThreadTotals;
	readonly #gauges: RuntimeGauges;
	#registry: MetricsRegistry | undefined;
	readonly #earlyRequests = new Map<string, AdminRequests>();

	constructor(totals: ThreadTotals, gauges: RuntimeGauges) {
		this.#totals = totals;
		this.#gauges = gauges;
	}

	/** Counts an Admin API request that was answered with this status. */
	countAdminRequest(path: string, method: string, status: number): void {
		if (this.#registry) {
			this.#registry.countAdminRequests(path, method, status, 1);
			return;
		}
		const key = `${path} ${method} ${status}`;
		const request = this.#earlyRequests.get(key);
		if (request) request.count++;
		else this.#earlyRequests.set(key, { path, method, status, count: 1 });
	}

	/** Renders all metrics as UTF-8. */
	async render(format: MetricsFormat): Promise<ScrapeResult> {
		if (!this.#registry) {
			const { MetricsRegistry } = await import('./metrics-registry.ts');
			this.#registry ??= this.#transferCounts(new MetricsRegistry(this.#totals, this.#gauges));
		}
		return this.#registry.render(format);
	}

	#transferCounts(registry: MetricsRegistry): MetricsRegistry {
		for (const { path, method, status, count } of this.#earlyRequests.values()) {
			registry.countAdminRequests(path, method, status, count);
		}
		this.#earlyRequests.clear();
		return registry;
	}
}
