/** Maps words of other servers, and of Caddy's first version, to ours. */

/** A translation of another server's word: what to use here instead of that word. */
export interface ForeignWordTranslation {
	/** The server that the word comes from. */
	readonly server: string;
	/** The directive, option or matcher to use instead; undefined if none is needed. */
	readonly ourWord: string | undefined;
	/** How to use our word, as a sentence. */
	readonly advice: string;
}

type TranslationRow = readonly [words: string, ourWord: string | undefined, advice: string];

const NGINX: readonly TranslationRow[] = [
	['proxy_pass grpc_pass', 'reverse_proxy', 'Write `reverse_proxy 127.0.0.1:9000`.'],
	[
		'proxy_set_header',
		'reverse_proxy',
		'Write `header_up NAME VALUE` in its block; `Host` and `X-Forwarded-*` are sent by default.',
	],
	['proxy_hide_header proxy_pass_header', 'reverse_proxy', 'Write `header_down -NAME` in its block.'],
	[
		'proxy_connect_timeout proxy_read_timeout proxy_send_timeout',
		'reverse_proxy',
		'Write `dial_timeout`, `read_timeout` or `write_timeout` in its `transport http`.',
	],
	[
		'proxy_http_version proxy_ssl_server_name proxy_ssl_verify',
		'reverse_proxy',
		'Its `transport http` has options for that.',
	],
	['proxy_buffering', 'reverse_proxy', 'Write `flush_interval -1` in its block to pass everything on immediately.'],
	['proxy_next_upstream', 'reverse_proxy', 'Write `lb_retries` and `lb_retry_match` in its block.'],
	['proxy_redirect', 'reverse_proxy', 'Write `header_down Location FIND REPLACE` in its block.'],
	[
		'proxy_cookie_flags proxy_cookie_domain proxy_cookie_path',
		'reverse_proxy',
		'Write `header_down Set-Cookie FIND REPLACE` in its block; a Configfile has `cookie`, too.',
	],
	['sub_filter sub_filter_types sub_filter_once', undefined, 'Write `replace TEXT REPLACEMENT` in a Configfile.'],
	['mirror_request_body', undefined, 'Write `body off` in the block of `mirror` in a Configfile.'],
	[
		'proxy_intercept_errors',
		'reverse_proxy',
		'Write `handle_response` in its block; in a Configfile, `errors_page { intercept }` is enough.',
	],
	['proxy_cache proxy_cache_path proxy_cache_valid proxy_cache_key', 'cache', 'Write it before `reverse_proxy`.'],
	['upstream', 'reverse_proxy', 'It takes several addresses: `reverse_proxy 10.0.0.1:80 10.0.0.2:80`.'],
	['add_header more_set_headers', 'header', 'Write `header NAME VALUE`.'],
	['more_clear_headers', 'header', 'Write `header -NAME`.'],
	['expires', 'header', 'Write `header Cache-Control max-age=3600`.'],
	['server_name listen', undefined, 'Names and ports form the address of a site: `example.com {`.'],
	['server', undefined, 'A site begins with its address: `example.com {`.'],
	['http events stream', undefined, 'Write sites at the top level, not inside another block.'],
	['location', 'handle', 'Write `handle /path/* { … }`; `handle_path` also strips the prefix.'],
	['alias', 'handle_path', 'Write `handle_path /path/* { … }` with a `root` in it.'],
	[
		'limit_req limit_req_zone',
		'rate_limit',
		'Write `rate_limit ZONE 10 per 1s`; `burst` and `delay` in its block are those of `limit_req`.',
	],
	[
		'limit_conn limit_conn_zone',
		'limit_concurrent',
		'Write `limit_concurrent ZONE 10`. It counts requests that run; `limits { connections_per_client N }` in `servers` limits connections.',
	],
	['limit_rate_after', undefined, 'Write `limit_rate RATE after SIZE` in a Configfile.'],
	['split_clients', 'vars', 'Write a matcher `@some share 10% {client_ip}`; a Configfile has `split`, too.'],
	['return', 'respond', 'Write `respond 404`, or `redir URL 301`.'],
	['gzip gzip_types gzip_min_length gzip_comp_level brotli brotli_types', 'encode', 'Write `encode zstd br gzip`.'],
	['gzip_static brotli_static', 'file_server', 'Write `precompressed` in its block.'],
	['index', 'file_server', 'Write `index NAME…` in its block.'],
	['autoindex', 'file_server', 'Write `file_server browse`.'],
	['error_page', 'handle_errors', 'Write `handle_errors 404 { … }`; a Configfile has `errors_page FOLDER`, too.'],
	['access_log', 'log', 'Write `log { output file PATH }`.'],
	['error_log', 'log', 'It is also a global option: `log { output file PATH }`.'],
	['log_format', 'log', 'Write `format combined` or `format text "…"` in its block.'],
	[
		'auth_basic auth_basic_user_file',
		'basic_auth',
		'Write `USER HASH` on a line of its block; `svc hash-password` computes the hash. In a Configfile, `htpasswd FILE` reads a file.',
	],
	['auth_request', 'forward_auth', 'Write `forward_auth ADDRESS { uri PATH }`.'],
	['allow deny', 'error', 'Write `@other not remote_ip 10.0.0.0/8` and `error @other 403`.'],
	[
		'ssl_certificate ssl_certificate_key',
		'tls',
		'Write `tls CERTIFICATE KEY`; without it, the site gets a certificate automatically.',
	],
	['ssl_client_certificate ssl_verify_client', 'tls', 'Write `client_auth` in its block.'],
	[
		'ssl ssl_protocols ssl_ciphers ssl_session_cache ssl_stapling',
		'tls',
		'TLS is on for every host name; the defaults rarely need changing.',
	],
	[
		'fastcgi_pass fastcgi_param fastcgi_index fastcgi_split_path_info',
		'php_fastcgi',
		'Write `php_fastcgi unix//run/php-fpm.sock`.',
	],
	['client_max_body_size', 'request_body', 'Write `request_body { max_size 10MB }`.'],
	[
		'client_body_timeout client_header_timeout send_timeout keepalive_timeout',
		'servers',
		'Write `timeouts` in its block.',
	],
	['real_ip_header set_real_ip_from', 'servers', 'Write `trusted_proxies` and `client_ip_headers` in its block.'],
	['set', 'vars', 'Write `vars NAME VALUE`; `{vars.NAME}` reads it.'],
	[
		'if',
		undefined,
		'A condition is a matcher: define `@name …`, then write `@name` after a directive. In a Configfile, you can also write `when`.',
	],
	['include', 'import', 'Write `import PATH`.'],
	['worker_processes', 'threads', 'It is a global option; the default is the number of cores.'],
];

const HAPROXY: readonly TranslationRow[] = [
	['frontend', undefined, 'A site begins with its address: `example.com {`.'],
	['backend use_backend default_backend', 'reverse_proxy', 'Write `reverse_proxy [matcher] ADDRESS…`.'],
	['acl', undefined, 'Write a named matcher: `@name path /api/*`.'],
	['balance', 'reverse_proxy', 'Write `lb_policy` in its block.'],
	['http-request', 'request_header', 'Write `request_header NAME VALUE`; to refuse, `respond [matcher] 403`.'],
	['http-response', 'header', 'Write `header NAME VALUE`.'],
	['redirect', 'redir', 'Write `redir [matcher] URL [STATUS]`.'],
	['errorfile', 'handle_errors', 'Write `handle_errors 503 { … }`; a Configfile has `errors_page FOLDER`, too.'],
	['maxconn', 'servers', 'Write `limits { connections N }` in its block.'],
	['stick-table', 'reverse_proxy', 'Write `lb_policy cookie` or `lb_policy client_ip_hash` in its block.'],
];

const APACHE: readonly TranslationRow[] = [
	['proxypass proxypassreverse', 'reverse_proxy', 'Write `reverse_proxy /path/* 127.0.0.1:9000`.'],
	['servername serveralias', undefined, 'Names form the address of a site: `example.com {`.'],
	['documentroot', 'root', 'Write `root PATH` and `file_server`.'],
	['directoryindex', 'file_server', 'Write `index NAME…` in its block.'],
	[
		'rewriterule rewritecond rewriteengine',
		'rewrite',
		'Write `rewrite [matcher] TO`, or `uri path_regexp FIND REPLACE`.',
	],
	['redirectmatch redirectpermanent', 'redir', 'Write `redir [matcher] URL permanent`.'],
	['errordocument', 'handle_errors', 'Write `handle_errors 404 { … }`; a Configfile has `errors_page FOLDER`, too.'],
	[
		'sslcertificatefile sslcertificatekeyfile sslengine',
		'tls',
		'Write `tls CERTIFICATE KEY`; without it, the site gets a certificate automatically.',
	],
	['customlog', 'log', 'Write `log { output file PATH }`.'],
	['<virtualhost', undefined, 'A site begins with its address: `example.com {`.'],
	['<location <locationmatch <directory', 'handle', 'Write `handle /path/* { … }`.'],
];

const TRAEFIK: readonly TranslationRow[] = [
	['stripprefix', 'handle_path', 'Write `handle_path /path/* { … }`.'],
	['redirectscheme', undefined, 'Sites with a host name redirect from HTTP to HTTPS automatically.'],
	['forwardauth', 'forward_auth', 'Write `forward_auth ADDRESS { uri PATH }`.'],
	['loadbalancer', 'reverse_proxy', 'Write `reverse_proxy ADDRESS…`.'],
	['ipallowlist ipwhitelist', 'error', 'Write `@other not remote_ip 10.0.0.0/8` and `error @other 403`.'],
];

const CADDY_1: readonly TranslationRow[] = [
	['proxy', 'reverse_proxy', 'Write `reverse_proxy [matcher] ADDRESS…`.'],
	['gzip', 'encode', 'Write `encode zstd br gzip`.'],
	['browse', 'file_server', 'Write `file_server browse`.'],
	['ext', 'try_files', 'Write `try_files {path} {path}.html`.'],
	['fastcgi', 'php_fastcgi', 'Write `php_fastcgi ADDRESS`.'],
	[
		'websocket',
		'reverse_proxy',
		'It passes WebSockets on to a program that listens; this server does not start programs.',
	],
	['markdown', 'templates', 'A template renders Markdown: `{{ markdown (include "page.md") }}`.'],
	['errors', 'handle_errors', 'Write `handle_errors 404 { … }`.'],
	['status', 'respond', 'Write `respond [matcher] 404`.'],
	['internal', 'respond', 'Write `respond [matcher] 404`.'],
	['mime', 'header', 'Write `header [matcher] Content-Type TYPE`.'],
	['limits', 'request_body', 'Write `request_body { max_size 10MB }`.'],
	['realip', 'servers', 'Write `trusted_proxies` in its block.'],
	['cors', 'header', 'Write `header Access-Control-Allow-Origin ORIGIN`.'],
	['expvar pprof', 'metrics', 'It is a global option; the Admin API serves the values.'],
	['startup shutdown on git', undefined, 'This server does not run commands; leave them to the service manager.'],
];

const CADDY_PLUGINS: readonly TranslationRow[] = [['ratelimit', 'rate_limit', 'Write `rate_limit ZONE 10 per 1s`.']];

const TRANSLATIONS_BY_SERVER: readonly (readonly [server: string, entries: readonly TranslationRow[]])[] = [
	['nginx', NGINX],
	['HAProxy', HAPROXY],
	['Apache', APACHE],
	['Traefik', TRAEFIK],
	// If two servers share a word, the list that comes later wins.
	['Caddy 1', CADDY_1],
	['a Caddy plugin', CADDY_PLUGINS],
];

/** Translations of other servers' words. The keys are the words in lower case. */
export type ForeignWords = ReadonlyMap<string, ForeignWordTranslation>;

/** Words that other servers use where a directive is expected, in lower case. */
export const FOREIGN_WORDS: ForeignWords = indexByWord(TRANSLATIONS_BY_SERVER);

/** Words that other servers use in the block of a `reverse_proxy` or an `upstream`. */
export const FOREIGN_PROXY_WORDS: ForeignWords = indexByWord([
	[
		'Caddy 1',
		[
			['transparent', undefined, 'Leave it out: `Host` and `X-Forwarded-*` are sent by default.'],
			['websocket', undefined, 'Leave it out: WebSockets are passed on by default.'],
			['upstream', 'to', 'Write `to ADDRESS…`.'],
			['policy', 'lb_policy', 'Write `lb_policy NAME`.'],
			['try_duration', 'lb_try_duration', 'Write `lb_try_duration DURATION`.'],
			['try_interval', 'lb_try_interval', 'Write `lb_try_interval DURATION`.'],
			['fail_timeout', 'fail_duration', 'Write `fail_duration DURATION`.'],
			['health_check', 'health_uri', 'Write `health_uri PATH`.'],
			['health_check_interval', 'health_interval', 'Write `health_interval DURATION`.'],
			['max_conns', 'unhealthy_request_count', 'Write `unhealthy_request_count N`.'],
			[
				'without',
				undefined,
				'Write `uri strip_prefix PATH` before `reverse_proxy`, or `handle_path PATH/* { … }` around it.',
			],
			['header_upstream', 'header_up', 'Write `header_up NAME VALUE`.'],
			['header_downstream', 'header_down', 'Write `header_down NAME VALUE`.'],
			['insecure_skip_verify', 'transport', 'Write `transport http { tls_insecure_skip_verify }`.'],
			['keepalive', 'transport', 'Write `transport http { keepalive_idle_conns N }`.'],
		],
	],
	[
		'Caddy 2.6',
		[
			['buffer_requests', 'request_buffers', 'Write `request_buffers SIZE`.'],
			['buffer_responses', 'response_buffers', 'Write `response_buffers SIZE`.'],
			['max_buffer_size', undefined, 'Write the size after `request_buffers` or `response_buffers`.'],
		],
	],
	[
		'nginx',
		[
			['server', 'to', 'Write `to ADDRESS…`.'],
			['least_conn ip_hash hash random', 'lb_policy', 'Write `lb_policy NAME`.'],
			['proxy_set_header', 'header_up', 'Write `header_up NAME VALUE`.'],
			['proxy_hide_header', 'header_down', 'Write `header_down -NAME`.'],
		],
	],
]);

function indexByWord(rowsByServer: typeof TRANSLATIONS_BY_SERVER): ForeignWords {
	const translations = new Map<string, ForeignWordTranslation>();
	for (const [server, rows] of rowsByServer) {
		for (const [words, ourWord, advice] of rows)
			for (const word of words.split(' ')) translations.set(word, { server, ourWord, advice });
	}
	return translations;
}

/** Words of a Configfile that a Compatfile lacks, each with advice on what to write there instead. */
const COMPATFILE_EQUIVALENTS: ReadonlyMap<string, string> = new Map([
	['when', 'Here, write named matchers and `handle @name { … }`.'],
	['split', 'Here, write a matcher `@some share 10% {client_ip}` and `handle @some { … }`.'],
	['errors_page', 'Here, write `handle_errors { … }`.'],
	['cookie', 'Here, `header_down Set-Cookie FIND REPLACE` in `reverse_proxy` edits the cookies of an application.'],
	['use', 'Here, write `import NAME`.'],
	['let', 'Here, write `vars NAME VALUE`; `{vars.NAME}` reads it.'],
]);

/** Words of the language itself, which no module defines, and what they are called in a hint. */
const SYNTAX_WORD_SUBJECTS: ReadonlyMap<string, string> = new Map([
	['use', '`use`'],
	['let', '`let`'],
	['upstream', 'A block `upstream`'],
	['to', 'A block `upstream` with `to`'],
	['test', 'A block `test`'],
	...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'expect'].map((word): [string, string] => [
		word,
		`A block \`test\` with \`${word}\``,
	]),
]);

/**
 * Returns advice about a word in a Compatfile that is valid only in a Configfile; undefined for other words. `moduleNames` are
 * the names of such directives and options.
 */
export function configfileHint(word: string, moduleNames: ReadonlySet<string>): string | undefined {
	const subject = SYNTAX_WORD_SUBJECTS.get(word) ?? (moduleNames.has(word) ? `\`${word}\`` : undefined);
	if (subject === undefined) return undefined;
	const equivalent = COMPATFILE_EQUIVALENTS.get(word);
	return `${subject} exists only in a Configfile, to which \`svc adapt --to configfile\` translates a Compatfile.${equivalent === undefined ? '' : ` ${equivalent}`}`;
}

/** Returns what to write instead of another server's word; undefined for unknown words. Ignores case and a final `;`. */
export function foreignHint(word: string, foreignWords: ForeignWords = FOREIGN_WORDS): string | undefined {
	const trimmedWord = word.replace(/;$/, '');
	const translation = foreignWords.get(trimmedWord.toLowerCase());
	if (!translation) return undefined;
	const { server, ourWord, advice } = translation;
	return ourWord === undefined
		? `\`${trimmedWord}\` comes from ${server}. ${advice}`
		: `\`${trimmedWord}\` of ${server} is \`${ourWord}\` here. ${advice}`;
}
