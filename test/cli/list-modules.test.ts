/** `svc list-modules` lists every registered module, and its options work as documented. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lintRules } from '../../compiler/lint/index.ts';
import { balancers } from '../../compiler/modules/providers/balancers/index.ts';
import { dnsProviders } from '../../compiler/modules/providers/dns/index.ts';
import { issuers } from '../../compiler/modules/providers/issuers/index.ts';
import { stores } from '../../compiler/modules/providers/stores/index.ts';
import { directives } from '../../compiler/modules/registry/directives.ts';
import { matchers } from '../../compiler/modules/registry/matchers.ts';
import { options } from '../../compiler/modules/registry/options.ts';
import { ROOT, runCommand } from '../harness.ts';

async function listModuleLines(...args: string[]): Promise<string[]> {
	const { status, stdout, stderr } = await runCommand(['list-modules', ...args]);
	assert.is(stderr, '');
	assert.is(status, 0);
	return stdout.split('\n').slice(0, -1);
}

const listing = suite('list-modules');
const modules = await listModuleLines();

listing('every registered module is listed once, in lexical order', () => {
	const expected = [
		...directives
			.filter(({ id }) => id !== '')
			.map(({ kind, id }) => `http.${kind === 'site' ? 'sites' : 'handlers'}.${id}`),
		...matchers.map(({ id }) => `http.matchers.${id}`),
		...balancers.map(({ id }) => `http.reverse_proxy.selection_policies.${id}`),
		...issuers.map(({ id }) => `tls.issuance.${id}`),
		...dnsProviders.map(({ id }) => `dns.providers.${id}`),
		...stores.map(({ id }) => `storage.${id}`),
		...options.map(({ id }) => `settings.${id}`),
		...lintRules.map(({ name }) => `lint.${name}`),
	];
	assert.equal(
		modules.filter(id => !id.startsWith('admin.')),
		[...new Set(expected)].sort(),
	);
});

listing('Admin API modules are listed if their endpoint exists', () => {
	const folder = path.join(ROOT, 'admin');
	const sources = readdirSync(folder).map(name => readFileSync(path.join(folder, name), 'utf8'));
	const served = sources.flatMap(source => [...source.matchAll(/^\tpath: '\/(\w+)/gm)].map(([, first]) => first!));
	const named = ['load', 'metrics', 'reverse_proxy', 'pki'].filter(name => served.includes(name));
	assert.equal(
		modules.filter(id => id.startsWith('admin.')),
		named.map(name => `admin.api.${name}`),
	);
});

listing('versions and packages are printed after each module', async () => {
	const version = (await runCommand(['version'])).stdout.trim();
	// Versions are not compared, because a commit between the two calls would change the version of a checkout.
	const withoutVersions = (lines: readonly string[]): string[] =>
		lines.map(line => line.replace(/ v\d\S*/, ' VERSION'));
	assert.match(version, /^v\d/);
	assert.equal(
		withoutVersions(await listModuleLines('--versions')),
		modules.map(id => `${id} VERSION`),
	);
	assert.equal(
		withoutVersions(await listModuleLines('--packages', '--versions')),
		modules.map(id => `${id} VERSION svc`),
	);
});

listing('with --json, each module has its id, version and summary', async () => {
	const parsed = JSON.parse((await listModuleLines('--json')).join('\n')) as {
		id: string;
		version: string;
		summary: string;
	}[];
	assert.equal(
		parsed.map(({ id }) => id),
		modules,
	);
	for (const { id, version, summary } of parsed) {
		assert.match(version, /^v\d/, id);
		assert.match(summary, /\.$/, id);
	}
});

listing('with --skip-standard, nothing is printed, not even an empty array', async () => {
	assert.equal(await listModuleLines('--skip-standard'), []);
	assert.equal(await listModuleLines('-s', '--versions'), []);
	assert.equal(await listModuleLines('-s', '--json'), []);
});

listing.run();
