/**
 * Renders families with prom-client's registry: all except histograms and the series of workers, for which it takes five times
 * as long.
 */
import { type Metric, Registry, type RegistryContentType } from 'prom-client';
import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import type { Labels, PlainFamily } from './exposition.ts';

/** A value in the form of prom-client's registry, which caches the text of shared labels between scrapes, and of no others. */
interface CollectedValue {
	readonly labels: Labels;
	readonly sharedLabels: Labels;
	readonly value: number;
}

const NO_LABELS: Labels = {};

/** A family in the form of the registry. For OpenMetrics, it removes the suffix from the names of counters. */
interface CollectedMetric {
	name: string;
	readonly type: string;
	get(): Promise<object>;
}

/** One registry for each format, because a registry renames its metrics. */
export class CollectedFamilies {
	readonly #registries: { readonly [format in MetricsFormat]: Registry<RegistryContentType> };

	readonly names: readonly string[];

	constructor(families: readonly PlainFamily[]) {
		this.names = families.map(({ name }) => name);
		this.#registries = {
			prometheus: registryOf(families, false),
			openmetrics: registryOf(families, true),
		};
	}

	/** Reads every family and renders it. The text of OpenMetrics ends with `# EOF`. */
	render(format: MetricsFormat): Promise<string> {
		return this.#registries[format].metrics();
	}
}

function registryOf(families: readonly PlainFamily[], open: boolean): Registry<RegistryContentType> {
	const registry = new Registry<RegistryContentType>();
	if (open) registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
	for (const family of families) {
		const { name, help, type } = family;
		const metric: CollectedMetric = {
			name,
			type,
			get: () => Promise.resolve({ name: metric.name, help, type, aggregator: 'sum', values: valuesOf(family) }),
		};
		registry.registerMetric(metric as unknown as Metric);
	}
	return registry;
}

function valuesOf({ samples }: PlainFamily): readonly CollectedValue[] {
	return samples().map(({ labels, value }) => ({ labels: NO_LABELS, sharedLabels: labels, value }));
}
