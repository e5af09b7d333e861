/**
 * Ten server processes that take their configuration from a real redis-server: what is published reaches them in waves, a bad
 * publication is stopped on the first machine, and all of them serve every request meanwhile.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { rollout as rolloutEndpoint } from '../../admin/rollout.ts';
import { publisherOf } from '../../runtime/cluster/publication.ts';
import type { MachineSummary, RolloutSummary } from '../../runtime/cluster/rollout-summary.ts';
import {
	freePorts,
	runCommand,
	type ServerProcess,
	startServer,
	temporaryFolder,
	until,
	untilOutput,
} from '../harness.ts';
import { RedisServer } from './redis-server.ts';

const rollouts = suite('rollouts over Redis');
const SECRET = 'canary-of-the-secret';
const secrets = { CLUSTER_KEY: randomBytes(32).toString('base64'), NO_COLOR: '1' };

/**
 * Returns the global options that are the same in a machine's own file and in all publications, so that no handover is needed.
 */
function globalOptions(redis: RedisServer, publisher?: string): string {
	return `	threads 1
	metrics
	default_bind unix/{env.MACHINE_FOLDER}/site.sock
	cluster redis://${redis.address} {
		key {$CLUSTER_KEY}${publisher === undefined ? '' : `\n\t\tpublisher ${publisher}`}
	}`;
}

/** Maximum milliseconds of a command. `publish --wait` ends after all ten machines have loaded what is published. */
const COMMAND_LIMIT_MS = 240_000;

/** Milliseconds within which a machine must serve. All ten machines start on one computer, which may be busy. */
const START_LIMIT_MS = 120_000;

interface FleetOptions {
	/** True if the machines' own files contain no site. */
	readonly isEmpty?: boolean;
	/** The only publisher whose publications the machines accept. */
	readonly publisher?: string;
}

interface Answer {
	readonly status: number;
	readonly body: string;
}

/** A server process with a folder of its own. It listens on a Unix socket in this folder. */
class Machine {
	readonly folder: string = temporaryFolder();
	readonly file: string = path.join(this.folder, 'Configfile');
	readonly #socket: string = path.join(this.folder, 'site.sock');
	server: ServerProcess | undefined;
	/** The answers to the requests of {@link requestUntilStopped}: how often each one came. */
	readonly answers: Map<string, number> = new Map();
	#isRequesting = false;
	#requests: Promise<void> = Promise.resolve();

	constructor(redis: RedisServer, admin: number, { isEmpty = false, publisher }: FleetOptions) {
		const site = !isEmpty ? 'http://:80 {\n\trespond "own file"\n}\n' : '';
		const text = `{\n\tadmin 127.0.0.1:${admin}\n${globalOptions(redis, publisher)}\n}\n${site}`;
		writeFileSync(this.file, text);
	}

	async start(): Promise<void> {
		const env = { ...secrets, MACHINE_FOLDER: this.folder, XDG_STATE_HOME: this.folder, XDG_DATA_HOME: this.folder };
		this.server = startServer(['run', '--cluster', '-c', this.file], { env });
		const { server } = this;
		const end = performance.now() + START_LIMIT_MS;
		while (!server.output().includes('"msg":"serving"')) {
			if (server.child.exitCode !== null || performance.now() > end) {
				// The last output may arrive after the end of the process.
				await server.stop();
				throw new Error(server.output());
			}
			await new Promise(resolve => setTimeout(resolve, 50));
		}
	}

	get(): Promise<Answer> {
		return new Promise((resolve, reject) => {
			const sent = request({ socketPath: this.#socket, path: '/', headers: { host: 'x' }, agent: false }, response => {
				let body = '';
				response.setEncoding('utf8').on('data', text => {
					body += text;
				});
				response.on('end', () => resolve({ status: response.statusCode!, body }));
			});
			sent.on('error', reject);
			sent.end();
		});
	}

	/** Sends one request after the other, and counts the answers. */
	requestUntilStopped(): void {
		this.#isRequesting = true;
		this.answers.clear();
		this.#requests = (async () => {
			while (this.#isRequesting) {
				const answer = await this.get().then(
					({ status, body }) => `${status} ${body}`,
					error => `failed: ${(error as Error).message}`,
				);
				this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1);
				// Ten machines at full speed would leave no processor time for the servers.
				await new Promise(resolve => setTimeout(resolve, 5));
			}
		})();
	}

	async stopRequests(): Promise<void> {
		this.#isRequesting = false;
		await this.#requests;
	}
}

/** A file of accounts for `basic_auth`. */
const ACCOUNT_TEXT = 'ada:$2b$05$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW\n';

/** Machines with one Redis, and the folder from which an operator publishes. */
class Fleet {
	readonly redis: RedisServer;
	readonly machines: readonly Machine[];
	readonly admins: readonly number[];
	readonly #folder = temporaryFolder();

	private constructor(redis: RedisServer, admins: readonly number[], options: FleetOptions) {
		this.redis = redis;
		this.admins = admins;
		this.machines = admins.map(admin => new Machine(redis, admin, options));
		this.write('respond "not published"');
	}

	static async create(count: number, options: FleetOptions = {}): Promise<Fleet> {
		return new Fleet(await RedisServer.start(), await freePorts(count), options);
	}

	/** Starts the machines, a few at a time, because a start needs much processor time. */
	async start(): Promise<void> {
		for (let i = 0; i < this.machines.length; i += 2)
			await Promise.all(this.machines.slice(i, i + 2).map(machine => machine.start()));
	}

	async stop(): Promise<void> {
		await Promise.all(this.machines.map(machine => machine.stopRequests()));
		await Promise.all(this.machines.map(({ server }) => server?.stop()));
		await this.redis.kill();
	}

	/** Publishes a site. Returns the exit status and the output. */
	publish(site: string, ...options: readonly string[]): Promise<{ status: number | null; text: string }> {
		this.write(site);
		return this.run('publish', ...options);
	}

	/** Writes the file that is published. */
	write(site: string): void {
		writeFileSync(
			path.join(this.#folder, 'Configfile'),
			`{\n${globalOptions(this.redis)}\n}\n\nhttp://:80 {\n\t${site}\n}\n`,
		);
	}

	async run(...args: readonly string[]): Promise<{ status: number | null; text: string }> {
		const { status, stdout, stderr } = await runCommand(args, {
			cwd: this.#folder,
			env: secrets,
			limitMs: COMMAND_LIMIT_MS,
		});
		return { status, text: stdout + stderr };
	}

	async status(): Promise<RolloutSummary> {
		const { text } = await this.run('rollout', 'status', '--format', 'json');
		return JSON.parse(text) as RolloutSummary;
	}

	async untilPhase(phase: string): Promise<RolloutSummary> {
		let summary: RolloutSummary | undefined;
		await until(`the phase ${phase}`, async () => {
			summary = await this.status();
			return summary.phase === phase;
		});
		return summary!;
	}

	async bodies(): Promise<string[]> {
		return (await Promise.all(this.machines.map(machine => machine.get()))).map(({ body }) => body);
	}

	/** Waits until every machine answers with `body`. */
	async untilAllServe(body: string): Promise<void> {
		await until(`all serve ${body}`, async () => (await this.bodies()).every(one => one === body));
	}

	/** Sends requests to all machines while `action` runs. */
	async underLoad(action: () => Promise<void>): Promise<void> {
		for (const machine of this.machines) machine.requestUntilStopped();
		try {
			await action();
		} finally {
			await Promise.all(this.machines.map(machine => machine.stopRequests()));
		}
	}

	/** Returns all distinct answers that the machines gave under load, without their counts. */
	get answersUnderLoad(): string[][] {
		return this.machines.map(({ answers }) => [...answers.keys()].sort());
	}

	/** Returns the machines whose logs mention a publication. */
	machinesThatSaw(publication: number): Machine[] {
		const mark = new RegExp(
			`"(?:msg":"publication \\w+",)?"publication":${publication}\\b|publication ${publication} \\(`,
		);
		return this.machines.filter(({ server }) =>
			server!
				.output()
				.split('\n')
				.some(line => mark.test(line) && !line.includes('"msg":"rollout ')),
		);
	}
}

const machinesOf = (summary: RolloutSummary): object[] =>
	summary.machines.map(({ machine, serves, wanted, ready, lost }) => ({ machine, serves, wanted, ready, lost }));

const times = (count: number, text: string): string[] => Array.from({ length: count }, () => text);

rollouts(
	'ten machines: a good publication reaches all, a bad one is stopped on the first and nobody notices',
	async () => {
		const fleet = await Fleet.create(10);
		try {
			await fleet.start();
			await fleet.untilAllServe('own file');
			const nothing = await fleet.run('rollout', 'status');
			assert.is(nothing.status, 1);
			assert.match(nothing.text, 'Nothing has been published');
			assert.equal((await fleet.run('rollout', 'status', '--format', 'json')).status, 1);

			// A publication without faults is first loaded by one machine, and then by all.
			await fleet.underLoad(async () => {
				const { status, text } = await fleet.publish('respond "one"', '--canary', '10%', '--observe', '2s', '--wait');
				assert.is(status, 0, text);
				assert.match(text, /^Configfile is publication 1\.\n/);
				assert.match(text, '1 of 10 machines serve it.\n');
				assert.match(text, /\nAll machines serve it\.\n/);
			});
			for (const answers of fleet.answersUnderLoad) assert.equal(answers, ['200 one', '200 own file']);
			await fleet.untilAllServe('one');
			const dump = fleet.redis.cli('get', 'svc:publication:1');
			assert.not.match(dump, 'respond');

			const response = await fetch(`http://127.0.0.1:${fleet.admins[3]}/rollout`);
			const shown: unknown = await response.json();
			const validate = new Ajv2020({ strict: false }).compile(
				rolloutEndpoint.operationsByMethod.GET!.answer.schema as object,
			);
			assert.ok(validate(shown), JSON.stringify(validate.errors));
			assert.equal(machinesOf(shown as RolloutSummary), machinesOf(await fleet.status()));
			// A machine that has not decided about the rollout learns of its end with its next report.
			let metrics = '';
			await until('the metrics of a completed rollout', async () => {
				metrics = await (await fetch(`http://127.0.0.1:${fleet.admins[3]}/metrics`)).text();
				return metrics.includes('svc_rollout_phase{phase="completed"} 1\n');
			});
			for (const sample of [
				'svc_rollout_publication_served 1',
				'svc_rollout_publication_wanted 1',
				'svc_rollout_publication_latest 1',
				'svc_rollout_phase{phase="running"} 0',
				'svc_rollout_failures_total{kind="refused"} 0',
			])
				assert.ok(metrics.split('\n').includes(sample), sample);
			const [, contactAge] = /^svc_cluster_contact_age_seconds (\S+)$/m.exec(metrics)!;
			assert.ok(Number(contactAge) < 5, contactAge);

			// If no machine can load a publication, only the first machine tries to.
			await fleet.underLoad(async () => {
				const site = `log {\n\t\toutput file /proc/no/such/folder/access.log\n\t}\n\trespond "two"`;
				const { status, text } = await fleet.publish(site, '--canary', '10%', '--observe', '2s', '--wait');
				assert.is(status, 1);
				assert.match(text, /The rollout was stopped by \S+: the cause lies with the machine: .*access\.log/);
			});
			for (const answers of fleet.answersUnderLoad) assert.equal(answers, ['200 one']);
			assert.is(fleet.machinesThatSaw(2).length, 1);
			const refused = await fleet.status();
			assert.is(refused.phase, 'stopped');
			assert.equal(
				refused.machines.map(({ serves }) => serves),
				Array.from({ length: 10 }, () => 1),
			);
			assert.is(refused.machines.filter(({ failure }) => failure?.kind === 'machine').length, 1);
			const statusText = await fleet.run('rollout', 'status');
			assert.is(statusText.status, 1);
			assert.match(statusText.text, /Rollout: stopped\nReason: /);
			assert.match(
				statusText.text,
				/publication 1 {2}cannot load publication 2; the cause lies with the machine: .*access\.log/,
			);
			assert.match((await fleet.run('rollout', 'abort')).text, 'was stopped, and the machines return');

			// If a publication causes errors, the first machine returns to the previous publication without a command.
			await fleet.underLoad(async () => {
				const { status, text } = await fleet.publish(
					`respond "${SECRET}" 500`,
					'--canary',
					'10%',
					'--observe',
					'20s',
					'--wait',
				);
				assert.is(status, 1);
				assert.match(text, /The rollout was stopped by \S+: \d+\.\d % of \d+ responses were errors\./);
				await fleet.untilAllServe('one');
			});
			const failing = fleet.answersUnderLoad.filter(answers => answers.length > 1);
			assert.equal(failing, [['200 one', `500 ${SECRET}`]]);
			const failedText = (await fleet.run('rollout', 'status')).text;
			assert.match(failedText, /publication 1 {2}failed with publication 3: \d+\.\d % of \d+ responses were errors\n/);
			for (const answers of fleet.answersUnderLoad) if (answers.length === 1) assert.equal(answers, ['200 one']);
			assert.is(fleet.machinesThatSaw(3).length, 1);
			assert.not.ok(fleet.redis.cli('get', 'svc:publication:3').includes(SECRET));
			assert.match((await fleet.run('rollout', 'show')).text, `respond "${SECRET}" 500`);

			// Pauses, resumes and aborts a rollout.
			assert.is(
				(await fleet.publish('respond "four"', '--canary', '10%', '--canary', '50%', '--observe', '1s')).status,
				0,
			);
			const paused = await fleet.run('rollout', 'pause');
			assert.is(paused.status, 0, paused.text);
			assert.is((await fleet.publish('respond "five"')).status, 1);
			const pausedAgain = await fleet.run('rollout', 'pause');
			assert.is(pausedAgain.status, 1);
			assert.match(pausedAgain.text, 'is paused already');
			const atPause = (await fleet.bodies()).filter(body => body === 'four').length;
			assert.ok(atPause < 10, String(atPause));
			assert.is((await fleet.run('rollout', 'resume')).status, 0);
			await fleet.untilPhase('completed');
			await fleet.untilAllServe('four');
			assert.is((await fleet.run('rollout', 'resume')).status, 1);
			await fleet.publish('respond "five"', '--canary', '50%', '--observe', '60s');
			await until(
				'half of the machines',
				async () => (await fleet.bodies()).filter(body => body === 'five').length === 5,
			);
			assert.is((await fleet.run('rollout', 'abort')).status, 0);
			await fleet.untilAllServe('four');
			assert.is((await fleet.status()).phase, 'aborted');
			assert.is((await fleet.run('rollout', 'status')).status, 1);

			// Changes a publication in Redis between the first wave and the second.
			await fleet.publish('respond "six"', '--canary', '10%', '--observe', '3s');
			await until('the first machine', async () => (await fleet.bodies()).includes('six'));
			fleet.redis.cli('setrange', 'svc:publication:6', '60', 'altered');
			const altered = await fleet.untilPhase('stopped');
			assert.match(altered.reason!, 'Publication 6 has been altered');
			await fleet.untilAllServe('four');

			// Without Redis, a machine starts with the last good publication, even if its own file says something else.
			const first = fleet.machines[0]!;
			await first.server!.stop();
			await fleet.redis.kill();
			assert.equal(
				(await Promise.all(fleet.machines.slice(1).map(one => one.get()))).map(one => one.body),
				times(9, 'four'),
			);
			await first.start();
			assert.equal(await first.get(), { status: 200, body: 'four' });
			await untilOutput(first.server!, /warning: Redis at [\d.:]+: connection refused\./);

			// Redis has lost its data: the numbers of publications go on, and the next publication reaches all machines.
			await fleet.redis.start();
			// Publishes before any machine has connected to Redis again.
			const afterLoss = await fleet.publish('respond "five"', '--observe', '0s', '--wait');
			assert.is(afterLoss.status, 0, afterLoss.text);
			// The last publication before the loss was number 6, whose rollout was never completed.
			assert.match(afterLoss.text, 'Redis has no rollout. Waiting 4 seconds for the reports of the machines.');
			assert.match(afterLoss.text, 'publication 7.');
			await fleet.untilAllServe('five');
			for (const { server } of fleet.machines) {
				assert.not.ok(server!.output().includes(SECRET));
				assert.not.ok(server!.output().includes(secrets.CLUSTER_KEY));
			}
		} finally {
			await fleet.stop();
		}
	},
);

rollouts('machines with nothing but `cluster` in their file load sites by a handover, and return by one', async () => {
	const fleet = await Fleet.create(2, { isEmpty: true });
	try {
		await fleet.start();
		await until('both report', () => fleet.redis.cli('hlen', 'svc:rollout:reports').trim() === '2');
		const first = await fleet.publish('respond "one"', '--canary', '50%', '--observe', '1s', '--wait');
		assert.is(first.status, 0, first.text);
		assert.equal(await fleet.bodies(), times(2, 'one'));
		for (const { server } of fleet.machines) await untilOutput(server!, '"msg":"a new process has taken over"');

		// A socket that cannot be bound: the new process fails, and the old one continues to serve.
		await fleet.underLoad(async () => {
			const site = 'bind unix//proc/no-such-folder/site.sock\n\trespond "two"';
			const second = await fleet.publish(site, '--canary', '50%', '--observe', '1s', '--wait');
			assert.is(second.status, 1);
			assert.match(second.text, /The rollout was stopped by \S+: .*site\.sock/);
		});
		for (const answers of fleet.answersUnderLoad) assert.equal(answers, ['200 one']);

		// A publication with another listening socket needs a handover. It causes errors, so the machine returns to the previous
		// publication by another handover.
		const site = 'bind unix/{env.MACHINE_FOLDER}/site.sock unix/{env.MACHINE_FOLDER}/other.sock\n\trespond "three" 500';
		await fleet.underLoad(async () => {
			const third = await fleet.publish(site, '--canary', '50%', '--observe', '60s', '--wait');
			assert.is(third.status, 1);
			assert.match(third.text, 'responses were errors');
			await fleet.untilAllServe('one');
		});
		const failing = fleet.answersUnderLoad.filter(answers => answers.length > 1);
		assert.equal(failing, [['200 one', '500 three']]);

		// The process ends during the trial. After its restart, the machine serves the previous publication, and the rollout stops.
		await fleet.publish('respond "four"', '--canary', '50%', '--observe', '10m');
		let killed: Machine | undefined;
		await until('the first machine', async () => {
			const bodies = await fleet.bodies();
			killed = fleet.machines[bodies.indexOf('four')];
			return killed !== undefined;
		});
		const { machines } = await fleet.status();
		process.kill(machines.find(({ serves }) => serves === 4)!.pid, 'SIGKILL');
		await until('the end of the machine', () => killed!.server!.child.exitCode !== null);
		await killed!.start();
		const ended = await fleet.untilPhase('stopped');
		assert.is(ended.reason, 'the process ended unexpectedly while it served the publication');
		assert.equal(await fleet.bodies(), times(2, 'one'));
	} finally {
		await fleet.stop();
	}
});

rollouts('a machine that cannot load the publication at its start serves its last good one until it can', async () => {
	const fleet = await Fleet.create(2);
	try {
		await fleet.start();
		await fleet.untilAllServe('own file');
		const first = await fleet.publish('respond "one"', '--observe', '0s', '--wait');
		assert.is(first.status, 0, first.text);
		const [machine] = fleet.machines;
		const lastGoodFile = path.join(machine!.folder, 'svc/publications/last-good.json');
		await until('the publication on the disk', () => existsSync(lastGoodFile));
		await machine!.server!.stop();

		// The second publication names a file, which is deleted after the other machine has loaded the publication.
		const accountFile = path.join(temporaryFolder(), 'accounts');
		writeFileSync(accountFile, ACCOUNT_TEXT);
		const site = `basic_auth /private/* {\n\t\thtpasswd ${accountFile}\n\t}\n\trespond "two"`;
		const second = await fleet.publish(site, '--observe', '0s', '--wait');
		assert.is(second.status, 0, second.text);
		// The commands that follow compile this file, which must not need the deleted file of accounts either.
		fleet.write('respond "not published"');
		rmSync(accountFile);
		// The configuration of the last good publication can be loaded, but its Admin API cannot listen.
		const listener = createServer().listen(fleet.admins[0], '127.0.0.1');
		await once(listener, 'listening');
		const failed = await machine!.start().then(
			() => 'started',
			(error: Error) => error.message,
		);
		assert.match(failed, /\nerror: .*the address is in use\./);
		await new Promise(resolve => listener.close(resolve));
		await machine!.start();
		assert.is((await machine!.get()).body, 'one');
		const warning =
			/warning: Publication 2 cannot be loaded; the cause lies with the machine: .*accounts.*[^.]\. The machine starts with publication 1, the last good one on the disk\.\n/;
		await untilOutput(machine!.server!, warning);
		await untilOutput(
			machine!.server!,
			/"msg":"publication refused","publication":2,"serving":1,"reason":"the cause lies with the machine: .*accounts/,
		);
		await until('the report of the failure', async () =>
			(await fleet.status()).machines.some(
				({ serves, failure }) => serves === 1 && failure?.publication === 2 && failure.kind === 'machine',
			),
		);
		assert.match(
			(await fleet.run('rollout', 'status')).text,
			/publication 1 {2}cannot load publication 2; the cause lies with the machine: .*accounts/,
		);

		// Once the file exists again, the machine loads the publication without a command.
		writeFileSync(accountFile, ACCOUNT_TEXT);
		await fleet.untilAllServe('two');
		await until(
			'the second publication on the disk',
			() => JSON.parse(readFileSync(lastGoodFile, 'utf8')).number === 2,
		);

		// Without another publication on its disk, the machine does not start.
		await machine!.server!.stop();
		rmSync(accountFile);
		const refused = await machine!.start().then(
			() => 'started',
			(error: Error) => error.message,
		);
		assert.match(refused, /\nerror: publication 2 \(.*Configfile\) is refused: 1 error/);
	} finally {
		await fleet.stop();
	}
});

rollouts(
	'a machine whose new program is not confirmed returns to its publication, and loads the next one',
	async () => {
		const fleet = await Fleet.create(1);
		try {
			await fleet.start();
			const first = await fleet.publish('respond "one"', '--observe', '0s', '--wait');
			assert.is(first.status, 0, first.text);
			const { output } = fleet.machines[0]!.server!;
			const control = (...args: readonly string[]) =>
				runCommand([...args, '--address', `127.0.0.1:${fleet.admins[0]}`], { env: secrets });
			const upgraded = await control('upgrade', '--confirm', '1h');
			assert.is(upgraded.status, 0, upgraded.stderr);
			const [, newPid] = /^Process (\d+) has taken over/.exec(upgraded.stdout)!;
			await until(
				'the report of the new process',
				async () => (await fleet.status()).machines[0]!.pid === Number(newPid),
			);
			const reverted = await control('reload', '--revert');
			assert.is(reverted.status, 0, reverted.stderr);
			assert.equal(await fleet.bodies(), ['one']);
			let machine: MachineSummary | undefined;
			await until('the report of the process that has returned', async () => {
				[machine] = (await fleet.status()).machines;
				return machine!.pid !== Number(newPid);
			});
			assert.equal([machine!.serves, machine!.wanted, machine!.failure], [1, 1, undefined]);
			assert.not.match(output(), '"msg":"publication loaded","publication":1,"before":1');
			const second = await fleet.publish('respond "two"', '--observe', '0s', '--wait');
			assert.is(second.status, 0, second.text);
			assert.equal(await fleet.bodies(), ['two']);
		} finally {
			await fleet.stop();
		}
	},
);

rollouts('two servers with the same machine ID warn in their logs and in the status of the rollout', async () => {
	const fleet = await Fleet.create(2);
	try {
		const [first, second] = fleet.machines as [Machine, Machine];
		const idFile = ({ folder }: Machine) => path.join(folder, 'svc/publications/machine-id');
		for (const machine of [first, second]) mkdirSync(path.dirname(idFile(machine)), { recursive: true });
		// The first machine's disk seems to be copied from another host, as its log reports. The second machine has the first's disk.
		writeFileSync(idFile(first), 'other-host-0123abcd\n');
		await first.start();
		assert.match(
			first.server!.output(),
			`warning: The machine ID on the disk, other-host-0123abcd, is not of this host name. This machine counts as a new one, ${readFileSync(idFile(first), 'utf8').trim()}.\n`,
		);
		copyFileSync(idFile(first), idFile(second));
		await second.start();
		assert.is((await fleet.publish('respond "one"', '--observe', '0s', '--wait')).status, 0);
		let machines: RolloutSummary['machines'] = [];
		await until('the warning', async () => {
			({ machines } = await fleet.status());
			return machines.some(one => one.same_id_as !== undefined);
		});
		assert.is(machines.length, 1);
		const id = readFileSync(idFile(first), 'utf8').trim();
		const { text } = await fleet.run('rollout', 'status');
		assert.match(
			text,
			new RegExp(
				`\\nWarning: ${id} is the ID of two servers: process \\d+ on \\S+ and process \\d+ on \\S+\\. A rollout`,
			),
		);
		await until('both to log it', () =>
			[first, second].every(({ server }) =>
				server!.output().includes(`"msg":"another server has the same machine ID","machine":"${id}"`),
			),
		);
	} finally {
		await fleet.stop();
	}
});

rollouts(
	'a machine that trusts a publisher refuses what somebody with the key of the cluster has published',
	async () => {
		const signingKey = generateKeyPairSync('ed25519').privateKey;
		const keyFile = path.join(temporaryFolder(), 'publisher.pem');
		writeFileSync(keyFile, signingKey.export({ format: 'pem', type: 'pkcs8' }));
		const fleet = await Fleet.create(1, { publisher: publisherOf(signingKey) });
		try {
			await fleet.start();
			const unsigned = await fleet.publish('respond "unsigned"', '--observe', '0s', '--wait');
			assert.is(unsigned.status, 1);
			assert.match(unsigned.text, /The rollout was stopped by \S+: Publication 1 is not signed\./);
			assert.equal(await fleet.bodies(), ['own file']);
			const signed = await fleet.publish('respond "signed"', '--observe', '0s', '--wait', '--sign-with', keyFile);
			assert.is(signed.status, 0, signed.text);
			assert.equal(await fleet.bodies(), ['signed']);

			// The machine's own file cannot replace the publication, and a new process continues with the publication.
			const machine = fleet.machines[0]!;
			const control = (command: string, ...options: readonly string[]) =>
				runCommand([command, '-c', machine.file, ...options], {
					env: { ...secrets, MACHINE_FOLDER: machine.folder },
				});
			assert.match((await control('reload', '--handover')).stderr, 'takes its configuration from its cluster');
			assert.is((await control('restart')).status, 0);
			assert.equal(await fleet.bodies(), ['signed']);
			assert.match((await control('reload', '--handover')).stderr, 'takes its configuration from its cluster');
			const next = await fleet.publish('respond "next"', '--observe', '0s', '--wait', '--sign-with', keyFile);
			assert.is(next.status, 0, next.text);
			assert.equal(await fleet.bodies(), ['next']);
			assert.match((await fleet.run('rollout', 'abort')).text, 'To undo it, publish the earlier configuration again.');

			// While the first publication after a data loss is on trial, a machine starts with its own file, not with the one on its disk.
			await machine.server!.stop();
			fleet.redis.cli('flushall');
			assert.is((await fleet.publish('respond "after loss"', '--observe', '0s', '--sign-with', keyFile)).status, 0);
			assert.is((await fleet.run('rollout', 'pause')).status, 0);
			await machine.start();
			assert.equal(await fleet.bodies(), ['own file']);
			await until('its report', () => fleet.redis.cli('hlen', 'svc:rollout:reports').trim() === '1');
			assert.is((await fleet.run('rollout', 'resume')).status, 0);
			await fleet.untilAllServe('after loss');
			assert.not.match(machine.server!.output(), '"msg":"publication loaded","publication":0');
		} finally {
			await fleet.stop();
		}
	},
);

/** Returns functions that control the process of the only machine of a fleet. */
function controlsOf(fleet: Fleet) {
	const control = async (target: string, body?: object): Promise<{ status: number; text: string }> => {
		const response = await fetch(`http://127.0.0.1:${fleet.admins[0]}${target}`, {
			method: 'POST',
			// A kept connection would belong to a process that may end just when the next request is sent.
			headers: { 'content-type': 'application/json', connection: 'close' },
			...(body && { body: JSON.stringify(body) }),
		});
		return { status: response.status, text: await response.text() };
	};
	const servingPid = async (): Promise<number> => (await fleet.status()).machines[0]!.pid;
	/**
	 * Replaces the process by one that awaits its confirmation. Resolves to the PID of the new process once it reports to Redis.
	 */
	const upgrade = async (terms: object): Promise<number> => {
		const { status, text } = await control('/upgrade', { confirm: '1h', ...terms });
		assert.is(status, 200, text);
		const { pid } = (JSON.parse(text) as { readonly handover: { readonly pid: number } }).handover;
		await until('the report of the new process', async () => (await servingPid()) === pid);
		return pid;
	};
	return { control, servingPid, upgrade };
}

rollouts('an upgraded process that ends while it serves a publication on trial stops the rollout', async () => {
	const fleet = await Fleet.create(1);
	const { upgrade } = controlsOf(fleet);
	try {
		await fleet.start();
		assert.is((await fleet.publish('respond "one"', '--observe', '0s', '--wait')).status, 0);
		const upgraded = await upgrade({});
		assert.is((await fleet.publish('respond "two"', '--observe', '1h')).status, 0);
		await fleet.untilAllServe('two');
		process.kill(upgraded, 'SIGKILL');
		const ended = await fleet.untilPhase('stopped');
		assert.is(ended.reason, 'the process ended unexpectedly while it served the publication');
		await fleet.untilAllServe('one');
	} finally {
		await fleet.stop();
	}
});

rollouts('after an upgrade is undone, the machine still reports the publication that failed on it', async () => {
	const fleet = await Fleet.create(1);
	const { control, servingPid, upgrade } = controlsOf(fleet);
	try {
		await fleet.start();
		assert.is((await fleet.publish('respond "one"', '--observe', '0s', '--wait')).status, 0);
		const upgraded = await upgrade({});
		// The publication names a file that is deleted before the machine loads it.
		const accountFile = path.join(temporaryFolder(), 'accounts');
		writeFileSync(accountFile, ACCOUNT_TEXT);
		process.kill(upgraded, 'SIGSTOP');
		const published = await fleet.publish(`basic_auth {\n\t\thtpasswd ${accountFile}\n\t}`, '--observe', '0s');
		rmSync(accountFile);
		process.kill(upgraded, 'SIGCONT');
		fleet.write('respond "not published"');
		assert.is(published.status, 0, published.text);
		await fleet.untilPhase('stopped');
		const failureBefore = (await fleet.status()).machines[0]!.failure;
		assert.is(failureBefore?.publication, 2);
		assert.is((await control('/load/revert')).status, 200);
		await until('the report of the previous program', async () => (await servingPid()) !== upgraded);
		assert.equal((await fleet.status()).machines[0]!.failure, failureBefore);
	} finally {
		await fleet.stop();
	}
});

rollouts('an upgrade that awaits its confirmation is still undone after a publication', async () => {
	const fleet = await Fleet.create(1);
	const [machine] = fleet.machines;
	const { control, servingPid, upgrade } = controlsOf(fleet);
	try {
		await fleet.start();
		assert.is((await fleet.publish('respond "one"', '--observe', '0s', '--wait')).status, 0);

		// The new process loads a publication. It still awaits its confirmation, and can be undone.
		const first = await upgrade({});
		assert.is((await fleet.publish('respond "two"', '--observe', '0s', '--wait')).status, 0);
		await fleet.untilAllServe('two');
		assert.match((await control('/upgrade', {})).text, '"confirmation_pending"');
		const reverted = await control('/load/revert');
		assert.is(reverted.status, 200, reverted.text);
		await until('the previous program', async () => (await servingPid()) !== first);
		await fleet.untilAllServe('two');
		assert.match((await control('/load/confirm')).text, '"nothing_to_confirm"');

		// Too many errors after a publication undo the upgrade, too.
		const second = await upgrade({ max_error_rate: 0.5 });
		await fleet.underLoad(async () => {
			const failing = await fleet.publish('respond "three" 500', '--observe', '1m', '--max-error-rate', '1');
			assert.is(failing.status, 0, failing.text);
			await until('the previous program', async () => (await servingPid()) !== second);
		});
		await untilOutput(machine!.server!, /"msg":"configuration rolled back",.*responses were errors/);
		assert.is((await fleet.run('rollout', 'abort')).status, 0);
		await fleet.untilAllServe('two');

		// A publication that needs another process waits for the confirmation.
		await upgrade({});
		const site = 'bind unix/{env.MACHINE_FOLDER}/site.sock unix/{env.MACHINE_FOLDER}/other.sock\n\trespond "four"';
		assert.is((await fleet.publish(site, '--observe', '0s')).status, 0);
		await until('the entry', () => machine!.server!.output().includes('"msg":"publication postponed"'));
		assert.equal(await fleet.bodies(), ['two']);
		assert.is((await control('/load/confirm')).status, 200);
		await fleet.untilPhase('completed');
		assert.equal(await fleet.bodies(), ['four']);

		// But a machine that needs another process to return to the previous publication does not wait for the confirmation.
		assert.is((await fleet.publish('respond "five"', '--observe', '1h')).status, 0);
		await fleet.untilAllServe('five');
		const third = await upgrade({});
		assert.is((await fleet.run('rollout', 'abort')).status, 0);
		await fleet.untilAllServe('four');
		assert.is.not(await servingPid(), third);
		await untilOutput(machine!.server!, '"cause":"publication 5 is withdrawn"');
	} finally {
		await fleet.stop();
	}
});

rollouts(
	'a port that is in use on the machine stops the rollout, and the report names the machine as the cause',
	async () => {
		const fleet = await Fleet.create(2);
		const occupyingServer = createServer().listen(0, '127.0.0.1');
		try {
			await once(occupyingServer, 'listening');
			const { port } = occupyingServer.address() as { port: number };
			await fleet.start();
			await fleet.untilAllServe('own file');
			// Another listener needs another process, which cannot bind the port.
			const sites = `respond "two"\n}\nhttp://:${port} {\n\tbind 127.0.0.1\n\trespond "two"`;
			const { status, text } = await fleet.publish(sites, '--canary', '50%', '--observe', '0s', '--wait');
			assert.is(status, 1, text);
			const cause = `the cause lies with the machine: .*127\\.0\\.0\\.1:${port}: the address is in use`;
			assert.match(text, new RegExp(`The rollout was stopped by \\S+: ${cause}`));
			const [failed] = (await fleet.status()).machines.filter(({ failure }) => failure !== undefined);
			assert.is(failed?.failure?.kind, 'machine');
			assert.match(failed!.failure!.reason, /^Cannot listen on /);
			assert.match(
				(await fleet.run('rollout', 'status')).text,
				/own file {2,}cannot load publication 1; the cause lies/,
			);
			assert.is(fleet.machinesThatSaw(1).length, 1);
			await fleet.untilAllServe('own file');
		} finally {
			occupyingServer.close();
			await fleet.stop();
		}
	},
);

rollouts('a machine that starts without Redis says how old its publication is, until Redis answers', async () => {
	const fleet = await Fleet.create(1);
	try {
		await fleet.start();
		const { status, text } = await fleet.publish('respond "one"', '--observe', '0s', '--wait');
		assert.is(status, 0, text);
		const [machine] = fleet.machines;
		await until('the publication on the disk', () =>
			existsSync(path.join(machine!.folder, 'svc/publications/last-good.json')),
		);
		await machine!.server!.stop();
		await fleet.redis.kill();
		await machine!.start();
		const admin = `http://127.0.0.1:${fleet.admins[0]}`;
		const publication = async (): Promise<{ number: number; age_seconds: number; from_disk: boolean }> => {
			const answer = (await (await fetch(`${admin}/cluster`)).json()) as {
				publication: Awaited<ReturnType<typeof publication>>;
			};
			return answer.publication;
		};
		const sample = async (name: string): Promise<number> => {
			const metrics = await (await fetch(`${admin}/metrics`)).text();
			return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
		};
		const line =
			/"msg":"serving the last good publication from the disk","publication":1,"published_at":"20.*Z","age_seconds":\d+/;
		await until('the log entry', () => line.test(machine!.server!.output()));
		const { age_seconds: age, ...rest } = await publication();
		assert.equal(rest, { number: 1, from_disk: true });
		assert.ok(age >= 0 && age < 3600, String(age));
		assert.is(await sample('svc_rollout_publication_from_disk'), 1);
		assert.ok((await sample('svc_rollout_publication_age_seconds')) >= age);
		await fleet.redis.start();
		await until('an answer of Redis', async () => !(await publication()).from_disk);
		assert.is(await sample('svc_rollout_publication_from_disk'), 0);
	} finally {
		await fleet.stop();
	}
});

rollouts.run();
