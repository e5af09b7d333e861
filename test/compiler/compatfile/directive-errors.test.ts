/** Errors in directives and options of the compatible language, with the messages that its documentation gives. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compileText, errors } from './page.ts';

/** Pairs of lines of a site `:80` (or a whole file, if it starts with `{` or `&`) and the expected error. */
const DIRECTIVES: readonly (readonly [lines: string, message: string])[] = [
	['bind 127.0.0.1 {\nprotocols\n}', 'protocols requires one or more arguments'],
	['bind 127.0.0.1 {\nnope\n}', 'unknown subdirective: nope'],
	['tls', "wrong argument count or unexpected line ending after 'tls'"],
	['tls x', "single argument must either be 'internal', 'force_automate', or an email address"],
	['tls a b c', 'wrong argument count or unexpected line ending'],
	['tls {\nprotocols tls1.1\n}', "wrong protocol name or protocol not supported: 'tls1.1'"],
	['tls {\nprotocols\n}', 'protocols requires one or two arguments'],
	['tls {\nprotocols tls1.2 tls1.3 tls1.3\n}', 'protocols requires one or two arguments'],
	['tls {\nciphers X\n}', "wrong cipher suite name or cipher suite not supported: 'X'"],
	['tls {\ncurves x448\n}', "Wrong curve name or curve not supported: 'x448'"],
	[
		'tls {\npropagation_delay 30s\nresolvers 192.0.2.1\n}',
		"setting DNS challenge options [propagation_delay, resolvers] requires a DNS provider (set with the 'dns' subdirective or 'acme_dns' global option), at Compatfile:5",
	],
	[
		'tls {\nissuer internal\nca https://x.example\n}',
		'cannot mix issuer subdirective (explicit issuers) with other issuer-specific subdirectives (implicit issuers)',
	],
	['tls internal {\nca https://x.example\n}', 'cannot create both ACME and internal certificate issuers'],
	['tls {\npropagation_delay x\n}', 'invalid propagation_delay duration x: '],
	['tls {\nrenewal_window_ratio 1\n}', 'renewal_window_ratio must be between 0 and 1 (exclusive)'],
	['tls {\nnope\n}', 'unknown subdirective: nope'],
	['handle_errors 40 {\n}', "bad status value '40'"],
	['handle_errors 4xxx {\n}', "bad status value '4xxx'"],
	['handle_path x {\n}', "path matcher must begin with '/', got x"],
	['root', 'too few arguments; must have at least a root path'],
	['root a b c', 'too many arguments; should only be a matcher and a path'],
	['error a 500 {\nmessage b\n}', 'message already specified'],
	['error', "wrong argument count or unexpected line ending after 'error'"],
	['respond', "wrong argument count or unexpected line ending after 'respond'"],
	['respond a 200 {\nbody b\n}', 'body already specified'],
	['respond a {\nclose\nclose\n}', 'close already specified'],
	['redir', "wrong argument count or unexpected line ending after 'redir'"],
	['redir https://x 200', "Redir code not in the 3xx range or 401: '200'"],
	['redir https://x sometimes', "Not a supported redir code type or not valid integer: 'sometimes'"],
	['header a b {\nc d\n}', 'cannot specify headers in both arguments and block'],
	[
		'request_header ?A b',
		"A: the default header modifier ('?') can only be used on response headers; for conditional manipulation of request headers, use matchers",
	],
	['rewrite', 'too few arguments; must have at least a rewrite URI'],
	['rewrite a b c', 'too many arguments; should only be a matcher and a URI'],
	['uri replace a b c', 'limit must be an integer; invalid: '],
	['uri path_regexp "" x', 'path_regexp find cannot be empty'],
	['uri query a b {\nc d\n}', 'Cannot specify uri query rewrites in both argument and block'],
	['uri turn x', "unrecognized URI manipulation 'turn'"],
	['try_files a {\npolicy newest\n}', 'unrecognized try policy: newest'],
	['map {host} {\n}', 'missing destination argument(s)'],
	['map {host} {path} {\n}', 'destination {path} conflicts with a Compatfile placeholder shorthand'],
	['map {host} {a} {\nx 1 2\n}', 'too many outputs'],
	['map {host} {a} {\ndefault 1\ndefault 2\n}', 'defaults already defined'],
	['map {host} a {\nx 1\n}', 'destination must be a placeholder and only a placeholder'],
	['map {host} {a} {\nx 1\ny 2\nx 3\n}', "mapping 2 has a duplicate input 'x' previously used with mapping 0"],
	['basic_auth {\nbob\n}', 'username and password cannot be empty or missing'],
	['basic_auth {\n"" x\n}', 'username and password cannot be empty or missing'],
	[
		'basic_auth {\nbob $2b$04$ZpZshsWJKJDyPwjgSOcxNOvLuuk/jzOFG7jQ/4OlKHjAsnKrPgl/S\nbob $2b$04$ZpZshsWJKJDyPwjgSOcxNOvLuuk/jzOFG7jQ/4OlKHjAsnKrPgl/S\n}',
		'account 1: username is not unique: bob',
	],
	['basic_auth md5 {\n}', 'unrecognized hash algorithm: md5'],
	['encode nope', 'nope'],
	['file_server browse {\nbrowse\n}', 'browsing is already configured'],
	['file_server {\nbrowse {\nsort newest\n}\n}', "unknown sort option 'newest'"],
	[
		'file_server {\nbrowse {\nsort name up\n}\n}',
		'the second option must be one of the following: asc, desc, but got up',
	],
	[
		'intercept {\nhandle_response a b {\n}\n}',
		"too many arguments for 'handle_response': only a single response matcher name is allowed, but got: [a b]",
	],
	['intercept {\nhandle_response a {\n}\n}', "must use a named response matcher, starting with '@'"],
	['intercept {\nhandle_response @a {\n}\n}', "no named response matcher defined with name 'a'"],
	['intercept {\nreplace_status\n}', 'must have one or two arguments: an optional response matcher, and a status code'],
	[
		'intercept {\nreplace_status 200 {\nrespond x\n}\n}',
		"cannot define routes for 'replace_status', use 'handle_response' instead.",
	],
	['intercept {\nnope\n}', 'unrecognized subdirective nope'],
	[
		'reverse_proxy a {\nhandle_response {\ncopy_response_headers {\ninclude a\nexclude b\n}\n}\n}',
		"cannot define both 'exclude' and 'include' lists at the same time",
	],
	['acme_server {\nchallenges x\n}', 'acme challenge "x" is not supported'],
	['acme_server {\nresolvers\n}', 'must specify at least one resolver address'],
	['acme_server {\nnope\n}', 'unrecognized ACME server directive: nope'],
	['acme_server {\nallow {\nnope\n}\n}', "unrecognized 'allow' subdirective: nope"],
	['log {\nlevel INFO\nlevel INFO\n}', "'level' subdirective specified more than once in the same log block"],
	['log {\nsampling {\nfirst 1\nfirst 2\n}\n}', "'first' specified more than once in the same sampling block"],
	['log {\ninclude a\n}', 'include is not allowed in the log directive'],
	['log {\nexclude a\n}', 'exclude is not allowed in the log directive'],
	[
		'log {\nformat filter {\na delete\na hash\n}\n}',
		'field a already has a filter; multiple non-regexp filters per field are not supported',
	],
	[
		'log {\nformat filter {\na regexp b c\na hash\n}\n}',
		'cannot mix regexp filters with other filter types for field a',
	],
	['forward_auth a {\n}', "the 'uri' subdirective is required"],
	['forward_auth a {\nuri /a\nuri /b\n}', 'cannot re-declare uri: /b'],
	[
		'reverse_proxy wss://a',
		"parsing upstream 'wss://a': the scheme wss:// is only supported in browsers; use https:// instead",
	],
	['reverse_proxy ws://a', 'the scheme ws:// is only supported in browsers; use http:// instead'],
	['reverse_proxy ftp://a', 'unsupported URL scheme ftp://'],
	[
		'reverse_proxy http://a https://b',
		"for now, all proxy upstreams must use the same scheme (transport protocol); expecting 'http://' but got 'https://'",
	],
	['reverse_proxy http://a/', 'for now, URLs for proxy upstreams only support scheme, host, and port components'],
	['reverse_proxy http://a?b', 'for now, URLs for proxy upstreams only support scheme, host, and port components'],
	['reverse_proxy http://a:443', 'upstream address has conflicting scheme (http://) and port (:443, the HTTPS port)'],
	['reverse_proxy https://a:80', 'upstream address has conflicting scheme (https://) and port (:80, the HTTP port)'],
	['reverse_proxy h2c://a:443', 'upstream address has conflicting scheme (h2c://) and port (:443, the HTTPS port)'],
	[
		'reverse_proxy http://{host}',
		'due to parsing difficulties, placeholders are not allowed when an upstream address contains a scheme',
	],
	[
		'reverse_proxy http://a {\ntransport http {\ntls\n}\n}',
		'upstream address scheme is HTTP but transport is configured for HTTP+TLS (HTTPS)',
	],
	[
		'reverse_proxy https://a {\ntransport fastcgi\n}',
		'upstreams are configured for HTTPS but transport module does not support TLS: ',
	],
	['reverse_proxy a {\ndynamic a b\ndynamic a c\n}', 'dynamic upstreams already specified'],
	['reverse_proxy a {\nhealth_upstream b:1\nhealth_port 1\n}', 'health_upstream'],
	['reverse_proxy a {\ntransport http\ntransport http\n}', 'transport already specified'],
	['reverse_proxy a {\nnope\n}', 'unrecognized subdirective nope'],
	[
		'reverse_proxy a {\nlb_policy weighted_round_robin 0\n}',
		'weighted_round_robin requires at least one upstream with a positive weight',
	],
	[
		'reverse_proxy a {\nlb_policy weighted_round_robin -1\n}',
		"invalid weight value '-1': weight should be non-negative",
	],
	['reverse_proxy {\ndynamic srv a {\nnope\n}\n}', "unrecognized srv option 'nope'"],
	['reverse_proxy {\ndynamic a b {\nnope\n}\n}', "unrecognized a option 'nope'"],
	['reverse_proxy {\ndynamic a b {\nversions ipv5\n}\n}', "unsupported version: 'ipv5'"],
	['reverse_proxy a {\ntransport http {\nproxy_protocol v3\n}\n}', "invalid proxy protocol version 'v3'"],
	['invoke nope', "cannot invoke named route 'nope', which was not defined"],
];

/** Pairs of lines of global options and the expected error. */
const OPTIONS: readonly (readonly [lines: string, message: string])[] = [
	['nope', 'unrecognized global option: nope'],
	['storage_check on', "storage_check must be 'off'"],
	['persist_config on', "persist_config must be 'off'"],
	['admin off x', 'No more option is allowed after turning off admin config'],
	['admin {\nnope\n}', "unrecognized parameter 'nope'"],
	['log\nlog', 'duplicate global log option for: default'],
	['auto_https x', "auto_https must be one of 'off', 'disable_redirects', 'disable_certs', or 'ignore_loaded_certs'"],
	['acme_eab {\nnope x\n}', "unrecognized parameter 'nope'"],
	['acme_dns', "acme_dns specified without DNS provider config, but no provider specified with 'dns' global option"],
	['preferred_chains x', "Invalid argument 'x'"],
	['on_demand_tls', 'expected at least one config parameter for on_demand_tls'],
	['on_demand_tls {\nask http://a\nask http://b\n}', "on-demand TLS permission module (or 'ask') already specified"],
	[
		'on_demand_tls {\ninterval 1s\n}',
		"the on_demand_tls 'interval' option is no longer supported, remove it from your config",
	],
	[
		'on_demand_tls {\nburst 1\n}',
		"the on_demand_tls 'burst' option is no longer supported, remove it from your config",
	],
	['ocsp_stapling on', "invalid argument 'on'"],
	['local_certs\ncert_issuer internal', 'local_certs'],
	['servers :80 {\n}\nservers :80 {\n}', "cannot have 'servers' global options with duplicate listener addresses: :80"],
	['servers {\nnope\n}', "unrecognized servers option 'nope'"],
	['servers {\nname x\n}', 'cannot set a name for a server without a listener address'],
	['servers :80 {\nname x\n}\nservers :81 {\nname x\n}', "cannot use duplicate server name 'x'"],
	[
		'servers {\nlistener_wrappers {\ntls\n}\n}',
		'it is unnecessary to specify the TLS listener wrapper in the first position because that is the default',
	],
	['servers {\nlistener_wrappers {\nhttp_redirect\ntls\ntls\n}\n}', 'TLS listener wrapper can only be specified once'],
	['servers {\ntimeouts {\nnope 1s\n}\n}', "unrecognized timeouts option 'nope'"],
	['servers {\nprotocols h4\n}', "unknown protocol 'h4': expected h1, h2, h2c, or h3"],
	['servers {\nprotocols h1 h1\n}', 'protocol h1 specified more than once'],
	['servers {\nstrict_sni_host x\n}', "strict_sni_host only supports 'on' or 'insecure_off', got 'x'"],
	['servers {\ntrusted_proxies\n}', 'trusted_proxies expects an IP range source module name as its first argument'],
	['servers {\nclient_ip_headers A B A\n}', 'client IP header A specified more than once'],
	['servers {\n0rtt on\n}', "unsupported 0rtt argument 'on' (only 'off' is supported)"],
	['servers {\nlistener_wrappers {\nproxy_protocol {\nfallback_policy x\n}\n}\n}', 'x is invalid policy'],
	['cert_issuer acme {\nnope\n}', 'unrecognized ACME issuer property: nope'],
	['cert_issuer acme https://a {\ndir https://b\n}', 'directory is already specified: https://a'],
	['cert_issuer acme {\ndistributed true\n}', "only accepted value is 'false'"],
	['cert_issuer acme {\nlifetime -1s\n}', 'lifetime must be >= 0: '],
	['pki {\nnope\n}', "unrecognized pki option 'nope'"],
	['pki {\nca {\nnope\n}\n}', "unrecognized pki ca option 'nope'"],
	['pki {\nca {\nroot {\nnope x\n}\n}\n}', "unrecognized pki ca root option 'nope'"],
	['pki {\nca {\nintermediate {\nnope x\n}\n}\n}', "unrecognized pki ca intermediate option 'nope'"],
	['pki {\nca {\nrenewal_window_ratio 2\n}\n}', 'renewal_window_ratio must be a number in (0, 1], got 2'],
];

for (const [name, table] of [
	['directives', DIRECTIVES],
	['options', OPTIONS],
] as const) {
	const refused = suite(`errors in ${name}`);
	for (const [lines, message] of table) {
		refused(lines.replaceAll('\n', '; '), () => {
			const text = name === 'options' ? `{\n${lines}\n}\n:80\n` : `:80 {\n${lines}\n}\n`;
			const messages = errors(compileText(text));
			assert.ok(
				messages.some(one => one.includes(message)),
				`wants ${message}\ngot   ${messages.join('\n      ')}`,
			);
		});
	}
	refused.run();
}
