/** Why a machine cannot load a publication: real starts and loads that fail because of the publication, or because of the machine. */
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ConfigInput } from '../../../compiler/dialects/dialect.ts';
import { StartError, startRuntime } from '../../../runtime/main/runtime.ts';
import { toStartError } from '../../../runtime/main/start-error.ts';
import { kindOfRefusal, kindOfStartFailure } from '../../../runtime/publications/load-failure.ts';
import { TestAuthority } from '../../certificates.ts';
import { temporaryFolder } from '../../harness.ts';
import { jsonInput, recordingLog, respondingSite, withServer } from '../running-server.ts';

const failure = suite('why a publication is not loaded');

const folder = temporaryFolder();
const configfile = (text: string): ConfigInput => ({ format: 'configfile', text, name: 'Configfile' });
const site = (lines: string): ConfigInput => configfile(`http://127.0.0.1:0 {\n${lines}\n\trespond ok\n}\n`);

const loggingSite = (output: object): ConfigInput =>
	jsonInput({ sites: [respondingSite('x', { logs: [{ output }] } as object)] });

/** Returns the error with which a start fails. */
async function startFailure(input: ConfigInput): Promise<StartError> {
	const error = await startRuntime({ input, writers: { stderr: recordingLog() } }).then(
		() => undefined,
		thrown => thrown as unknown,
	);
	assert.instance(error, StartError);
	return error as StartError;
}

writeFileSync(path.join(folder, 'empty.pem'), '');
const authority = await TestAuthority.make();
const [own, another] = [await authority.issue({ names: ['a.test'] }), await authority.issue({ names: ['a.test'] })];
writeFileSync(path.join(folder, 'own.pem'), own.certificate);
writeFileSync(path.join(folder, 'another.key'), another.key);
mkdirSync(path.join(folder, 'folder'));

/** Configurations whose only fault is that they name something that the machine lacks. */
const machineCauses: readonly (readonly [name: string, input: ConfigInput, code: string])[] = [
	[
		'a missing certificate',
		configfile(`https://a.test:0 {\n\ttls ${folder}/no.pem ${folder}/no.key\n\trespond ok\n}\n`),
		'tls/unreadable-file',
	],
	[
		'a certificate file without a certificate',
		configfile(`https://a.test:0 {\n\ttls ${folder}/empty.pem ${folder}/empty.pem\n\trespond ok\n}\n`),
		'tls/malformed-certificate',
	],
	[
		'a key of another certificate for an upstream',
		site(
			`\treverse_proxy https://a.test {\n\t\ttransport http {\n\t\t\ttls_client_auth ${folder}/own.pem ${folder}/another.key\n\t\t}\n\t}`,
		),
		'tls/key-of-another',
	],
	['missing accounts', site(`\tbasic_auth {\n\t\thtpasswd ${folder}/folder\n\t}`), 'auth/htpasswd-unreadable'],
	['a log that cannot be opened', site(`\tlog {\n\t\toutput file ${folder}/empty.pem/access.log\n\t}`), 'log/output'],
];

/** Configurations with a certificate or a log output that is wrong on every machine, because it is in the publication itself. */
const publicationCauses: readonly (readonly [name: string, input: ConfigInput, code: string])[] = [
	[
		'a certificate of an upstream',
		jsonInput({
			sites: [
				respondingSite('x', {
					steps: [
						{
							handler: 'proxy',
							upstreams: {
								to: ['a.test:443'],
								transport: { type: 'http', tls: { trust: { source: 'inline', certificates: ['AAAA'] } } },
							},
						},
					],
				}),
			],
		}),
		'tls/invalid-inline-certificate',
	],
	[
		'a certificate of an authority',
		configfile(
			'https://a.test:0 {\n\ttls internal {\n\t\tclient_auth {\n\t\t\ttrusted_ca_cert AAAA\n\t\t}\n\t}\n\trespond ok\n}\n',
		),
		'tls/invalid-inline-certificate',
	],
	['a log named by a request', site('\tlog {\n\t\toutput file /var/log/{host}.log\n\t}'), 'log/invalid-output'],
	['a log with an invalid address', loggingSite({ writer: 'net', address: 'udp/nowhere' }), 'log/invalid-output'],
];

failure('a start: a certificate or log output in the publication itself', async () => {
	for (const [name, input, code] of publicationCauses) {
		const error = await startFailure(input);
		assert.is(error.failure.reason, 'refused', name);
		const errors = error.failure.reason === 'refused' ? error.failure.diagnostics : [];
		assert.equal(
			errors.map(diagnostic => diagnostic.code),
			[code],
			name,
		);
		assert.is(kindOfStartFailure(error), 'refused', name);
	}
});

failure('a start: what only the machine lacks, and mistakes of the publication', async () => {
	for (const [name, input, code] of machineCauses) {
		const error = await startFailure(input);
		assert.is(error.failure.reason, 'refused', name);
		const errors = error.failure.reason === 'refused' ? error.failure.diagnostics : [];
		assert.ok(
			errors.some(diagnostic => diagnostic.code === code),
			`${name}: ${JSON.stringify(errors.map(diagnostic => diagnostic.code))}`,
		);
		assert.is(kindOfStartFailure(error), 'machine', name);
	}
	assert.is(kindOfStartFailure(await startFailure(site('\tno_such_directive'))), 'refused');
	// If the publication contains a mistake, too, the machine is not the only cause.
	const both = configfile(
		`https://a.test:0 {\n\ttls ${folder}/no.pem ${folder}/no.key\n\trespond {nothing\n\tnope\n}\n`,
	);
	assert.is(kindOfStartFailure(await startFailure(both)), 'refused');
});

failure('a start: a port in use, and a system call that failed', async () => {
	const occupyingServer = createServer().listen(0, '127.0.0.1');
	await once(occupyingServer, 'listening');
	const { port } = occupyingServer.address() as { port: number };
	try {
		const input = jsonInput({ sites: [respondingSite('x', { addresses: [`http://127.0.0.1:${port}`] })] });
		assert.is(kindOfStartFailure(await startFailure(input)), 'machine');
	} finally {
		occupyingServer.close();
	}
	const denied = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES', syscall: 'open' });
	assert.is(kindOfStartFailure(toStartError(denied)), 'machine');
	assert.is(kindOfStartFailure(toStartError(new Error('a defect'))), 'refused');
	assert.is(kindOfStartFailure(toStartError(new TypeError('a defect'))), 'refused');
});

failure('a load: what only the machine lacks, and a mistake of the publication', async () => {
	await withServer({ sites: [respondingSite('hello')] }, {}, async ({ runtime }) => {
		const kindOf = async (input: ConfigInput): Promise<string> => {
			const outcome = await runtime.load(input);
			return outcome.result === 'refused' ? kindOfRefusal(outcome.diagnostics) : outcome.result;
		};
		for (const [name, input, code] of machineCauses) {
			// A site of a Configfile listens on another port, which would need another process.
			if (code !== 'log/output') assert.is(await kindOf(input), 'machine', name);
		}
		const logs = [{ output: { writer: 'file', path: `${folder}/empty.pem/access.log` } }];
		assert.is(await kindOf(jsonInput({ sites: [respondingSite('x', { logs } as object)] })), 'machine');
		assert.is(await kindOf(site('\tno_such_directive')), 'refused');
		assert.is(kindOfRefusal([]), 'refused');
	});
});

failure.run();
