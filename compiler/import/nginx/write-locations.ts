/** Writes the locations of a server as branches of a `when`, in the order in which nginx chooses them. */
import { word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { escapedRegexp, hasVariable, regexpOf, type Variables } from './nginx-values.ts';
import { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { writeLocationBody } from './write-content.ts';
import { writeFields } from './write-headers.ts';
import type { Place } from './write-proxy.ts';
import { isRewrite } from './write-rewrites.ts';

/** A location and the locations inside it. */
export interface Location {
	readonly directive: NginxDirective;
	readonly kind: 'exact' | 'prefix' | 'final' | 'regexp' | 'regexp-nocase' | 'named';
	readonly pattern: string;
	readonly inner: readonly Location[];
}

const KINDS: { readonly [modifier: string]: Location['kind'] } = {
	...{ '=': 'exact', '^~': 'final', '~': 'regexp', '~*': 'regexp-nocase' },
};

/** Returns the locations of a block. */
export function locationsOf(directives: readonly NginxDirective[]): Location[] {
	return directives.filter(({ name, block }) => name === 'location' && block).map(locationOf);
}

function locationOf(directive: NginxDirective): Location {
	const [first = '/', second] = directive.args;
	const inner = locationsOf(directive.block!);
	if (second !== undefined)
		return { directive, kind: (Object.hasOwn(KINDS, first) && KINDS[first]) || 'prefix', pattern: second, inner };
	if (first.startsWith('@')) return { directive, kind: 'named', pattern: first, inner };
	const glued = /^(=|\^~|~\*|~)(.+)$/s.exec(first);
	if (glued) return { directive, kind: KINDS[glued[1]!]!, pattern: glued[2]!, inner };
	return { directive, kind: 'prefix', pattern: first, inner };
}

/** A location, and the condition for which it is chosen if no branch before it is. */
interface Branch {
	readonly location: Location;
	readonly parents: readonly Location[];
	/** The condition; undefined if the location is always chosen. */
	readonly condition: string | undefined;
	readonly place: Place;
	/** The path with its final slash to which this branch redirects; set for the path without the slash of a proxied location. */
	readonly slash?: string;
}

function isRegexp({ kind }: Location): boolean {
	return kind === 'regexp' || kind === 'regexp-nocase';
}

/**
 * Orders locations as nginx searches them. A branch in `decided` ends the search. A branch in `longest` is used only if no regular
 * expression of the outer block matches.
 */
function branchesOf(
	locations: readonly Location[],
	parents: readonly Location[],
	cx: ServerContext,
): { decided: Branch[]; longest: Branch[] } {
	const prefixes = locations
		.filter(({ kind }) => kind === 'prefix' || kind === 'final')
		.sort((a, b) => b.pattern.length - a.pattern.length);
	const decided: Branch[] = [];
	const longest: Branch[] = [];
	const guardCondition = ({ pattern }: Location): string => {
		const longer = prefixes.filter(other => other.pattern !== pattern && other.pattern.startsWith(pattern));
		const own = prefixCondition(pattern);
		return longer.length === 0 ? own : `${own} and not ${prefixCondition(...longer.map(({ pattern }) => pattern))}`;
	};
	for (const location of locations.filter(({ kind }) => kind === 'exact')) {
		const { pattern } = location;
		decided.push({
			location,
			parents,
			condition: `path_regexp ${word(`^${escapedRegexp(pattern)}$`)}`,
			place: { kind: 'exact', path: pattern },
		});
	}
	for (const location of prefixes) {
		const { pattern } = location;
		const bare = pattern.slice(0, -1);
		const isProxied = location.directive.block!.some(({ name }) => /^(?:proxy|fastcgi|grpc)_pass$/.test(name));
		const isTaken = locations.some(other => other.kind === 'exact' && other.pattern === bare);
		if (isProxied && !isTaken && pattern.endsWith('/') && bare !== '')
			decided.push({
				location,
				parents,
				condition: `path_regexp ${word(`^${escapedRegexp(bare)}$`)}`,
				place: { kind: 'exact', path: bare },
				slash: pattern,
			});
	}
	const finals: string[] = [];
	for (const location of prefixes) {
		const inside = branchesOf(location.inner, [...parents, location], cx);
		const ownBranch: Branch = {
			location,
			parents,
			condition: location.pattern === '/' ? undefined : prefixCondition(location.pattern),
			place: { kind: 'prefix', path: location.pattern },
		};
		for (const branch of inside.decided)
			decided.push({ ...branch, condition: joinedConditions(guardCondition(location), branch.condition) });
		const overruled = [...inside.longest, ownBranch];
		if (location.kind === 'final' && parents.length === 0)
			for (const branch of overruled)
				decided.push({
					...branch,
					condition:
						branch === ownBranch
							? guardCondition(location)
							: joinedConditions(guardCondition(location), branch.condition),
				});
		else longest.push(...overruled);
		if (location.kind === 'final' && parents.length > 0) finals.push(guardCondition(location));
	}
	const excluded = finals.map(text => `not ( ${text} )`).join(' and ');
	for (const location of locations.filter(isRegexp)) {
		const name = cx.out.unusedName('location');
		try {
			const expression = `path_regexp ${name} ${word(regexpOf(location.pattern, location.kind === 'regexp-nocase'))}`;
			decided.push({
				location,
				parents,
				condition: excluded === '' ? expression : `${expression} and ${excluded}`,
				place: { kind: 'regexp', captures: name },
			});
		} catch (error) {
			if (!(error instanceof Untranslatable)) throw error;
			cx.out.keep(location.directive, error.message);
		}
	}
	return { decided, longest };
}

function joinedConditions(one: string, other: string | undefined): string {
	return other === undefined ? one : `${one} and ${other}`;
}

function prefixCondition(...prefixes: readonly string[]): string {
	const [first = ''] = prefixes;
	const pattern = prefixes.length === 1 ? `^${escapedRegexp(first)}` : `^(?:${prefixes.map(escapedRegexp).join('|')})`;
	return `path_regexp ${word(pattern)}`;
}

/** Writes the choice among the locations, and their content. */
export function writeLocations(locations: readonly Location[], cx: ServerContext): void {
	const { out } = cx;
	const { decided, longest } = branchesOf(
		locations.filter(({ kind }) => kind !== 'named'),
		[],
		cx,
	);
	let isFirst = true;
	let isClosed = false;
	for (const branch of [...decided, ...longest]) {
		if (isClosed) continue;
		out.branch(branch.condition, isFirst, () => writeBranch(branch, cx));
		isFirst = false;
		isClosed = branch.condition === undefined;
		if (branch.slash === undefined) writeTest(branch, locations, cx);
	}
	if (!isClosed)
		out.branch(undefined, isFirst, () =>
			writeLocationBody(
				cx.directives.filter(one => !isRewrite(one) && one.name !== 'location'),
				cx.scope,
				cx,
				{ kind: 'server' },
				cx.variables,
				cx.scope,
			),
		);
}

function writeBranch({ location, parents, place, slash }: Branch, cx: ServerContext): void {
	const { out } = cx;
	let scope = cx.scope;
	for (const { directive } of parents) scope = new Scope(scope, directive.block!);
	let { variables } = cx;
	if (slash !== undefined) {
		writeFields(new Scope(scope, location.directive.block!), out, variables);
		out.line(`redir "${slash}{?query}" 301`);
		return;
	}
	if (place.kind === 'regexp') variables = variables.after(place.captures, location.pattern);
	out.line(`# ${location.directive.text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')}`);
	writeBlock(location, scope, cx, place, variables);
}

/** Writes a location's own directives, and the choice among the locations inside it if it is given by a regular expression. */
export function writeBlock(
	location: Location,
	scope: Scope,
	cx: ServerContext,
	place: Place,
	variables: Variables,
): void {
	const { out } = cx;
	const block = location.directive.block!;
	out.count(location.directive);
	const own = new Scope(scope, block);
	for (const one of block) if (!own.isInherited(one) && !KNOWN.has(one.name)) out.keep(one, reasonOf(one.name));
	const body = (): void => {
		try {
			writeLocationBody(block, own, cx, place, variables, cx.scope);
		} catch (error) {
			if (!(error instanceof Untranslatable)) throw error;
			out.keepInstead(location.directive, error.message);
			out.line('error 500');
		}
	};
	if (place.kind !== 'regexp' || location.inner.length === 0) {
		body();
		return;
	}
	const { decided, longest } = branchesOf(location.inner, [], cx);
	let isFirst = true;
	for (const branch of [...decided, ...longest]) {
		const inner =
			branch.place.kind === 'regexp' ? variables.after(branch.place.captures, branch.location.pattern) : variables;
		out.branch(branch.condition ?? 'path *', isFirst, () => writeBlock(branch.location, own, cx, branch.place, inner));
		isFirst = false;
	}
	out.branch(undefined, isFirst, body);
}

const KNOWN: ReadonlySet<string> = new Set([
	...[
		'return',
		'rewrite',
		'set',
		'break',
		'if',
		'proxy_pass',
		'grpc_pass',
		'fastcgi_pass',
		'alias',
		'try_files',
		'location',
	],
	...[
		'listen',
		'server_name',
		'internal',
		'limit_except',
		'valid_referers',
		'uwsgi_pass',
		'scgi_pass',
		'memcached_pass',
	],
	...['stub_status', 'empty_gif', 'dav_methods', 'js_content', 'content_by_lua_block', 'perl'],
]);

/** Reports whether the import reads directives of this name in a server or location. */
export function isKnown(name: string): boolean {
	return KNOWN.has(name);
}

/** Reasons why directives need no counterpart or have none, by the directive's name. */
const ALWAYS: { readonly [name: string]: string } = {
	...{ sendfile: 'files are always sent efficiently', tcp_nopush: 'decided by the server', tcp_nodelay: 'always on' },
	...{ server_tokens: 'no version is ever sent', default_type: 'used by `return` only', http2: 'always on' },
	...{ types_hash_max_size: 'sizes itself', server_names_hash_bucket_size: 'sizes itself', gzip_vary: 'always on' },
	...{ ssl_session_cache: 'built in', ssl_session_timeout: 'built in', ssl_prefer_server_ciphers: 'built in' },
	...{ proxy_http_version: 'always 1.1 or later', proxy_buffering: 'bodies are passed on as they arrive' },
	...{ types: 'content types are built in', log_not_found: 'missing files are not logged apart' },
	...{ keepalive_timeout: '`servers { timeouts { idle … } }`', error_log: 'errors are in the process log' },
	...{ access_log: 'a log of a single location: `log_name` names it' },
	...{ stream: 'only HTTP is served', secure_link: 'links are not signed' },
	...{ resolver: 'the system’s resolver is asked' },
	...{
		gzip_disable: 'old browsers are not told apart',
		gzip_proxied: 'compressed for every client',
		etag: 'always on',
	},
};

/** Returns why a directive has no counterpart. */
export function reasonOf(name: string): string {
	return knownReason(name) ?? 'the import does not translate this directive';
}

/** Returns why no directive of this name has a counterpart; undefined if one may have. */
export function knownReason(name: string): string | undefined {
	return Object.hasOwn(ALWAYS, name) ? ALWAYS[name] : undefined;
}

/** Reports whether a regular expression matches, or cannot be compiled here. */
function matchesOrUnknown({ pattern, kind }: Location, path: string): boolean {
	try {
		return new RegExp(pattern, kind === 'regexp' ? '' : 'i').test(path);
	} catch {
		return true;
	}
}

/** Reports whether nginx may choose another location than this one for a path. */
export function mayBelongElsewhere(
	path: string,
	ownDirectives: readonly NginxDirective[],
	locations: readonly Location[],
): boolean {
	const isPrefix = (one: Location): boolean =>
		(one.kind === 'prefix' || one.kind === 'final') && path.startsWith(one.pattern);
	const chosen = locations.filter(isPrefix).sort((a, b) => b.pattern.length - a.pattern.length)[0];
	return locations.some(one => {
		if (one.directive.block === ownDirectives) return false;
		if (one.inner.length > 0 && isPrefix(one)) return true;
		if (one.kind === 'exact') return one.pattern === path;
		return isRegexp(one) ? matchesOrUnknown(one, path) : one === chosen && one.kind === 'final';
	});
}

/** Writes a test that pins how a request for the location is answered, provided that this does not depend on files or upstreams. */
function writeTest(
	{ location, place }: Branch,
	locations: readonly Location[],
	{ out, testAddress: address, directives }: ServerContext,
): void {
	const path = place.kind === 'prefix' || place.kind === 'exact' ? place.path : undefined;
	if (address === undefined || path === undefined || !/^\/[\w\-./~@+,:=!&']*$/.test(path) || path.includes('//'))
		return;
	if (directives.some(one => mayRewrite(one, path)) || mayBelongElsewhere(path, location.directive.block!, locations))
		return;
	const block = location.directive.block!;
	const name = `${location.directive.text} (${address}${path})`;
	const request = `GET ${address}${path}`;
	const guards = [...directives, ...block].filter(({ name }) => GUARDS.has(name));
	const isGuarded = guards.length > 0;
	const hasPage = directives.some(({ name, args }) => name === 'error_page' && args.includes('401'));
	if (asksForPassword(block) && guards.length === 1 && !hasPage) {
		out.test(name, [request, 'expect status 401']);
		return;
	}
	const returned = block.find(({ name }) => name === 'return');
	if (isGuarded || (returned && block.some(({ name }) => isRewriteName(name) && name !== 'return'))) return;
	if (returned) {
		const [status = '', target = ''] = returned.args;
		if (
			!/^\d{3}$/.test(status) ||
			status === '444' ||
			/[${}]/.test(target) ||
			(Number(status) >= 400 && directives.some(({ name }) => name === 'error_page'))
		)
			return;
		const lines = [request, `expect status ${status}`];
		if (/^30[12378]$/.test(status) && target !== '') lines.push(`expect header Location ${word(target)}`);
		out.test(name, lines);
	} else if (
		block.some(({ name, args }) => name === 'proxy_pass' && !args[0]?.includes('$')) &&
		!block.some(({ name }) => isRewriteName(name))
	) {
		out.test(name, [request, 'upstream answers 200 "from the upstream"', 'expect body "from the upstream"']);
	}
}

/** Reports whether a location admits only the users in a file. */
function asksForPassword(block: readonly NginxDirective[]): boolean {
	const hasUsers = block.some(({ name, args }) => name === 'auth_basic_user_file' && !hasVariable(args[0] ?? ''));
	const realms = block.filter(({ name }) => name === 'auth_basic');
	const isPlain = realms.length === 1 && realms[0]!.args[0] !== 'off' && !hasVariable(realms[0]!.args[0] ?? '');
	return hasUsers && isPlain && !block.some(({ name }) => isRewriteName(name));
}

/** Reports whether a directive of the server may answer or change a request for a path. */
function mayRewrite({ name, args }: NginxDirective, path: string): boolean {
	if (name !== 'rewrite') return name === 'return' || name === 'if';
	try {
		return new RegExp(args[0] ?? '').test(path);
	} catch {
		return true;
	}
}

function isRewriteName(name: string): boolean {
	return ['return', 'rewrite', 'if', 'set', 'break'].includes(name);
}

const GUARDS: ReadonlySet<string> = new Set([
	'allow',
	'deny',
	'auth_basic',
	'auth_request',
	'try_files',
	'internal',
	'limit_req',
	'limit_conn',
]);
