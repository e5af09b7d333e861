/** Processes that tell each other how many requests they run: slots that are taken, freed, or left behind by an ended process. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	CONCURRENCY_ROW_WORDS,
	ConcurrencyTable,
	concurrencyTableWords,
	NO_PLACE,
} from '../../../runtime/concurrency-limits/concurrency-table.ts';
import { ConcurrencyTables } from '../../../runtime/concurrency-limits/concurrency-tables.ts';
import {
	type RunningChannel,
	RunningExchange,
	type RunningMessage,
} from '../../../runtime/concurrency-limits/running-exchange.ts';
import { until } from '../../harness.ts';

const test = suite('running requests of several processes');

const MAX_KEYS = 1024;
const TABLE = 'table';
const SECRET = Buffer.from('a secret');

/** A process with one worker thread and one zone. */
class FakeProcess {
	readonly tables = new ConcurrencyTables(() => SECRET);
	readonly runningExchange = new RunningExchange(this.tables);
	readonly worker: ConcurrencyTable;

	constructor() {
		const buffer = new SharedArrayBuffer(4 * (CONCURRENCY_ROW_WORDS + concurrencyTableWords(MAX_KEYS)));
		this.tables.onConcurrencyOpened(TABLE, { zone: 'all', maxKeys: MAX_KEYS }, buffer, 1);
		this.worker = new ConcurrencyTable(buffer, 1, MAX_KEYS, 0);
	}

	/** Begins a request of a key with the limit 2. Returns its slot; {@link NO_PLACE} if it is refused. */
	enter(key: string): number {
		return this.worker.enter(key, 2, 0);
	}

	get running(): number {
		return this.tables.reports()[0]!.running;
	}
}

/** One end of a channel. Messages arrive in a later turn of the event loop, as JSON. */
class FakeChannel implements RunningChannel {
	onRunning: RunningChannel['onRunning'];
	readonly sent: RunningMessage[] = [];
	other: FakeChannel | undefined;

	sendRunning(message: RunningMessage): Promise<void> {
		this.sent.push(message);
		return new Promise(resolve =>
			setImmediate(() => {
				this.other?.onRunning?.(JSON.parse(JSON.stringify(message)));
				resolve();
			}),
		);
	}
}

/** Hands over between two processes. Returns the ends of their channel. */
function handOver(predecessor: FakeProcess, successor: FakeProcess): readonly [FakeChannel, FakeChannel] {
	const [ofPredecessor, ofSuccessor] = [new FakeChannel(), new FakeChannel()];
	ofPredecessor.other = ofSuccessor;
	ofSuccessor.other = ofPredecessor;
	const counts = predecessor.runningExchange.beginWithSuccessor(ofPredecessor);
	successor.runningExchange.beginWithPredecessor(ofSuccessor, JSON.parse(JSON.stringify(counts)));
	return [ofPredecessor, ofSuccessor];
}

/** Resolves once a process admits a request of a key, and ends the request. */
async function untilAdmitted(what: string, { enter, worker }: { enter: () => number; worker: ConcurrencyTable }) {
	await until(what, () => {
		const slot = enter();
		if (slot !== NO_PLACE) worker.leave(slot);
		return slot !== NO_PLACE;
	});
}

const admission = (process: FakeProcess, key: string) => ({
	enter: () => process.enter(key),
	worker: process.worker,
});

test('a successor counts the requests of its predecessor from its first request on, and each end of one frees a place', async () => {
	const [old, successor] = [new FakeProcess(), new FakeProcess()];
	const slots = [old.enter('a'), old.enter('a')];
	handOver(old, successor);
	assert.is(successor.enter('a'), NO_PLACE);
	assert.is(successor.running, 0, 'metrics show the requests of this process only');
	const other = successor.enter('b');
	assert.is.not(other, NO_PLACE);
	old.worker.leave(slots[0]!);
	await untilAdmitted('a place that the old process has left', admission(successor, 'a'));
	const slot = successor.enter('a');
	assert.is(successor.enter('a'), NO_PLACE);
	successor.worker.leave(slot);
	old.runningExchange.finish();
	successor.runningExchange.finish();
});

test('a predecessor counts the requests of its successor', async () => {
	const [old, successor] = [new FakeProcess(), new FakeProcess()];
	handOver(old, successor);
	const slots = [successor.enter('a'), successor.enter('a')];
	await until('the old process refuses', () => {
		const slot = old.enter('a');
		if (slot !== NO_PLACE) old.worker.leave(slot);
		return slot === NO_PLACE;
	});
	for (const slot of slots) successor.worker.leave(slot);
	await untilAdmitted('places that the successor has left', admission(old, 'a'));
	old.runningExchange.finish();
	successor.runningExchange.finish();
});

test('a request that waits in one process runs as soon as one of another process has ended', async () => {
	const [old, successor] = [new FakeProcess(), new FakeProcess()];
	const slots = [old.enter('a'), old.enter('a')];
	handOver(old, successor);
	const waiter = -2 - successor.worker.enter('a', 2, 1);
	let admittedSlot: number | undefined;
	successor.worker.wait(waiter, slot => {
		admittedSlot = slot;
	});
	old.worker.leave(slots[1]!);
	await until('the waiting request runs', () => admittedSlot !== undefined);
	successor.worker.leave(admittedSlot!);
	old.runningExchange.finish();
	successor.runningExchange.finish();
});

test('the places of a process that ends are free, whether it says so or its channel is closed', async () => {
	for (const isKilled of [true, false]) {
		const [old, successor] = [new FakeProcess(), new FakeProcess()];
		old.enter('a');
		old.enter('a');
		const [, channel] = handOver(old, successor);
		assert.is(successor.enter('a'), NO_PLACE);
		// Lets the successor's answer arrive, because a predecessor sends nothing before it.
		await new Promise(resolve => setImmediate(resolve));
		if (isKilled) channel.onRunning!('ended');
		else old.runningExchange.finish();
		await untilAdmitted('the places of the ended process', admission(successor, 'a'));
		successor.runningExchange.finish();
		old.runningExchange.finish();
	}
});

test('a third process counts the requests of the first one, of which the second one tells it', async () => {
	const [first, second, third] = [new FakeProcess(), new FakeProcess(), new FakeProcess()];
	const slots = [first.enter('a'), first.enter('a')];
	handOver(first, second);
	handOver(second, third);
	assert.is(third.enter('a'), NO_PLACE);
	first.worker.leave(slots[0]!);
	await untilAdmitted('a place that the first process has left', admission(third, 'a'));
	for (const { runningExchange } of [first, second, third]) runningExchange.finish();
});

test('a release that does not answer is told nothing, and counts that make no sense are ignored', () => {
	const old = new FakeProcess();
	const channel = new FakeChannel();
	old.runningExchange.beginWithSuccessor(channel);
	old.enter('a');
	old.runningExchange.finish();
	assert.equal(channel.sent, []);
	const successor = new FakeProcess();
	successor.runningExchange.beginWithPredecessor(channel, { [TABLE]: { nonsense: 2, '1,2': -1, '3,4': 0.5 } } as never);
	channel.onRunning!({ type: 'running', counts: 'nonsense' as never });
	channel.onRunning!({ type: 'running' } as never);
	assert.is.not(successor.enter('a'), NO_PLACE);
	successor.runningExchange.finish();
});

test.run();
