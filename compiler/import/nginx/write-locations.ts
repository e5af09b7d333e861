/** Writes the locations of a server as branches of a `when`, in the order in which nginx considers them. */
import { quoteText, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { escapeRegexp, hasVariable, regexpOf, type Variables } from './nginx-values.ts';
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
	readonly innerLocations: readonly Location[];
}

const KINDS_BY_MODIFIER: { readonly [modifier: string]: Location['kind'] } = {
	...{ '=': 'exact', '^~': 'final', '~': 'regexp', '~*': 'regexp-nocase' },
};

/** Returns the locations among directives, each with the locations nested in it. */
export function locationsOf(directives: readonly NginxDirective[]): Location[] {
	return directives.filter(({ name, block }) => name === 'location' && block).map(parseLocation);
}

function parseLocation(directive: NginxDirective): Location {
	const [modifierOrPattern = '/', pattern] = directive.args;
	const innerLocations = locationsOf(directive.block!);
	if (pattern !== undefined)
		return {
			directive,
			kind: (Object.hasOwn(KINDS_BY_MODIFIER, modifierOrPattern) && KINDS_BY_MODIFIER[modifierOrPattern]) || 'prefix',
			pattern,
			innerLocations,
		};
	if (modifierOrPattern.startsWith('@'))
		return { directive, kind: 'named', pattern: modifierOrPattern, innerLocations };
	const modifierMatch = /^(=|\^~|~\*|~)(.+)$/s.exec(modifierOrPattern);
	if (modifierMatch)
		return { directive, kind: KINDS_BY_MODIFIER[modifierMatch[1]!]!, pattern: modifierMatch[2]!, innerLocations };
	return { directive, kind: 'prefix', pattern: modifierOrPattern, innerLocations };
}

/** A branch for a location, with the condition for choosing it if no branch before it is chosen. */
interface LocationBranch {
	readonly location: Location;
	readonly parents: readonly Location[];
	/** The condition; undefined if the location is always chosen. */
	readonly condition: string | undefined;
	readonly place: Place;
	/**
	 * The path, with a slash at its end, to which this branch redirects. Set in branches for the path of a proxied location without
	 * that slash.
	 */
	readonly redirectPath?: string;
}

function isRegexp({ kind }: Location): boolean {
	return kind === 'regexp' || kind === 'regexp-nocase';
}

/**
 * Orders locations as nginx searches them. A branch in `decidedBranches` ends the search. A branch in `longestBranches`, which is
 * for a prefix, is used only if no regular expression matches in the block around these locations.
 */
function branchesOf(
	locations: readonly Location[],
	parents: readonly Location[],
	cx: ServerContext,
): { decidedBranches: LocationBranch[]; longestBranches: LocationBranch[] } {
	const prefixes = locations
		.filter(({ kind }) => kind === 'prefix' || kind === 'final')
		.sort((a, b) => b.pattern.length - a.pattern.length);
	const decidedBranches: LocationBranch[] = [];
	const longestBranches: LocationBranch[] = [];
	const longestPrefixCondition = ({ pattern }: Location): string => {
		const longerPrefixes = prefixes.filter(other => other.pattern !== pattern && other.pattern.startsWith(pattern));
		const prefixTest = prefixCondition(pattern);
		return longerPrefixes.length === 0
			? prefixTest
			: `${prefixTest} and not ${prefixCondition(...longerPrefixes.map(({ pattern }) => pattern))}`;
	};
	for (const location of locations.filter(({ kind }) => kind === 'exact')) {
		const { pattern } = location;
		decidedBranches.push({
			location,
			parents,
			condition: `path_regexp ${word(`^${escapeRegexp(pattern)}$`)}`,
			place: { kind: 'exact', path: pattern },
		});
	}
	for (const location of prefixes) {
		const { pattern } = location;
		const pathWithoutSlash = pattern.slice(0, -1);
		const isProxied = location.directive.block!.some(({ name }) => /^(?:proxy|fastcgi|grpc)_pass$/.test(name));
		const hasExactLocation = locations.some(other => other.kind === 'exact' && other.pattern === pathWithoutSlash);
		if (isProxied && !hasExactLocation && pattern.endsWith('/') && pathWithoutSlash !== '')
			decidedBranches.push({
				location,
				parents,
				condition: `path_regexp ${word(`^${escapeRegexp(pathWithoutSlash)}$`)}`,
				place: { kind: 'exact', path: pathWithoutSlash },
				redirectPath: pattern,
			});
	}
	const finalConditions: string[] = [];
	for (const location of prefixes) {
		const innerBranches = branchesOf(location.innerLocations, [...parents, location], cx);
		const ownBranch: LocationBranch = {
			location,
			parents,
			condition: location.pattern === '/' ? undefined : prefixCondition(location.pattern),
			place: { kind: 'prefix', path: location.pattern },
		};
		for (const branch of innerBranches.decidedBranches)
			decidedBranches.push({
				...branch,
				condition: joinConditions(longestPrefixCondition(location), branch.condition),
			});
		const prefixBranches = [...innerBranches.longestBranches, ownBranch];
		if (location.kind === 'final' && parents.length === 0)
			for (const branch of prefixBranches)
				decidedBranches.push({
					...branch,
					condition:
						branch === ownBranch
							? longestPrefixCondition(location)
							: joinConditions(longestPrefixCondition(location), branch.condition),
				});
		else longestBranches.push(...prefixBranches);
		if (location.kind === 'final' && parents.length > 0) finalConditions.push(longestPrefixCondition(location));
	}
	const notFinalCondition = finalConditions.map(text => `not ( ${text} )`).join(' and ');
	for (const location of locations.filter(isRegexp)) {
		const captureName = cx.out.unusedName('location');
		try {
			const expression = `path_regexp ${captureName} ${word(regexpOf(location.pattern, location.kind === 'regexp-nocase'))}`;
			decidedBranches.push({
				location,
				parents,
				condition: notFinalCondition === '' ? expression : `${expression} and ${notFinalCondition}`,
				place: { kind: 'regexp', captureName },
			});
		} catch (error) {
			if (!(error instanceof Untranslatable)) throw error;
			cx.out.keepAsComment(location.directive, error.message);
		}
	}
	return { decidedBranches, longestBranches };
}

function joinConditions(first: string, second: string | undefined): string {
	return second === undefined ? first : `${first} and ${second}`;
}

function prefixCondition(...prefixes: readonly string[]): string {
	const [firstPrefix = ''] = prefixes;
	const pattern =
		prefixes.length === 1 ? `^${escapeRegexp(firstPrefix)}` : `^(?:${prefixes.map(escapeRegexp).join('|')})`;
	return `path_regexp ${word(pattern)}`;
}

/**
 * Writes a branch for each location, in the order in which nginx tries the locations. The server's own directives form the last
 * branch, for requests that no location matches.
 */
export function writeLocations(locations: readonly Location[], cx: ServerContext): void {
	const { out } = cx;
	const { decidedBranches, longestBranches } = branchesOf(
		locations.filter(({ kind }) => kind !== 'named'),
		[],
		cx,
	);
	let isFirst = true;
	let hasCatchAll = false;
	for (const branch of [...decidedBranches, ...longestBranches]) {
		if (hasCatchAll) continue;
		out.writeBranch(branch.condition, isFirst, () => writeBranch(branch, cx));
		isFirst = false;
		hasCatchAll = branch.condition === undefined;
		if (branch.redirectPath === undefined) writeTest(branch, locations, cx);
	}
	if (!hasCatchAll)
		out.writeBranch(undefined, isFirst, () =>
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

function writeBranch({ location, parents, place, redirectPath: slashPath }: LocationBranch, cx: ServerContext): void {
	const { out } = cx;
	let scope = cx.scope;
	for (const { directive } of parents) scope = new Scope(scope, directive.block!);
	let { variables } = cx;
	if (slashPath !== undefined) {
		writeFields(new Scope(scope, location.directive.block!), out, variables);
		out.writeLine(`redir "${slashPath}{?query}" 301`);
		return;
	}
	if (place.kind === 'regexp') variables = variables.withGroups(place.captureName, location.pattern);
	out.writeLine(`# ${location.directive.text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')}`);
	writeLocation(location, scope, cx, place, variables);
}

/**
 * Writes a location's own directives. If the location has a regular expression, also writes a branch for each of its inner
 * locations.
 */
export function writeLocation(
	location: Location,
	scope: Scope,
	cx: ServerContext,
	place: Place,
	variables: Variables,
): void {
	const { out } = cx;
	const block = location.directive.block!;
	out.countTranslated(location.directive);
	const ownScope = new Scope(scope, block);
	for (const directive of block)
		if (!ownScope.isInherited(directive) && !KNOWN_DIRECTIVES.has(directive.name))
			out.keepAsComment(directive, untranslatedReason(directive.name));
	const writeBody = (): void => {
		try {
			writeLocationBody(block, ownScope, cx, place, variables, cx.scope);
		} catch (error) {
			if (!(error instanceof Untranslatable)) throw error;
			out.keepInstead(location.directive, error.message);
			out.writeLine('error 500');
		}
	};
	if (place.kind !== 'regexp' || location.innerLocations.length === 0) {
		writeBody();
		return;
	}
	const { decidedBranches, longestBranches } = branchesOf(location.innerLocations, [], cx);
	let isFirst = true;
	for (const branch of [...decidedBranches, ...longestBranches]) {
		const branchVariables =
			branch.place.kind === 'regexp'
				? variables.withGroups(branch.place.captureName, branch.location.pattern)
				: variables;
		out.writeBranch(branch.condition ?? 'path *', isFirst, () =>
			writeLocation(branch.location, ownScope, cx, branch.place, branchVariables),
		);
		isFirst = false;
	}
	out.writeBranch(undefined, isFirst, writeBody);
}

const KNOWN_DIRECTIVES: ReadonlySet<string> = new Set([
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

/** Reports whether the import can translate directives of this name in a server or location. */
export function isKnownDirective(name: string): boolean {
	return KNOWN_DIRECTIVES.has(name);
}

/** Reasons why directives have no counterpart or need none, by the directive's name. */
const REASONS_BY_DIRECTIVE: { readonly [name: string]: string } = {
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

/** Returns the reason why directives of this name are not translated; a general reason if none is known. */
export function untranslatedReason(name: string): string {
	return knownReason(name) ?? 'the import does not translate this directive';
}

/** Returns the reason why directives of this name are never translated; undefined if they may be. */
export function knownReason(name: string): string | undefined {
	return Object.hasOwn(REASONS_BY_DIRECTIVE, name) ? REASONS_BY_DIRECTIVE[name] : undefined;
}

/** Reports whether the regular expression of a location matches a path. Returns true if it cannot be compiled here. */
function matchesOrUnknown({ pattern, kind }: Location, path: string): boolean {
	try {
		return new RegExp(pattern, kind === 'regexp' ? '' : 'i').test(path);
	} catch {
		return true;
	}
}

/** Reports whether nginx may choose a different location for `path` than the one whose block is `ownDirectives`. */
export function mayChooseOtherLocation(
	path: string,
	ownDirectives: readonly NginxDirective[],
	locations: readonly Location[],
): boolean {
	const isMatchingPrefix = (location: Location): boolean =>
		(location.kind === 'prefix' || location.kind === 'final') && path.startsWith(location.pattern);
	const longestPrefix = locations.filter(isMatchingPrefix).sort((a, b) => b.pattern.length - a.pattern.length)[0];
	return locations.some(location => {
		if (location.directive.block === ownDirectives) return false;
		if (location.innerLocations.length > 0 && isMatchingPrefix(location)) return true;
		if (location.kind === 'exact') return location.pattern === path;
		return isRegexp(location)
			? matchesOrUnknown(location, path)
			: location === longestPrefix && location.kind === 'final';
	});
}

/** Writes a test of how a request for the location is answered, unless the answer depends on files, upstreams or access rules. */
function writeTest(
	{ location, place }: LocationBranch,
	locations: readonly Location[],
	{ out, maps, testAddress: address, directives }: ServerContext,
): void {
	const path = place.kind === 'prefix' || place.kind === 'exact' ? place.path : undefined;
	if (address === undefined || path === undefined || !/^\/[\w\-./~@+,:=!&']*$/.test(path) || path.includes('//'))
		return;
	if (
		directives.some(one => mayRewrite(one, path)) ||
		mayChooseOtherLocation(path, location.directive.block!, locations)
	)
		return;
	const block = location.directive.block!;
	const testName = `${location.directive.text} (${address}${path})`;
	const request = `GET ${address}${path}`;
	const guardDirectives = [...directives, ...block].filter(({ name }) => GUARD_DIRECTIVES.has(name));
	const isGuarded = guardDirectives.length > 0;
	const hasUnauthorizedPage = directives.some(({ name, args }) => name === 'error_page' && args.includes('401'));
	if (asksForPassword(block) && guardDirectives.length === 1 && !hasUnauthorizedPage) {
		out.addTest(testName, [request, 'expect status 401']);
		return;
	}
	const returnDirective = block.find(({ name }) => name === 'return');
	const hasErrorPage = (status: string): boolean =>
		[...directives, ...block].some(({ name, args }) => name === 'error_page' && args.slice(0, -1).includes(status));
	const clientTest = isGuarded ? [] : clientExpectations(block, maps, hasErrorPage);
	if (clientTest.length > 0) {
		out.addTest(
			testName,
			clientTest.flatMap(({ client, lines }) => [request, `from ${client}`, ...lines]),
		);
		return;
	}
	if (isGuarded || (returnDirective && block.some(({ name }) => isRewriteName(name) && name !== 'return'))) return;
	if (returnDirective) {
		const [status = '', target = ''] = returnDirective.args;
		if (
			!/^\d{3}$/.test(status) ||
			status === '444' ||
			/[${}]/.test(target) ||
			(Number(status) >= 400 && directives.some(({ name }) => name === 'error_page'))
		)
			return;
		const lines = [request, `expect status ${status}`];
		if (/^30[12378]$/.test(status) && target !== '') lines.push(`expect header Location ${word(target)}`);
		out.addTest(testName, lines);
	} else if (
		block.some(({ name, args }) => name === 'proxy_pass' && !args[0]?.includes('$')) &&
		!block.some(({ name }) => isRewriteName(name))
	) {
		out.addTest(testName, [request, 'upstream answers 200 "from the upstream"', 'expect body "from the upstream"']);
	}
}

/** A client, and the lines of a test that state the answer to its request. */
interface ClientExpectation {
	readonly client: string;
	readonly lines: readonly string[];
}

/**
 * Returns the expected answers to different clients if the answer of a location depends on a `geo` or `split_clients`: because a
 * `return` contains its variable, or because one `if` refuses requests by its value. Returns nothing for any other location.
 */
function clientExpectations(
	block: readonly NginxDirective[],
	maps: ServerContext['maps'],
	hasErrorPage: (status: string) => boolean,
): readonly ClientExpectation[] {
	const returnDirective = block.findLast(({ name }) => name === 'return');
	const rewriteDirectives = block.filter(({ name }) => isRewriteName(name));
	if (returnDirective && rewriteDirectives.length === 1) {
		const [status = '', target = ''] = returnDirective.args;
		const variableNames = new Set([...target.matchAll(/\$\{?(\w+)\}?/g)].map(([, found]) => found!));
		const [variable] = variableNames;
		if (variable === undefined || variableNames.size > 1 || !/^(?:200|30[12378])$/.test(status)) return [];
		return maps.clientSamples(variable).flatMap(({ address, value }) => {
			const expandedTarget = target.replace(/\$\{?\w+\}?/g, () => value);
			if (/[{}\\`]/.test(expandedTarget)) return [];
			const expectation =
				status === '200' ? `body ${quoteText(expandedTarget)}` : `header Location ${word(expandedTarget)}`;
			return [{ client: address, lines: [`expect status ${status}`, `expect ${expectation}`] }];
		});
	}
	const [guardIf] = rewriteDirectives;
	if (guardIf?.name !== 'if') return [];
	if (rewriteDirectives.length > (returnDirective ? 2 : 1)) return [];
	const [, variable, operator, operand] =
		/^\(\s*\$(\w+)(?:\s*(!?=)\s*["']?([^"'\s()]*)["']?)?\s*\)$/.exec(guardIf.args.join(' ')) ?? [];
	const [refusal, ...otherDirectives] = guardIf.block ?? [];
	const status = refusal?.args[0] ?? '';
	if (variable === undefined || refusal?.name !== 'return' || otherDirectives.length > 0) return [];
	if (!/^[45]\d\d$/.test(status) || status === '444' || hasErrorPage(status)) return [];
	const [fallbackStatus = '', fallbackText = ''] = returnDirective?.args ?? [];
	if (returnDirective && (!/^2\d\d$/.test(fallbackStatus) || /[${}]/.test(fallbackText))) return [];
	const isProxied = block.some(({ name, args }) => name === 'proxy_pass' && !args[0]?.includes('$'));
	return maps.clientSamples(variable).flatMap(({ address, value }) => {
		const isRefused =
			operator === undefined ? value !== '' && value !== '0' : (value === operand) === (operator === '=');
		if (isRefused) return [{ client: address, lines: [`expect status ${status}`] }];
		if (returnDirective) return [{ client: address, lines: [`expect status ${fallbackStatus}`] }];
		return isProxied
			? [{ client: address, lines: ['upstream answers 200 "from the upstream"', 'expect body "from the upstream"'] }]
			: [];
	});
}

/** Reports whether a location requires a password from a fixed file, and has no rewrite directives, which would run before. */
function asksForPassword(block: readonly NginxDirective[]): boolean {
	const hasUsers = block.some(({ name, args }) => name === 'auth_basic_user_file' && !hasVariable(args[0] ?? ''));
	const realmDirectives = block.filter(({ name }) => name === 'auth_basic');
	const hasPlainRealm =
		realmDirectives.length === 1 &&
		realmDirectives[0]!.args[0] !== 'off' &&
		!hasVariable(realmDirectives[0]!.args[0] ?? '');
	return hasUsers && hasPlainRealm && !block.some(({ name }) => isRewriteName(name));
}

/** Reports whether a directive of the server may answer or rewrite a request for `path`. */
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

const GUARD_DIRECTIVES: ReadonlySet<string> = new Set([
	'allow',
	'deny',
	'auth_basic',
	'auth_request',
	'try_files',
	'internal',
	'limit_req',
	'limit_conn',
]);
