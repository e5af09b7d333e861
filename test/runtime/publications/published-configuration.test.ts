/**
 * A machine that follows publications, with a Redis in memory: what it loads, what it keeps on the disk, and what it does when
 * the disk, Redis, a publication or its own process fails.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Clock, SYSTEM_CLOCK } from '../../../runtime/clock/clock.ts';
import { ClusterError } from '../../../runtime/cluster/cluster-error.ts';
import { type Publication, sealPublication } from '../../../runtime/cluster/publication.ts';
import {
	abortRollout,
	createRollout,
	MAX_TRIAL_WITHOUT_CONTACT_MS,
	type MachineFailure,
	type PublicationNumber,
	type Rollout,
	type RolloutTerms,
} from '../../../runtime/cluster/rollout-decision.ts';
import { SealedValues } from '../../../runtime/cluster/sealed-values.ts';
import {
	type FleetReport,
	NO_REVISION,
	type ProcessIdentity,
	type ReportAnswer,
	type SentReport,
} from '../../../runtime/cluster/shared-rollout.ts';
import { PublicationFolder } from '../../../runtime/publications/publication-folder.ts';
import { PublishedConfiguration } from '../../../runtime/publications/published-configuration.ts';
import { temporaryFolder, until, waitForNothing } from '../../harness.ts';

const following = suite('following publications');

/**
 * The reason for which a publication is stopped. It is short if the machine has decided to return by itself, and long if the
 * machine reported its errors first and then decided as the coordinator.
 */
const EITHER_REASON = /^90\.0 % of 1000 responses( of all admitted machines)? were errors$/;
const TERMS: RolloutTerms = { shares: [1], observationMs: 0, loadLimitMs: 60_000, maxErrorRateRise: 0.05 };

/** A clock whose timers expire early, so that machines report every few milliseconds instead of every second. */
const CLOCK_WITH_EARLY_TIMERS: Clock = {
	...SYSTEM_CLOCK,
	startTimer: (callback, delayMs, keepsProcess) => SYSTEM_CLOCK.startTimer(callback, delayMs / 100, keepsProcess),
};

const sealedValues = new SealedValues([randomBytes(32).toString('base64')]);

function sealDocument(number: PublicationNumber, document: string, identity?: string, publishedAt = 0): Buffer {
	const origin = { publishedAt, publishedBy: 'ada@workstation', fileName: 'Configfile' };
	const publication: Publication = { number, identity, ...origin, text: '', document };
	return sealPublication(sealedValues, publication, undefined);
}

/** The rollout of a cluster with one machine, in memory. */
class MemoryRollout {
	state: Rollout | undefined;
	readonly publications: Map<PublicationNumber, Buffer> = new Map();
	latestReport: FleetReport | undefined;
	isAvailable = true;
	/**
	 * For each of the next reports, in order: the other process with the same machine ID that the answer to the report names, or
	 * undefined if the answer names none.
	 */
	otherProcessPerReport: (ProcessIdentity | undefined)[] = [];
	/** Called at the beginning of each report. */
	onReport: () => void = () => {};
	/** Milliseconds by which the clock of Redis was changed. */
	clockChangeMs = 0;
	/** False if Redis takes reports, but does not return publications. */
	canReadPublications = true;
	/** Each read of a publication waits for this promise. */
	readGate: Promise<void> = Promise.resolve();
	/** Number of reports and of attempts to read a publication. */
	readonly counts: { reports: number; reads: number } = { reports: 0, reads: 0 };
	#revision = 0;

	publish(number: PublicationNumber, previous: PublicationNumber, terms: Partial<RolloutTerms> = {}): void {
		const now = Date.now();
		this.publications.set(number, sealDocument(number, `{"number":${number}}`, undefined, now));
		this.set(createRollout(number, previous, { ...TERMS, ...terms }, now));
	}

	set(state: Rollout | undefined): void {
		this.state = state;
		this.#revision++;
	}

	async report(report: SentReport, knownRevision: string, wouldCoordinate: boolean): Promise<ReportAnswer> {
		this.counts.reports++;
		this.onReport();
		this.#fail();
		const now = Date.now() + this.clockChangeMs;
		this.latestReport = { ...report, reportedAt: now };
		const revision = this.state === undefined ? NO_REVISION : String(this.#revision);
		const changed = revision === knownRevision ? undefined : { rollout: this.state };
		const reports = wouldCoordinate ? [this.latestReport] : undefined;
		return { now, revision, changed, reports, otherProcess: this.otherProcessPerReport.shift() };
	}

	async replace(expectedRevision: string, rollout: Rollout): Promise<string | undefined> {
		this.#fail();
		if (expectedRevision !== String(this.#revision)) return undefined;
		this.set(rollout);
		return String(this.#revision);
	}

	async readPublication(number: PublicationNumber): Promise<Buffer | undefined> {
		this.counts.reads++;
		await new Promise(resolve => setImmediate(resolve));
		await this.readGate;
		this.#fail();
		if (!this.canReadPublications) throw new ClusterError('cluster/refused', 'the Redis user lacks a permission');
		return this.publications.get(number);
	}

	async removeReport(): Promise<void> {
		this.latestReport = undefined;
	}

	#fail(): void {
		if (!this.isAvailable) throw new ClusterError('cluster/unavailable', 'connection refused');
	}
}

/** A machine with a disk. */
class Machine {
	readonly path: string = temporaryFolder();
	folder: PublicationFolder = new PublicationFolder(this.path);
	readonly loads: (PublicationNumber | undefined)[] = [];
	/** The text of the document that was loaded last. */
	document: string | undefined;
	readonly messages: string[] = [];
	readonly logged: { readonly level: string; readonly message: string; readonly fields: object }[] = [];
	/** True if the machine has started from its disk, because Redis has not answered. */
	isFromDisk = false;
	traffic: { requests: number; serverErrors: number } = { requests: 0, serverErrors: 0 };
	onLoad: (number: PublicationNumber) => string | undefined = () => undefined;
	/** Each load of a configuration waits for this promise before it ends. */
	loadGate: Promise<void> = Promise.resolve();
	/** True if a load starts another process, which takes over. */
	loadsByHandover = false;
	process: PublishedConfiguration | undefined;

	async start(
		rollout: MemoryRollout,
		serves: PublicationNumber,
		hasTakenOver = false,
		failures: readonly MachineFailure[] = [],
		identity?: string,
	): Promise<void> {
		const process = new PublishedConfiguration(
			{
				rollouts: rollout,
				sealedValues,
				publishers: undefined,
				folder: this.folder,
				load: async publication => {
					this.loads.push(publication?.number);
					this.document = publication?.document;
					await this.loadGate;
					const reason = this.onLoad(publication?.number ?? 0);
					if (reason !== undefined) return { result: 'refused', reason };
					if (!this.loadsByHandover) return { result: 'serving' };
					await this.start(rollout, publication?.number ?? 0, true, process.failures, publication?.identity);
					return { result: 'handed_over' };
				},
				isReady: () => true,
				traffic: () => ({ ...this.traffic }),
				version: () => 'test',
				log: (level, message, fields) => {
					this.messages.push(message);
					this.logged.push({ level, message, fields });
				},
			},
			{ machine: 'machine', serves, identity, hasTakenOver, isFromDisk: this.isFromDisk, errorRateBefore: 0, failures },
			CLOCK_WITH_EARLY_TIMERS,
		);
		this.process = process;
		await process.start();
	}

	get serves(): PublicationNumber {
		return this.process!.startOfSuccessor.serves;
	}
}

/** Runs a test with a machine, and stops it. */
async function withMachine(test: (machine: Machine, rollout: MemoryRollout) => Promise<void>): Promise<void> {
	const machine = new Machine();
	try {
		await test(machine, new MemoryRollout());
	} finally {
		await machine.process?.stop();
	}
}

following('a machine loads what is published, completes the rollout, and keeps it on the disk', async () => {
	await withMachine(async (machine, rollout) => {
		rollout.publish(1, 0);
		await machine.start(rollout, 0);
		await until('it is completed', () => rollout.state?.phase === 'completed');
		assert.is(machine.serves, 1);
		await until('it is on the disk', async () => (await machine.folder.lastGood())?.number === 1);
		assert.equal((await machine.folder.lastGood())?.sealed, rollout.publications.get(1));
		await until('the end of the trial', async () => (await machine.folder.unfinishedTrial()) === undefined);
		assert.equal(machine.loads, [1]);
		assert.not.ok(readFileSync(path.join(machine.path, 'last-good.json'), 'utf8').includes('Configfile'));
	});
});

following('after its next report, a machine shows that another machine has completed the rollout', async () => {
	await withMachine(async (machine, rollout) => {
		rollout.publish(1, 0, { observationMs: 3_600_000 });
		await machine.start(rollout, 0);
		await until('it serves', () => machine.serves === 1 && rollout.latestReport?.serves === 1);
		const phasesAtReports: (string | undefined)[] = [];
		rollout.onReport = () => phasesAtReports.push(machine.process?.rolloutReport.latest?.phase);
		rollout.set({ ...rollout.state!, phase: 'completed', admittedRank: 1, endedAt: Date.now() });
		await until('three reports', () => phasesAtReports.length >= 3);
		assert.equal(phasesAtReports.slice(0, 3), ['running', 'completed', 'completed']);
	});
});

following('a machine keeps a final publication if Redis is restored from a copy in which it was on trial', async () => {
	await withMachine(async (machine, rollout) => {
		rollout.publish(1, 0);
		const copy = rollout.state!;
		await machine.start(rollout, 0);
		await until('it is on the disk', async () => (await machine.folder.lastGood())?.number === 1);
		rollout.set(copy);
		await until('it is completed again', () => rollout.state?.phase === 'completed');
		assert.equal(machine.loads, [1]);
		assert.not.ok(machine.messages.includes('the rollout in Redis is older than what the machine serves'));
	});
});

following('a publication on trial is recorded on the disk until its end, and is not kept as a good one', async () => {
	await withMachine(async (machine, rollout) => {
		rollout.publish(1, 0, { observationMs: 3_600_000 });
		await machine.start(rollout, 0);
		await until('it serves', () => machine.serves === 1);
		await until('the report', () => rollout.latestReport?.serves === 1);
		assert.equal(await machine.folder.unfinishedTrial(), { number: 1 });
		assert.is(await machine.folder.lastGood(), undefined);
		rollout.set(abortRollout(rollout.state!, Date.now())!);
		await until('it returns', () => machine.serves === 0);
		await until('the end of the trial', async () => (await machine.folder.unfinishedTrial()) === undefined);
		assert.equal(machine.loads, [1, undefined]);
	});
});

following('a process that ended during a trial is a failure, unless another one has taken over from it', async () => {
	for (const hasTakenOver of [false, true]) {
		await withMachine(async (machine, rollout) => {
			await machine.folder.beginTrial({ number: 1 });
			rollout.publish(1, 0, { observationMs: 3_600_000 });
			await machine.start(rollout, hasTakenOver ? 1 : 0, hasTakenOver);
			if (hasTakenOver) {
				await until('the observation', () => rollout.state?.observedSince !== undefined);
				assert.is(rollout.latestReport!.failure, undefined);
				return;
			}
			await until('the stop', () => rollout.state?.phase === 'stopped');
			assert.is(rollout.state!.reason, 'the process ended unexpectedly while it served the publication');
			assert.equal(machine.loads, []);
		});
	}
});

following('a refused publication is reported with its reason, and what was served before is still served', async () => {
	await withMachine(async (machine, rollout) => {
		machine.onLoad = number => (number === 2 ? 'The certificate is missing.' : undefined);
		rollout.publish(1, 0);
		await machine.start(rollout, 0);
		await until('it is completed', () => rollout.state?.phase === 'completed');
		rollout.publish(2, 1);
		await until('the stop', () => rollout.state?.phase === 'stopped');
		assert.is(rollout.state!.reason, 'The certificate is missing');
		assert.is(machine.serves, 1);
		assert.equal(machine.loads, [1, 2]);
		assert.is(await machine.folder.unfinishedTrial(), undefined);
	});
});

following('a publication that was altered or is missing is never passed to the server', async () => {
	for (const [alter, reason] of [
		[(one: Buffer) => one.fill(7, 30, 40), /^Publication 1 has been altered/],
		[() => undefined, /^Publication 1 is no longer in Redis$/],
	] as const) {
		await withMachine(async (machine, rollout) => {
			rollout.publish(1, 0);
			const altered = alter(rollout.publications.get(1)!);
			if (altered) rollout.publications.set(1, altered);
			else rollout.publications.delete(1);
			await machine.start(rollout, 0);
			await until('the stop', () => rollout.state?.phase === 'stopped');
			assert.match(rollout.state!.reason!, reason);
			assert.equal(machine.loads, []);
		});
	}
});

following('errors make the machine return by itself, even if Redis fails at the same time', async () => {
	await withMachine(async (machine, rollout) => {
		rollout.publish(1, 0);
		await machine.start(rollout, 0);
		await until('it is on the disk', async () => (await machine.folder.lastGood())?.number === 1);
		rollout.publish(2, 1, { observationMs: 3_600_000 });
		await until('it serves', () => machine.serves === 2);
		// To return to the previous configuration, the machine must not need Redis.
		rollout.isAvailable = false;
		machine.traffic = { requests: 1000, serverErrors: 900 };
		await until('it returns', () => machine.serves === 1);
		assert.ok(machine.messages.includes('publication withdrawn'));
		rollout.isAvailable = true;
		await until('the stop', () => rollout.state?.phase === 'stopped');
		assert.match(rollout.state!.reason!, EITHER_REASON);
	});
});

following(
	'a process that takes over to return from a publication reports its failure and does not load it again',
	async () => {
		await withMachine(async (machine, rollout) => {
			machine.loadsByHandover = true;
			rollout.publish(1, 0);
			await machine.start(rollout, 0);
			await until('it is on the disk', async () => (await machine.folder.lastGood())?.number === 1);
			rollout.publish(2, 1, { observationMs: 3_600_000 });
			await until('it serves', () => machine.serves === 2 && rollout.latestReport?.serves === 2);
			// The process that decides to return to publication 1 cannot report the failure to Redis before the next process takes
			// over.
			rollout.isAvailable = false;
			machine.traffic = { requests: 1000, serverErrors: 900 };
			await until('it returns', () => machine.serves === 1);
			rollout.isAvailable = true;
			await until('the stop', () => rollout.state?.phase === 'stopped');
			assert.is(rollout.state!.reason, '90.0 % of 1000 responses were errors');
			assert.equal(machine.loads, [1, 2, 1]);
			await until('the end of the trial', async () => (await machine.folder.unfinishedTrial()) === undefined);
		});
	},
);

following(
	'a publication on the disk is not mistaken for one with the same number, published after a data loss',
	async () => {
		await withMachine(async (machine, rollout) => {
			await machine.folder.saveLastGood({ number: 1, sealed: sealDocument(1, '{"from":"before the loss"}') });
			rollout.publish(1, 0);
			await machine.start(rollout, 0);
			await until('it is completed', () => rollout.state?.phase === 'completed');
			assert.is(machine.document, '{"number":1}');
			const newPublication = rollout.publications.get(1)!;
			await until('it is on the disk', async () => newPublication.equals((await machine.folder.lastGood())!.sealed));
		});
	},
);

following(
	'a machine returns to the publication that an earlier process left on the disk if Redis has it no longer',
	async () => {
		await withMachine(async (machine, rollout) => {
			rollout.publish(2, 1, { observationMs: 3_600_000 });
			await machine.folder.saveLastGood({ number: 1, sealed: sealDocument(1, '{"number":1}') });
			await machine.start(rollout, 1);
			await until('it serves', () => machine.serves === 2);
			machine.traffic = { requests: 1000, serverErrors: 900 };
			await until('it returns', () => machine.serves === 1);
			assert.is(machine.document, '{"number":1}');
		});
	},
);

following('a publication that was altered in Redis does not replace the good one on the disk', async () => {
	await withMachine(async (machine, rollout) => {
		const sealed = sealDocument(1, '{"number":1}');
		await machine.folder.saveLastGood({ number: 1, sealed });
		rollout.publish(2, 1, { observationMs: 3_600_000 });
		rollout.publications.set(1, Buffer.from(sealed).fill(7, 30, 40));
		await machine.start(rollout, 1);
		// Before the machine loads publication 2, it tries to save publication 1, which it serves, to the disk.
		await until('it serves', () => machine.serves === 2);
		assert.equal((await machine.folder.lastGood())!.sealed, sealed);
	});
});

following('a machine does not return to an old publication if the old state of Redis is put back', async () => {
	const OLD_MESSAGE = 'the rollout in Redis is older than what the machine serves';
	await withMachine(async (machine, rollout) => {
		rollout.publish(1, 0);
		await machine.start(rollout, 0);
		await until('it is completed', () => rollout.state?.phase === 'completed');
		const oldState = rollout.state!;
		await until('another millisecond', () => Date.now() > oldState.startedAt);
		rollout.publish(2, 1);
		await until('it is on the disk', async () => (await machine.folder.lastGood())?.number === 2);
		rollout.set(oldState);
		await until('the log entry', () => machine.messages.includes(OLD_MESSAGE));
		const { reports } = rollout.counts;
		await until('two more reports', () => rollout.counts.reports >= reports + 2);
		assert.equal(machine.loads, [1, 2]);
		// The next process, which starts with the publication on the disk, does not return to the old state, either.
		machine.process!.close();
		await machine.start(rollout, 2);
		const reportsAtStart = rollout.counts.reports;
		await until('two reports', () => rollout.counts.reports >= reportsAtStart + 2);
		assert.equal(machine.loads, [1, 2]);
		assert.is(machine.messages.filter(message => message === OLD_MESSAGE).length, 2);
		// Unlike the old publication, the next one is loaded.
		rollout.publish(3, 2);
		await until('it serves', () => machine.serves === 3 && rollout.state?.phase === 'completed');
	});
});

following('a machine whose disk fails serves what is published, and says once that the disk fails', async () => {
	await withMachine(async (machine, rollout) => {
		// A regular file is where the folder should be.
		const file = path.join(machine.path, 'file');
		writeFileSync(file, '');
		machine.folder = new PublicationFolder(path.join(file, 'folder'));
		await machine.start(rollout, 0);
		rollout.publish(1, 0);
		await until('it is completed', () => rollout.state?.phase === 'completed');
		rollout.publish(2, 1);
		await until('it serves the next one', () => machine.serves === 2 && rollout.state?.phase === 'completed');
		assert.is(machine.messages.filter(message => message === 'the disk cannot keep publications').length, 1);
	});
});

following('a state that another release wrote in another form is logged once, and the server goes on', async () => {
	await withMachine(async (machine, rollout) => {
		rollout.publish(1, 0);
		const { terms: _, ...withoutTerms } = rollout.state!;
		rollout.set(withoutTerms as Rollout);
		await machine.start(rollout, 0);
		await until('the log entry', () => machine.messages.includes('following the publications failed'));
		// A later publication in a known format is loaded.
		rollout.publish(2, 0);
		await until('it is completed', () => machine.serves === 2 && rollout.state?.phase === 'completed');
		assert.is(machine.messages.filter(message => message === 'following the publications failed').length, 1);
	});
});

following('a publication that Redis does not return is read once for each report, not in a loop', async () => {
	await withMachine(async (machine, rollout) => {
		rollout.publish(1, 0);
		rollout.canReadPublications = false;
		await machine.start(rollout, 0);
		await until('three reports', () => rollout.counts.reports >= 3);
		assert.ok(rollout.counts.reads <= 4, String(rollout.counts.reads));
		assert.is(rollout.state?.phase, 'running');
		rollout.canReadPublications = true;
		await until('it is completed', () => rollout.state?.phase === 'completed');
	});
});

following('a machine that cannot return to the previous publication returns to its last good one, once', async () => {
	await withMachine(async (machine, rollout) => {
		await machine.folder.saveLastGood({ number: 1, sealed: sealDocument(1, '{"number":1}') });
		rollout.publish(3, 2, { observationMs: 3_600_000 });
		await machine.start(rollout, 1);
		await until('it serves', () => machine.serves === 3);
		machine.traffic = { requests: 1000, serverErrors: 900 };
		await until('it returns', () => machine.serves === 1);
		await until('the stop', () => rollout.state?.phase === 'stopped');
		assert.equal(machine.loads, [3, 1]);
		assert.match(rollout.state!.reason!, EITHER_REASON);
		const { reports } = rollout.counts;
		await until('two more reports', () => rollout.counts.reports >= reports + 2);
		assert.is(machine.messages.filter(message => message === 'publication refused').length, 1);
	});
});

following('a machine that can return to no publication does not try without a pause', async () => {
	await withMachine(async (machine, rollout) => {
		machine.onLoad = number => (number === 0 ? 'A file is missing.' : undefined);
		rollout.publish(1, 0, { observationMs: 3_600_000 });
		await machine.start(rollout, 0);
		await until('it serves', () => machine.serves === 1);
		rollout.isAvailable = false;
		machine.traffic = { requests: 1000, serverErrors: 900 };
		await until('an attempt', () => machine.loads.length === 2);
		const { reports } = rollout.counts;
		await until('two more reports', () => rollout.counts.reports >= reports + 2);
		assert.equal(machine.loads, [1, undefined]);
		assert.is(machine.messages.filter(message => message === 'publication withdrawn').length, 1);
	});
});

following('a machine whose rollout Redis has lost still returns when its own errors rise', async () => {
	await withMachine(async (machine, rollout) => {
		rollout.publish(1, 0, { observationMs: 3_600_000 });
		await machine.start(rollout, 0);
		await until('it serves', () => machine.serves === 1);
		rollout.set(undefined);
		const { reports } = rollout.counts;
		await until('it knows', () => rollout.counts.reports >= reports + 2);
		machine.traffic = { requests: 1000, serverErrors: 900 };
		await until('it returns', () => machine.serves === 0);
		assert.is(rollout.state, undefined);
		assert.equal(machine.loads, [1, undefined]);
	});
});

following('a machine whose rollout Redis has lost returns after the time that it waits for Redis', async () => {
	await withMachine(async (machine, rollout) => {
		rollout.publish(1, 0, { observationMs: 3_600_000 });
		await machine.start(rollout, 0);
		await until('it serves', () => machine.serves === 1);
		rollout.set(undefined);
		const { reports } = rollout.counts;
		await until('it knows', () => rollout.counts.reports >= reports + 2);
		const { now } = performance;
		performance.now = () => now.call(performance) + MAX_TRIAL_WITHOUT_CONTACT_MS;
		try {
			await until('it returns', () => machine.serves === 0);
		} finally {
			performance.now = now;
		}
		assert.equal(machine.loads, [1, undefined]);
	});
});

following(
	'a load that ends after another process has taken over leaves the log and the record of the trial',
	async () => {
		await withMachine(async (machine, rollout) => {
			let release = () => {};
			machine.loadGate = new Promise(resolve => {
				release = resolve;
			});
			machine.onLoad = () => 'The server is stopping.';
			rollout.publish(1, 0);
			await machine.start(rollout, 0);
			await until('the load', () => machine.loads.length === 1);
			machine.process!.close();
			release();
			await new Promise(resolve => setImmediate(resolve));
			assert.equal(await machine.folder.unfinishedTrial(), { number: 1 });
			assert.not.ok(machine.messages.includes('publication refused'));
		});
	},
);

following('a machine that is stopped while it begins a trial does not remember it as unfinished', async () => {
	await withMachine(async (machine, rollout) => {
		let release = () => {};
		rollout.readGate = new Promise(resolve => {
			release = resolve;
		});
		rollout.publish(1, 0);
		const started = machine.start(rollout, 0);
		await until('the publication is being read', () => rollout.counts.reads === 1);
		await machine.process!.stop();
		release();
		await started;
		await waitForNothing(200);
		assert.equal(machine.loads, []);
		assert.is(await machine.folder.unfinishedTrial(), undefined);
	});
});

/** Publishes a document whose identity is also its text, as `svc publish` does. */
function publishIdentified(
	rollout: MemoryRollout,
	identity: string,
	previous: PublicationNumber,
	previousIdentity?: string,
): void {
	rollout.publications.set(1, sealDocument(1, identity, identity));
	rollout.set(createRollout(1, previous, TERMS, Date.now(), { identity, previousIdentity }));
}

following(
	'two publications with the same number are told apart in memory, on the disk and after a handover',
	async () => {
		await withMachine(async (machine, rollout) => {
			await machine.folder.beginTrial({ number: 1, identity: 'lost' });
			publishIdentified(rollout, 'first', 0);
			await machine.start(rollout, 0);
			await until('it is completed', () => rollout.state?.phase === 'completed');
			await until('it is on the disk', async () => (await machine.folder.lastGood())?.identity === 'first');
			assert.is(rollout.latestReport!.identity, 'first');
			for (const loadsByHandover of [false, true]) {
				machine.loadsByHandover = loadsByHandover;
				const identity = loadsByHandover ? 'third' : 'second';
				publishIdentified(rollout, identity, 0);
				await until('it is completed', () => rollout.state?.phase === 'completed');
				assert.is(machine.document, identity);
				await until('it is on the disk', async () => (await machine.folder.lastGood())?.identity === identity);
				await until('the end of the trial', async () => (await machine.folder.unfinishedTrial()) === undefined);
				assert.is(rollout.latestReport!.identity, identity);
			}
			assert.equal(machine.loads, [1, 1, 1]);
		});
	},
);

following('a publication in Redis that is not the one of the rollout is refused', async () => {
	await withMachine(async (machine, rollout) => {
		publishIdentified(rollout, 'first', 0);
		rollout.publications.set(1, sealDocument(1, '{}', 'other'));
		await machine.start(rollout, 0);
		await until('the stop', () => rollout.state?.phase === 'stopped');
		assert.is(rollout.state!.reason, 'Publication 1 in Redis is not the one that the rollout is about');
		assert.equal(machine.loads, []);
	});
});

following('a machine reports the highest number that it or its disk knows', async () => {
	await withMachine(async (machine, rollout) => {
		await machine.folder.saveLastGood({ number: 4, sealed: sealDocument(4, '{}') });
		await machine.folder.beginTrial({ number: 7 });
		await machine.start(rollout, 2);
		assert.is(rollout.latestReport!.highestKnown, 7);
		rollout.set({ ...createRollout(9, 2, TERMS, Date.now()), phase: 'aborted' });
		await until('it knows the rollout', () => rollout.latestReport!.highestKnown === 9);
		rollout.set(undefined);
		const { reports } = rollout.counts;
		await until('another report', () => rollout.counts.reports >= reports + 2);
		assert.is(rollout.latestReport!.highestKnown, 9);
	});
});

const DISK_START = 'serving the last good publication from the disk';
const OLD_WARNING = 'the publication from the disk is more than a week old';
const DAY_MS = 24 * 3_600_000;

following(
	'a machine that starts from its disk says how old the publication is, and warns once if it is old',
	async () => {
		for (const [ageMs, warnings] of [
			[6 * DAY_MS, 0],
			[8 * DAY_MS, 1],
		] as const) {
			await withMachine(async (machine, rollout) => {
				const publishedAt = Date.now() - ageMs;
				await machine.folder.saveLastGood({ number: 4, sealed: sealDocument(4, '{}', undefined, publishedAt) });
				rollout.isAvailable = false;
				machine.isFromDisk = true;
				await machine.start(rollout, 4);
				const { reports } = rollout.counts;
				await until('several attempts to report', () => rollout.counts.reports >= reports + 3);
				const [start, ...otherStarts] = machine.logged.filter(({ message }) => message === DISK_START);
				assert.equal(otherStarts, []);
				const { age_seconds: age, ...fields } = start!.fields as { age_seconds: number };
				assert.equal(fields, { publication: 4, published_at: new Date(publishedAt).toISOString() });
				const isAge = (seconds: number): boolean => seconds >= ageMs / 1000 - 1 && seconds < ageMs / 1000 + 600;
				assert.ok(isAge(age), String(age));
				const found = machine.logged.filter(({ message }) => message === OLD_WARNING);
				assert.is(found.length, warnings);
				assert.ok(found.every(({ level }) => level === 'warn'));
				const { serves, ageSeconds, isFromDisk } = machine.process!.rolloutReport;
				assert.equal([serves, isFromDisk], [4, true]);
				assert.ok(isAge(ageSeconds!), String(ageSeconds));
				assert.is(machine.process!.startOfSuccessor.isFromDisk, true);
				// Once Redis has answered, it decides what the machine serves.
				rollout.isAvailable = true;
				await until('an answer', () => !machine.process!.rolloutReport.isFromDisk);
				assert.is(machine.process!.startOfSuccessor.isFromDisk, false);
			});
		}
	},
);

following('only a start from the disk is logged, and a process that takes over does not repeat it', async () => {
	for (const [isFromDisk, hasTakenOver] of [
		[false, false],
		[true, true],
	] as const) {
		await withMachine(async (machine, rollout) => {
			const sealed = sealDocument(4, '{}', undefined, Date.now() - 8 * DAY_MS);
			await machine.folder.saveLastGood({ number: 4, sealed });
			rollout.isAvailable = false;
			machine.isFromDisk = isFromDisk;
			await machine.start(rollout, 4, hasTakenOver);
			const { reports } = rollout.counts;
			await until('several attempts to report', () => rollout.counts.reports >= reports + 3);
			assert.equal(
				machine.messages.filter(message => message === DISK_START || message === OLD_WARNING),
				[],
			);
			assert.ok(machine.process!.rolloutReport.ageSeconds! >= (8 * DAY_MS) / 1000 - 1);
		});
	}
});

following('the metrics say what the machine serves and has to serve, and count its failures', async () => {
	await withMachine(async (machine, rollout) => {
		machine.onLoad = () => 'A file is missing.';
		await machine.start(rollout, 0);
		const failures = { refused: 0, machine: 0, errors: 0, unready: 0, ended: 0 };
		const expected = { serves: 0, wanted: 0, latest: undefined, ageSeconds: undefined, isFromDisk: false, failures };
		assert.equal(machine.process!.rolloutReport, expected);
		rollout.publish(3, 0);
		rollout.set({ ...rollout.state!, phase: 'completed' });
		await until('the refusal', () => machine.process!.rolloutReport.failures.refused === 1);
		const latest = { publication: 3, phase: 'completed' };
		assert.equal(machine.process!.rolloutReport, {
			...expected,
			wanted: 3,
			latest,
			failures: { ...failures, refused: 1 },
		});
	});
});

following(
	'a machine that coordinates notices that the clock of Redis was changed, and stops nothing because of it',
	async () => {
		await withMachine(async (machine, rollout) => {
			rollout.publish(1, 0, { observationMs: 3_600_000 });
			await machine.start(rollout, 0);
			await until('the observation', () => rollout.state?.observedSince !== undefined);
			const { observedSince } = rollout.state!;
			rollout.clockChangeMs = 7_200_000;
			await until('the shift', () => rollout.state!.observedSince! > observedSince!);
			assert.ok(Math.abs(rollout.state!.observedSince! - observedSince! - rollout.clockChangeMs) < 5000);
			const { reports } = rollout.counts;
			await until('two more reports', () => rollout.counts.reports >= reports + 2);
			assert.is(rollout.state!.phase, 'running');
		});
	},
);

following('a machine warns once if another one reports with its ID, and its reports say so', async () => {
	await withMachine(async (machine, rollout) => {
		const warning = 'another server has the same machine ID';
		const other = { host: 'copy', pid: 7 };
		// During a handover, one answer may still name the previous process.
		rollout.otherProcessPerReport = [other];
		await machine.start(rollout, 0);
		const { reports } = rollout.counts;
		await until('five reports', () => rollout.counts.reports >= reports + 5);
		assert.is(rollout.latestReport!.sameIdAs, undefined);
		assert.not.ok(machine.messages.includes(warning));
		rollout.otherProcessPerReport = [other, undefined, other, other];
		await until('the report', () => rollout.latestReport!.sameIdAs !== undefined);
		assert.equal(rollout.latestReport!.sameIdAs, other);
		assert.equal(
			machine.messages.filter(message => message === warning),
			[warning],
		);
	});
});

following('the ID of a machine stays the same', async () => {
	const folder = temporaryFolder();
	const { id } = await new PublicationFolder(folder).machineId();
	assert.match(id, /-[0-9a-f]{8}$/);
	assert.equal(await new PublicationFolder(folder).machineId(), { id });
	// Simulates that the disk was copied from another machine.
	writeFileSync(path.join(folder, 'machine-id'), 'other-host-0123abcd\n');
	const { id: ownId, replacedId } = await new PublicationFolder(folder).machineId();
	assert.ok(ownId.startsWith(`${hostname()}-`), ownId);
	assert.is(replacedId, 'other-host-0123abcd');
	assert.equal(await new PublicationFolder(folder).machineId(), { id: ownId });
});

following('a machine keeps the ID of its own host name only, whatever characters the name has', async () => {
	for (const [hostName, stored] of [
		['web', 'web-1-0123abcd'],
		['web', 'web-0123abcdef'],
		['web-1', 'web-0123abcd'],
	] as const) {
		const folder = temporaryFolder();
		writeFileSync(path.join(folder, 'machine-id'), `${stored}\n`);
		const { id, replacedId } = await new PublicationFolder(folder, hostName).machineId();
		assert.match(id.slice(hostName.length), /^-[0-9a-f]{8}$/);
		assert.is(replacedId, stored);
	}
	for (const hostName of ['web', 'web-1', "anna's laptop", 'büro']) {
		const folder = temporaryFolder();
		const { id } = await new PublicationFolder(folder, hostName).machineId();
		assert.equal(await new PublicationFolder(folder, hostName).machineId(), { id });
	}
});

following('a machine with the copied disk of another one does not report that its own process ended', async () => {
	await withMachine(async (machine, rollout) => {
		await machine.folder.machineId();
		await machine.folder.beginTrial({ number: 1 });
		assert.equal(await machine.folder.unfinishedTrial(), { number: 1 });
		await machine.folder.machineId();
		assert.equal(await machine.folder.unfinishedTrial(), { number: 1 });
		writeFileSync(path.join(machine.path, 'machine-id'), 'other-host-0123abcd\n');
		await machine.folder.machineId();
		rollout.publish(1, 0);
		await machine.start(rollout, 0);
		await until('the end', () => rollout.state?.phase !== 'running');
		assert.is(rollout.state?.phase, 'completed');
	});
});

following('a successor that serves a publication does not report that it could not be loaded before', async () => {
	for (const [identity, isReported] of [
		['new', false],
		['old', true],
	] as const) {
		await withMachine(async (machine, rollout) => {
			const failure: MachineFailure = { publication: 1, identity, kind: 'refused', reason: 'a certificate is missing' };
			await machine.start(rollout, 1, true, [failure], 'new');
			assert.equal(rollout.latestReport!.failure, isReported ? failure : undefined);
		});
	}
});

following('an unfinished trial does not hide why the publication could not be loaded at the start', async () => {
	await withMachine(async (machine, rollout) => {
		await machine.folder.beginTrial({ number: 2 });
		const failure: MachineFailure = { publication: 2, kind: 'refused', reason: 'a certificate is missing' };
		await machine.start(rollout, 1, false, [failure]);
		assert.equal(rollout.latestReport!.failure, failure);
	});
});

following.run();
