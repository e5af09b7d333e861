/**
 * Random configurations that compile, in both languages, and random requests that reach the matchers and rewrites of these
 * configurations.
 */
import type { Dialect } from '../../compiler/dialects/dialect.ts';
import type { SeededChance } from './chance.ts';
import { DIRECTIVE_SAMPLES, MATCHER_SAMPLES, PROXY_SAMPLES, samplesIn } from './directive-samples.ts';

/** The port, upstreams and folder that a generated configuration refers to. */
export interface ConfigurationTargets {
	readonly port: number;
	/** Addresses of two upstreams. */
	readonly upstreams: readonly [string, string];
	/** A folder with files to serve. */
	readonly root: string;
	/**
	 * Address of a third upstream. If undefined, configurations have no pool that includes it, no accounts, no compression, no rate
	 * limits, and none of the directives and matchers in directive-samples.ts.
	 */
	readonly spare?: string;
}

/** The password of every account in a configuration. `svc diff` uses the same one in its witnesses. */
const PASSWORD_HASH = '$2b$04$ahtDU1s.zTjurSinO5o6pOxcas3hePGlWxp7j6ggvc/lyTAmhslhC';
const USERS = ['alice', 'bob'];

/** An address at which nothing listens: the port needs privileges and belongs to no common service. */
const DEAD_ADDRESS = '127.0.0.1:5';

/** A request in the form in which it is sent. */
export interface RandomRequest {
	readonly method: string;
	/** The request target: path and query. */
	readonly target: string;
	readonly authority: string;
	readonly headers: readonly (readonly [name: string, value: string])[];
	readonly body: string | undefined;
}

const HOSTS = ['a.example', 'b.example', 'sub.a.example', 'x.test', '*.a.example', '*.example'];
const PATHS = [
	'/',
	'/a',
	'/a/',
	'/a/b',
	'/a/b/c.txt',
	'/api',
	'/api/x',
	'/api/users/7',
	'/page.html',
	'/template.html',
	'/dir/',
	'/dir',
	'/x y',
];
const PATTERNS = [
	'/a',
	'/a/*',
	'/a*',
	'/api/*',
	'*.txt',
	'*.html',
	'*b*',
	'/api/*/7',
	'/dir*',
	'/A/B',
	'/*',
	'/page.html',
	'/x%20y',
	'/%*',
];
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'];
const FIELDS = ['X-A', 'X-B', 'Accept', 'Cookie'];
const VALUES = ['1', 'yes', 'one two', '{host}', '*/*', 'k=v; l=w', 'a,b'];
const TEXTS = [
	'plain',
	'{path} of {host}',
	'{method} {uri}',
	'q={query} p={http.request.uri.query.p}',
	'[{http.request.header.X-A}] {http.request.header.X-B}',
	'{http.request.orig_uri} {http.request.orig_method}',
	'{client_ip} {http.vars.v}',
	'{"path": "{path}"}',
	'{http.request.uri.path.file} {http.request.uri.path.dir} {http.request.uri.path.0}',
	'{re.r.1} {http.regexp.1}',
];

/** CEL expressions. They are written between backquotes. */
const EXPRESSIONS = [
	'path("/a*") && !method("POST")',
	'{query.p} == "1" || {http.request.header.X-A} == "yes"',
	'{http.request.header.X-A}.startsWith("o")',
	'host("a.example", "*.example") && {method} != "GET"',
	'header({"X-B": "*2"}) || query({"p": "1"})',
	'path_regexp("r", "^/([a-z]+)")',
	'size({path}) > 4',
	'client_ip("127.0.0.1", "10.0.0.0/8")',
	'{http.request.uri.path.0} in ["a", "api"]',
	'{http.vars.v} == "set"',
	'int({query.p}) > 1',
];
/** Named routes, defined in every configuration. */
const ROUTES = ['first', 'second'];

/** Returns the text of a configuration with several sites on one port. */
export function randomConfiguration(chance: SeededChance, dialect: Dialect, place: ConfigurationTargets): string {
	return new Writer(chance, dialect, place).text();
}

class Writer {
	readonly #chance: SeededChance;
	readonly #native: boolean;
	readonly #dialect: Dialect;
	readonly #place: ConfigurationTargets;
	#named: string[] = [];
	#names = 0;

	constructor(chance: SeededChance, dialect: Dialect, place: ConfigurationTargets) {
		this.#chance = chance;
		this.#native = dialect === 'configfile';
		this.#dialect = dialect;
		this.#place = place;
	}

	text(): string {
		const chance = this.#chance;
		const hosts = chance.some(HOSTS, HOSTS.length);
		// Startup settings must be the same in every configuration, because a reload cannot change them.
		const global = ['{', 'servers {', 'trusted_proxies static 127.0.0.0/8', '}', '}'];
		const upstream = this.#native ? ['upstream pool {', `to ${this.#place.upstreams[0]}`, '}'] : [];
		const lines = [...global, ...upstream];
		for (const route of ROUTES) {
			this.#named = [];
			lines.push(`&(${route}) {`, ...chance.repeat(1, 2, () => this.#directive(0)).flat(), '}');
		}
		for (const host of hosts) lines.push(...this.#site(`http://${host}:${this.#place.port}`));
		if (chance.happens(70) || hosts.length === 0) lines.push(...this.#site(`:${this.#place.port}`));
		return `${lines.join('\n')}\n`;
	}

	#site(address: string): string[] {
		const chance = this.#chance;
		this.#named = [];
		const matchers = chance.repeat(0, 3, () => this.#definition()).flat();
		const lines = chance.repeat(1, 6, () => this.#directive(2)).flat();
		const errors = chance.repeat(0, 2, () => [
			`handle_errors ${chance.of(['', '404', '5xx', '4xx 503'])} {`,
			...chance.repeat(1, 2, () => this.#directive(0)).flat(),
			'}',
		]);
		const end = chance.happens(50) ? ['respond `end of {path}`'] : [];
		return [`${address} {`, ...matchers, ...lines, ...end, ...errors.flat(), '}'];
	}

	#definition(): string[] {
		const name = `@m${this.#names++}`;
		const chance = this.#chance;
		const lines =
			this.#native && chance.happens(60)
				? [`${name} ${this.#expression(2)}`]
				: chance.happens(40)
					? [`${name} {`, ...withoutRepeatedMatchers(chance.repeat(1, 3, () => this.#matcher())), '}']
					: [`${name} ${chance.happens(30) ? 'not ' : ''}${this.#matcher()}`];
		this.#named.push(name);
		return lines;
	}

	#expression(depth: number): string {
		const chance = this.#chance;
		if (depth === 0 || chance.happens(35)) {
			return this.#named.length > 0 && chance.happens(25) ? chance.of(this.#named) : this.#matcher();
		}
		const inner = this.#expression(depth - 1);
		switch (chance.below(4)) {
			case 0:
				return `not ( ${inner} )`;
			case 1:
				return `( ${inner} or ${this.#expression(depth - 1)} )`;
			default:
				return `${inner} and ${this.#expression(depth - 1)}`;
		}
	}

	#matcher(): string {
		const chance = this.#chance;
		if (this.#place.spare !== undefined && chance.happens(20))
			return chance.of(MATCHER_SAMPLES[chance.of(Object.keys(MATCHER_SAMPLES))]!);
		switch (chance.below(11)) {
			case 9:
			case 10:
				return `expression \`${chance.of(EXPRESSIONS)}\``;
			case 0:
			case 1:
				return `path ${chance.some(PATTERNS, 3).join(' ')}`;
			case 2:
				return `method ${chance.some(METHODS, 3).join(' ')}`;
			case 3:
				return `header ${chance.of(FIELDS)} ${chance.of(['*', '1', 'yes', 'one*', '*2'])}`;
			case 4:
				return `header !${chance.of(FIELDS)}`;
			case 5:
				return `query ${chance.of(['p=1', 'p=*', 'q=', 'p=1 q=2'])}`;
			case 6:
				return `host ${chance.some(HOSTS, 2).join(' ')}`;
			case 7:
				return `path_regexp r ${chance.of(['^/([a-z]+)', '([^/]+)$', '/(\\d+)'])}`;
			default:
				return `${chance.of(['client_ip', 'remote_ip'])} ${chance.of(['127.0.0.1', '203.0.113.0/24', 'private_ranges'])}`;
		}
	}

	/** Returns a random matcher token followed by a space, or an empty string. */
	#matcherToken(): string {
		const chance = this.#chance;
		if (chance.happens(40)) return '';
		if (this.#named.length > 0 && chance.happens(60)) return `${chance.of(this.#named)} `;
		return `${chance.of(PATTERNS.filter(pattern => pattern.startsWith('/')))} `;
	}

	#block(depth: number): string[] {
		return this.#chance.repeat(1, 3, () => this.#directive(depth - 1)).flat();
	}

	#directive(depth: number): string[] {
		const chance = this.#chance;
		if (this.#place.spare !== undefined && chance.happens(18)) return this.#guardDirective(this.#place.spare);
		if (this.#place.spare !== undefined && chance.happens(25)) return this.#sampleDirective();
		if (chance.happens(30)) return this.#laterDirective(depth);
		const kinds = depth > 0 ? 18 : 13;
		switch (chance.below(kinds)) {
			case 0:
				return [
					`header ${this.#matcherToken()}${chance.of(['', '+', '?'])}X-R${chance.below(3)} \`${chance.of(TEXTS)}\``,
				];
			case 1:
				return [
					`header ${this.#matcherToken()}${chance.of(['-X-R1', '>X-R2 deferred', 'Content-Type text/x', '-Server'])}`,
				];
			case 2:
				return [
					`request_header ${this.#matcherToken()}${chance.of(['X-A set', '+X-B more', '-X-A', 'X-B `{path}`', 'Host b.example'])}`,
				];
			case 3:
			case 4:
				return [
					`respond ${this.#matcherToken()}\`${chance.of(TEXTS)}\`${chance.of(['', ' 200', ' 404', ' 503', ' 204'])}`,
				];
			case 5:
				return [
					`redir ${this.#matcherToken() || '* '}${chance.of(['/to{uri}', 'https://x.test{path}', '/b'])}${chance.of(['', ' permanent', ' 307'])}`,
				];
			case 6: {
				const matcher = this.#matcherToken() || '* ';
				return [
					`rewrite ${matcher}${chance.of(['/new{path}', '/a/b', '/a?p=1', '?q=2&{query}', '/x{uri}', '/re/{re.r.1}'])}`,
				];
			}
			case 7: {
				const edits = [
					'strip_prefix /a',
					'strip_suffix .txt',
					'replace a b',
					'path_regexp [0-9]+ N',
					'query +p 9',
					'query -p',
				];
				return [`uri ${this.#matcherToken()}${chance.of(edits)}`];
			}
			case 8:
				return [
					`error ${this.#matcherToken()}\`${chance.of(['no', 'at {path}'])}\` ${chance.of(['403', '404', '500', '503'])}`,
				];
			case 9:
				return chance.happens(30) ? [`abort ${this.#matcherToken()}`] : [`header X-C ${chance.below(9)}`];
			case 10:
				return [
					`root ${this.#place.root}`,
					`file_server ${this.#matcherToken()}${chance.happens(40) ? '{\npass_thru\n}' : ''}`,
				];
			case 11:
			case 12:
				return this.#proxy();
			case 13:
				return [`handle ${this.#matcherToken()}{`, ...this.#block(depth), '}'];
			case 14:
				return [`handle_path ${chance.of(['/a/*', '/api/*', '/a*', '/dir/*'])} {`, ...this.#block(depth), '}'];
			case 15:
				return [`route ${this.#matcherToken()}{`, ...this.#block(depth), '}'];
			default:
				return this.#native ? this.#when(depth) : [`handle ${this.#matcherToken()}{`, ...this.#block(depth), '}'];
		}
	}

	/** Returns directives that affect the directives after or around them. */
	#laterDirective(depth: number): string[] {
		const chance = this.#chance;
		const { root } = this.#place;
		switch (chance.below(depth > 0 ? 10 : 7)) {
			case 0:
				return [`vars ${this.#matcherToken()}v ${chance.of(['set', '7', '`{path}`', '`{query.p}`'])}`];
			case 1: {
				// biome-ignore lint/suspicious/noTemplateCurlyInString: a group of the regular expression
				const inputs = chance.some(['/a first', '~^/api/(.*)$ `api ${1}`', '~b second', '/dir/ -'], 3);
				const rest = chance.happens(60) ? ['default `other {method}`'] : [];
				return [
					`map ${chance.of(['{path}', '{query.p}', '{host}'])} {mapped} {`,
					...inputs,
					...rest,
					'}',
					`header ${this.#matcherToken()}X-Mapped \`{mapped}\``,
				];
			}
			case 2:
				return [
					`root ${root}`,
					'templates',
					`file_server ${this.#matcherToken()}${chance.happens(50) ? '{\npass_thru\n}' : ''}`,
				];
			case 3:
				return [`tracing ${this.#matcherToken()}`];
			case 4:
				return [
					`request_body ${this.#matcherToken()}{`,
					...chance.some(['max_size 100', 'set `{method} {path}`', 'max_size 2'], 1),
					'}',
					...(chance.happens(50) ? [`respond ${this.#matcherToken()}\`{http.request.body}\``] : []),
				];
			case 5:
				return [`method ${this.#matcherToken() || '* '}${chance.of(METHODS)}`];
			case 6:
				return [
					`root ${root}`,
					`try_files ${chance.some(['{path}', '{path}/', '/page.html', '{path}index.html', '=404'], 3).join(' ')}`,
				];
			case 7:
				return [`invoke ${this.#matcherToken()}${chance.of(ROUTES)}`];
			default:
				return this.#intercept(depth);
		}
	}

	/** Returns a directive from the list of samples. */
	#sampleDirective(): string[] {
		const chance = this.#chance;
		const sample = chance.of(DIRECTIVE_SAMPLES[chance.of(samplesIn(this.#dialect))]!);
		return sample
			.replaceAll('[matcher]', () => this.#matcherToken())
			.replaceAll('UPSTREAM', () => chance.of(this.#place.upstreams))
			.replaceAll('DEAD', DEAD_ADDRESS)
			.replaceAll('TEXT', () => `\`${chance.of(TEXTS)}\``)
			.split('\n');
	}

	/** Returns a directive whose effect shows only with credentials, with several requests, or with upstreams that fail. */
	#guardDirective(spare: string): string[] {
		const chance = this.#chance;
		switch (chance.below(this.#native ? 4 : 3)) {
			case 0:
				return [`basic_auth ${this.#matcherToken()}{`, `${chance.of(USERS)} ${PASSWORD_HASH}`, '}'];
			case 1:
				return [`encode ${this.#matcherToken()}{`, chance.of(['gzip', 'br']), 'minimum_length 1', '}'];
			case 2: {
				const to = chance.of([`${spare} ${this.#place.upstreams[0]}`, `${this.#place.upstreams[1]} ${spare}`, spare]);
				const retries = chance.happens(60) ? [`lb_retries ${1 + chance.below(2)}`] : [];
				return [`reverse_proxy ${this.#matcherToken()}${to} {`, 'lb_policy first', ...retries, '}'];
			}
			default:
				return [`rate_limit ${this.#matcherToken()}zone${this.#names++} ${chance.of([5, 20])} per 1h`];
		}
	}

	#intercept(depth: number): string[] {
		const chance = this.#chance;
		const status = `@s${this.#names++} status ${chance.of(['2xx', '404', '4xx 503', '5'])}`;
		const name = chance.happens(70) ? `${status.split(' ')[0]} ` : '';
		const rule = chance.happens(40)
			? [`replace_status ${name}${chance.of(['200', '418', '503'])}`]
			: [`handle_response ${name}{`, ...chance.repeat(1, 2, () => this.#directive(0)).flat(), '}'];
		const around = chance.happens(50)
			? [`respond ${this.#matcherToken()}\`intercepted?\` ${chance.of(['200', '404', '503'])}`]
			: [];
		return [
			`intercept ${this.#matcherToken()}{`,
			...(name === '' ? [] : [status]),
			...rule,
			'}',
			...around,
			...this.#directive(depth - 1),
		];
	}

	#when(depth: number): string[] {
		const chance = this.#chance;
		const lines = [`when ${this.#expression(2)} {`, ...this.#block(depth)];
		while (chance.happens(35)) lines.push(`} else when ${this.#expression(1)} {`, ...this.#block(depth));
		if (chance.happens(50)) lines.push('} else {', ...this.#block(depth));
		return [...lines, '}'];
	}

	#proxy(): string[] {
		const chance = this.#chance;
		const [first, second] = this.#place.upstreams;
		const to = this.#native && chance.happens(40) ? 'upstream://pool' : chance.of([first, second]);
		const inner = [
			...(chance.happens(30) ? ['header_up X-Up `{path} {method}`'] : []),
			...(chance.happens(20) ? ['header_up -X-A'] : []),
			...(chance.happens(30) ? ['header_down X-Down `{http.reverse_proxy.status_code}`'] : []),
			...(chance.happens(20) ? ['rewrite /up{uri}'] : []),
			...(chance.happens(10) ? ['method POST'] : []),
			...(this.#place.spare !== undefined && chance.happens(15) ? chance.of(PROXY_SAMPLES).split('\n') : []),
		];
		return [`reverse_proxy ${this.#matcherToken()}${to} {`, ...inner, '}'];
	}
}

/** Removes each line whose matcher also begins an earlier line, because these matchers may occur only once in a block. */
function withoutRepeatedMatchers(lines: readonly string[]): string[] {
	return lines.filter((line, at) => lines.findIndex(other => other.split(' ', 1)[0] === line.split(' ', 1)[0]) === at);
}

/** Returns a random request for one of the hosts and paths in the configurations, sometimes in an unusual spelling. */
export function randomRequest(chance: SeededChance, port: number): RandomRequest {
	const method = chance.happens(60) ? 'GET' : chance.of(METHODS);
	const host = chance.happens(10) ? `127.0.0.1` : chance.of(HOSTS).replace('*', chance.of(['w', 'W', 'x.y']));
	const disguised = chance.happens(20) ? chance.of([host.toUpperCase(), `${host}.`]) : host;
	const name = host === '127.0.0.1' ? host : disguised;
	const headers: [string, string][] = FIELDS.filter(() => chance.happens(35)).map(field => [
		field,
		chance.of(VALUES.filter(value => !value.includes('{') || chance.happens(50))),
	]);
	if (chance.happens(40))
		headers.push(['X-Forwarded-For', chance.of(['203.0.113.7', '10.1.2.3', '203.0.113.7, 10.0.0.1', 'x'])]);
	if (chance.happens(10)) headers.push(['Range', 'bytes=0-2']);
	headers.push(['Connection', 'close']);
	const withBody = method === 'POST' || method === 'PUT' || method === 'PATCH';
	const query = chance.happens(40) ? `?${chance.of(['p=1', 'p=2&q=2', 'q=', '', 'p={host}', 'p=%41&p=1'])}` : '';
	return {
		method,
		target: disguise(chance, encodeURI(chance.of(PATHS))) + query,
		authority: `${name}:${port}`,
		headers,
		body: withBody && chance.happens(70) ? chance.of(['body', '{"n":1}', 'x'.repeat(300)]) : undefined,
	};
}

/** Returns the path itself, an equivalent spelling of it, or a similar path. */
function disguise(chance: SeededChance, path: string): string {
	if (chance.happens(55)) return path;
	switch (chance.below(9)) {
		case 0:
			return path.toUpperCase();
		case 1:
			return path.replace('/', '//');
		case 2:
			return `/.${path}`;
		case 3:
			return `/none/..${path}`;
		case 4:
			return path.replace('a', '%61');
		case 5:
			return path.replaceAll('/', '%2f').replace('%2f', '/');
		case 6:
			return `${path}/../${chance.of(['a', 'api', ''])}`;
		case 7:
			return `${path}%00`;
		default:
			return `${path}\\`;
	}
}
