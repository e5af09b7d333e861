/**
 * Samples of directives and matchers for random configurations. `svc diff` must find their effects. A test compares the lists
 * with the registries, so that a new directive or matcher is either tried or has a reason why not.
 */
import type { Directive } from '../../compiler/modules/contract/directive.ts';
import { directives } from '../../compiler/modules/registry/directives.ts';
import { matchers } from '../../compiler/modules/registry/matchers.ts';

/**
 * The directives that random configurations contain only in the trial of `svc diff`, each in several spellings. In a sample,
 * `[matcher]` is a matcher token or nothing, `UPSTREAM` the address of an upstream, `DEAD` one at which nothing listens, and
 * `TEXT` a text with placeholders.
 */
export const DIRECTIVE_SAMPLES: { readonly [name: string]: readonly string[] } = {
	cookie: [
		'cookie {\nsecure\n}\nheader +Set-Cookie `k=v; Path=/`',
		'cookie {\nsame_site lax\nhttp_only\n}\nheader +Set-Cookie `k=v`',
		'cookie [matcher]k {\nremove\n}\nheader +Set-Cookie `k=v`',
	],
	errors_page: [
		'errors_page {\ntitle TEXT\n}',
		'errors_page {\ntext `sorry`\n}',
		'errors_page {\nintercept 404 5xx\n}',
		'errors_page {\ntheme dark\n}',
	],
	forward_auth: [
		'forward_auth [matcher]UPSTREAM {\nuri /auth\ncopy_headers X-A\n}',
		'forward_auth [matcher]UPSTREAM {\nuri /check{uri}\n}',
	],
	fs: ['fs [matcher]default'],
	limit_concurrent: [
		'limit_concurrent [matcher]places 10',
		'limit_concurrent [matcher]places 12 {\nkey {path}\nstatus 429\n}',
		'limit_concurrent [matcher]others 5 {\nqueue 3\n}',
	],
	limit_rate: ['limit_rate [matcher]1MiB', 'limit_rate [matcher]2MiB after 1KiB', 'limit_rate [matcher]off'],
	live: ['live [matcher]'],
	log_append: ['log_append [matcher]key TEXT', 'log_append [matcher]<first {uri}'],
	log_skip: ['log_skip [matcher]'],
	mirror: [
		'mirror [matcher]DEAD',
		'mirror [matcher]DEAD {\nbody off\nheader_up -Cookie\n}',
		'mirror [matcher]DEAD {\nsample 0%\n}',
	],
	ready: ['ready [matcher]'],
	replace: [
		'replace plain replaced',
		'replace [matcher]{\ntext `a` `<{path}>` once\n}',
		'replace [matcher]{\nregexp `[0-9]+` `N`\ntypes text/* application/json\n}',
	],
	split: [
		'split {path} {\n50% {\nrespond [matcher]`first half`\n}\n* {\nheader X-R0 rest\n}\n}',
		'split {http.request.header.X-A} {\n30% {\nheader X-R1 third\n}\n}',
		'split [matcher]{query.p} {\n0% {\nrespond never\n}\n20% {\nrewrite * /split{uri}\n}\n}',
	],
	timeouts: ['timeouts [matcher]{\nread_timeout 10s\n}', 'timeouts [matcher]{\nwrite_timeout 30s\n}'],
};

/** The lines of a `reverse_proxy` that random configurations contain only in the trial of `svc diff`. */
export const PROXY_SAMPLES: readonly string[] = [
	'shed',
	'shed {\nmax 50\n}',
	'handle_response {\ncopy_response 203\n}',
	'@failed status 5xx\nhandle_response @failed {\ncopy_response_headers {\ninclude X-R0\n}\nrespond `instead`\n}',
];

/** The matchers that random configurations contain only in the trial of `svc diff`, each in several spellings. */
export const MATCHER_SAMPLES: { readonly [name: string]: readonly string[] } = {
	file: ['file /page.html', 'file {path}', 'file {path}index.html'],
	header_regexp: ['header_regexp X-A ^o', 'header_regexp h X-B `[0-9]`'],
	protocol: ['protocol http', 'protocol https', 'protocol http/1.1+'],
	share: ['share 30% {path}', 'share 20-80% {http.request.header.X-B}'],
	tls: ['tls'],
	url_pattern: ['url_pattern /a/:rest', 'url_pattern /api/*'],
	vars: ['vars v set 7', 'vars {path} /a /api'],
	vars_regexp: ['vars_regexp v ^s', 'vars_regexp r {path} `^/([a-z]+)`'],
};

/** The directives that no random configuration contains, with the reason. */
export const UNTRIED_DIRECTIVES: { readonly [name: string]: string } = {
	acme_server: 'it needs a certificate authority and TLS',
	bind: 'the servers of the trial have one listener each',
	cache: 'an answer depends on earlier requests and their times',
	log: 'it does not change any answer',
	log_name: 'it needs a log that the site defines',
	metrics: 'the answer changes from one request to the next',
	php_fastcgi: 'it needs PHP',
	push: 'the client of the trial reads one response for each request',
	tls: 'the trial has no certificates',
};

/** Returns the names of the directives that a Configfile can contain. */
export function directiveNames(): string[] {
	return directives.flatMap(({ names }) => names.configfile.slice(0, 1));
}

/**
 * Returns the names of the matchers that a line of a Configfile can begin with; combinations of matchers have operators instead.
 */
export function matcherNames(): string[] {
	return matchers.map(({ id }) => id).filter(name => !['all', 'any'].includes(name));
}

/** Returns the names of the directives of a dialect that have a sample. */
export function samplesIn(dialect: 'configfile' | 'compatfile'): string[] {
	const isInDialect = ({ names }: Directive): boolean => names[dialect].length > 0;
	return directives
		.filter(isInDialect)
		.map(({ names }) => names[dialect][0]!)
		.filter(name => Object.hasOwn(DIRECTIVE_SAMPLES, name));
}
