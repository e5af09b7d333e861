/** `basic_auth` without a network: who is admitted, what a refusal contains, and when the verifier is called. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HttpError } from '../../../../../compiler/exchange/http-error.ts';
import type { Leases } from '../../../../../compiler/exchange/leases.ts';
import type { PasswordHash } from '../../../../../compiler/modules/directives/basic-auth/password-hash.ts';
import { verifyPassword } from '../../../../../runtime/passwords/verify-password.ts';
import { bodyText, buildTestSite, type FakeExchange, fakeExchange, responseLines } from '../../../fake-exchange.ts';

const BOB_HASH = '$2b$04$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW';
const COSTLY_HASH = '$2b$05$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW';

interface VerifierCall {
	readonly user: string;
	readonly hash: PasswordHash;
	readonly password: string;
}

/** Returns leases whose verifier records its calls in `asked`. */
function recordingLeases(asked: VerifierCall[], late = false): Leases {
	const verify = (_x: unknown, user: string, hash: PasswordHash, password: string) => {
		asked.push({ user, hash, password });
		const verdict = verifyPassword(hash, password);
		return late ? Promise.resolve(verdict) : verdict;
	};
	return { lease: kind => (kind === 'password_verifier' ? { isLive: true, verify } : { record() {} }) as never };
}

const STEPS = [
	{ handler: 'basic_auth', realm: 'a "b" \\c', accounts: [{ user: 'bob', hash: BOB_HASH }] },
	{ handler: 'respond', body: 'hi {http.auth.user.id}' },
];

async function tried(
	authorization: readonly string[],
	asked: VerifierCall[] = [],
	late = false,
): Promise<FakeExchange> {
	const x = fakeExchange({ headers: authorization.map(value => ['Authorization', value] as const) });
	await buildTestSite(STEPS, { leases: recordingLeases(asked, late) }).runSite(x);
	return x;
}

async function refusal(authorization: readonly string[], asked: VerifierCall[] = []): Promise<HttpError> {
	try {
		await tried(authorization, asked);
	} catch (error) {
		return error as HttpError;
	}
	throw new Error('the request was admitted');
}

const basic = (text: string | Buffer) => `Basic ${Buffer.from(text).toString('base64')}`;

const auth = suite('basic_auth');

for (const isLate of [false, true]) {
	auth(`admits the right password${isLate ? ' when the verdict comes later' : ''}`, async () => {
		const x = await tried([basic('bob:hiccup')], [], isLate);
		assert.is(bodyText(x), 'hi bob');
		assert.is(x.variable('http.auth.user.id'), 'bob');
	});
}

auth('accepts the scheme in any letter case', async () => {
	assert.is(bodyText(await tried([basic('bob:hiccup').replace('Basic', 'bAsIc')])), 'hi bob');
});

const REFUSED: readonly (readonly [string, readonly string[]])[] = [
	['no field', []],
	['another scheme', ['Bearer abc']],
	['two fields, one of them right', [basic('bob:hiccup'), basic('eve:x')]],
	['text that is not base64', ['Basic ???']],
	['base64 that is cut', [basic('bob:hiccup').slice(0, -1)]],
	['no colon', [basic('bobhiccup')]],
	['bytes that are no UTF-8', [basic(Buffer.from([0x62, 0x3a, 0xff]))]],
	['more than a password can be', [basic(`bob:${'x'.repeat(9000)}`)]],
];

for (const [what, fields] of REFUSED) {
	auth(`refuses ${what} without calling the verifier`, async () => {
		const calls: VerifierCall[] = [];
		const error = await refusal(fields, calls);
		assert.instance(error, HttpError);
		assert.is(error.status, 401);
		assert.equal(error.headers, [['WWW-Authenticate', 'Basic realm="a \\"b\\" \\\\c"']]);
		assert.equal(calls, []);
	});
}

auth('verifies a decoy hash for an unknown user, and refuses whatever the result', async () => {
	const calls: VerifierCall[] = [];
	await refusal([basic('nobody:hiccup')], calls);
	await refusal([basic('bob:wrong')], calls);
	assert.equal(
		calls.map(({ user, hash }) => [user, hash.text.slice(0, 7), hash.text.length]),
		[
			['nobody', BOB_HASH.slice(0, 7), 60],
			['bob', BOB_HASH.slice(0, 7), 60],
		],
	);
	const leases: Leases = {
		lease: kind => (kind === 'password_verifier' ? { isLive: true, verify: () => true } : { record() {} }) as never,
	};
	const x = fakeExchange({ headers: [['Authorization', basic('nobody:hiccup')]] });
	assert.throws(() => void buildTestSite(STEPS, { leases }).runSite(x), /not valid/);
});

auth('a refusal message contains neither the name nor the password', async () => {
	const { message } = await refusal([basic('carol:opensesame')]);
	assert.not.match(message, /carol|opensesame/);
});

auth('with hashes of several costs, an unknown user always gets the same cost', async () => {
	const calls: VerifierCall[] = [];
	const accounts = [
		{ user: 'bob', hash: BOB_HASH },
		{ user: 'ann', hash: COSTLY_HASH },
	];
	const built = buildTestSite([{ handler: 'basic_auth', accounts }], { leases: recordingLeases(calls) });
	for (let i = 0; i < 24; i++) {
		for (let again = 0; again < 2; again++) {
			const x = fakeExchange({ headers: [['Authorization', basic(`user${i}:x`)]] });
			await Promise.resolve()
				.then(() => built.runSite(x))
				.catch(() => {});
		}
	}
	const costs = calls.map(({ hash }) => hash.text.slice(4, 6));
	for (let i = 0; i < costs.length; i += 2) assert.is(costs[i], costs[i + 1]);
	assert.equal([...new Set(costs)].sort(), ['04', '05']);
});

auth('user names such as `constructor` are treated like any other', async () => {
	for (const user of ['__proto__', 'constructor', 'toString']) {
		assert.is((await refusal([basic(`${user}:hiccup`)])).status, 401);
	}
});

auth('a user name with line breaks reaches no field and no message', async () => {
	const error = await refusal([basic('bob\r\nX-Evil: 1:hiccup')]);
	assert.is(error.status, 401);
	assert.not.match(JSON.stringify(error.headers) + error.message, /Evil/);
});

auth('error routes can handle a refusal, and its challenge is kept', async () => {
	const errors = [{ statuses: ['401'], pipeline: [{ handler: 'respond', body: 'no, {http.auth.candidate.id}' }] }];
	const x = fakeExchange({ headers: [['Authorization', basic('eve:x')]] });
	await buildTestSite(STEPS, { errors, leases: recordingLeases([]) }).runSite(x);
	assert.is(x.response.status, 401);
	assert.is(bodyText(x), 'no, eve');
	assert.ok(responseLines(x).some(line => line.startsWith('WWW-Authenticate: Basic')));
});

auth('variables are read when the configuration is loaded, not when it is validated', () => {
	const steps = [{ handler: 'basic_auth', accounts: [{ user: 'bob', hash: '{env.HASH}' }] }];
	const facts = (hash: string | undefined) => ({
		hostname: '',
		os: '',
		arch: '',
		workingDirectory: '',
		env: () => hash,
	});
	const fakeUpstream: Leases = { lease: () => ({ isLive: false, verify: () => false, record() {} }) as never };
	buildTestSite(steps, { leases: fakeUpstream, facts: facts(undefined) });
	buildTestSite(steps, { leases: recordingLeases([]), facts: facts(BOB_HASH) });
	assert.throws(() => buildTestSite(steps, { leases: recordingLeases([]), facts: facts(undefined) }), /hash of `bob`/);
});

auth('a password check refused because too many are waiting is attributed to this handler', async () => {
	const verify = () => Promise.reject(new HttpError(429, 'Too many.'));
	const leases = { lease: () => ({ isLive: true, verify, record() {} }) as never };
	const x = fakeExchange({ headers: [['Authorization', basic('bob:hiccup')]] });
	try {
		await buildTestSite(STEPS, { leases }).runSite(x);
		assert.unreachable();
	} catch (error) {
		assert.is((error as HttpError).status, 429);
	}
	assert.is(x.answeredBy, 'basic_auth');
});

auth.run();
