/** Clients whose ports change, in a whole server: the kernel then gives their datagrams to another thread than before. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { freePorts, runCommand, type ServerProcess, serve, temporaryFolder } from '../../../harness.ts';
import { certificate, frame, headers, openControlStream, POST, response } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { Nat } from './nat.ts';
import { connect, type QuicClient } from './quic-client.ts';

const test = http3Suite('port changes and threads');

const CLIENTS = 8;
const ROUNDS = 4;
const folder = temporaryFolder();
const file = path.join(folder, 'Configfile');
let server: ServerProcess;
let port = 0;
let admin = 0;

function configuration(answer: string): string {
	return `{
	admin 127.0.0.1:${admin}
	metrics
	threads 3
	auto_https disable_redirects
}
https://localhost:${port} {
	bind 127.0.0.1
	tls ${folder}/c.pem ${folder}/k.pem
	log {
		output file ${folder}/access.log
	}
	respond "${answer} {http.request.remote.port}"
}
`;
}

test.before(async () => {
	[port, admin] = (await freePorts(2)) as [number, number];
	const { chain, key } = await certificate;
	writeFileSync(path.join(folder, 'c.pem'), chain);
	writeFileSync(path.join(folder, 'k.pem'), key);
	writeFileSync(file, configuration('one'));
	server = await serve(['-c', file], port, { cwd: folder });
});

test.after(async () => {
	await server.stop();
});

async function metric(name: string): Promise<number> {
	const text = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
	return Number(new RegExp(`^${name.replaceAll(/[{}]/g, '\\$&')} (.*)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}

interface Visit {
	readonly nat: Nat;
	readonly client: QuicClient;
}

async function ask({ client, nat }: Visit, answer: string): Promise<void> {
	const { body } = await response(client, client.open().write(headers(), true));
	assert.is(body, `${answer} ${nat.outerPort}`);
}

/** Opens connections, each through a NAT of its own, and sends a request on each. */
function openVisits(count: number, answer: string): Promise<Visit[]> {
	return Promise.all(
		Array.from({ length: count }, async () => {
			const nat = await Nat.start(port);
			const client = await connect(nat.port);
			openControlStream(client);
			await ask({ nat, client }, answer);
			return { nat, client };
		}),
	);
}

function close(visits: readonly Visit[]): void {
	for (const { nat, client } of visits) {
		client.close();
		nat.close();
	}
}

test('connections follow their clients from thread to thread, also after a reload', async () => {
	const visits = await openVisits(CLIENTS, 'one');
	try {
		for (let round = 0; round < ROUNDS; round++) {
			if (round === ROUNDS / 2) {
				writeFileSync(file, configuration('two'));
				const { status, stderr } = await runCommand(['reload', '-c', file, '--address', `127.0.0.1:${admin}`], {});
				assert.is(status, 0, stderr);
			}
			const answer = round < ROUNDS / 2 ? 'one' : 'two';
			await Promise.all(
				visits.map(async visit => {
					await visit.nat.rebind();
					// The second request arrives at the new port as well.
					for (let i = 0; i < 2; i++) await ask(visit, answer);
				}),
			);
		}
		assert.is(await metric('svc_http3_port_changes_total'), CLIENTS * ROUNDS);
		assert.is(await metric('svc_http3_handshakes_total{result="ok"}'), CLIENTS);
		assert.is(await metric('svc_http3_refused_total{reason="moved"}'), 0);
		const received = await metric('svc_http3_datagrams_received_total');
		const sent = visits.reduce((sum, { nat }) => sum + nat.sentCount, 0);
		// Datagrams that one thread passes to another are counted once.
		assert.ok(received <= sent, `${received} of ${sent}`);
	} finally {
		close(visits);
	}
});

test('large uploads pass through another thread', async () => {
	const visits = await openVisits(CLIENTS / 2, 'two');
	try {
		await Promise.all(
			visits.map(async ({ nat, client }) => {
				await nat.rebind();
				const upload = Buffer.concat([headers(POST), frame(0, Buffer.alloc(100_000))]);
				for (let i = 0; i < 5; i++)
					assert.is((await response(client, client.open().write(upload, true))).status, '200');
			}),
		);
	} finally {
		close(visits);
	}
});

test.run();
