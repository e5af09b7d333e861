/**
 * Renders histograms and the workers' labeled series as Prometheus 0.0.4 or OpenMetrics 1.0.0. There may be thousands of
 * lines, few of which change between scrapes.
 */
import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import { formatMetricValue, HistogramText } from './histogram-text.ts';
import { ScrapeMemory, type ScrapeResult } from './scrape-memory.ts';

/** Labels of a series. A series passes the same object at every scrape, so that the text of its labels can be cached. */
export interface MetricLabels {
	readonly [name: string]: string | number;
}

/** One line of the exposition: a value and its labels. */
export interface MetricSample {
	readonly labels: MetricLabels;
	readonly value: number;
}

/**
 * Receives the histogram of one set of labels: the bucket counts (not cumulative, `+Inf` last), then the sum of the values.
 * The array is valid only during the call.
 */
export type HistogramReceiver = (labels: MetricLabels, counts: ArrayLike<number>) => void;

/** A metric family, read when scraped. Names of counters end with `_total`. */
export type MetricFamily = PlainFamily | HistogramFamily;

/** A family whose samples are single numbers. */
export interface PlainFamily {
	readonly name: string;
	readonly help: string;
	readonly type: 'counter' | 'gauge';
	readonly samples: () => readonly MetricSample[];
}

/** A family whose samples are distributions over buckets, that is, a histogram. */
export interface HistogramFamily {
	readonly name: string;
	readonly help: string;
	readonly type: 'histogram';
	/** Upper bounds of the buckets, without `+Inf`. */
	readonly bounds: readonly number[];
	readonly histograms: (receive: HistogramReceiver) => void;
}

/** Renders families, and caches the text of labels and histograms between scrapes. */
export class Exposition {
	readonly #scrapeMemory = new ScrapeMemory();
	readonly #labelTexts = new WeakMap<MetricLabels, string>();
	/** Cached text by format and family, and then by labels. */
	readonly #textsByFamily = new Map<string, WeakMap<MetricLabels, HistogramText>>();

	/** Renders the families in the given order, followed by `suffix`, as UTF-8. */
	render(families: readonly MetricFamily[], format: MetricsFormat, suffix: string): ScrapeResult {
		const isOpenMetrics = format === 'openmetrics';
		const parts: Buffer[] = [];
		let lines = '';
		for (const family of families) {
			// In OpenMetrics, the family of a counter is named without the `_total` of its samples.
			const name = isOpenMetrics && family.type === 'counter' ? family.name.replace(/_total$/, '') : family.name;
			lines += `# HELP ${name} ${escapeHelp(family.help, isOpenMetrics)}\n# TYPE ${name} ${family.type}\n`;
			if (family.type === 'histogram') {
				parts.push(Buffer.from(lines));
				lines = '';
				const bounds = [...family.bounds, Number.POSITIVE_INFINITY].map(
					bound => `le="${formatBound(bound, isOpenMetrics)}"`,
				);
				const histogramTexts = this.#histogramTextsOf(`${format} ${family.name}`);
				family.histograms((labels, counts) => {
					let histogramText = histogramTexts.get(labels);
					if (histogramText === undefined) {
						histogramText = new HistogramText(family.name, this.#labelText(labels), bounds);
						histogramTexts.set(labels, histogramText);
					}
					parts.push(histogramText.renderLines(counts));
				});
				continue;
			}
			for (const { labels, value } of family.samples()) {
				const labelText = this.#labelText(labels);
				lines += `${family.name}${labelText === '' ? '' : `{${labelText}}`} ${formatMetricValue(value)}\n`;
			}
		}
		parts.push(Buffer.from(lines + suffix));
		return this.#scrapeMemory.joinParts(parts);
	}

	#histogramTextsOf(key: string): WeakMap<MetricLabels, HistogramText> {
		let histogramTexts = this.#textsByFamily.get(key);
		if (histogramTexts === undefined) {
			histogramTexts = new WeakMap();
			this.#textsByFamily.set(key, histogramTexts);
		}
		return histogramTexts;
	}

	#labelText(labels: MetricLabels): string {
		let labelText = this.#labelTexts.get(labels);
		if (labelText === undefined) {
			labelText = Object.entries(labels)
				.map(([name, value]) => `${name}="${escapeValue(String(value))}"`)
				.join(',');
			this.#labelTexts.set(labels, labelText);
		}
		return labelText;
	}
}

function escapeValue(value: string): string {
	return /[\\"\n]/.test(value)
		? value.replace(/[\\"\n]/g, character => (character === '\n' ? '\\n' : `\\${character}`))
		: value;
}

/** Escapes a help text. Only OpenMetrics requires quotation marks to be escaped. */
function escapeHelp(help: string, isOpenMetrics: boolean): string {
	const text = help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n');
	return isOpenMetrics ? text.replace(/"/g, '\\"') : text;
}

/** Formats the upper bound of a bucket. OpenMetrics requires a decimal point in whole numbers: `1.0`. */
function formatBound(bound: number, isOpenMetrics: boolean): string {
	const text = formatMetricValue(bound);
	return isOpenMetrics && Number.isInteger(bound) ? `${text}.0` : text;
}
