/** Credentials of issuers and DNS providers in both languages: how they are compiled, and that no credential is ever shown. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../../compiler/compiler.ts';
import { dnsProviders } from '../../../../compiler/modules/providers/dns/index.ts';
import { issuers } from '../../../../compiler/modules/providers/issuers/index.ts';
import { stores } from '../../../../compiler/modules/providers/stores/index.ts';
import { redactSecrets } from '../../../../compiler/schema/secrets.ts';
import type { Reader } from '../../../../compiler/source/reader.ts';

const reader: Reader = {
	readText: () => '',
	readBytes: () => new Uint8Array(),
	list: () => [],
	kind: () => undefined,
	env: () => 'hidden-value',
	workingDirectory: '/work',
};

function compiled(text: string, format: 'configfile' | 'compatfile' = 'configfile') {
	return compile({ format, text, name: format === 'configfile' ? 'Configfile' : 'Compatfile' }, reader);
}

/** Returns the error messages of a global options block. */
function errorMessages(block: string, format: 'configfile' | 'compatfile' = 'compatfile'): string[] {
	const { diagnostics } = compiled(`{\n${block}\n}\nhttp://:8080\n`, format);
	return diagnostics.filter(({ severity }) => severity === 'error').map(({ message }) => message);
}

const credentials = suite('issuer credentials');

credentials('credentials of issuers and providers are redacted at every place', () => {
	const { document, diagnostics } = compiled(`{
	acme_dns cloudflare {$X}
	dns route53 {
		access_key_id open
		secret_access_key {$X}
		session_token {$X}
	}
	acme_eab {
		key_id open
		mac_key {$X}
	}
	cert_issuer acme {
		eab open {$X}
		dns rfc2136 {
			server 127.0.0.1
			key_name open
			key {$X}
		}
	}
}
example.com {
	tls {
		issuer acme https://acme.example.com/dir {
			dns hetzner {$X}
			eab open {$X}
		}
	}
	respond "ok"
}
other.com {
	tls {
		dns digitalocean {$X}
	}
	respond "ok"
}
`);
	assert.equal(
		diagnostics.filter(({ severity }) => severity === 'error').map(({ message }) => message),
		[],
	);
	assert.is(JSON.stringify(document).split('hidden-value').length - 1, 9);
	const redactedText = JSON.stringify(redactSecrets(document));
	assert.is(redactedText.includes('hidden-value'), false);
	assert.is(redactedText.split('[redacted]').length - 1, 9);
	assert.ok(redactedText.includes('"open"'));
});

credentials('a credential below alternatives without a tag is hidden too', () => {
	const proxy = { url: 'socks5://127.0.0.1:1', username: 'open', password: 'hidden-value' };
	const upstreams = { to: ['127.0.0.1:1'], transport: { type: 'http', forward_proxy: proxy } };
	const shown = JSON.stringify(
		redactSecrets({ sites: [{ addresses: [':1'], pipeline: [{ handler: 'proxy', upstreams }] }] }),
	);
	assert.ok(shown.includes('"password":"[redacted]"') && !shown.includes('hidden-value'), shown);
});

credentials('a credential that is written down is warned of, one from the environment is not', () => {
	const warnings = (token: string): number =>
		compiled(`{\n\tdns cloudflare ${token}\n}\nhttp://:8080\n`).diagnostics.filter(
			({ code }) => code === 'secret/in-file',
		).length;
	assert.equal([warnings('abc'), warnings('{$TOKEN}'), warnings('{env.TOKEN}')], [1, 0, 0]);
});

credentials('mistakes are worded as Caddy words them', () => {
	const at = (line: string): string[] => errorMessages(`cert_issuer acme {\n${line}\n}`);
	assert.match(at('nonsense')[0]!, /unrecognized ACME issuer property: nonsense/);
	assert.match(at('distributed true')[0]!, /only accepted value is 'false'/);
	assert.match(at('lifetime -5m')[0]!, /lifetime must be >= 0: -5m/);
	assert.match(
		errorMessages('cert_issuer acme https://a {\ndir https://b\n}')[0]!,
		/directory is already specified: https:\/\/a/,
	);
	assert.match(at('preferred_chains biggest')[0]!, /Invalid argument 'biggest'/);
	assert.match(
		at('preferred_chains {\nroot_common_name A\nany_common_name B\n}')[0]!,
		/Can't set any_common_name when root_common_name is already set/,
	);
	assert.match(
		errorMessages('pki {\nca {\nrenewal_window_ratio 1.5\n}\n}')[0]!,
		/must be a number in \(0, 1\], got 1\.5/,
	);
	assert.match(errorMessages('pki {\nnonsense\n}')[0]!, /unrecognized pki option 'nonsense'/);
	assert.match(errorMessages('pki {\nca {\nnonsense\n}\n}')[0]!, /unrecognized pki ca option 'nonsense'/);
	assert.match(
		errorMessages('pki {\nca {\nroot {\nnonsense\n}\n}\n}').join(),
		/unrecognized pki ca root option 'nonsense'/,
	);
	assert.match(errorMessages('storage_check on')[0]!, /storage_check must be 'off'/);
});

credentials('missing settings of a provider are reported, and unknown providers get the nearest name', () => {
	assert.match(errorMessages('dns cloudflare', 'configfile')[0]!, /needs `api_token`/);
	assert.match(errorMessages('dns cloudflair x', 'configfile')[0]!, /`cloudflair` is not a DNS provider/);
	assert.match(errorMessages('dns rfc2136 127.0.0.1 {\nkey_alg md5\n}', 'configfile')[0]!, /not a valid `key_alg`/);
	assert.match(errorMessages('storage consul', 'configfile')[0]!, /`consul` is not a store/);
	assert.match(errorMessages('cert_issuer nobody', 'configfile')[0]!, /`nobody` is not an issuer/);
	assert.match(
		errorMessages('cert_issuer zerossl key', 'configfile')[0]!,
		/`issuer zerossl` is not supported by this build yet/,
	);
});

for (const { id, usage, summary, documentation } of [...issuers, ...dnsProviders, ...stores]) {
	credentials(`${id} is documented`, () => {
		assert.ok(usage.length > 5 && documentation.length > 40, id);
		assert.match(summary, /^[A-Z].*\.$/);
	});
}

credentials.run();
