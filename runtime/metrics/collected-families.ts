/**
 * Renders metric families with prom-client's registry. Histograms and the workers' labeled series are rendered elsewhere (see
 * `exposition.ts`), because prom-client takes five times as long for them.
 */
import { type Metric, Registry, type RegistryContentType } from 'prom-client';
import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import type { MetricLabels, PlainFamily } from './exposition.ts';

/** A value in the form that prom-client expects. Between scrapes, prom-client caches the text of `sharedLabels` only. */
interface CollectedValue {
	readonly labels: MetricLabels;
	readonly sharedLabels: MetricLabels;
	readonly value: number;
}

const NO_LABELS: MetricLabels = {};

/**
 * A metric family in the form that prom-client expects. For OpenMetrics, prom-client removes the suffix of a counter's `name`.
 */
interface CollectedMetric {
	name: string;
	readonly type: string;
	get(): Promise<object>;
}

/** Metric families, registered once for each format, because a registry renames its metrics. */
export class CollectedFamilies {
	readonly #registries: { readonly [format in MetricsFormat]: Registry<RegistryContentType> };

	readonly names: readonly string[];

	constructor(families: readonly PlainFamily[]) {
		this.names = families.map(({ name }) => name);
		this.#registries = {
			prometheus: createRegistry(families, false),
			openmetrics: createRegistry(families, true),
		};
	}

	/** Reads and renders every family. In the OpenMetrics format, the text ends with `# EOF`. */
	render(format: MetricsFormat): Promise<string> {
		return this.#registries[format].metrics();
	}
}

function createRegistry(families: readonly PlainFamily[], isOpenMetrics: boolean): Registry<RegistryContentType> {
	const registry = new Registry<RegistryContentType>();
	if (isOpenMetrics) registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
	for (const family of families) {
		const { name, help, type } = family;
		const metric: CollectedMetric = {
			name,
			type,
			get: () => Promise.resolve({ name: metric.name, help, type, aggregator: 'sum', values: collectValues(family) }),
		};
		registry.registerMetric(metric as unknown as Metric);
	}
	return registry;
}

function collectValues({ samples }: PlainFamily): readonly CollectedValue[] {
	return samples().map(({ labels, value }) => ({ labels: NO_LABELS, sharedLabels: labels, value }));
}
