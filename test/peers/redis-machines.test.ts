/** Several servers that share a redis-server: they make only one certificate order, and serve even without Redis. */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import { connect } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, runCommand, type ServerProcess, serve, temporaryFolder, until, untilOutput } from '../harness.ts';
import { scriptedAcmeServer } from '../runtime/certificates/scripted-acme-server.ts';
import { RedisServer } from './redis-server.ts';

const machines = suite('machines that share Redis');
const NAME = 'fleet.example.com';
const PASSWORD = 'canary-of-the-password';
const secrets = { CLUSTER_KEY: randomBytes(32).toString('base64'), REDIS_PASSWORD: PASSWORD };

/** Number of machines that start at the same time. */
const MACHINES = 10;

interface Machine {
	readonly http: number;
	readonly https: number;
	readonly file: string;
	server?: ServerProcess;
}

async function makeMachine(global: string): Promise<Machine> {
	const [http, https] = (await freePorts(2)) as [number, number];
	const file = path.join(temporaryFolder(), 'Configfile');
	const text = `{
	admin off
	threads 1
	default_bind 127.0.0.1
	http_port ${http}
	https_port ${https}
	${global}
}
https://${NAME}:${https} {
	respond "hello"
}
http://127.0.0.1:${http} {
	respond "plain"
}
`;
	writeFileSync(file, text);
	return { http, https, file };
}

async function start(machine: Machine): Promise<void> {
	machine.server = await serve(['-c', machine.file], machine.http, { env: { ...secrets, NO_COLOR: '1' } });
}

/** Returns the fingerprint of the certificate that a machine serves; undefined if it has none. */
function servedFingerprint(port: number): Promise<string | undefined> {
	return new Promise(resolve => {
		const socket = connect({ host: '127.0.0.1', port, servername: NAME, rejectUnauthorized: false }, () => {
			resolve(socket.getPeerX509Certificate()?.fingerprint256);
			socket.destroy();
		});
		socket.on('error', () => resolve(undefined));
	});
}

function get(port: number, target: string, host: string): Promise<string> {
	return new Promise((resolve, reject) => {
		request({ host: '127.0.0.1', port, path: target, headers: { host }, agent: false }, response => {
			let body = '';
			response.setEncoding('utf8').on('data', text => {
				body += text;
			});
			response.on('end', () => resolve(body));
		})
			.on('error', reject)
			.end();
	});
}

machines('ten machines that start together order one certificate, and any of them answers its challenge', async () => {
	const redis = await RedisServer.start(['--requirepass', PASSWORD]);
	const folder = temporaryFolder();
	const acme = await scriptedAcmeServer(folder);
	const cluster = `cluster redis://${redis.address} {
		password {$REDIS_PASSWORD}
		key {$CLUSTER_KEY}
		timeout 100ms
	}
	storage redis
	acme_ca ${acme.directory}
	acme_ca_root ${acme.rootFile}`;
	const fleet = await Promise.all(Array.from({ length: MACHINES }, () => makeMachine(cluster)));
	acme.faults.challenges = ['http-01'];
	let answers: string[] = [];
	let allServe: Promise<unknown> | undefined;
	acme.faults.validate = async ({ token, keyAuthorization }) => {
		const target = `/.well-known/acme-challenge/${token}`;
		// A machine that is still starting does not answer yet.
		await allServe;
		answers = await Promise.all(fleet.map(({ http }) => get(http, target, NAME)));
		return answers.every(answer => answer === keyAuthorization);
	};
	try {
		allServe = Promise.all(fleet.map(start));
		await allServe;
		for (const { https } of fleet) {
			await until(`port ${https} has a certificate`, async () => (await servedFingerprint(https)) !== undefined);
		}
		assert.is(acme.orders.length, 1);
		assert.is(acme.accounts, 1);
		assert.is(answers.length, MACHINES);
		const fingerprints = await Promise.all(fleet.map(({ https }) => servedFingerprint(https)));
		assert.is(new Set(fingerprints).size, 1);
		const dump = readFileSync(redis.dump(), 'latin1');
		assert.ok(dump.includes(`${NAME}.key`));
		assert.not.match(dump, /PRIVATE KEY|BEGIN CERTIFICATE|"location"/);

		// Redis stops responding: all machines keep serving, and a challenge lookup waits no longer than the time-out.
		redis.signal('SIGSTOP');
		assert.equal(await Promise.all(fleet.map(({ https }) => servedFingerprint(https))), fingerprints);
		assert.is(await get(fleet[0]!.http, '/', '127.0.0.1'), 'plain');
		const begin = performance.now();
		await get(fleet[0]!.http, '/.well-known/acme-challenge/unknown', '127.0.0.1');
		assert.ok(performance.now() - begin < 1500, `${performance.now() - begin} ms`);
		await redis.kill();
		assert.equal(await Promise.all(fleet.map(({ https }) => servedFingerprint(https))), fingerprints);

		// A machine that restarts without Redis serves the sites that need no certificate, and orders none.
		await fleet[2]!.server!.stop();
		await start(fleet[2]!);
		assert.is(await get(fleet[2]!.http, '/', '127.0.0.1'), 'plain');
		assert.is(acme.orders.length, 1);
		for (const { server } of fleet) {
			assert.not.match(server!.output(), /canary|PRIVATE KEY/);
			assert.not.ok(server!.output().includes(secrets.CLUSTER_KEY));
		}
		await untilOutput(fleet[2]!.server!, 'Redis is unavailable; the server continues without it');
	} finally {
		await Promise.all(fleet.map(({ server }) => server?.stop()));
		await redis.kill();
		await acme.close();
	}
});

machines('a store moves from a folder to Redis and back, by migration or by archive', async () => {
	const redis = await RedisServer.start();
	const folder = temporaryFolder();
	const of = (file: string, text: string): string => {
		writeFileSync(path.join(folder, file), text);
		return path.join(folder, file);
	};
	const site = 'http://:8080 {\n\trespond ok\n}\n';
	const files = of('files', `{\n\tstorage file_system ${folder}/store\n}\n${site}`);
	const shared = of(
		'redis',
		`{\n\tcluster redis://${redis.address} {\n\t\tkey {$CLUSTER_KEY}\n\t}\n\tstorage redis\n}\n${site}`,
	);
	const run = async (...args: string[]) => {
		const { status, stdout, stderr } = await runCommand(args, { cwd: folder, env: secrets });
		return { status, text: (stdout + stderr).replaceAll(folder, 'FOLDER').replaceAll(redis.address, 'REDIS') };
	};
	const { openFileStore } = await import('../../runtime/storage/file-store.ts');
	const store = openFileStore(path.join(folder, 'store'));
	await store.write('certificates/a/a/a.key', 'canary of the key');
	await store.write('pki/authorities/local/root.crt', 'root');
	assert.equal(await run('storage', 'migrate', '-c', shared, '--from', `${folder}/store`), {
		status: 0,
		text: '2 values copied from file_system FOLDER/store to redis REDIS.\n',
	});
	assert.not.match(readFileSync(redis.dump(), 'latin1'), /canary/);
	assert.equal(await run('storage', 'migrate', '-c', shared, '--from', `${folder}/store`), {
		status: 0,
		text: '0 values copied from file_system FOLDER/store to redis REDIS; 2 were already there.\n',
	});
	await store.write('pki/authorities/local/root.crt', 'another root');
	await store.write('new', 'value');
	const refused = await run('storage', 'migrate', '-c', shared, '--from', `${folder}/store`);
	assert.is(refused.status, 1);
	assert.match(
		refused.text,
		/has other values at `pki\/authorities\/local\/root\.crt`\. Nothing was written; .* --replace\./,
	);
	assert.is(redis.cli('exists', 'svc:store:new').trim(), '0');
	assert.is((await run('storage', 'migrate', '-c', shared, '--from', `${folder}/store`, '--replace')).status, 0);
	assert.is((await run('storage', 'migrate', '-c', shared, '--to', `${folder}/back`)).status, 0);
	const back = openFileStore(path.join(folder, 'back'));
	assert.equal(await back.list(''), await store.list(''));
	for (const key of await store.list('')) assert.equal(await back.read(key), await store.read(key));

	assert.is((await run('storage', 'export', '-c', shared, '-o', 'archive.tar')).status, 0);
	redis.cli('flushall');
	assert.equal(await run('storage', 'import', '-c', shared, '-i', 'archive.tar'), {
		status: 0,
		text: '3 values imported into redis REDIS.\n',
	});
	assert.is((await run('storage', 'migrate', '-c', shared, '--from', `${folder}/store`)).status, 0);

	for (const args of [[], ['--from', 'store', '--to', 'back'], ['--from', 'nowhere']]) {
		assert.is((await run('storage', 'migrate', '-c', shared, ...args)).status, 1);
	}
	assert.match((await run('storage', 'migrate', '-c', files, '--to', `${folder}/store`)).text, /is itself the store/);
	await redis.kill();
	const gone = await run('storage', 'export', '-c', shared, '-o', 'gone.tar');
	assert.is(gone.status, 1);
	assert.match(gone.text, /cannot be read from Redis: connection refused\./);
});

machines.run();
