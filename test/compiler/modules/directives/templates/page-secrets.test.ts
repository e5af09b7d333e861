/** Template functions that run on other threads: their results, waiting, and reuse when a page is executed again. */
import { scryptSync } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HttpError } from '../../../../../compiler/exchange/http-error.ts';
import type { Leases } from '../../../../../compiler/exchange/leases.ts';
import type { PageTask, PageWork } from '../../../../../compiler/exchange/page-work.ts';
import { bodyText, builtSite, fakeExchange } from '../../../fake-exchange.ts';

/** The requested task, and callbacks to finish it. */
interface Asked {
	readonly task: PageTask;
	readonly answer: (text: string) => void;
	readonly fail: (error: unknown) => void;
}

/** Executes a page as a response with `templates`. */
function page(text: string, work: PageWork | undefined) {
	const leases: Leases = {
		lease: kind => {
			if (kind === 'files' || kind === 'access_log') return {} as never;
			throw new Error(`nothing leases ${kind} here`);
		},
		pageWork: work,
	};
	const site = builtSite(
		[
			{ handler: 'edit_headers', response: { set: [{ name: 'Content-Type', value: 'text/html' }] } },
			{ handler: 'render' },
			{ handler: 'respond', body: text },
		],
		{ leases },
	);
	const x = fakeExchange();
	return { x, pending: site.handle(x) };
}

/** Executes a page whose tasks are done by a function, synchronously or not. */
async function served(text: string, run: PageWork['run']): Promise<string> {
	const { x, pending } = page(text, { run });
	await pending;
	return bodyText(x);
}

async function failure(text: string, run: PageWork['run']): Promise<HttpError> {
	try {
		await served(text, run);
	} catch (error) {
		if (error instanceof HttpError) return error;
		throw error;
	}
	return assert.unreachable(`${text} was expected to fail`) as never;
}

/** Derives keys with the real function, for comparison with the compatible server. */
const DERIVING: PageWork['run'] = async task => {
	if (task.task !== 'scrypt') throw new Error(`${task.task} was not expected`);
	const options = { N: 32_768, r: 8, p: 2, maxmem: 64 * 1024 * 1024 };
	return scryptSync(task.password, Buffer.from(task.salt, 'latin1'), 64, options).toString('hex');
};

const secrets = suite('page secrets');

secrets('the thread is not blocked while a task runs', async () => {
	const asked: Asked[] = [];
	const run: PageWork['run'] = task =>
		new Promise((answer, fail) => {
			asked.push({ task, answer, fail });
		});
	const { x, pending } = page('{{htpasswd "vera" "secret"}}', { run });
	assert.ok(pending instanceof Promise);
	assert.is(x.response.body, '{{htpasswd "vera" "secret"}}');
	assert.equal(
		asked.map(({ task }) => task),
		[{ task: 'bcrypt', password: 'secret' }],
	);
	asked[0]!.answer('$2a$10$hash');
	await pending;
	assert.is(bodyText(x), 'vera:$2a$10$hash');
	assert.is(asked.length, 1);
});

secrets('each call gets its own result, and a repeated execution gets the same random results', async () => {
	const seen: string[] = [];
	const text =
		'{{$p := randAlphaNum 20}}{{$p}} {{bcrypt $p}} {{bcrypt $p}} {{uuidv4}} {{randInt 0 1000000}} {{bcrypt "x"}} {{encryptAES "k" "t" | len}}';
	const got = await served(text, async task => {
		seen.push((task as { password: string }).password);
		return `hash${seen.length}`;
	});
	const [password, first, second, , , third] = got.split(' ');
	assert.equal(seen, [password, password, 'x']);
	assert.equal([first, second, third], ['hash1', 'hash2', 'hash3']);
});

secrets('derived passwords equal those of the compatible server', async () => {
	const derived = (arguments_: string) => served(`{{derivePassword ${arguments_}}}`, DERIVING);
	// Made by its release 2.11.7.
	for (const [kind, password] of [
		['maximum', 'pf4zS1LjCg&LjhsZ7T2~'],
		['long', 'ZedaFaxcZaso9*'],
		['medium', 'ZedJuz8$'],
		['short', 'Zed5'],
		['basic', 'pIS54PLs'],
		['pin', '6685'],
	]) {
		assert.is(await derived(`1 "${kind}" "password" "user" "example.com"`), password, kind);
	}
	assert.is(await derived('4294967295 "long" "päss" "üser" "site.test"'), 'ZemaBexx3]Yeze');
	assert.is(await derived('1 "nope" "p" "u" "s"'), 'cannot find password template nope');
	assert.match(
		(await failure('{{derivePassword 4294967296 "pin" "p" "u" "s"}}', DERIVING)).message,
		/4294967296 overflows uint32/,
	);
});

secrets('invalid arguments are rejected without running a task', async () => {
	const run: PageWork['run'] = task => Promise.reject(new Error(`${task.task} was asked for`));
	assert.is(await served('{{htpasswd "a:b" "c"}}', run), 'invalid username: a:b');
	assert.is(await served('{{genPrivateKey "elgamal"}}', run), 'Unknown type elgamal');
	const long = await served('{{bcrypt (repeat 37 "ä")}}', run);
	assert.is(long, 'failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes');
});

secrets('keys and addresses are generated', async () => {
	const run: PageWork['run'] = async task =>
		task.task === 'key' ? `KEY ${task.kind}` : task.task === 'addresses' ? `10.0.0.1 10.0.0.2 ${task.host}` : '';
	assert.is(await served('{{genPrivateKey ""}} {{genPrivateKey "ed25519"}}', run), 'KEY rsa KEY ed25519');
	const seen = new Set<string>();
	for (let i = 0; i < 100; i++) seen.add(await served('{{getHostByName "a.test"}}', run));
	assert.equal([...seen].sort(), ['10.0.0.1', '10.0.0.2', 'a.test']);
});

secrets('a failed task is an error of the page, a full queue is a 503, and waiting is bounded', async () => {
	const broken = await failure('{{getHostByName "a.test"}}', async () => {
		throw new Error('lookup a.test: ENOTFOUND');
	});
	assert.is(broken.status, 500);
	assert.match(broken.message, /error calling getHostByName: lookup a\.test: ENOTFOUND/);
	const full = await failure('{{bcrypt "a"}}', async () => {
		throw new HttpError(503, 'full', { headers: [['Retry-After', '5']] });
	});
	assert.equal([full.status, full.headers], [503, [['Retry-After', '5']]]);
	let calls = 0;
	const many = await failure('{{range until 1000}}{{bcrypt "a"}}{{end}}', async () => String(++calls));
	assert.match(many.message, /waits more than 50 times/);
	assert.is(calls, 50);
	assert.throws(() => page('{{bcrypt "a"}}', undefined), /not available while a configuration is checked/);
});

secrets('front matter is printed as by the compatible server', async () => {
	const run: PageWork['run'] = async () => '';
	const split = (rest: string) =>
		served(`{{$d := splitFrontMatter "{\\n\\"b\\": [1, 2.5], \\"a\\": {\\"c\\": null}\\n}\\nX"}}${rest}`, run);
	assert.is(await split('{{$d}}'), '{map[a:map[c:<nil>] b:[1 2.5]] \nX}');
	assert.is(await split('{{$d.Meta}}|{{$d.Body}}'), 'map[a:map[c:<nil>] b:[1 2.5]]|\nX');
	assert.is(await split('{{toJson $d}}'), '{"meta":{"a":{"c":null},"b":[1,2.5]},"body":"\\nX"}');
	assert.is(await split('{{kindOf $d}} {{typeOf $d}}'), 'struct templates.parsedMarkdownDoc');
	assert.is(await served('{{splitFrontMatter "none"}}', run), '{map[] none}');
	assert.match((await failure('{{(splitFrontMatter "none").Nope}}', run)).message, /Nope/);
});

secrets.run();
