/** Malicious clients of a real server: they forge log entries, send credentials that might be logged, and guess passwords. */
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { hashSync } from 'bcryptjs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { passwordThreadCount } from '../../../runtime/passwords/password-threads.ts';
import { freePorts, rawExchange, type ServerProcess, serve, temporaryFolder } from '../../harness.ts';

const HASH = '$2b$04$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW';
/** A bcrypt hash of cost 10, which takes about 60 ms to verify. */
const SLOW_HASH = HASH.replace('$04$', '$10$');
const basic = (text: string) => `Authorization: Basic ${Buffer.from(text).toString('base64')}\r\n`;

async function startConfigured(lines: string): Promise<{ server: ServerProcess; port: number; folder: string }> {
	const folder = temporaryFolder();
	const [port] = (await freePorts(1)) as [number];
	writeFileSync(path.join(folder, 'Compatfile'), `{\n\tadmin off\n\tdebug\n}\n:${port} {\n${lines}\n}\n`);
	return { server: await serve(['Compatfile'], port, { cwd: folder }), port, folder };
}

function request(port: number, target: string, fields: string, method = 'GET'): Promise<string> {
	return rawExchange(
		port,
		Buffer.from(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${fields}\r\n`, 'latin1'),
		60_000,
	);
}

/** Sends a request with credentials from a local address. Resolves to the status. */
function login(port: number, auth: string, localAddress: string, agent?: Agent): Promise<number> {
	return new Promise((resolve, reject) => {
		get({ host: '127.0.0.1', port, localAddress, auth, agent }, response => {
			response.resume().on('end', () => resolve(response.statusCode!));
		}).on('error', reject);
	});
}

const hostile = suite('hostile clients');

hostile('clients cannot forge log entries, and no credentials are logged', async () => {
	const { server, port, folder } = await startConfigured(`
	log {
		output file access.json
		format json
	}
	log {
		output file access.txt
		format console
	}
	log_append query {query.q}
	log_append <agent {header.User-Agent}
	basic_auth /in/* {
		bob ${HASH}
	}
	handle_errors {
		respond "{err.message}"
	}
	respond "ok {http.auth.user.id}"`);
	const forged = '{"level":"error","msg":"forged"}';
	try {
		await request(port, `/a?q=%0d%0a${encodeURIComponent(forged)}`, `User-Agent: \u009b31m\u0085${forged}\r\n`);
		await request(port, '/in/right', `${basic('bob:hiccup')}Cookie: sid=secretcookie\r\n`);
		await request(port, '/in/wrong', basic('bob:secretguess'));
		await request(port, '/in/forged', basic(`bob\n${forged}\u001b[2J:secretguess`));
		await request(port, '/in/proxy', 'Proxy-Authorization: Basic secretproxy\r\nAUTHORIZATION: Bearer secrettoken\r\n');
	} finally {
		await server.stop();
	}
	const json = readFileSync(path.join(folder, 'access.json'), 'utf8');
	const text = readFileSync(path.join(folder, 'access.txt'), 'utf8');
	const entries = json
		.trimEnd()
		.split('\n')
		.map(line => JSON.parse(line) as { msg: string; user_id: string; status: number; query: string });
	assert.equal(
		entries.map(({ msg, user_id, status }) => [msg, user_id, status]).sort(),
		[
			['handled request', '', 200],
			['handled request', '', 401],
			['handled request', '', 401],
			['handled request', '', 401],
			['handled request', 'bob', 200],
		].sort(),
	);
	assert.ok(
		entries.some(({ query }) => query === `\r\n${forged}`),
		'the value is not logged as data',
	);
	assert.is(text.trimEnd().split('\n').length, 5);
	for (const output of [json, text, server.output()]) {
		assert.not.match(output, /secret|hiccup|Ym9i/);
		const controls = [...output].filter(c => (c < ' ' && c !== '\n' && c !== '\t') || (c >= '\u007f' && c < '\u00a0'));
		assert.equal(controls, []);
	}
});

hostile('clients that guess passwords are refused, and other requests do not wait for them', async () => {
	const { server, port } = await startConfigured(`
	basic_auth /in/* {
		bob ${SLOW_HASH}
	}
	handle /metrics {
		metrics
	}
	respond "ok"`);
	try {
		const status = (answer: string) => answer.slice(9, 12);
		let guessed = 0;
		const guesses = Array.from({ length: 60 }, (_, i) => request(port, '/in/', basic(`bob:guess${i}`)));
		for (const guess of guesses) void guess.then(answer => (status(answer) === '401' ? guessed++ : 0));
		const others = await Promise.all(Array.from({ length: 20 }, () => request(port, '/', '')));
		const before = guessed;
		assert.equal([...new Set(others.map(status))], ['200']);
		const answers = await Promise.all(guesses);
		assert.equal([...new Set(answers.map(status))].sort(), ['401', '429']);
		for (const answer of answers) {
			if (status(answer) === '429') assert.match(answer, /\r\nRetry-After: \d+\r\n/);
			else assert.match(answer, /\r\nWWW-Authenticate: Basic /);
		}
		const turnedAway = answers.filter(answer => status(answer) === '429').length;
		const metrics = await request(port, '/metrics', '');
		assert.match(metrics, new RegExp(`^svc_overload_rejected_total\\{limit="passwords"\\} ${turnedAway}$`, 'm'));
		assert.ok(before < guessed, `other requests waited for all ${before} guesses`);
		assert.is(status(await request(port, '/in/', basic('bob:guess0'))), '401');
	} finally {
		await server.stop();
	}
});

hostile('a flood of wrong passwords does not delay the first logins of others', async () => {
	const users = Array.from({ length: 4 }, (_, i) => ({ name: `user${i}`, hash: hashSync(`login${i}`, 10) }));
	const { server, port } = await startConfigured(`
	basic_auth {
		bob ${SLOW_HASH}
${users.map(({ name, hash }) => `\t\t${name} ${hash}`).join('\n')}
	}
	respond "ok"`);
	try {
		const flood = new Agent({ keepAlive: true, maxSockets: 40 });
		let verdicts = 0;
		let guesses = 0;
		let isOver = false;
		let began: () => void = () => {};
		const begun = new Promise<void>(resolve => {
			began = resolve;
		});
		const guessOn = async (): Promise<void> => {
			while (!isOver) {
				const status = await login(port, `bob:guess${guesses++}`, '127.0.0.2', flood);
				if (status === 401 && ++verdicts === 3) began();
			}
		};
		const flooding = Array.from({ length: 40 }, guessOn);
		await begun;
		const overtaking: number[] = [];
		for (const [i, { name }] of users.entries()) {
			const before = verdicts;
			assert.is(await login(port, `${name}:login${i}`, '127.0.0.1'), 200);
			overtaking.push(verdicts - before);
		}
		isOver = true;
		await Promise.all(flooding);
		flood.destroy();
		// On each thread, one guess may be in progress when the login arrives, and the verification of another may end before the
		// login's.
		const most = 3 * passwordThreadCount(availableParallelism());
		assert.ok(Math.max(...overtaking) <= most, `guesses verified before a login: ${overtaking.join(', ')}`);
	} finally {
		await server.stop();
	}
});

hostile('a site serves the metrics of the process to concurrent clients', async () => {
	const { server, port } = await startConfigured('\tmetrics /metrics');
	try {
		const answers = await Promise.all(Array.from({ length: 10 }, () => request(port, '/metrics', '')));
		for (const answer of answers) {
			assert.match(answer, /^HTTP\/1\.1 200 /);
			assert.match(answer, /\r\nContent-Type: text\/plain; version=0\.0\.4; charset=utf-8\r\n/);
			assert.match(answer, /^svc_ready [01]$/m);
		}
	} finally {
		await server.stop();
	}
});

hostile.run();
