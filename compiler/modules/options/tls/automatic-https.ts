/** Global options of automatic HTTPS: `auto_https`, `local_certs`, `skip_install_trust`, `default_sni`, `fallback_sni`. */
import type { GlobalOption } from '../../contract/option.ts';
import { flagOption, parseServerName, valueOption } from './words.ts';

const AUTO_HTTPS_MODES = ['off', 'disable_redirects', 'disable_certs', 'ignore_loaded_certs'] as const;

/** Global option; sets `settings.auto_https` in the document. */
export const autoHttps: GlobalOption = {
	id: 'auto_https',
	names: { configfile: ['auto_https'], compatfile: ['auto_https'] },
	usage: 'auto_https <mode>…',
	summary: 'Disables parts of automatic HTTPS.',
	documentation: [
		'By default, sites with a host name get a certificate, and HTTP requests are redirected. `off` disables both, `disable_redirects` the',
		'redirects, `disable_certs` the certificates. `ignore_loaded_certs` also obtains certificates for names that a certificate from',
		'files covers.',
		'',
		'```',
		'{',
		'	auto_https disable_redirects',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, autoHttps.usage)) return;
		const modes: string[] = [];
		for (const word of args) {
			const mode = AUTO_HTTPS_MODES.find(name => name === word.text);
			if (mode) modes.push(mode);
			else if (cx.dialect === 'configfile') cx.oneOf(word, AUTO_HTTPS_MODES, 'mode of `auto_https`');
			else {
				const message =
					"auto_https must be one of 'off', 'disable_redirects', 'disable_certs', or 'ignore_loaded_certs'";
				cx.problem('error', 'value/unknown', word.span, message);
			}
		}
		settings.auto_https = [...new Set(modes)];
	},
	schema: { type: 'array', items: { enum: AUTO_HTTPS_MODES } },
	startup: false,
};

const localCertsBase: GlobalOption = flagOption({
	id: 'local_certs',
	summary: 'Obtains all certificates from the internal authority.',
	documentation: 'For development: no public authority is used.\n\n```\n{\n\tlocal_certs\n}\n```',
});

/** Global option; sets `settings.local_certs` in the document. */
export const localCerts: GlobalOption = {
	...localCertsBase,
	lower: (line, settings, cx) => {
		localCertsBase.lower(line, settings, cx);
		if (settings.cert_issuers === undefined) return;
		const message = '`cert_issuer` and `local_certs` contradict each other.';
		cx.problem('error', 'option/contradiction', line.words[0]!.span, message);
	},
};

/** Global option; sets `settings.skip_install_trust` in the document. */
export const skipInstallTrust: GlobalOption = flagOption({
	id: 'skip_install_trust',
	summary: "Leaves the machine's trust stores unchanged.",
	documentation:
		"Accepted for compatibility: this server never changes them by itself; `svc trust` installs the internal authority's root.\n\n```\n{\n\tskip_install_trust\n}\n```",
});

/** Global option; sets `settings.default_sni` in the document. */
export const defaultSni: GlobalOption = valueOption({
	id: 'default_sni',
	usage: 'default_sni <name>',
	summary: 'Sets the server name assumed for clients that send none.',
	documentation: 'For old clients and requests by IP address.\n\n```\n{\n\tdefault_sni example.com\n}\n```',
	schema: { type: 'string', minLength: 1 },
	parseValue: parseServerName,
});

/** Global option; sets `settings.fallback_sni` in the document. */
export const fallbackSni: GlobalOption = valueOption({
	id: 'fallback_sni',
	usage: 'fallback_sni <name>',
	summary: 'Sets the server name whose certificate is served to clients that request an unknown name.',
	documentation: 'Without it, such handshakes fail.\n\n```\n{\n\tfallback_sni example.com\n}\n```',
	schema: { type: 'string', minLength: 1 },
	parseValue: parseServerName,
});
