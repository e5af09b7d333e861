/**
 * Random reads from a tree of 100,000 files: every response is correct, and neither memory nor the number of open descriptors
 * grows.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder, until } from '../harness.ts';

const FOLDERS = 100;
const FILES = 1000;
/** Number of large files. It exceeds the number of descriptors of large files that the server keeps open. */
const LARGE_FILES = 600;
const CLIENTS = 16;
/** Number of seconds until memory has stabilized. */
const WARM_UP_SECONDS = 5;
/** Number of seconds of measurement after memory has stabilized. */
const MEASURED_SECONDS = 9;
/** Permitted memory growth in bytes: fluctuations of the garbage collector. */
const MAX_GROWTH_BYTES = 40 * 1024 * 1024;

const many = suite('a tree of 100,000 files');
let server: ServerProcess | undefined;
let port = 0;
const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });

/** Returns the content of a file: its own path, repeated, so that no two files have the same content. */
function textOf(name: string, length: number): string {
	return `${name}\n`.repeat(Math.ceil(length / (name.length + 1))).slice(0, length);
}

const lengthOf = (file: number): number => 1000 + ((file * 7) % 4000);

many.before(async () => {
	const folder = temporaryFolder();
	const root = path.join(folder, 'tree');
	for (let at = 0; at < FOLDERS; at++) {
		mkdirSync(path.join(root, String(at)), { recursive: true });
		for (let file = 0; file < FILES; file++) {
			writeFileSync(path.join(root, String(at), `${file}.txt`), textOf(`${at}/${file}`, lengthOf(file)));
		}
	}
	mkdirSync(path.join(root, 'large'));
	for (let file = 0; file < LARGE_FILES; file++) {
		writeFileSync(path.join(root, 'large', `${file}.txt`), textOf(`large/${file}`, 70_000));
	}
	[port = 0] = await freePorts(1);
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{\n\tthreads 1\n}\nhttp://127.0.0.1:${port} {\n\tencode gzip\n\troot ${root}\n\tfile_server\n}\n`,
	);
	server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
});

many.after(async () => {
	agent.destroy();
	await server?.stop();
});

function ask(name: string): Promise<string> {
	return new Promise((resolve, reject) => {
		get({ port, host: '127.0.0.1', path: `/${name}.txt`, agent }, response => {
			const chunks: Buffer[] = [];
			response.on('data', (chunk: Buffer) => chunks.push(chunk));
			response.on('error', reject);
			response.on('end', () => resolve(Buffer.concat(chunks).toString()));
		}).on('error', reject);
	});
}

many('random reads return the right content, and memory and descriptors do not grow over time', async () => {
	const { pid } = server!.child;
	const resident = (): number => Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * 4096;
	const open = (): number => readdirSync(`/proc/${pid}/fd`).length;
	const atFirst = open();
	const startedAt = performance.now();
	const over = (): number => (performance.now() - startedAt) / 1000;
	let state = 1;
	const below = (most: number): number => {
		state = (state * 48_271) % 2_147_483_647;
		return state % most;
	};
	let answers = 0;
	let mostOpen = 0;
	/** The lowest resident memory in each second, in bytes. It approximates what remains after a garbage collection. */
	const lowestMemory: number[] = [];
	const client = async (): Promise<void> => {
		while (over() < WARM_UP_SECONDS + MEASURED_SECONDS) {
			const isLarge = below(10) === 0;
			const file = below(isLarge ? LARGE_FILES : FILES);
			const name = isLarge ? `large/${file}` : `${below(FOLDERS)}/${file}`;
			const text = await ask(name);
			if (text !== textOf(name, isLarge ? 70_000 : lengthOf(file))) assert.unreachable(`${name} has the wrong content`);
			answers += 1;
			if (answers % 200 !== 0) continue;
			mostOpen = Math.max(mostOpen, open());
			const second = Math.floor(over());
			lowestMemory[second] = Math.min(lowestMemory[second] ?? Number.POSITIVE_INFINITY, resident());
		}
	};
	await Promise.all(Array.from({ length: CLIENTS }, client));
	const least = (from: number, to: number): number =>
		Math.min(...lowestMemory.slice(from, to).filter(floor => floor > 0));
	const early = least(WARM_UP_SECONDS, WARM_UP_SECONDS + MEASURED_SECONDS / 3);
	const late = least(WARM_UP_SECONDS + (MEASURED_SECONDS * 2) / 3, WARM_UP_SECONDS + MEASURED_SECONDS);
	console.log(
		`${answers} answers; ${early >> 20} MiB, then ${late >> 20} MiB; ${mostOpen - atFirst} additional descriptors at most`,
	);
	assert.ok(answers > 5000, `${answers} answers`);
	assert.ok(late - early < MAX_GROWTH_BYTES, `grew from ${early} to ${late} bytes`);
	// The limit allows 256 cached descriptors, a connection for each client, and one file for each response in progress.
	assert.ok(mostOpen - atFirst <= 256 + 2 * CLIENTS + 8, `${mostOpen - atFirst} descriptors more than at first`);
	// Without requests, the server closes all descriptors of files, after about twenty seconds. Watches of directories stay open.
	agent.destroy();
	await until('the descriptors to be closed', () => open() - atFirst <= 8);
});

many.run();
