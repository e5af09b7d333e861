/** What a running server reports about files and encodings in its access log and metrics. */
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder, waitForClock } from '../../harness.ts';

const reports = suite('reports about files');
const folder = temporaryFolder();
const root = path.join(folder, 'site');
const log = path.join(folder, 'access.log');
let server: ServerProcess | undefined;
let origin = '';

reports.before(async () => {
	mkdirSync(root);
	writeFileSync(path.join(root, 'small.txt'), 'small '.repeat(500));
	writeFileSync(path.join(root, 'large.bin'), Buffer.alloc(200_000));
	for (const name of ['small.txt', 'large.bin']) utimesSync(path.join(root, name), 1_700_000_000, 1_700_000_000);
	const [port = 0] = await freePorts(1);
	origin = `http://127.0.0.1:${port}`;
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{\n\tthreads 1\n\tmetrics\n}\n${origin} {
	log {
		output file ${log}
	}
	encode gzip
	handle /metrics {
		metrics
	}
	handle {
		root ${root}
		file_server
	}
}
`,
	);
	server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	// Waits until the files can be cached: a file that has changed within the last two seconds is not. Setting back the mtime
	// does not help, because the ctime remains.
	await waitForClock(2100);
});

reports.after(async () => {
	await server?.stop();
});

async function get(target: string, encoding: string): Promise<void> {
	const answer = await fetch(origin + target, { headers: { 'Accept-Encoding': encoding } });
	assert.is(answer.status, 200);
	await answer.arrayBuffer();
}

reports('the log says where a file came from and how it was encoded, and metrics count both', async () => {
	for (let times = 0; times < 4; times++) await get('/small.txt', 'identity');
	for (let times = 0; times < 4; times++) await get('/large.bin', 'identity');
	for (let times = 0; times < 2; times++) await get('/small.txt', 'gzip');
	const exposition = await (await fetch(`${origin}/metrics`)).text();
	const value = (name: string): number =>
		Number(new RegExp(`^${name.replace(/[{}"]/g, '\\$&')} (.*)$`, 'm').exec(exposition)?.[1]);
	// The first request reads from disk, the second caches the file, and the third revalidates it. Later requests are served from
	// memory.
	assert.ok(value('svc_files_total{from="memory"}') >= 2, exposition);
	assert.ok(value('svc_files_total{from="held"}') >= 1);
	assert.ok(value('svc_files_total{from="disk"}') >= 4);
	assert.is(value('svc_files_kept_bytes'), 3000);
	assert.is(value('svc_files_held_open'), 1);
	assert.is(value('svc_encode_responses_total{encoding="gzip"}'), 1);
	assert.is(value('svc_encode_kept_total'), 1);
	assert.is(value('svc_encode_bytes_in_total{encoding="gzip"}'), 3000);
	assert.ok(value('svc_encode_bytes_out_total{encoding="gzip"}') < 300);
	assert.is(value('svc_encode_skipped_total'), 0);
	await server!.stop();
	server = undefined;
	const entries = readFileSync(log, 'utf8')
		.trim()
		.split('\n')
		.map(line => JSON.parse(line));
	const small = entries.filter(({ request }) => request.uri === '/small.txt');
	assert.is(small[0].file, 'disk');
	assert.is(small[3].file, 'memory');
	assert.is(small[3].encoding, undefined);
	assert.is(small[5].encoding, 'gzip');
	assert.is(entries.filter(({ request }) => request.uri === '/large.bin')[3].file, 'held');
	assert.is(entries.at(-1).file, undefined, 'no `file` field for a response that is not a file');
});

reports.run();
