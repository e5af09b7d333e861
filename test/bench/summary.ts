/**
 * The part of the README in this folder that shows the latest bench: a table of ratios, and when and where they were measured.
 */
import { type BenchResult, daysOf } from './chart.ts';

/** The summary is between these lines of README.md. */
const SUMMARY_START = '<!-- the latest bench, written by npm run bench -->\n';
const SUMMARY_END = '<!-- end of the bench -->\n';

const COLUMNS: readonly string[] = ['nginx', 'haproxy', 'caddy', 'varnish'];

/** Rows shown in the table; the chart shows all rows. */
const ROWS: readonly string[] = [
	'respond 14 B',
	'respond 14 B, heads that differ',
	'respond 14 B, a connection for each request',
	'1,000 hosts with 20 routes each',
	'tls h2 respond 14 B, 10 streams on each of 16 connections',
	'tls full handshakes, 1.3',
	'tls resumed handshakes, 1.2',
	'tls proxied 10 KB, HTTP/1.1',
	'proxy 14 B',
	'proxy 10 KB',
	'proxy 1 MB',
	'proxy an upload of 1 MB',
	'proxy WebSocket messages',
	'file 10 KB',
	'file 1 MB',
	'file 4 KB, one of 100,000',
	'file 10 KB of JSON by way of the proxy, gzip',
	'cache hit 10 KB',
	'an access log',
];

/** Returns the README's text with the summary replaced. Throws if the lines around the summary are missing. */
export function replaceBenchSummary(readme: string, result: BenchResult): string {
	const from = readme.indexOf(SUMMARY_START);
	const to = readme.indexOf(SUMMARY_END);
	if (from === -1 || to < from) throw new Error('README.md lacks the lines around the bench summary');
	return readme.slice(0, from + SUMMARY_START.length) + renderSummary(result) + readme.slice(to);
}

function renderSummary({ machine, conditions, rows }: BenchResult): string {
	const lines = [
		`| CPU time per request, relative to | ${COLUMNS.join(' | ')} |`,
		`| --- |${' --- |'.repeat(COLUMNS.length)}`,
	];
	const days = daysOf(rows.filter(({ name }) => ROWS.includes(name)));
	for (const name of ROWS) {
		const figures = rows.find(row => row.name === name)?.figures;
		if (figures === undefined) continue;
		const cells = COLUMNS.map(server => {
			// The labels of a column begin with the server's name: `nginx, log with a buffer` is in the column `nginx`.
			const figure = figures.find(({ label }) => label === server || label.startsWith(`${server},`));
			return figure?.ratio?.[0].toFixed(2) ?? '–';
		});
		lines.push(`| ${name} | ${cells.join(' | ')} |`);
	}
	const place = `one core for each server, the median of ${conditions.rounds} rounds of ${conditions.seconds} s`;
	return `\n${lines.join('\n')}\n\nLess than 1 means that svc uses less CPU time. Measured on ${days}: ${machine}, a shared machine; ${place}.\n\n`;
}
