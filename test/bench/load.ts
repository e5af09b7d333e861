/** Load generators, each a process of its own on its own core: wrk for requests, h2load for HTTP/2, ours for WebSocket messages. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
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
	/** Each `%d` in `path` is drawn at random, below the number here that stands where it does. */
	readonly below?: readonly number[];
	/** Values of Host, taken in turn. */
	readonly hosts?: readonly string[];
	/** Bytes of a body to POST. */
	readonly bodyBytes?: number;
	/** Over TLS, with whatever certificate the server has. */
	readonly tls?: boolean;
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

/** Requests that h2load sends over and over, as streams of HTTP/2. */
export interface StreamLoad {
	readonly kind: 'streams';
	readonly path: string;
	readonly connections: number;
	/** Streams that a connection has open at once. */
	readonly streams: number;
	/** Over TLS, with whatever certificate the server has. */
	readonly tls?: boolean;
}

/** TLS handshakes that openssl makes one after the other, a connection for each. */
export interface HandshakeLoad {
	readonly kind: 'handshakes';
	/** `tls1_2` or `tls1_3`. */
	readonly version: string;
	/** Whether every one but the first resumes the session of the first. */
	readonly resumed: boolean;
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

/** Runs a load against a port of this machine, on a core; requests on several, as often as there are. Throws when nothing was counted. */
export async function runLoad(
	port: number,
	load: RequestLoad | MessageLoad | StreamLoad | HandshakeLoad,
	cores: readonly number[],
	seconds: number,
): Promise<LoadCount> {
	if (load.kind === 'streams') return runStreams(port, load, cores[0]!, seconds);
	if (load.kind === 'handshakes') return runHandshakes(port, load, cores[0]!, seconds);
	const secure = load.kind === 'requests' && load.tls === true;
	const url = `${secure ? 'https://localhost' : 'http://127.0.0.1'}:${port}${load.path.replaceAll('%d', '0')}`;
	const command =
		load.kind === 'requests'
			? [
					...['wrk', `-t${cores.length}`, '--timeout', '30s'],
					...[`-c${(load.connections ?? 64) * cores.length}`, `-d${seconds}s`],
					...['-s', scriptFor(load), url],
				]
			: [
					...[process.execPath, path.join(import.meta.dirname, 'websocket-load.ts'), '--url', url],
					...['--connections', String(load.connections), '--bytes', String(load.bytes), '--seconds', String(seconds)],
				];
	const child = spawn('taskset', ['-c', cores.join(','), ...command], { stdio: ['ignore', 'pipe', 'inherit'] });
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

async function runStreams(port: number, load: StreamLoad, core: number, seconds: number): Promise<LoadCount> {
	const log = path.join(temporaryFolder(), 'streams.log');
	const words = ['-t1', `-c${load.connections}`, `-m${load.streams}`, `-D${seconds}`, `--log-file=${log}`];
	const url = `${load.tls ? 'https' : 'http'}://localhost:${port}${load.path}`;
	let text = '';
	let counted: RegExpExecArray | null = null;
	// h2load begins none at all when its connections are later than its clock, which a busy machine makes them.
	for (let turn = 0; turn < 3 && (!counted || counted[1] === '0'); turn++) {
		const child = spawn('taskset', ['-c', String(core), 'h2load', ...words, url], {
			stdio: ['ignore', 'pipe', 'inherit'],
		});
		text = '';
		child.stdout.setEncoding('utf8').on('data', chunk => {
			text += chunk;
		});
		await once(child, 'close');
		counted = /(\d+) succeeded, (\d+) failed/.exec(text);
	}
	if (!counted || counted[1] === '0') throw new Error(`the load generator counted nothing:\n${text}`);
	// Start, status and microseconds of each request.
	const times = Float64Array.from(readFileSync(log, 'latin1').trimEnd().split('\n'), line =>
		Number(line.split('\t')[2]),
	);
	times.sort();
	const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))]!;
	const wrong = Number(/status codes: \d+ 2xx, \d+ 3xx, (\d+) 4xx/.exec(text)?.[1] ?? 0);
	return {
		requests: Number(counted[1]),
		seconds,
		failures: Number(counted[2]) + wrong,
		...{ p50: at(0.5), p99: at(0.99), p999: at(0.999) },
	};
}

async function runHandshakes(port: number, load: HandshakeLoad, core: number, seconds: number): Promise<LoadCount> {
	const words = [
		load.resumed ? '-reuse' : '-new',
		`-${load.version}`,
		'-time',
		String(Math.max(1, Math.round(seconds))),
	];
	const command = ['openssl', 's_time', '-connect', `127.0.0.1:${port}`, ...words];
	const child = spawn('taskset', ['-c', String(core), ...command], { stdio: ['ignore', 'pipe', 'inherit'] });
	let text = '';
	child.stdout.setEncoding('utf8').on('data', chunk => {
		text += chunk;
	});
	await once(child, 'close');
	const counted = /(\d+) connections in (\d+) real seconds/.exec(text);
	if (!counted || counted[1] === '0') throw new Error(`openssl counted nothing:\n${text}`);
	const requests = Number(counted[1]);
	const each = (Number(counted[2]) / requests) * 1e6;
	return { requests, seconds: Number(counted[2]), failures: 0, p50: each, p99: each, p999: each };
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
	} else if (load.below) {
		const numbers = load.below.map(most => `draw(${most})`).join(', ');
		lines.push(
			'state = 1',
			'draw = function(most) state = state * 48271 % 2147483647; return state % most end',
			`request = function() return wrk.format(nil, string.format(${lua(load.path)}, ${numbers})) end`,
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
