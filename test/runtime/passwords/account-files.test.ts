/** Files of accounts that are replaced, edited and broken while they are in use. */
import { execFileSync } from 'node:child_process';
import { renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import {
	AccountFileError,
	MAX_ACCOUNT_FILE_BYTES,
	parseAccountFile,
} from '../../../compiler/modules/directives/basic-auth/account-file.ts';
import { AccountFiles } from '../../../runtime/passwords/account-files.ts';
import { ThreadAccountFile } from '../../../runtime/passwords/thread-account-file.ts';
import { freePorts, runCommand, serve, temporaryFolder, until } from '../../harness.ts';

const SALTED = '04$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW';
const ARGON2ID = '$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$VPzeojHk1q8RmP6wf0MS/45pZQ8EyhmWIyRCmRpuqRY';

const line = (user: string): string => `${user}:$2y$${SALTED}\n`;

const files = suite('files of accounts');

files('bcrypt in all its spellings, argon2id, comments, empty lines, carriage returns and further fields', () => {
	const text = `# staff\r\n\n   \na:$2a$${SALTED}\r\nb:$2b$${SALTED}:a comment:more\nc:$2y$${SALTED}\nä:${ARGON2ID}`;
	const accounts = parseAccountFile(Buffer.from(text), 'x');
	assert.equal([...accounts.keys()], ['a', 'b', 'c', 'ä']);
	assert.equal(
		[...accounts.values()].map(({ algorithm }) => algorithm),
		['bcrypt', 'bcrypt', 'bcrypt', 'argon2id'],
	);
	assert.is(parseAccountFile(Buffer.from('# nobody\n'), 'x').size, 0);
});

const REFUSED: readonly (readonly [what: string, content: string | Buffer, message: RegExp])[] = [
	['MD5-crypt of Apache', 'a:$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00', /line 1: MD5-crypt/],
	['MD5-crypt', 'a:$1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00', /line 1: MD5-crypt/],
	['SHA-1', 'a:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=', /line 1: SHA-1/],
	['salted SHA-1', 'a:{SSHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=', /line 1: SHA-1/],
	['SHA-crypt', 'a:$6$salt$abc', /line 1: SHA-crypt/],
	['plain text', 'a:opensesame', /line 1: this is neither/],
	['plain text of nginx', 'a:{PLAIN}opensesame', /line 1: this is neither/],
	['DES crypt', 'a:rqXexS6ZhobKA', /line 1: this is neither/],
	// A bcrypt hash in base64 is accepted in a configuration, but not in a file, because no program writes it there.
	['base64 of a hash', `a:${Buffer.from(`$2b$${SALTED}`).toString('base64')}`, /line 1: this is neither/],
	['a password without a name', 'opensesame', /line 1: it has no name/],
	['an empty name', `:$2y$${SALTED}`, /line 1: it has no name/],
	['a name that occurs twice', line('a') + line('a'), /line 2: an earlier line/],
	['a hash cut off', line('a').slice(0, -2), /line 1: this is not a bcrypt hash/],
	['a costly argon2id hash', `a:${ARGON2ID.replace('m=64', 'm=99999999')}`, /line 1: the memory/],
	['no bytes', '', /it is empty/],
	['bytes that are not UTF-8', Buffer.from([0xff, 0x3a, 0x78]), /not UTF-8/],
	['more than 1 MiB', Buffer.alloc(MAX_ACCOUNT_FILE_BYTES + 1, 0x23), /more than 1 MiB/],
];

for (const [what, content, message] of REFUSED) {
	files(`refuses ${what}, without quoting it`, () => {
		const error = caught(() => parseAccountFile(Buffer.from(content), 'FILE'));
		assert.match(error.message, message);
		assert.not.match(`${error.message} ${error.hint}`, /opensesame|dn9tFKK|lZL6V|W6ph5|rqXex|VPzeo/);
	});
}

interface Entry {
	readonly level: string;
	readonly text: string;
}

/**
 * Writes an account file with one account, and starts the two objects that read it: one of the main thread, and one of a worker
 * thread.
 */
function startWatching() {
	const file = path.join(temporaryFolder(), 'accounts');
	writeFileSync(file, line('ann'));
	const log: Entry[] = [];
	const main = new AccountFiles((level, logger, message, fields) => {
		log.push({ level, text: `${logger}: ${message} ${JSON.stringify(fields)}` });
	});
	const questions: number[] = [];
	const thread = new ThreadAccountFile(file, question => {
		questions.push(question.version);
		return main.answer(question);
	});
	const names = async (): Promise<string> => [...(await thread.accounts()).keys()].join(' ');
	const becomes = (expected: string): Promise<void> =>
		until(`the accounts are ${expected}`, async () => (await names()) === expected);
	const logged = (text: string): Promise<void> =>
		until(`the log has ${text}`, async () => {
			await names();
			return log.some(entry => entry.text.includes(text));
		});
	return { file, log, main, thread, names, becomes, logged, questions };
}

files('a file that is replaced, or edited in place, is read again', async () => {
	const { file, becomes, names, log } = startWatching();
	assert.is(await names(), 'ann');
	writeFileSync(`${file}.new`, line('bob'));
	renameSync(`${file}.new`, file);
	await becomes('bob');
	writeFileSync(file, line('bob') + line('carol'));
	await becomes('bob carol');
	// The change keeps the size and the modification time of the file.
	const { mtime } = statSync(file);
	writeFileSync(file, line('bob') + line('david'));
	utimesSync(file, mtime, mtime);
	await becomes('bob david');
	writeFileSync(file, '# nobody\n');
	await becomes('');
	assert.equal([...new Set(log.map(({ level }) => level))], ['info']);
});

files('a broken version keeps the previous one and is logged once, without its contents', async () => {
	const { file, becomes, names, log, logged } = startWatching();
	assert.is(await names(), 'ann');
	writeFileSync(file, `${line('bob')}carol:opensesame\n`);
	await logged('line 2');
	assert.is(await names(), 'ann');
	writeFileSync(file, '');
	await logged('it is empty');
	rmSync(file);
	await logged('ENOENT');
	// Reading a pipe to which nothing is written would never end.
	execFileSync('mkfifo', [file]);
	await logged('it is not a regular file');
	rmSync(file);
	assert.is(await names(), 'ann');
	writeFileSync(file, line('eve'));
	await becomes('eve');
	const errors = log.filter(({ level }) => level === 'error');
	assert.is(new Set(errors.map(({ text }) => text)).size, errors.length, 'each failure is logged once');
	assert.not.match(JSON.stringify(log), /opensesame|dn9tFKK/);
});

files('without any valid version, the status is 503 until there is one', async () => {
	const { file, thread, becomes } = startWatching();
	writeFileSync(file, 'ann:opensesame\n');
	const failure = await Promise.resolve(thread.accounts()).then(
		() => undefined,
		(error: unknown) => error,
	);
	assert.instance(failure, HttpError);
	assert.is((failure as HttpError).status, 503);
	writeFileSync(file, line('ann'));
	await until('the file is valid', () =>
		Promise.resolve(thread.accounts()).then(
			() => true,
			() => false,
		),
	);
	await becomes('ann');
});

files('requests that arrive together ask once, and later ones within a second not at all', async () => {
	const { thread, questions } = startWatching();
	const answers = await Promise.all(Array.from({ length: 20 }, () => thread.accounts()));
	assert.is(new Set(answers).size, 1);
	assert.equal(questions, [0]);
	assert.is(thread.accounts(), answers[0]);
	assert.equal(questions, [0]);
});

files(
	'a server keeps the version that it was started with, even if no one logged in before the file broke',
	async () => {
		const [port, adminPort] = (await freePorts(2)) as [number, number];
		const folder = temporaryFolder();
		const accounts = path.join(folder, 'accounts');
		writeFileSync(accounts, line('ann'));
		const configuration = (text: string): void =>
			writeFileSync(
				path.join(folder, 'Configfile'),
				`{\n\tadmin 127.0.0.1:${adminPort}\n\tthreads 1\n}\nhttp://127.0.0.1:${port} {\n\tbasic_auth {\n\t\thtpasswd accounts\n\t}\n\trespond "${text}"\n}\n`,
			);
		configuration('first');
		const server = await serve(['-c', 'Configfile'], port, { cwd: folder });
		const answer = async (user: string): Promise<string> => {
			const credentials = Buffer.from(`${user}:hiccup`).toString('base64');
			const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { Authorization: `Basic ${credentials}` } });
			return `${response.status} ${await response.text()}`;
		};
		try {
			await until('the file has been read', () => server.output().includes('the file of accounts was read'));
			writeFileSync(accounts, `${line('bob')}carol:opensesame\n`);
			await until('the failure is logged', async () => {
				assert.is(await answer('ann'), '200 first');
				return server.output().includes('line 2: this is neither');
			});
			assert.is(await answer('bob'), '401 ');

			configuration('second');
			const refused = await runCommand(['reload', '-c', 'Configfile', '--address', `127.0.0.1:${adminPort}`], {
				cwd: folder,
			});
			assert.is.not(refused.status, 0);
			assert.match(refused.stdout + refused.stderr, /auth\/htpasswd-invalid[\s\S]*line 2/);
			assert.is(await answer('ann'), '200 first');

			writeFileSync(accounts, line('bob'));
			await until('the new version is used', async () => (await answer('bob')) === '200 first');
			assert.is(await answer('ann'), '401 ');
			assert.not.match(server.output() + refused.stdout + refused.stderr, /opensesame|dn9tFKK/);
		} finally {
			await server.stop();
		}
	},
);

function caught(run: () => unknown): AccountFileError {
	try {
		run();
	} catch (error) {
		assert.instance(error, AccountFileError);
		return error as AccountFileError;
	}
	return assert.unreachable() as never;
}

files.run();
