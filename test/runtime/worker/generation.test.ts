/**
 * Generations (loaded configurations) on one thread: what a new generation reuses, when old generations are released, and what it
 * costs to change one of ten thousand sites.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Plan } from '../../../compiler/codegen/plan/plan.ts';
import type { Document, Site } from '../../../compiler/document/document.ts';
import type { LeaseKinds } from '../../../compiler/exchange/leases.ts';
import { CONTROL_SLOTS } from '../../../runtime/threads/control-words.ts';
import { LeaseRegistry, leaseKey } from '../../../runtime/threads/lease-registry.ts';
import { createDocumentImage, type DocumentImage, generationDelta } from '../../../runtime/worker/document-image.ts';
import { Generations } from '../../../runtime/worker/generation.ts';
import {
	GenerationBuild,
	type LeaseSource,
	NeedsSharedMemory,
	type SharedDocumentParts,
} from '../../../runtime/worker/generation-builder.ts';

const FACTS = { hostname: 'test', os: 'linux', arch: 'amd64', workingDirectory: '/', env: () => undefined };
const NOTHING: SharedDocumentParts = { settings: {}, upstreams: {}, routes: {} };

function site(index: number, body: string, log?: string): Site {
	return {
		addresses: [`http://s${index}.example:80`],
		...(log === undefined ? {} : { logs: [{ name: log, output: { writer: 'discard' } }] }),
		pipeline: [{ handler: 'respond', body }],
	};
}

function image(sites: readonly Site[], more: Partial<Document> = {}): DocumentImage {
	const document: Document = { ...more, sites };
	const listed = sites.map((_, index) => ({ site: index, hosts: [`s${index}.example`], paths: [] }));
	const plan: Plan = {
		document,
		listeners: [{ key: 'tcp/:80', host: '', port: 80, scheme: 'http', sites: listed }],
	};
	return createDocumentImage(document, plan);
}

/** The generations of a worker thread, without sockets. */
class TestGenerations {
	readonly registry = new LeaseRegistry();
	readonly closed: string[] = [];
	readonly control = new Int32Array(new SharedArrayBuffer(CONTROL_SLOTS * 4));
	readonly generations = new Generations(this.control, this.registry);
	/** Keys of the leases that need shared memory before they can be built. */
	keysToAwait = new Set<string>();
	before: DocumentImage | undefined;
	shared = NOTHING;
	number = 0;
	readonly source: LeaseSource = {
		acquire: <K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']) => {
			const handle = leaseKey(kind, settings);
			const name = (settings as { logger: string }).logger.slice('http.log.access.'.length);
			if (this.keysToAwait.has(name)) throw new NeedsSharedMemory();
			const lease = this.registry.acquire(handle, () => ({
				value: { record() {} },
				close: () => void this.closed.push(name),
			}));
			return { lease: lease as unknown as LeaseKinds[K]['lease'], handle };
		},
		release: handle => this.registry.release(handle),
		whenMemoryArrives: async () => this.keysToAwait.clear(),
	};

	async build(after: DocumentImage): Promise<void> {
		const build = new GenerationBuild(this.source, FACTS);
		const delta = structuredClone(generationDelta(this.before, after));
		const result = await build.run(delta, this.number + 1, this.generations, this.shared);
		this.generations.prepare(result.generation);
		this.shared = result.shared;
	}

	async load(after: DocumentImage): Promise<void> {
		await this.build(after);
		this.before = after;
		Atomics.store(this.control, 0, ++this.number);
	}
}

const generations = suite('generations');

generations('a change keeps the closures of every other site', async () => {
	const bench = new TestGenerations();
	await bench.load(image([site(0, 'a'), site(1, 'b'), site(2, 'c')]));
	const first = bench.generations.currentGeneration();
	await bench.load(image([site(0, 'a'), site(1, 'B'), site(2, 'c')]));
	assert.is(bench.generations.newest, first, 'nothing changes before the next request');
	const second = bench.generations.currentGeneration();
	assert.is(second.number, 2);
	assert.equal(
		second.sites.map((unit, index) => unit === first.sites[index]),
		[true, false, true],
	);
	assert.is(second.tables.get('tcp/:80'), first.tables.get('tcp/:80'));
	assert.equal(second.droppedSites, [first.sites[1]]);
});

generations('sites are moved, added and removed', async () => {
	const bench = new TestGenerations();
	await bench.load(image([site(0, 'a'), site(1, 'b'), site(2, 'c'), site(3, 'd')]));
	const [a, , c, d] = bench.generations.currentGeneration().sites;
	await bench.load(image([site(3, 'd'), site(9, 'new'), site(2, 'c'), site(0, 'a')]));
	const { sites, droppedSites: dropped } = bench.generations.currentGeneration();
	assert.is(sites.length, 4);
	assert.is(sites[0], d);
	assert.is(sites[1]!.built.name, 'http://s9.example:80');
	assert.is(sites[2], c);
	assert.is(sites[3], a);
	assert.is(dropped.length, 1);
});

generations('a setting that sites depend on rebuilds them, and a process-wide setting does not', async () => {
	const bench = new TestGenerations();
	await bench.load(image([site(0, 'a')]));
	const [unit] = bench.generations.currentGeneration().sites;
	await bench.load(image([site(0, 'a')], { settings: { grace_period: 5 } }));
	assert.is(bench.generations.currentGeneration().sites[0], unit);
	await bench.load(image([site(0, 'a')], { settings: { grace_period: 5, http_port: 81 } }));
	assert.is.not(bench.generations.currentGeneration().sites[0], unit);
});

generations('a changed named upstream rebuilds the sites that use it, also through named routes', () => {
	const proxying: Site = { addresses: ['http://p:80'], pipeline: [{ handler: 'proxy', pool: 'api' }] };
	const invoking: Site = { addresses: ['http://i:80'], pipeline: [{ handler: 'invoke', route: 'common' }] };
	const routes = { common: [{ handler: 'proxy', pool: 'api' }] };
	const before = image([site(0, 'a'), proxying, invoking], { upstreams: { api: { to: ['a:1'] } }, routes });
	const after = image([site(0, 'a'), proxying, invoking], { upstreams: { api: { to: ['b:1'] } }, routes });
	assert.equal(generationDelta(before, after).siteRanges, [
		[0, 1],
		[-1, 2],
	]);
});

generations('leases are released with the last exchange of the last generation that holds them, in order', async () => {
	const bench = new TestGenerations();
	await bench.load(image([site(0, 'a', 'one')]));
	const first = bench.generations.currentGeneration();
	first.openExchangeCount++;
	await bench.load(image([site(0, 'b', 'two')]));
	const second = bench.generations.currentGeneration();
	second.openExchangeCount++;
	await bench.load(image([site(0, 'c', 'three')]));
	bench.generations.currentGeneration();
	bench.generations.onExchangeEnded(second);
	assert.equal(bench.closed, [], 'the first generation still has an exchange, which may need what later ones dropped');
	assert.is(bench.generations.oldCount, 2);
	bench.generations.onExchangeEnded(first);
	assert.equal(bench.closed, ['one', 'two']);
	assert.is(bench.generations.oldCount, 0);
	assert.is(bench.registry.size, 1);
});

generations('a lease held by both generations is never closed in between', async () => {
	const bench = new TestGenerations();
	await bench.load(image([site(0, 'a', 'kept')]));
	bench.generations.currentGeneration();
	await bench.load(image([site(0, 'b', 'kept')]));
	bench.generations.currentGeneration();
	assert.equal(bench.closed, []);
	await bench.load(image([site(0, 'c')]));
	bench.generations.currentGeneration();
	assert.equal(bench.closed, ['kept']);
});

generations('an aborted build releases its leases', async () => {
	const bench = new TestGenerations();
	await bench.load(image([site(0, 'a', 'kept'), site(1, 'b')]));
	bench.generations.currentGeneration();
	await bench.build(image([site(0, 'a', 'kept'), site(1, 'b', 'tried')]));
	bench.generations.discard();
	assert.equal(bench.closed, ['tried']);
	const bad = image([site(0, 'x', 'half'), { addresses: ['http://y:80'], pipeline: [{ handler: 'no such handler' }] }]);
	await bench.build(bad).then(
		() => assert.unreachable('a build with an unknown handler succeeded'),
		() => {},
	);
	assert.equal(bench.closed, ['tried', 'half']);
	assert.is(bench.registry.size, 1);
});

generations('a site that needs shared memory for many leases waits for all of it at once', async () => {
	const bench = new TestGenerations();
	const names = Array.from({ length: 30 }, (_, index) => `log${index}`);
	const [requested, arrived] = [new Set<string>(), new Set<string>()];
	let waits = 0;
	const source: LeaseSource = {
		...bench.source,
		acquire: (kind, settings) => {
			const key = leaseKey(kind, settings);
			requested.add(key);
			if (!arrived.has(key)) throw new NeedsSharedMemory();
			return bench.source.acquire(kind, settings);
		},
		whenMemoryArrives: async () => {
			waits++;
			for (const key of requested) arrived.add(key);
		},
	};
	const logs = names.map(name => ({ name, output: { writer: 'discard' } }));
	const delta = structuredClone(generationDelta(undefined, image([{ ...site(0, 'a'), logs }])));
	const { generation } = await new GenerationBuild(source, FACTS).run(delta, 1, bench.generations, NOTHING);
	assert.is(generation.sites[0]!.leases.length, names.length);
	assert.is(bench.registry.size, names.length);
	// The build waits once for the first lease, and once for all the others.
	assert.is(waits, 2);
	for (const handle of generation.sites[0]!.leases) bench.registry.release(handle);
	assert.is(bench.registry.size, 0);
});

generations('a site that needs shared memory is built once the memory has arrived', async () => {
	const bench = new TestGenerations();
	bench.keysToAwait.add('pool');
	await bench.load(image([site(0, 'a', 'pool'), site(1, 'b', 'log')]));
	assert.equal(
		bench.generations.currentGeneration().sites.map(unit => unit.built.name),
		['http://s0.example:80', 'http://s1.example:80'],
	);
	assert.is(bench.registry.size, 2);
});

/** Returns the CPU milliseconds that this thread has used. They do not depend on other processes. */
function cpuMilliseconds(): number {
	const { user, system } = process.threadCpuUsage();
	return (user + system) / 1000;
}

generations('changing one of ten thousand sites takes a thread less than five milliseconds of CPU time', async () => {
	const bench = new TestGenerations();
	const sites = Array.from({ length: 10_000 }, (_, index) => site(index, 'a'));
	await bench.load(image(sites));
	bench.generations.currentGeneration();
	const rounds = 20;
	let cost = 0;
	for (let round = 0; round < rounds; round++) {
		sites[5000 + round] = site(5000 + round, `b${round}`);
		const after = image(sites);
		const delta = structuredClone(generationDelta(bench.before, after));
		const began = cpuMilliseconds();
		const built = await new GenerationBuild(bench.source, FACTS).run(
			delta,
			bench.number + 1,
			bench.generations,
			bench.shared,
		);
		bench.generations.prepare(built.generation);
		Atomics.store(bench.control, 0, ++bench.number);
		bench.generations.currentGeneration();
		cost += cpuMilliseconds() - began;
		bench.before = after;
	}
	// The system counts this time in steps of up to 4 ms, so only the average over many rounds is meaningful.
	assert.ok(cost / rounds < 5, `${cost / rounds} ms`);
});

generations.run();
