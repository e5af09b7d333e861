/** Metrics as text: the format of Prometheus 0.0.4, and OpenMetrics 1.0.0. */
import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';

/** Labels of one series. The object is the same at every scrape where the series lives on: its text is kept. */
export interface Labels {
	readonly [name: string]: string | number;
}

/** One line. */
export interface Sample {
	readonly labels: Labels;
	readonly value: number;
}

/** A histogram of one set of labels: counts of buckets, each without those before it, `+Inf` last, and the sum of values. */
export interface HistogramSample {
	readonly labels: Labels;
	readonly counts: readonly number[];
	readonly sum: number;
}

/** A family of metrics, read when somebody asks. Names of counters end in `_total`. */
export type MetricFamily = { readonly name: string; readonly help: string } & (
	| { readonly type: 'counter' | 'gauge'; readonly samples: () => readonly Sample[] }
	| {
			readonly type: 'histogram';
			readonly bounds: readonly number[];
			readonly histograms: () => readonly HistogramSample[];
	  }
);

/** Writes families, and keeps the text of labels between scrapes. */
export class Exposition {
	readonly #texts = new WeakMap<Labels, string>();

	/** All families, in the given order. */
	render(families: readonly MetricFamily[], format: MetricsFormat): string {
		const open = format === 'openmetrics';
		const parts: string[] = [];
		for (const family of families) {
			// OpenMetrics names a family of counters without the ending that its samples have.
			const name = open && family.type === 'counter' ? family.name.replace(/_total$/, '') : family.name;
			parts.push(`# HELP ${name} ${escapeHelp(family.help, open)}\n# TYPE ${name} ${family.type}\n`);
			if (family.type === 'histogram') {
				const ends = [...family.bounds, Number.POSITIVE_INFINITY].map(bound => `le="${boundText(bound, open)}"} `);
				for (const one of family.histograms()) parts.push(this.#histogram(family.name, one, ends));
				continue;
			}
			for (const { labels, value } of family.samples()) {
				const text = this.#text(labels);
				parts.push(`${family.name}${text === '' ? '' : `{${text}}`} ${numberText(value)}\n`);
			}
		}
		if (open) parts.push('# EOF\n');
		return parts.join('');
	}

	#histogram(name: string, { labels, counts, sum }: HistogramSample, ends: readonly string[]): string {
		const text = this.#text(labels);
		const head = text === '' ? `${name}_bucket{` : `${name}_bucket{${text},`;
		let lines = '';
		let count = 0;
		for (let i = 0; i < ends.length; i++) {
			count += counts[i]!;
			lines += `${head}${ends[i]}${count}\n`;
		}
		const braces = text === '' ? '' : `{${text}}`;
		return `${lines}${name}_sum${braces} ${numberText(sum)}\n${name}_count${braces} ${count}\n`;
	}

	#text(labels: Labels): string {
		let text = this.#texts.get(labels);
		if (text === undefined) {
			text = Object.entries(labels)
				.map(([name, value]) => `${name}="${escapeValue(String(value))}"`)
				.join(',');
			this.#texts.set(labels, text);
		}
		return text;
	}
}

function escapeValue(value: string): string {
	return /[\\"\n]/.test(value) ? value.replace(/[\\"\n]/g, found => (found === '\n' ? '\\n' : `\\${found}`)) : value;
}

/** Quotation marks in help are escaped in OpenMetrics only. */
function escapeHelp(help: string, open: boolean): string {
	const text = help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n');
	return open ? text.replace(/"/g, '\\"') : text;
}

function numberText(value: number): string {
	if (Number.isFinite(value)) return String(value);
	return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

/** OpenMetrics wants whole bounds as `1.0`. */
function boundText(bound: number, open: boolean): string {
	const text = numberText(bound);
	return open && Number.isInteger(bound) ? `${text}.0` : text;
}
