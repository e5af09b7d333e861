/** Load generators, each a process of its own on its own core: wrk for requests, ours for WebSocket messages. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { temporaryFolder } from '../harness.ts';

/** Requests that wrk sends over and over. */
export interface RequestLoad {
	readonly kind: 'requests';
	readonly path: string;
	/** Connections kept open; 64 if left out. */
	readonly connections?: number;
	/** Fields beside Host. */
	readonly headers?: { readonly [name: string]: string };
	/** Values of Host, taken in turn. */
	readonly hosts?: readonly string[];
	/** Bytes of a body to POST. */
	readonly bodyBytes?: number;
	/** Requests sent at once on a connection; 1 if left out. */
	readonly pipelined?: number;
}

/** Messages that WebSocket clients send and get back. */
export interface MessageLoad {
	readonly kind: 'messages';
	readonly path: string;
	readonly connections: number;
	/** Bytes of a message. */
	readonly bytes: number;
}

/** What a load generator counted; latencies in microseconds. */
export interface LoadCount {
	readonly requests: number;
	readonly seconds: number;
	readonly failures: number;
	readonly p50: number;
	readonly p99: number;
	readonly p999: number;
}

/** Runs a load against a port of this machine, on one core. Throws when nothing was counted. */
export async function runLoad(
	port: number,
	load: RequestLoad | MessageLoad,
	core: number,
	seconds: number,
): Promise<LoadCount> {
	const url = `http://127.0.0.1:${port}${load.path}`;
	const command =
		load.kind === 'requests'
			? [
					...['wrk', '-t1', '--timeout', '30s', `-c${load.connections ?? 64}`, `-d${seconds}s`],
					...['-s', scriptFor(load), url],
				]
			: [
					...[process.execPath, path.join(import.meta.dirname, 'websocket-load.ts'), '--url', url],
					...['--connections', String(load.connections), '--bytes', String(load.bytes), '--seconds', String(seconds)],
				];
	const child = spawn('taskset', ['-c', String(core), ...command], { stdio: ['ignore', 'pipe', 'inherit'] });
	let text = '';
	child.stdout.setEncoding('utf8').on('data', chunk => {
		text += chunk;
	});
	await once(child, 'close');
	const counted = /^COUNTED (.*)$/m.exec(text);
	if (!counted) throw new Error(`the load generator counted nothing:\n${text}`);
	const [requests, microseconds, failures, p50, p99, p999] = counted[1]!.split(' ').map(Number) as [
		...[number, number, number, number, number, number],
	];
	return { requests, seconds: microseconds / 1e6, failures, p50, p99, p999 };
}

/** A wrk script for a load: its requests are formatted once, so that the generator's own cost stays small. */
function scriptFor(load: RequestLoad): string {
	const lines = Object.entries(load.headers ?? {}).map(([name, value]) => `wrk.headers[${lua(name)}] = ${lua(value)}`);
	if (load.bodyBytes !== undefined) {
		lines.push(`wrk.method = "POST"`, `wrk.body = string.rep("x", ${load.bodyBytes})`);
	}
	if (load.pipelined !== undefined) {
		lines.push(
			`init = function() batch = string.rep(wrk.format(), ${load.pipelined}) end`,
			'request = function() return batch end',
		);
	} else if (load.hosts) {
		lines.push(
			'texts = {}; turn = 0',
			`init = function() for index, host in ipairs({${load.hosts.map(lua).join(',')}}) do`,
			`  texts[index] = wrk.format(nil, nil, {["Host"] = host}) end end`,
			'request = function() turn = turn % #texts + 1; return texts[turn] end',
		);
	}
	lines.push(
		'done = function(summary, latency)',
		'  local e = summary.errors',
		'  io.write(string.format("COUNTED %d %d %d %d %d %d\\n", summary.requests, summary.duration,',
		'    e.connect + e.read + e.write + e.status + e.timeout,',
		'    latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))',
		'end',
	);
	const file = path.join(temporaryFolder(), 'load.lua');
	writeFileSync(file, `${lines.join('\n')}\n`);
	return file;
}

/** A Lua string. */
function lua(text: string): string {
	return JSON.stringify(text);
}
