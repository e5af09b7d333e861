/** Global options and shorthands of the compatible language: a test for each statement of their documentation. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compileText, compileToDocument, DryRunServer, errors } from './page.ts';

const settings = (lines: string): unknown => compileToDocument(`{\n${lines}\n}\n:80 {\n}\n`).settings;

const options = suite('options');
/** Pairs of an option that is given twice and the single option that has the same effect. */
for (const [twice, once] of [
	['grace_period 1s\ngrace_period 2s', 'grace_period 2s'],
	['http_port 81\nhttp_port 82', 'http_port 82'],
	['email a@x.example\nemail b@x.example', 'email b@x.example'],
	['admin localhost:1\nadmin localhost:2', 'admin localhost:2'],
	['default_bind 127.0.0.1\ndefault_bind ::1', 'default_bind 127.0.0.1 ::1'],
	['cert_issuer internal\ncert_issuer acme', 'cert_issuer internal\ncert_issuer acme'],
] as const) {
	options(`repeated: ${twice.replaceAll('\n', '; ')}`, () => assert.equal(settings(twice), settings(once)));
}
options('repeated servers, log and pki options accumulate', () => {
	const accumulated = settings(
		'servers :80 {\nname a\n}\nservers :81 {\nname b\n}\nlog a {\n}\nlog b {\n}\npki {\nca a {\nname x\n}\n}\npki {\nca b {\nname y\n}\n}',
	) as {
		servers: unknown[];
		logs: object;
		pki: { authorities: object };
	};
	assert.is(accumulated.servers.length, 2);
	assert.equal(Object.keys(accumulated.logs), ['a', 'b']);
	assert.equal(Object.keys(accumulated.pki.authorities), ['a', 'b']);
});
/** Two accepted forms of each option. */
for (const [short, long] of [
	['storage file_system /x', 'storage file_system {\nroot /x\n}'],
	['admin off', 'admin off'],
	['on_demand_tls {\nask http://localhost/ask\n}', 'on_demand_tls {\npermission http http://localhost/ask\n}'],
	['auto_https off', 'auto_https off'],
	['preferred_chains smallest', 'preferred_chains smallest'],
	['pki {\nca {\nname x\n}\n}', 'pki {\nca local {\nname x\n}\n}'],
	[
		'servers {\ntrusted_proxies static private_ranges\n}',
		'servers {\ntrusted_proxies static 192.168.0.0/16 172.16.0.0/12 10.0.0.0/8 127.0.0.1/8 fd00::/8 ::1\n}',
	],
	['storage_clean_interval 24h', 'storage_clean_interval 1d'],
] as const) {
	options(short.replaceAll('\n', '; '), () => assert.equal(settings(short), settings(long)));
}
for (const lines of [
	'debug',
	'http_port 8080\nhttps_port 8443',
	'default_bind 127.0.0.1 {\nprotocols h1\n}',
	'storage_check off',
	'storage_clean_interval off',
	'persist_config off',
	'shutdown_delay 1s',
	'metrics {\nper_host\nobserve_catchall_hosts\n}',
	'auto_https disable_redirects ignore_loaded_certs',
	'default_sni x.example\nfallback_sni y.example',
	'local_certs\nskip_install_trust',
	'acme_ca https://ca.example/dir\nacme_eab {\nkey_id a\nmac_key YWFh\n}',
	'tls_resolvers 1.1.1.1 9.9.9.9',
	'key_type ed25519\ncert_lifetime 7d\nrenew_interval 5m\nocsp_interval 2h\nocsp_stapling off\nrenewal_window_ratio 0.5',
	'preferred_chains {\nroot_common_name "A B" C\n}',
	'preferred_chains {\nany_common_name "A B"\n}',
	'admin :2020 {\norigins a.example b.example\nenforce_origin\n}',
	'servers {\ntimeouts {\nread_body 1s\nread_body_idle 1s 100\nread_header 1s\nwrite 1s\nwrite_idle 1s 100\nwrite_max_chunk 4KiB\nidle 1s\n}\nkeepalive_interval -1s\nkeepalive_idle 1s\nkeepalive_count 3\nmax_header_size 8KiB\nenable_full_duplex\nprotocols h1 h2c\nstrict_sni_host\n}',
	'servers {\nstrict_sni_host insecure_off\ntrusted_proxies static 10.0.0.0/8\ntrusted_proxies_strict\ntrusted_proxies_unix\nclient_ip_headers A B\nclient_ip_headers C\nexpected_underscore_headers a_b c_*\nexpected_dot_headers a.b\nlog_credentials\ntrace\n0rtt off\nmetrics\n}',
	'servers {\nlistener_wrappers {\nproxy_protocol {\ntimeout 1s\nallow 10.0.0.0/8\ndeny 10.1.0.0/16\nfallback_policy REJECT\n}\nhttp_redirect\ntls\n}\n}',
	'log {\noutput stdout\nlevel WARN\nsampling {\ninterval 1s\nfirst 1\nthereafter 2\n}\ninclude a\nexclude a.b\n}',
	'cert_issuer internal {\nca local\nlifetime 6h\nsign_with_root\n}',
	'cert_issuer acme https://ca.example/dir {\nemail a@x.example\nprofile p\ntimeout 1m\ndisable_http_challenge\nalt_http_port 81\nalt_tlsalpn_port 444\ndistributed false\n}',
	'pki {\nca x {\nname n\nroot_cn r\nintermediate_cn i\nintermediate_lifetime 1d\nmaintenance_interval 1m\nrenewal_window_ratio 1\n}\n}',
]) {
	options(`accepted: ${lines.replaceAll('\n', '; ')}`, () => {
		assert.equal(errors(compileText(`{\n${lines}\n}\n:80 {\n}\n`)), []);
	});
}

options('protocols on default_bind apply to sites without bind', () => {
	const text = '{\ndefault_bind 127.0.0.1 {\nprotocols h1\n}\n}\n:80 {\n}\n:81 {\nbind ::1\n}\n';
	assert.equal(
		compileText(text).plan!.listeners.map(({ host, protocols }) => [host, protocols]),
		[
			['127.0.0.1', ['h1']],
			['::1', undefined],
		],
	);
});

const shorthands = suite('shorthands');
/** Pairs of a placeholder shorthand from the documentation and its full name. */
for (const [short, full] of [
	...['host', 'hostport', 'port', 'method', 'scheme', 'uuid'].map(name => [name, `http.request.${name}`]),
	...[
		['uri', 'uri'],
		['%uri', 'uri_escaped'],
		['path', 'uri.path'],
		['%path', 'uri.path_escaped'],
		['dir', 'uri.path.dir'],
		['file', 'uri.path.file'],
		['query', 'uri.query'],
		['%query', 'uri.query_escaped'],
		['?query', 'uri.prefixed_query'],
		['orig_method', 'orig_method'],
		['orig_uri', 'orig_uri'],
		['orig_path', 'orig_uri.path'],
		['orig_dir', 'orig_uri.path.dir'],
		['orig_file', 'orig_uri.path.file'],
		['orig_query', 'orig_uri.query'],
		['orig_?query', 'orig_uri.prefixed_query'],
		['remote', 'remote'],
		['remote_host', 'remote.host'],
		['remote_port', 'remote.port'],
		['tls_cipher', 'tls.cipher_suite'],
		['tls_version', 'tls.version'],
		['tls_client_fingerprint', 'tls.client.fingerprint'],
		['tls_client_issuer', 'tls.client.issuer'],
		['tls_client_serial', 'tls.client.serial'],
		['tls_client_subject', 'tls.client.subject'],
		['tls_client_certificate_pem', 'tls.client.certificate_pem'],
		['tls_client_certificate_der_base64', 'tls.client.certificate_der_base64'],
		['header.X-a_1', 'header.X-a_1'],
		['cookie.X-a_1', 'cookie.X-a_1'],
		['query.X-a_1', 'uri.query.X-a_1'],
		['labels.1', 'host.labels.1'],
		['path.1', 'uri.path.1'],
		['file.base', 'uri.path.file.base'],
	].map(([name, rest]) => [name, `http.request.${rest}`]),
	['client_ip', 'http.vars.client_ip'],
	['upstream_hostport', 'http.reverse_proxy.upstream.hostport'],
	['re.a.1', 'http.regexp.a.1'],
	['vars.a', 'http.vars.a'],
	['rp.status_code', 'http.reverse_proxy.status_code'],
	['rp.header.X-a', 'http.reverse_proxy.header.X-a'],
	['resp.header.X-a', 'http.intercept.header.X-a'],
	['err.status_code', 'http.error.status_code'],
	['file_match.relative', 'http.matchers.file.relative'],
] as const) {
	shorthands(`{${short}}`, () => {
		const page = (text: string): unknown => compileToDocument(`:80 {\nrespond "a{${text}}b" {${text}}\n}\n`);
		assert.equal(page(short!), page(full!));
	});
}
shorthands('{file./etc/x} is not a shorthand, and shorthands in options and addresses are not expanded', () => {
	assert.match(JSON.stringify(compileToDocument(':80 {\nrespond "{file./etc/x}"\n}\n')), '{file./etc/x}');
	assert.is(errors(compileText('{\nlog a {\noutput file /tmp/{host}\n}\n}\n:80 {\n}\n')).length, 1);
	assert.is(errors(compileText('http://{host} {\n}\n')).length, 1);
});
shorthands('shorthands are expanded in named routes', () => {
	assert.match(
		JSON.stringify(compileToDocument('&(a) {\nrespond {host}\n}\n:80 {\ninvoke a\n}\n')),
		'{http.request.sent_host}',
	);
});

const unknown = suite('unknown placeholders');
for (const [lines, body] of [
	['respond "{no.such}"', '{no.such}'],
	['error "{no.such}" 500\nhandle_errors {\nrespond "{err.message}"\n}', '{no.such}'],
	['header X "{no.such}"\nrespond "{http.response.header.X}"', '{no.such}'],
	['request_header X "{no.such}"\nrespond "{header.x}"', '{no.such}'],
	['uri query a (1) "{no.such}"\nrespond "{query.a}"', '{no.such}'],
	['rewrite * "/a{no.such}"\nrespond "{path}"', '/a'],
	['root * "/a{no.such}"\nrespond "{vars.root}"', '/a'],
	['map "{no.such}" {o} {\n"" empty\ndefault other\n}\nrespond "{o}"', 'empty'],
	['@m vars {no.such} ""\nrespond @m empty', 'empty'],
	['@m path "/{no.such}x"\nrespond @m yes', 'yes'],
	['respond "a {cookie.none} {header.none} {env.SVC_NO_SUCH}."', 'a   .'],
	['respond "\\{host\\}"', '{host}'],
] as const) {
	unknown(lines.replaceAll('\n', '; '), async () => {
		assert.is((await new DryRunServer(`:80 {\n${lines}\n}\n`).ask('http://h/x?a=1')).body, body);
	});
}
unknown('an unknown placeholder in a redirection is empty', async () => {
	const { header } = await new DryRunServer(':80 {\nredir https://x/{no.such}\n}\n').ask('http://h/');
	assert.is(header('location'), 'https://x/');
});

for (const one of [options, shorthands, unknown]) one.run();
