/** Automatic HTTPS in both languages: managed names and their issuers, redirects, policies, contradictory settings. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UNKNOWN_HOST_FACTS } from '../../../../compiler/codegen/placeholders/index.ts';
import { type CompileResult, compile } from '../../../../compiler/compiler.ts';
import { DryRun } from '../../../../compiler/dry-run/dry-run.ts';
import { parseRequestUrl } from '../../../../compiler/dry-run/dry-run-request.ts';
import { ReadError, type Reader } from '../../../../compiler/source/reader.ts';
import { TestAuthority } from '../../../certificates.ts';

const authority = await TestAuthority.make();
const wildcard = await authority.issue({ names: ['*.example.com'] });
const otherCertificate = await authority.issue({ names: ['other.example'] });
const FILES: { readonly [path: string]: string } = {
	'/c/wild.pem': wildcard.certificate,
	'/c/wild.key': wildcard.key,
	'/c/other.pem': otherCertificate.certificate,
	'/c/other.key': otherCertificate.key,
	'/c/ca.pem': authority.pem,
	'/c/nonsense.pem': 'nonsense',
};

const reader: Reader = {
	workingDirectory: '/c',
	readText: path => read(path),
	readBytes: path => Buffer.from(read(path)),
	list: path => {
		throw new ReadError('ENOENT', path);
	},
	kind: path => (path in FILES ? 'file' : undefined),
	env: () => undefined,
};

function read(path: string): string {
	const text = FILES[path];
	if (text === undefined) throw new ReadError('ENOENT', path);
	return text;
}

function compiled(text: string, format: 'compatfile' | 'configfile' = 'compatfile'): CompileResult {
	return compile({ format, text, name: 'Compatfile', path: '/c/Compatfile' }, reader);
}

/** Returns the managed names with the issuers of their policies: `a.example: acme, acme`. */
function managedNames(text: string): string[] {
	const { plan, diagnostics } = compiled(text);
	assert.ok(plan, diagnostics.map(({ message }) => message).join('\n'));
	return plan.certificates!.managed.policies.flatMap(policy => {
		const issuers = policy.issuers.map(({ issuer }) => issuer).join(', ');
		return (policy.subjects.length > 0 ? policy.subjects : ['*all*']).map(name => `${name}: ${issuers}`);
	});
}

function errors(text: string): string[] {
	return compiled(text).diagnostics.map(({ code }) => code);
}

/** Requests each URL over plain HTTP. Returns the status and `Location` or body of each response. */
async function plainAnswers(text: string, ...urls: readonly string[]): Promise<string[]> {
	const { plan, diagnostics } = compiled(text);
	assert.ok(plan, diagnostics.map(({ message }) => message).join('\n'));
	const dryRun = new DryRun(plan, { facts: UNKNOWN_HOST_FACTS, lease: () => undefined });
	const found: string[] = [];
	for (const text of urls) {
		const url = parseRequestUrl(text);
		if ('message' in url) throw new Error(url.message);
		const result = await dryRun.run({
			method: 'GET',
			url,
			headers: [],
			body: undefined,
			from: undefined,
			at: undefined,
		});
		const { exchange: x } = result!;
		found.push(`${x.response.status} ${x.response.headers.get('Location') ?? String(x.response.body ?? '')}`);
	}
	return found;
}

const PORTS = 'http_port 9080\n\thttps_port 9443';

const https = suite('automatic HTTPS');

https(
	'public names use ACME, internal names the internal authority; http:// sites and the HTTP port need no certificate',
	() => {
		const text =
			'example.com, localhost, 10.0.0.1, host.internal, single {\n}\nhttp://plain.example {\n}\nb.example:80 {\n}\n:8080 {\n}\n';
		assert.equal(managedNames(text), [
			'example.com: acme',
			'localhost: internal',
			'10.0.0.1: internal',
			'host.internal: internal',
			'single: internal',
		]);
		assert.equal(managedNames('{\n\temail a@b.example\n}\nexample.com {\n}\nlocalhost {\n}\n'), [
			'example.com: acme, acme',
			'localhost: internal',
		]);
	},
);

https('the issuer is set by the site, or else by local_certs, cert_issuer or acme_ca', () => {
	const sites = 'a.example {\n\ttls internal\n}\nb.example {\n\ttls x@b.example\n}\nc.example {\n}\n';
	assert.equal(managedNames(`{\n\tlocal_certs\n}\n${sites}`), [
		'a.example: internal',
		'c.example: internal',
		'b.example: acme, acme',
	]);
	assert.equal(managedNames(`{\n\tcert_issuer internal\n}\nc.example {\n}\n`), ['c.example: internal']);
	const { plan } = compiled(
		'{\n\tacme_ca https://ca.example/dir\n\temail a@b.example\n\tkey_type p384\n}\na.example {\n}\n',
	);
	assert.equal(plan!.certificates!.managed.policies, [
		{
			subjects: ['a.example'],
			issuers: [{ email: 'a@b.example', directory: 'https://ca.example/dir', issuer: 'acme' }],
			key_type: 'p384',
		},
	]);
});

https('a loaded certificate, or a wildcard of the same configuration, is used for the names it covers', () => {
	const loaded = '*.example.com {\n\ttls wild.pem wild.key\n}\nsub.example.com {\n}\nexample.com {\n}\n';
	assert.equal(managedNames(loaded), ['example.com: acme']);
	assert.equal(managedNames(`{\n\tauto_https ignore_loaded_certs\n}\n${loaded}`).sort(), [
		'*.example.com: acme',
		'example.com: acme',
	]);
	assert.equal(managedNames('*.a.example {\n\ttls internal\n}\nx.a.example {\n}\n'), ['*.a.example: internal']);
	assert.equal(managedNames('*.a.example {\n\ttls internal\n}\nx.a.example {\n\ttls force_automate\n}\n'), [
		'*.a.example: internal',
		'x.a.example: acme',
	]);
});

https('auto_https can be off, or without certificates, or without redirects', async () => {
	assert.equal(managedNames('{\n\tauto_https off\n}\na.example {\n}\n'), []);
	assert.equal(managedNames('{\n\tauto_https disable_certs\n}\na.example {\n}\n'), []);
	const listeners = (text: string) => compiled(text).plan!.listeners.map(({ key, scheme }) => `${scheme} ${key}`);
	assert.equal(listeners('a.example {\n}\n'), ['https tcp/:443', 'http tcp/:80']);
	assert.equal(listeners('{\n\tauto_https disable_certs\n}\na.example {\n}\n'), ['https tcp/:443', 'http tcp/:80']);
	assert.equal(listeners('{\n\tauto_https disable_redirects\n}\na.example {\n}\n'), ['https tcp/:443']);
	assert.equal(listeners('{\n\tauto_https off\n}\na.example {\n}\n'), ['https tcp/:443']);
});

https(
	'redirects go to the standard port or another; the standard port wins if both serve the name (facts A1 to A3)',
	async () => {
		assert.equal(await plainAnswers(`{\n\t${PORTS}\n}\nlocalhost {\n}\n`, 'http://localhost:9080/a?b'), [
			'308 https://localhost/a?b',
		]);
		assert.equal(await plainAnswers(`{\n\t${PORTS}\n}\nlocalhost:1234 {\n}\n`, 'http://localhost:9080/'), [
			'308 https://localhost:1234/',
		]);
		const both = `{\n\t${PORTS}\n\tlocal_certs\n}\nlocalhost {\n}\nlocalhost:10443 {\n}\n`;
		assert.equal(await plainAnswers(both, 'http://localhost:9080/'), ['308 https://localhost/']);
		assert.equal(
			await plainAnswers(`{\n\t${PORTS}\n}\nlocalhost {\n}\n`, 'http://unknown.example:9080/x', 'http://[::1]:9080/'),
			['308 https://unknown.example/x', '308 https://[::1]/'],
		);
	},
);

https('redirects come after the HTTP sites that name a host, before the catch-all sites (fact A5)', async () => {
	const text = `{\n\t${PORTS}\n\tlocal_certs\n}\nhttp://:9080 {\n\trespond "Foo"\n}\nhttp://baz.localhost:9080 {\n\trespond "Baz"\n}\nbar.localhost {\n\trespond "Bar"\n}\n`;
	assert.equal(
		await plainAnswers(text, 'http://bar.localhost:9080/', 'http://foo.localhost:9080/', 'http://baz.localhost:9080/'),
		['308 https://bar.localhost/', '200 Foo', '200 Baz'],
	);
	// If a name is served on two non-standard ports, redirects lead to the first port in the file. Exact names take precedence
	// over wildcards.
	const ports = 'a.example:8443, a.example:7443 {\n}\n*.example:9443 {\n}\n';
	assert.equal(await plainAnswers(ports, 'http://a.example/', 'http://b.example/'), [
		'308 https://a.example:7443/',
		'308 https://b.example:9443/',
	]);
});

https('only TLS sites are redirected; a `:443` site redirects every host, and gets no certificate', async () => {
	assert.equal(managedNames(':443 {\n}\n'), []);
	assert.equal(await plainAnswers(':443 {\n}\n', 'http://any.example/'), ['308 https://any.example/']);
	assert.equal(
		compiled('http://a.example:8447, http://127.0.0.1:8447 {\n}\n').plan!.certificates!.managed.policies,
		[],
	);
});

https('contradictory automation, policies, names and permissions are reported', () => {
	assert.equal(errors('a.example:1 {\n\ttls internal\n}\na.example:2 {\n\ttls x@y.example\n}\n'), [
		'tls/ambiguous-automation',
	]);
	assert.equal(errors('a.example:1 {\n\ttls internal\n}\na.example:2 {\n\ttls internal\n}\n'), []);
	assert.equal(errors('a_b..example {\n}\n'), ['tls/name-does-not-qualify']);
	assert.equal(errors('*.example {\n\ttls {\n\t\ton_demand\n\t}\n}\n'), ['tls/no-permission']);
	assert.equal(errors('https:// {\n\ttls {\n\t\ton_demand\n\t}\n}\n'), ['tls/no-permission']);
	assert.equal(
		errors('{\n\ton_demand_tls {\n\t\task http://127.0.0.1:1/\n\t}\n}\nhttps:// {\n\ttls {\n\t\ton_demand\n\t}\n}\n'),
		[],
	);
	assert.equal(errors(':8080 {\n\ttls internal {\n\t\ton_demand\n\t}\n}\n'), []);
	const path =
		'a.example/x {\n\ttls {\n\t\tprotocols tls1.3\n\t}\n}\na.example/y {\n\ttls {\n\t\tprotocols tls1.2\n\t}\n}\n';
	assert.ok(errors(path).includes('tls/conflicting-policies'));
});

https('certificate, key and pool files are read and checked', () => {
	const site = (words: string) => errors(`a.example {\n\ttls ${words}\n}\n`);
	assert.equal(site('wild.pem wild.key'), []);
	assert.equal(site('wild.pem other.key'), ['tls/key-mismatch']);
	assert.equal(site('nonsense.pem wild.key'), ['tls/malformed-certificate']);
	assert.equal(site('wild.pem nonsense.pem'), ['tls/malformed-key']);
	assert.equal(site('gone.pem wild.key'), ['tls/unreadable-file']);
	const pool = (file: string) =>
		site(`wild.pem wild.key {\n\t\tclient_auth {\n\t\t\ttrust_pool file ${file}\n\t\t}\n\t}`);
	assert.equal(pool('ca.pem'), []);
	assert.equal(pool('nonsense.pem'), ['tls/malformed-certificate']);
	assert.equal(pool('gone.pem'), ['tls/unreadable-file']);
	const stored = (words: string) =>
		site(`wild.pem wild.key {\n\t\tclient_auth {\n\t\t\ttrust_pool storage ${words}\n\t\t}\n\t}`);
	assert.equal(stored('trust/ca.pem'), []);
	assert.equal(stored('{\n\t\t\t\tkeys a b/c\n\t\t\t\tstorage file_system store\n\t\t\t}'), []);
	assert.equal(stored('/etc/passwd ../x a//b a/./b'), Array(4).fill('tls/store-key'));
	assert.equal(stored(''), ['arguments/too-few']);
});

https(
	'a site below a wildcard that requires client certificates requires none itself, whatever else the wildcard sets (fact C33)',
	() => {
		const text =
			'*.example.com {\n\ttls wild.pem wild.key {\n\t\tprotocols tls1.3\n\t\tclient_auth {\n\t\t\ttrust_pool file ca.pem\n\t\t}\n\t}\n}\npublic.example.com {\n}\n';
		const { tls } = compiled(text).plan!.listeners.find(({ scheme }) => scheme === 'https')!;
		const shield = tls!.policies[tls!.names['public.example.com']!]!;
		assert.is(shield.client_auth, undefined);
		assert.is(shield.min_version, 'tls1.3');
		assert.is(tls!.policies[tls!.names['*.example.com']!]!.client_auth!.mode, 'require_and_verify');
		assert.is(tls!.strict_sni_host, true);
	},
);

https('options for the DNS challenge need a provider (fact L11), in the site or in the global options', () => {
	const diagnostics = compiled(':443 {\n\ttls {\n\t\tpropagation_delay 30s\n\t}\n}\n').diagnostics[0]!;
	assert.match(
		diagnostics.message,
		"setting DNS challenge options [propagation_delay] requires a DNS provider (set with the 'dns' subdirective or 'acme_dns' global option), at Compatfile:4",
	);
	assert.equal(errors('{\n\tacme_dns exec /bin/true\n}\na.example {\n\ttls {\n\t\tresolvers 1.1.1.1\n\t}\n}\n'), []);
});

https.run();
