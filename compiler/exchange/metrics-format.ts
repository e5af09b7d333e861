/** The two formats of metrics, and the choice between them according to a client's `Accept` field. */

/** Prometheus text format 0.0.4, or OpenMetrics 1.0.0. */
export type MetricsFormat = 'prometheus' | 'openmetrics';

/** The media type of each format. */
export const METRICS_TYPES: { readonly [format in MetricsFormat]: string } = {
	prometheus: 'text/plain; version=0.0.4; charset=utf-8',
	openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

const PLAIN_TEXT_RANGE = /^(?:text\/plain|text\/\*|\*\/\*)$/;

/**
 * Returns the format that an `Accept` field prefers (RFC 9110 §12.5.1): OpenMetrics if the client names it, in version 1.0.0 or
 * without a version, with at least the weight of plain text; otherwise Prometheus.
 */
export function metricsFormat(acceptField: string | undefined): MetricsFormat {
	if (acceptField === undefined) return 'prometheus';
	let openMetricsWeight = 0;
	let plainWeight = 0;
	for (const mediaRange of acceptField.split(',', 32)) {
		const [type, ...parameters] = mediaRange.split(';').map(part => part.trim().toLowerCase());
		const q = parameters.find(parameter => parameter.startsWith('q='));
		const weight = q === undefined ? 1 : Number(q.slice(2)) || 0;
		const version = parameters.find(parameter => parameter.startsWith('version='))?.replace(/"/g, '');
		if (type === 'application/openmetrics-text') {
			if (version === undefined || version === 'version=1.0.0') openMetricsWeight = Math.max(openMetricsWeight, weight);
		} else if (PLAIN_TEXT_RANGE.test(type!)) plainWeight = Math.max(plainWeight, weight);
	}
	return openMetricsWeight > 0 && openMetricsWeight >= plainWeight ? 'openmetrics' : 'prometheus';
}
