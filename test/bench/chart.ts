/** Draws the chart of a bench: the cost of a request on each server, row by row. */
import type { MeasurementConditions, RowResult } from './measure.ts';

export interface BenchResult {
	readonly machine: string;
	readonly conditions: MeasurementConditions;
	readonly rows: readonly DatedRow[];
}

export interface DatedRow extends RowResult {
	/** The day on which the row was measured, such as `2026-11-21`. */
	readonly date: string;
}

/** Returns the day on which rows were measured, or the first and the last day. */
export function daysOf(rows: readonly DatedRow[]): string {
	const days = rows.map(({ date }) => date).sort();
	return days[0] === days.at(-1) ? `${days[0]}` : `${days[0]} to ${days.at(-1)}`;
}

const WIDTH = 860;
const LABELS = 230;
const BAR = 14;
const COLOURS: { readonly [label: string]: string } = {
	svc: '#0b7a75',
	nginx: '#7b9e3a',
	haproxy: '#4f6d9b',
	caddy: '#b07d2b',
	varnish: '#8a5a83',
	node: '#8c8c8c',
};

/** Renders an SVG bar chart. Each row has its own scale. A shorter bar is better. */
export function renderChart({ machine, rows }: BenchResult): string {
	const parts: string[] = [];
	let y = 56;
	for (const row of rows) {
		y += 22;
		parts.push(text(12, y, `${row.name} (${row.unit})`, 'font-weight="600"'));
		const most = Math.max(...row.figures.map(figure => figure.value));
		for (const { label, value } of row.figures) {
			y += BAR + 4;
			const length = Math.max(1, (value / most) * (WIDTH - LABELS - 90));
			const colour = COLOURS[label] ?? (label.startsWith('svc') ? '#5fb3ae' : '#8c8c8c');
			parts.push(
				text(LABELS - 8, y, label, 'text-anchor="end"'),
				`<rect x="${LABELS}" y="${y - BAR + 3}" width="${length.toFixed(1)}" height="${BAR}" fill="${colour}"/>`,
				text(LABELS + length + 6, y, value.toFixed(value < 100 ? 1 : 0), ''),
			);
		}
		y += 6;
	}
	const height = y + 20;
	return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" font-family="system-ui, sans-serif" font-size="12" fill="#222">
<title>Cost of a request on one core, svc beside other servers</title>
<rect width="100%" height="100%" fill="#fff"/>
${text(12, 24, 'Cost of a request on one core: shorter is better', 'font-size="16" font-weight="600"')}
${text(12, 44, `${daysOf(rows)}, ${machine}`, 'fill="#555"')}
${parts.join('\n')}
</svg>
`;
}

function text(x: number, y: number, content: string, attributes: string): string {
	const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
	return `<text x="${x.toFixed(0)}" y="${y}"${attributes && ` ${attributes}`}>${escaped}</text>`;
}
