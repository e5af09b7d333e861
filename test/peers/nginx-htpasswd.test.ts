/**
 * Files made by Apache's htpasswd, read by `basic_auth` and by nginx's `auth_basic_user_file`, and changed while both servers
 * run.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, runCommand, serve, temporaryFolder, until } from '../harness.ts';
import { startNginx } from './nginx-process.ts';

const peers = suite('files of accounts, beside nginx');

/** Returns the line of an account, as Apache's htpasswd writes it. */
function htpasswd(flags: string, user: string, password: string): string {
	return `${execFileSync('htpasswd', [flags, user, password], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()}\n`;
}

const LOGIN_ATTEMPTS: readonly (readonly [user: string, password: string])[] = [
	['ann', 'one'],
	['ann', 'two'],
	['bob', 'two'],
	['bob', ''],
	['nobody', 'one'],
	['', 'one'],
	['ann ', 'one'],
	['Ann', 'one'],
	['ann:one', ''],
	['#ann', 'one'],
	['jörg', 'grün'],
];

async function statuses(port: number): Promise<number[]> {
	const found: number[] = [];
	for (const [user, password] of LOGIN_ATTEMPTS) found.push(await login(port, user, password));
	return found;
}

async function login(port: number, user: string, password: string): Promise<number> {
	const credentials = Buffer.from(`${user}:${password}`).toString('base64');
	const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { Authorization: `Basic ${credentials}` } });
	await response.arrayBuffer();
	return response.status;
}

peers('the same passwords are accepted, before and after the file changes', async () => {
	const [port, nginxPort] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	mkdirSync(path.join(folder, 'html'));
	writeFileSync(path.join(folder, 'html/index.html'), 'ok');
	const accounts = path.join(folder, 'accounts');
	const jorg = htpasswd('-nbB', 'jörg', 'grün');
	writeFileSync(accounts, `# made by htpasswd\n${htpasswd('-nbB', 'ann', 'one')}${jorg}`);
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	threads 2
}
http://127.0.0.1:${port} {
	basic_auth {
		htpasswd accounts
	}
	respond "ok"
}
`,
	);
	const nginx = await startNginx(
		folder,
		nginxPort,
		`access_log off;
	server {
		listen 127.0.0.1:${nginxPort};
		root ${folder}/html;
		auth_basic "restricted";
		auth_basic_user_file ${accounts};
	}`,
	);
	const server = await serve(['-c', 'Configfile'], port, { cwd: folder });
	try {
		assert.equal(await statuses(port), await statuses(nginxPort));
		assert.is(await login(port, 'ann', 'one'), 200);
		assert.is(await login(port, 'jörg', 'grün'), 200);

		// Replaces the whole file: one account is added and another removed.
		writeFileSync(`${accounts}.new`, htpasswd('-nbB', 'bob', 'two'));
		renameSync(`${accounts}.new`, accounts);
		await until('bob is admitted', async () => (await login(port, 'bob', 'two')) === 200);
		await until('ann is refused by all threads', async () => {
			for (let i = 0; i < 8; i++) if ((await login(port, 'ann', 'one')) !== 401) return false;
			return true;
		});
		assert.equal(await statuses(port), await statuses(nginxPort));

		// Edits the file in place with Apache's program.
		execFileSync('htpasswd', ['-bB', accounts, 'ann', 'two'], { stdio: 'ignore' });
		await until('ann is admitted with another password', async () => (await login(port, 'ann', 'two')) === 200);
		assert.equal(await statuses(port), await statuses(nginxPort));

		// Adds an account with a weak hash. nginx admits the account's user; svc refuses the file and continues to use its
		// previous version.
		writeFileSync(accounts, readFileSync(accounts, 'utf8') + htpasswd('-nbm', 'eve', 'three'));
		assert.is(await login(nginxPort, 'eve', 'three'), 200);
		await until('the file is refused', async () => {
			assert.is(await login(port, 'eve', 'three'), 401);
			return server.output().includes('MD5-crypt');
		});
		assert.is(await login(port, 'bob', 'two'), 200);
		assert.not.match(server.output(), /\$apr1\$|\$2y\$/);
	} finally {
		await server.stop();
		await nginx.stop();
	}
});

for (const [flags, what] of [
	['-nbm', 'MD5-crypt'],
	['-nbs', 'SHA-1'],
	['-nbd', 'neither'],
	['-nbp', 'neither'],
] as const) {
	peers(`validate refuses what htpasswd ${flags} writes, and names the line`, async () => {
		const folder = temporaryFolder();
		writeFileSync(path.join(folder, 'accounts'), htpasswd('-nbB', 'ann', 'one') + htpasswd(flags, 'eve', 'secret3'));
		writeFileSync(
			path.join(folder, 'Configfile'),
			'http://127.0.0.1:8080 {\n\tbasic_auth {\n\t\thtpasswd accounts\n\t}\n\trespond ok\n}\n',
		);
		const { status, stdout, stderr } = await runCommand(['validate', 'Configfile'], { cwd: folder });
		assert.is(status, 1);
		assert.match(stdout + stderr, new RegExp(`line 2: .*${what}`));
		assert.not.match(stdout + stderr, /secret3/);
	});
}

peers.run();
