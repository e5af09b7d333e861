/**
 * `svc validate` and `svc run` agree: both accept or both reject each invalid or borderline value. Because each start takes long,
 * servers are started for a third of the configurations, and for all of them in the long suite or if cases are selected by name.
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type AdminServer, startAdmin } from '../../admin/server.ts';
import { validateConfiguration } from '../../cli/configuration/validation.ts';
import { compile } from '../../compiler/compiler.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';
import { startRuntime } from '../../runtime/main/runtime.ts';
import { TestAuthority } from '../certificates.ts';
import { freePorts, runCommand, temporaryFolder } from '../harness.ts';
import { roundCount } from '../round-count.ts';
import { jsonInput, recordingLog, respondingSite, withServer } from '../runtime/running-server.ts';

const folder = temporaryFolder();
const pathOf = (name: string): string => path.join(folder, name);
const authority = await TestAuthority.make();
const pair = await authority.issue({ names: ['a.test'] });
writeFileSync(pathOf('pair.pem'), pair.certificate);
writeFileSync(pathOf('pair.key'), pair.key);
writeFileSync(pathOf('ca.pem'), authority.pem);
writeFileSync(pathOf('file'), '');
mkdirSync(pathOf('folder'));

const HASH = '$2b$04$abcdefghijklmnopqrstuuq/K2hpGPDdJlgPKSXRxKVK6hW9GLuC2';
const [adminPort] = (await freePorts(1)) as [number];
Object.assign(process.env, {
	AGREE_HASH: HASH,
	AGREE_WORDS: 'some words',
	AGREE_ROOT: pathOf('ca.pem'),
	AGREE_NAME: 'named',
	AGREE_RANGE: '10.0.0.0/8',
});

/** Returns a Configfile with one site on a free port. */
const site = (lines: string, options = ''): string =>
	`{\n\tauto_https off\n${options}\n}\nhttp://:0 {\n\tbind 127.0.0.1\n${lines}\n\trespond x\n}\n`;
const log = (output: string, options = ''): string => site(`\tlog {\n\t\toutput ${output}\n\t}`, options);
const processLog = (output: string): string => site('', `\tlog {\n\t\toutput ${output}\n\t}`);
const secure = (tls: string, options = ''): string =>
	`{\n\tauto_https disable_redirects\n\tstorage file_system ${pathOf('store')}\n${options}\n}\nhttps://a.test:0 {\n\tbind 127.0.0.1\n\ttls ${tls}\n\trespond x\n}\n`;
const own = `${pathOf('pair.pem')} ${pathOf('pair.key')}`;
const clients = (pool: string): string =>
	secure(`${own} {\n\t\tclient_auth {\n\t\t\tmode require_and_verify\n\t\t\ttrust_pool ${pool}\n\t\t}\n\t}`);
const listening = (bind: string): string => `http://:0 {\n\tbind ${bind}\n\trespond x\n}\n`;

// biome-ignore lint/suspicious/noExplicitAny: documents with mistakes
type InvalidValue = any;
const document = (pipeline: InvalidValue[], settings: object = {}, more: object = {}): object => ({
	settings: { auto_https: ['off'], ...settings },
	sites: [{ addresses: ['http://:0'], bind: ['127.0.0.1'], pipeline, ...more }],
});
const proxy = (upstreams: object): object => document([{ handler: 'proxy', upstreams }]);
const tls = (settings: object, options: object = {}): object => ({
	settings: {
		auto_https: ['disable_redirects'],
		storage: { store: 'file_system', root: pathOf('store') },
		...options,
	},
	sites: [{ addresses: ['https://a.test:0'], bind: ['127.0.0.1'], tls: settings, pipeline: [] }],
});
const CERTIFICATES = { certificates: [{ certificate: pathOf('pair.pem'), key: pathOf('pair.key') }] };
const verified = (more: object): object =>
	tls({ ...CERTIFICATES, client_auth: { mode: 'require_and_verify', ...more } });
const acme = (more: object): object => tls({ issuers: [{ issuer: 'acme', ...more }] });

/** Configurations that both commands reject. */
const REFUSED: { readonly [name: string]: string | object } = {
	'a hash from a variable that is not set': site('\tbasic_auth {\n\t\talice {env.AGREE_NOT_SET}\n\t}'),
	'a hash from a variable with another value': site('\tbasic_auth {\n\t\talice {env.AGREE_WORDS}\n\t}'),
	'a user from a variable that is not set': site(`\tbasic_auth {\n\t\t{env.AGREE_NOT_SET} ${HASH}\n\t}`),
	'a range from a variable with another value': site('\t@a remote_ip {env.AGREE_WORDS}\n\trespond @a y'),
	'a log file named by a variable that is not set': log(`file ${folder}/{env.AGREE_NOT_SET}.log`),
	'a process log named by a variable that is not set': processLog(`file ${folder}/{env.AGREE_NOT_SET}.log`),
	'a log file below a file': log(`file ${pathOf('file')}/x.log`),
	'a process log below a file': processLog(`file ${pathOf('file')}/x.log`),
	'a log file that is a folder': log(`file ${pathOf('folder')}`),
	'a log file that a variable makes a folder': log(`file ${folder}/{env.AGREE_FOLDER}`),
	'a collector from a variable that is not set': log('net {env.AGREE_NOT_SET}'),
	'a collector with an invalid address': log('net {env.AGREE_WORDS}'),
	'a socket in a folder that does not exist': listening(`unix/${folder}/nowhere/s.sock`),
	'a socket below a file': listening(`unix/${pathOf('file')}/s.sock`),
	'a socket named by a variable that is not set': listening('unix/{env.AGREE_NOT_SET}'),
	'a socket at the path of a regular file': listening(`unix/${pathOf('file')}`),
	'a socket whose path is too long': listening(`unix//tmp/${'x'.repeat(200)}`),
	'an admin socket in a folder that does not exist': site('', `\tadmin unix/${folder}/nowhere/admin.sock`),
	'an Admin API on the port of a site': `{\n\tadmin 127.0.0.1:${adminPort}\n}\nhttp://127.0.0.1:${adminPort} {\n\trespond x\n}\n`,
	'a DNS server with an invalid address': site(
		'\treverse_proxy a:1 {\n\t\ttransport http {\n\t\t\tresolvers nowhere\n\t\t}\n\t}',
	),
	'a certificate that does not exist': secure('{env.AGREE_NOT_SET} {env.AGREE_NOT_SET}'),
	'an internal authority whose root is not a certificate': secure(
		'internal',
		`\tpki {\n\t\tca local {\n\t\t\troot {\n\t\t\t\tcert ${pathOf('pair.pem')}\n\t\t\t\tkey ${pathOf('pair.key')}\n\t\t\t}\n\t\t}\n\t}`,
	),
	'an issuer root from a variable that is not set': secure('{\n\t\tca_root {env.AGREE_NOT_SET}\n\t}'),
	'a storage key that does not exist': clients(
		`storage {\n\t\t\t\tstorage file_system ${pathOf('empty')}\n\t\t\t\tkeys a.pem\n\t\t\t}`,
	),
	'a trust pool that does not exist': clients(`file ${pathOf('nowhere.pem')}`),
	'an rfc2136 name server with an invalid address': secure('{\n\t\tdns rfc2136 {\n\t\t\tserver [::\n\t\t}\n\t}'),
	'an rfc2136 key without a name': secure(
		'{\n\t\tdns rfc2136 {\n\t\t\tserver 127.0.0.1\n\t\t\tkey {env.AGREE_NAME}\n\t\t}\n\t}',
	),
	'an ACME directory that is not a URL': acme({ directory: 'http://[::' }),
	'an ACME test directory that is not a URL': acme({ test_directory: 'http://[::' }),
	'a global ACME directory that is not a URL': tls({}, { acme_ca: 'nonsense' }),
	'a DNS provider without a required setting': acme({ dns: { provider: 'rfc2136', server: '127.0.0.1', key: 'abc' } }),
	'an inline authority that is not a certificate': verified({
		trust_pool: { source: 'inline', certificates: ['nonsense'] },
	}),
	'an invalid inline authority in a combined pool': verified({
		trust_pool: { source: 'combined', of: [{ source: 'system' }, { source: 'inline', certificates: ['nonsense'] }] },
	}),
	'an inline leaf that is not a certificate': verified({ trusted_leaves: { certificates: ['nonsense'] } }),
	'a PEM leaf that is not a certificate': verified({ trusted_leaves: { pem: ['nonsense'] } }),
	'an HTTP trust pool that is not at a URL': verified({ trust_pool: { source: 'http', endpoints: ['nonsense'] } }),
	'an invalid storage key': verified({ trust_pool: { source: 'storage', keys: ['../../x'] } }),
	'a collector without an address': document([], {}, { logs: [{ name: 'a', output: { writer: 'net' } }] }),
	'a log collector with an invalid address': document(
		[],
		{},
		{ logs: [{ name: 'a', output: { writer: 'net', address: 'a b' } }] },
	),
	'a log file without a path': document([], {}, { logs: [{ name: 'a', output: { writer: 'file' } }] }),
	'a process log without a path': document([], { logs: { default: { output: { writer: 'file' } } } }),
	'an unknown log encoder': document([], {}, { logs: [{ name: 'a', format: { encoder: 'nobody' } }] }),
	'a resolver given by name': proxy({ to: ['a:1'], transport: { type: 'http', resolvers: ['nowhere'] } }),
	'a resolver with an invalid address': proxy({ to: ['a:1'], transport: { type: 'http', resolvers: ['999.1.1.1'] } }),
	'an upstream with an invalid address': proxy({ to: ['a b'] }),
	'an inline upstream authority that is not a certificate': proxy({
		to: ['a:1'],
		transport: { type: 'http', tls: { trust: { source: 'inline', certificates: ['nonsense'] } } },
	}),
	'an invalid regular expression': proxy({ to: ['a:1'], health: { uri: '/', body: '(' } }),
	'an invalid password hash': document([{ handler: 'basic_auth', accounts: [{ user: 'a', hash: 'nonsense' }] }]),
	'weights that are all zero': proxy({
		to: ['a:1', 'b:1'],
		balance: { policy: 'weighted_round_robin', weights: [0, 0] },
	}),
	'a trusted proxy that is not an address range': document([], { trusted_proxies: ['nonsense'] }),
	'listener settings for an invalid address': document([], { servers: [{ listener: ':::::' }] }),
	'an undefined upstream pool': document([{ handler: 'proxy', pool: 'nobody' }]),
};

/** Configurations similar to those in {@link REFUSED}, which both commands accept. */
const SERVED: { readonly [name: string]: string | object } = {
	'a hash from a variable': site('\tbasic_auth {\n\t\talice {env.AGREE_HASH}\n\t}'),
	'a range from a variable': site('\t@a remote_ip {env.AGREE_RANGE}\n\trespond @a y'),
	'a log file named by a variable': log(`file ${folder}/{env.AGREE_NAME}.log`),
	'a log file in folders that do not exist yet': log(`file ${folder}/made/for/it.log`),
	'a log file that is a device': log('file /dev/null'),
	'a process log': processLog(`file ${folder}/process.log`),
	'a collector over UDP': log('net udp/127.0.0.1:9'),
	'a socket': listening(`unix/${folder}/own.sock`),
	'an admin socket': site('', `\tadmin unix/${folder}/admin.sock`),
	'an upstream from a variable that is not set': site('\treverse_proxy {env.AGREE_NOT_SET}'),
	'a certificate authority for clients': clients(`file ${pathOf('ca.pem')}`),
	'the system trust pool': clients('system'),
	'the internal authority': secure('internal'),
	'a cache': site('\tcache'),
	'a cache whose disk folder is unusable': document([{ handler: 'cache' }], {
		cache: { disk: { folder: `${pathOf('file')}/x`, size: 1e9 } },
	}),
	'a site with tracing': site('\ttracing'),
	'many handlers': site(
		'\tencode gzip\n\ttemplates\n\tmap {host} {x} {\n\t\tdefault y\n\t}\n\tvars a b\n\troot /srv\n\tfile_server /files/* browse\n\treverse_proxy /up/* 127.0.0.1:1 {\n\t\tlb_policy least_conn\n\t\tfail_duration 10s\n\t}',
	),
};

function input(configuration: string | object): ConfigInput {
	return typeof configuration === 'string'
		? { format: 'configfile', text: configuration, name: 'Configfile', path: pathOf('Configfile') }
		: { format: 'json', text: JSON.stringify(configuration), name: 'config.json', path: pathOf('config.json') };
}

/** Starts a server with the configuration. Returns the error; undefined if the server serves. */
async function startError(configuration: string | object): Promise<string | undefined> {
	const processLog = recordingLog();
	let admin: AdminServer | undefined;
	try {
		const runtime = await startRuntime({
			input: input(configuration),
			threads: 1,
			writers: { stdout: processLog, stderr: processLog },
			beforeListening: async starting => {
				admin = await startAdmin(starting, { log: () => {}, onStop: () => {} });
			},
		});
		runtime.kill();
		await runtime.stop();
		return undefined;
	} catch (error) {
		return (error as Error).message;
	} finally {
		await admin?.close();
	}
}

async function validated(configuration: string | object) {
	return validateConfiguration(input(configuration), { lint: false, strict: false });
}

const areCasesSelected = process.env.SVC_TEST_WORDS !== undefined;
/** With one out of this many configurations, a server is started. */
const configurationsPerStart = areCasesSelected ? 1 : roundCount({ few: 3, many: 1 });

const agree = suite('validate and run');

agree.before(() => {
	process.env.AGREE_FOLDER = 'folder';
});

for (const [index, [name, configuration]] of Object.entries(REFUSED).entries()) {
	agree(`${name}: both refuse it, and the message names its place`, async () => {
		const { valid, diagnostics } = await validated(configuration);
		const errors = diagnostics.filter(({ severity }) => severity === 'error');
		assert.not.ok(valid, 'validate accepts it');
		assert.ok(errors.length > 0);
		for (const { code, message, span, pointer } of errors) {
			assert.match(code, /^[a-z]+(?:\/[a-z-]+)?$/);
			assert.match(message, /[a-z`]/);
			assert.ok(span ?? pointer ?? typeof configuration === 'object', `${message} has no place`);
		}
		if (index % configurationsPerStart !== 0) return;
		assert.ok((await startError(configuration)) !== undefined, 'run accepts it');
	});
}

for (const [index, [name, configuration]] of Object.entries(SERVED).entries()) {
	agree(`${name}: both accept it`, async () => {
		const { valid, diagnostics } = await validated(configuration);
		assert.ok(valid, JSON.stringify(diagnostics.map(({ message }) => message)));
		if (index % configurationsPerStart !== 0) return;
		assert.is(await startError(configuration), undefined);
	});
}

const more = suite('svc validate');

more('mistakes are printed with their places, and the exit status is 1', async () => {
	const text = site('\tbasic_auth {\n\t\talice {env.NOSUCH}\n\t}').replace(/^.*?\n}\n/s, '');
	writeFileSync(pathOf('Configfile'), text);
	const { status, stderr } = await runCommand(['validate', pathOf('Configfile')]);
	assert.is(status, 1);
	assert.match(
		stderr,
		/^error\[auth\/bad-hash\]: The hash of `alice` cannot be used: this is not a bcrypt hash\.\n {2}--> .*Configfile:\d+:\d+\n/,
	);
	const fine = await runCommand(['validate', pathOf('Configfile')], { env: { NOSUCH: HASH } });
	assert.is(fine.status, 0, fine.stderr);
});

more('unset variables cause warnings, in every language', async () => {
	const text =
		'{\n\temail {$AGREE_NOT_SET}x\n}\nhttp://:0 {\n\trespond "{env.AGREE_NOT_SET} {env.AGREE_NAME} {$AGREE_NAME}"\n}\n';
	for (const format of ['configfile', 'compatfile'] as const) {
		const found = await validateConfiguration({ format, text, name: 'x' }, { lint: false, strict: false });
		const unset = found.diagnostics.filter(({ code }) => code === 'environment/unset');
		assert.ok(found.valid);
		assert.equal(
			unset.map(({ span }) => span?.source.text.slice(span.start, span.end)),
			['{$AGREE_NOT_SET}', '{env.AGREE_NOT_SET}'],
		);
		assert.not.ok((await validateConfiguration({ format, text, name: 'x' }, { lint: false, strict: true })).valid);
	}
	const wanted = document([{ handler: 'respond', body: '{env.AGREE_NOT_SET}, \\{env.AGREE_NOT_SET}' }]);
	const { diagnostics } = await validated(wanted);
	assert.equal(
		diagnostics.map(({ code, pointer }) => [code, pointer]),
		[['environment/unset', '/sites/0/pipeline/0/body']],
	);
});

more('problems that depend on the user, the machine or the moment are only warnings', async () => {
	const away = await validated(listening('203.0.113.9'));
	assert.ok(away.valid);
	assert.match(away.diagnostics[0]!.message, 'no network interface of this machine has the address');
	process.env.OTEL_TRACES_SAMPLER = 'nobody';
	const traced = await validated(site('\ttracing'));
	delete process.env.OTEL_TRACES_SAMPLER;
	assert.ok(traced.valid);
	assert.match(traced.diagnostics.map(({ message }) => message).join(), 'OTEL_TRACES_SAMPLER names no sampler');
});

more('variables may name the roots of issuers', async () => {
	const roots = secure('{\n\t\tissuer acme {\n\t\t\ttrusted_roots {env.AGREE_ROOT}\n\t\t}\n\t}');
	assert.ok((await validated(roots)).valid);
	assert.not.ok((await validated(roots.replace('AGREE_ROOT', 'AGREE_WORDS'))).valid);
});

more("a document sent to a server is checked with the server's environment", async () => {
	const { document: compiled } = compile(
		input(site('\tbasic_auth {\n\t\talice {env.AGREE_NOT_SET}\n\t}')),
		diskReader(folder),
	);
	assert.ok(compiled, 'svc reload and svc adapt do not check the environment');
});

more(
	'a dry run refuses what the load would refuse, and a tentative load is refused if it could not be rolled back',
	async () => {
		const logs = (file: string) => [{ name: 'a', output: { writer: 'file' as const, path: file } }];
		mkdirSync(pathOf('logs'));
		await withServer(
			{ sites: [respondingSite('x', { logs: logs(pathOf('logs/a.log')) })] },
			{},
			async ({ runtime, get }) => {
				const broken = jsonInput({ sites: [respondingSite('y', { logs: logs(`${pathOf('file')}/a.log`) })] });
				const preview = await runtime.preview(broken);
				assert.is(preview.result, 'refused');
				assert.is((await runtime.load(broken)).result, 'refused');
				const fine = jsonInput({ sites: [respondingSite('y')] });
				assert.is((await runtime.preview(fine, { reversible: true })).result, 'swap');
				renameSync(pathOf('logs'), pathOf('logs-away'));
				writeFileSync(pathOf('logs'), '');
				assert.is((await runtime.preview(fine, { reversible: true })).result, 'irreversible');
				assert.is((await runtime.load(fine, { reversible: true })).result, 'irreversible');
				assert.is((await get()).body, 'x');
				assert.is((await runtime.load(fine)).result, 'applied');
			},
		);
	},
);

agree.run();
more.run();
