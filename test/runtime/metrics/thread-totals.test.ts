/** Metrics that are aggregated over threads: sums, the counts of dead threads, and histograms. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { MetricsRegistry } from '../../../runtime/main/metrics-registry.ts';
import { counterRow, ROW_SLOT } from '../../../runtime/metrics/counter-row.ts';
import { HTTP_FAMILIES } from '../../../runtime/metrics/families.ts';
import { HistogramText } from '../../../runtime/metrics/histogram-text.ts';
import { ModuleCounters, moduleEvents } from '../../../runtime/metrics/module-counters.ts';
import { ScrapeMemory, scrapeToString } from '../../../runtime/metrics/scrape-memory.ts';
import { SeriesPages } from '../../../runtime/metrics/series-pages.ts';
import { ThreadTotals } from '../../../runtime/metrics/thread-totals.ts';
import { Random } from '../../compiler/syntax/random-text.ts';

function addThread(totals: ThreadTotals, index: number) {
	const row = counterRow(totals.addThread(index));
	const pages = new SeriesPages(
		buffer => totals.addPage(index, buffer),
		series => totals.addSeries(index, series),
	);
	return { row, pages };
}

const GAUGES = {
	version: () => 'v1',
	ready: () => true,
	generation: () => 3,
	lastReload: () => ({ isSuccessful: true, lastSuccessAt: 12 }),
	rollbacks: () => ({ succeeded: 2, failed: 1, isStuck: true }),
	workerRestarts: () => 1,
	threadStalls: () => ({ worker: 2 }),
	upstreams: () => [],
	requestsWaitingForUpstream: () => 0,
	caches: () => [],
	concurrency: () => [],
	cluster: () => undefined,
	accessLogDropped: () => 2,
	processLogDropped: () => 0,
	spansExported: () => 0,
	spansDropped: () => 0,
	vitals: [],
	certificates: () => ({ attempts: [], expiry: [], ocsp: [], missing: 0 }),
};

const counting = suite('thread totals');

counting('rows are summed; dead threads keep contributing counters but not gauges', () => {
	const totals = new ThreadTotals();
	const a = addThread(totals, 0);
	const b = addThread(totals, 1);
	a.row[ROW_SLOT.connections] = 3;
	b.row[ROW_SLOT.connections] = 4;
	a.row[ROW_SLOT.requests] = 10;
	b.row[ROW_SLOT.requests] = 20;
	assert.is(totals.slotTotal(ROW_SLOT.connections), 7);
	totals.removeThread(0);
	assert.is(totals.slotTotal(ROW_SLOT.connections), 4);
	assert.is(totals.slotTotal(ROW_SLOT.requests), 30);
	addThread(totals, 0).row[ROW_SLOT.requests] = 1;
	assert.is(totals.slotTotal(ROW_SLOT.requests), 31);
});

counting('events of modules are summed by name, and those of dead threads are kept', () => {
	const totals = new ThreadTotals();
	const first = new ModuleCounters(addThread(totals, 0).pages);
	const second = new ModuleCounters(addThread(totals, 1).pages);
	assert.is(moduleEvents(totals, 'brewed'), 0);
	first.eventCounter('brewed').add();
	first.eventCounter('spilled').add();
	// A later generation that asks for the same name gets the same counter.
	first.eventCounter('brewed').add();
	second.eventCounter('brewed').add();
	assert.is(moduleEvents(totals, 'brewed'), 3);
	totals.removeThread(0);
	assert.is(moduleEvents(totals, 'brewed'), 3);
	assert.is(moduleEvents(totals, 'spilled'), 1);
});

counting('equal series from several threads and pages are merged', () => {
	const totals = new ThreadTotals();
	const labels = (index: number) => ({ server: ':80', handler: `h${index}` });
	for (const index of [0, 1]) {
		const { pages } = addThread(totals, index);
		for (let i = 0; i < 5000; i++) {
			const { page, slot } = pages.allocate(HTTP_FAMILIES.requests.name, labels(i), 1);
			page[slot] = i;
		}
	}
	const series = (): { labels: object; values: number[] }[] => {
		const all: { labels: object; values: number[] }[] = [];
		totals.forEachSeries(HTTP_FAMILIES.requests.name, (one, values) => all.push({ labels: one, values: [...values] }));
		return all;
	};
	assert.is(series().length, 5000);
	assert.equal(series()[4999], { labels: labels(4999), values: [9998] });
	totals.removeThread(0);
	totals.removeThread(1);
	assert.equal(series()[4999]!.values, [9998]);
});

counting('metrics are rendered in the text format', async () => {
	const totals = new ThreadTotals();
	const { pages } = addThread(totals, 0);
	const { page, slot } = pages.allocate(HTTP_FAMILIES.responseSize.name, { server: 'a"b' }, 10);
	page.set([2, 1, 0, 0, 0, 0, 0, 0, 1, 5_000_600], slot);
	const registry = new MetricsRegistry(totals, GAUGES);
	registry.countAdminRequests('/load', 'POST', 400, 1);
	const lines = scrapeToString(await registry.render('prometheus')).split('\n');
	for (const line of [
		'# TYPE std_http_response_size_bytes histogram',
		'std_http_response_size_bytes_bucket{server="a\\"b",le="256"} 2',
		'std_http_response_size_bytes_bucket{server="a\\"b",le="1024"} 3',
		'std_http_response_size_bytes_bucket{server="a\\"b",le="+Inf"} 4',
		'std_http_response_size_bytes_sum{server="a\\"b"} 5000600',
		'std_http_response_size_bytes_count{server="a\\"b"} 4',
		'# TYPE svc_ready gauge',
		'svc_ready 1',
		'svc_config_generation 3',
		'svc_config_rollbacks_total{result="failure"} 1',
		'svc_config_rollback_failed 1',
		'svc_worker_restarts_total 1',
		'svc_access_log_dropped_total 2',
		'std_config_last_reload_success_timestamp_seconds 12',
		'std_admin_http_request_errors_total{path="/load",method="POST",code="400"} 1',
	]) {
		assert.ok(lines.includes(line), line);
	}
});

counting('updated histogram lines equal lines built from scratch', () => {
	const bounds = ['le="1"', 'le="10"', 'le="+Inf"'];
	const kept = new HistogramText('h', 'a="é"', bounds);
	const random = new Random(7);
	let counts = [0, 0, 0, 0];
	for (let step = 0; step < 500; step++) {
		// The counts gain digits, the sums are not integers, and both are reset at times.
		counts = counts.map((count, at) => {
			if (random.below(40) === 0) return 0;
			const more = 10 ** random.below(7);
			return at === 3 && random.below(3) === 0 ? count + more / 7 : count + random.below(more);
		});
		const fresh = new HistogramText('h', 'a="é"', bounds).renderLines(counts).toString();
		assert.is(kept.renderLines(counts).toString(), fresh);
		assert.match(fresh, `h_bucket{a="é",le="10"} ${counts[0]! + counts[1]!}\n`);
		assert.match(fresh, `h_count{a="é"} ${counts[0]! + counts[1]! + counts[2]!}\n`);
		const sum = Number(/^h_sum\{a="é"\} (\d+(?:\.\d{9})?)$/m.exec(fresh)![1]);
		assert.ok(Math.abs(sum - counts[3]!) <= 1e-9 * Math.max(1, counts[3]!), `${sum} ${counts[3]}`);
	}
});

counting("a scrape's memory is reused only after its release", () => {
	const memory = new ScrapeMemory();
	const part = (text: string): Buffer[] => [Buffer.from(text)];
	const [first, second, third] = ['aaaaaaaa', 'bbbbbbbb', 'cccccccc'].map(text => memory.joinParts(part(text)));
	assert.equal(
		[first!.text.toString(), second!.text.toString(), third!.text.toString()],
		['aaaaaaaa', 'bbbbbbbb', 'cccccccc'],
	);
	first!.release();
	const fourth = memory.joinParts(part('dd'));
	assert.is(fourth.text.buffer, first!.text.buffer);
	assert.equal([fourth.text.toString(), second!.text.toString()], ['dd', 'bbbbbbbb']);
	fourth.release();
	const longer = memory.joinParts(part('e'.repeat(100)));
	assert.equal([longer.text.length, second!.text.toString()], [100, 'bbbbbbbb']);
});

counting.run();
