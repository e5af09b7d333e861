/**
 * Compares the Admin API with a model: several clients send random reads, writes, conditional writes, configuration loads,
 * dry runs, reverts and restarts. After every step, the server's answer must be the model's. SEED and STEPS choose a
 * different run.
 */

import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Random } from '../compiler/syntax/random-text.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder, waitForPort } from '../harness.ts';

const SEED = Number(process.env.SEED ?? 1);
const STEPS = Number(process.env.STEPS ?? 10_000);

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Tree = { [key: string]: Json };

interface Answer {
	readonly status: number;
	readonly etag: string | undefined;
	// biome-ignore lint/suspicious/noExplicitAny: the server's JSON, of any shape
	readonly json: any;
}

const folder = temporaryFolder();
const file = path.join(folder, 'config.json');
const [port, admin] = (await freePorts(2)) as [number, number];
const agent = new Agent({ keepAlive: true, maxSockets: 8 });
const random = new Random(SEED);

/** The document that the server should be serving. */
let model: Tree = {
	settings: { threads: 1, admin: { listen: `127.0.0.1:${admin}` } },
	sites: [
		{
			addresses: [`http://127.0.0.1:${port}`],
			pipeline: [
				{ handler: 'respond', status: 200, body: 'a', when: { type: 'path', patterns: ['/a'] }, '@id': 'first' },
				{ handler: 'respond', body: 'end' },
			],
		},
	],
};
let server: ServerProcess | undefined;

function ask(method: string, target: string, body?: Json, headers: Record<string, string> = {}): Promise<Answer> {
	return new Promise((resolve, reject) => {
		const text = body === undefined ? undefined : JSON.stringify(body);
		const sent = request(
			{
				...{ agent, method, path: target, port: admin, host: '127.0.0.1' },
				headers: { ...(text !== undefined && { 'Content-Type': 'application/json' }), ...headers },
			},
			response => {
				let answer = '';
				response.setEncoding('utf8').on('data', chunk => {
					answer += chunk;
				});
				response.on('end', () =>
					resolve({
						status: response.statusCode!,
						etag: response.headers.etag,
						json: answer === '' ? undefined : JSON.parse(answer),
					}),
				);
			},
		);
		sent.on('error', reject);
		sent.end(text);
	});
}

/** Returns the value at a path in the document; undefined if there is no such path. */
function valueAt(tree: Json | undefined, segments: readonly string[]): Json | undefined {
	let value = tree;
	for (const segment of segments) {
		if (Array.isArray(value)) value = value[Number(segment)];
		else if (value !== null && typeof value === 'object' && Object.hasOwn(value, segment)) value = value[segment];
		else return undefined;
	}
	return value;
}

const pipeline = ['sites', '0', 'pipeline'];

/** Returns a pipeline step that always compiles. */
function randomStep(): Tree {
	const body = `b${random.below(1000)}`;
	return random.below(2) === 0
		? { handler: 'respond', body, when: { type: 'path', patterns: [`/p${random.below(50)}`] } }
		: { handler: 'edit_headers', response: { set: [{ name: 'X-Step', value: body }] } };
}

/** Predicts the outcome of a write: the status, and the document afterwards. */
function predictWrite(
	method: string,
	segments: readonly string[],
	value: Json | undefined,
): { status: number; after: Tree } {
	const after = structuredClone(model);
	const refused = (status: number) => ({ status, after: model });
	const key = segments.at(-1)!;
	const parent = valueAt(after, segments.slice(0, -1));
	if (typeof parent !== 'object' || parent === null) return refused(404);
	if (Array.isArray(parent)) {
		const index = Number(key);
		if (index > parent.length || (index === parent.length && method !== 'PUT')) return refused(404);
		if (method === 'POST') parent.push(value!);
		else if (method === 'PUT') parent.splice(index, 0, value!);
		else if (method === 'PATCH') parent[index] = value!;
		else parent.splice(index, 1);
	} else {
		const there = Object.hasOwn(parent, key);
		if (method === 'PUT' && there) return refused(409);
		if ((method === 'PATCH' || method === 'DELETE') && !there) return refused(404);
		const list = parent[key];
		if (method === 'POST' && Array.isArray(list)) list.push(value!);
		else if (method === 'DELETE') delete parent[key];
		else parent[key] = value!;
	}
	return { status: 200, after };
}

async function start(): Promise<void> {
	writeFileSync(file, JSON.stringify(model));
	server = await serve([file], port, { env: { XDG_STATE_HOME: path.join(folder, 'state') } });
}

/** Sends one random write. Its reply, and what is read afterwards, must agree with the model. */
async function writeRandomly(): Promise<void> {
	const steps = valueAt(model, pipeline) as Json[];
	const place = String(random.below(steps.length + 2));
	const [method, segments, value] = random.of<() => [string, string[], Json | undefined]>([
		() => ['POST', pipeline, randomStep()],
		() => ['POST', [...pipeline, place], randomStep()],
		() => ['PUT', [...pipeline, place], randomStep()],
		() => ['PATCH', [...pipeline, place], randomStep()],
		() => ['DELETE', [...pipeline, place], undefined],
		() => [random.of(['POST', 'PUT', 'PATCH']), ['settings', 'debug'], true],
		() => ['DELETE', ['settings', 'debug'], undefined],
		() => [random.of(['PUT', 'PATCH', 'POST']), ['settings', 'none', 'below'], 1],
		() => [random.of(['PUT', 'PATCH', 'POST']), ['settings', 'grace_period'], random.below(5000)],
	])();
	const condition = random.below(4);
	const target = `/config/${segments.join('/')}`;
	const headers: Record<string, string> = {};
	let stale = false;
	if (condition === 0) headers['If-Match'] = (await ask('GET', target)).etag!;
	if (condition === 1) {
		headers['If-Match'] = '"/somewhere 0123456789abcdef"';
		stale = true;
	}
	const outcome = stale ? { status: 412, after: model } : predictWrite(method, segments, value);
	const answer = await ask(method, target, value, headers);
	assert.is(
		answer.status,
		outcome.status,
		`${method} ${target} ${JSON.stringify(value)}: ${JSON.stringify(answer.json)}`,
	);
	model = outcome.after;
}

/** Reads a random part of the configuration and compares it with the model. */
async function readRandomly(): Promise<void> {
	const steps = valueAt(model, pipeline) as Json[];
	const segments = random.of([
		[],
		['sites'],
		pipeline,
		[...pipeline, String(random.below(steps.length + 1))],
		['settings'],
	]);
	const { status, json } = await ask('GET', `/config/${segments.join('/')}`);
	assert.is(status, 200);
	assert.equal(json, valueAt(model, segments) ?? null, `/config/${segments.join('/')}`);
}

/** Three clients append at the same time. Each must get 200, and all three values must be stored. */
async function raceAppends(): Promise<void> {
	const added = Array.from({ length: 3 }, randomStep);
	const before = (valueAt(model, pipeline) as Json[]).length;
	const answers = await Promise.all(added.map(one => ask('POST', `/config/${pipeline.join('/')}`, one)));
	assert.equal(
		answers.map(({ status }) => status),
		[200, 200, 200],
	);
	const { json } = await ask('GET', `/config/${pipeline.join('/')}`);
	assert.is(json.length, before + 3);
	const sorted = (list: Json[]): string[] => list.map(one => JSON.stringify(one)).sort();
	assert.equal(sorted(json.slice(before)), sorted(added));
	(valueAt(model, pipeline) as Json[]).push(...json.slice(before));
}

/** Two clients read the same value and then write conditionally. Exactly one must succeed. */
async function raceConditionalWrites(): Promise<void> {
	const target = '/config/settings/grace_period';
	model = predictWrite('POST', ['settings', 'grace_period'], 1).after;
	await ask('POST', target, 1);
	const { etag } = await ask('GET', target);
	const values = [1000 + random.below(1000), 3000 + random.below(1000)];
	const answers = await Promise.all(values.map(value => ask('PATCH', target, value, { 'If-Match': etag! })));
	assert.equal(answers.map(({ status }) => status).sort(), [200, 412]);
	const won = values[answers.findIndex(({ status }) => status === 200)]!;
	model = predictWrite('PATCH', ['settings', 'grace_period'], won).after;
}

async function loadWhole(): Promise<void> {
	const next = structuredClone(model);
	const steps = valueAt(next, pipeline) as Json[];
	// Keeps the document small, so that later steps are not slower than earlier ones.
	if (steps.length > 20) steps.splice(2, steps.length - 4);
	steps.splice(random.below(steps.length), 0, randomStep());
	const kind = random.below(4);
	if (kind === 0) {
		const { status, json } = await ask('POST', '/load?dry_run', next);
		assert.is(status, 200);
		assert.is(json.result, 'swap');
	} else if (kind === 1) {
		assert.is((await ask('POST', '/load', { ...next, sites: 7 })).status, 400);
	} else if (kind === 2) {
		assert.is((await ask('POST', '/load?confirm=1h', next)).status, 200);
		assert.is((await ask('POST', `/config/${pipeline.join('/')}`, randomStep())).status, 409);
		const keeps = random.below(2) === 0;
		assert.is((await ask('POST', keeps ? '/load/confirm' : '/load/revert')).status, 200);
		if (keeps) model = next;
	} else {
		assert.is((await ask('POST', '/load', next)).status, 200);
		model = next;
	}
}

async function restart(): Promise<void> {
	agent.destroy();
	await server!.stop();
	const saved = random.below(2) === 0;
	if (saved) {
		// The server must resume with the configuration that it served last, whatever the file contains now.
		server = await serve(['--resume', file], port, { env: { XDG_STATE_HOME: path.join(folder, 'state') } });
	} else await start();
	await waitForPort(admin);
}

const machine = suite('the Admin API and its model');

machine(`${STEPS} random steps leave server and model in agreement`, async () => {
	await start();
	await waitForPort(admin);
	try {
		let restarts = 0;
		for (let count = 0; count < STEPS; count++) {
			const kind = random.below(100);
			if (kind < 45) await readRandomly();
			else if (kind < 85) await writeRandomly();
			else if (kind < 90) await raceAppends();
			else if (kind < 93) await raceConditionalWrites();
			else await loadWhole();
			if (count % 2500 === 2499) {
				await restart();
				restarts++;
			}
			if (count % 50 === 0) assert.equal((await ask('GET', '/config/')).json, model);
		}
		assert.ok(restarts > 0 || STEPS < 2500);
		assert.equal((await ask('GET', '/config/')).json, model);
	} catch (error) {
		(error as Error).message = `SEED=${SEED}: ${(error as Error).message}`;
		throw error;
	} finally {
		agent.destroy();
		await server?.stop();
	}
});

machine.run();
