/** Writes the locations of a server as `handle` blocks, in the order in which nginx chooses them. */
import { type ConfigfileWriter, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { Scope } from './scope.ts';
import { type Place, writeContent } from './write-content.ts';
import { writeRewrites } from './write-rewrites.ts';

/** A `server` or `location` block, and where it is written. */
export interface Level {
	readonly directives: readonly NginxDirective[];
	readonly scope: Scope;
	readonly out: ConfigfileWriter;
	readonly pools: ReadonlySet<string>;
	/** The address of tests; undefined if none can be reached without a certificate. */
	readonly address: string | undefined;
	/** Writes a directive that the import does not know as a comment. */
	readonly keepOther: (one: NginxDirective, out: ConfigfileWriter) => void;
}

interface Location {
	readonly directive: NginxDirective;
	readonly kind: 'exact' | 'prefix' | 'final' | 'regexp' | 'regexp-nocase' | 'named';
	readonly pattern: string;
}

const KINDS: { readonly [modifier: string]: Location['kind'] } = {
	...{ '=': 'exact', '^~': 'final', '~': 'regexp', '~*': 'regexp-nocase' },
};

function locationOf(directive: NginxDirective): Location {
	const [first = '/', second] = directive.args;
	if (second !== undefined) return { directive, kind: KINDS[first] ?? 'prefix', pattern: second };
	if (first.startsWith('@')) return { directive, kind: 'named', pattern: first };
	const glued = /^(=|\^~|~\*|~)(.+)$/s.exec(first);
	if (glued) return { directive, kind: KINDS[glued[1]!]!, pattern: glued[2]! };
	return { directive, kind: 'prefix', pattern: first };
}

/** Writes everything in a `server` block except its addresses and certificates. */
export function writeLocations(level: Level): void {
	const { directives, out } = level;
	const locations = directives.filter(({ name, block }) => name === 'location' && block).map(locationOf);
	writeOthers(level);
	writeRewrites(directives, out, { captures: undefined, place: 'server' });
	writeErrorPages(level);
	// A server that always returns has no use for its locations.
	if (directives.some(({ name }) => name === 'return')) return;
	const body = (location: Location, place: Place): void => writeLocation(level, location, place, locations);
	const prefixes = locations
		.filter(({ kind }) => kind === 'prefix' || kind === 'final')
		.sort((a, b) => b.pattern.length - a.pattern.length);
	const label = (): string => `@${out.unusedName('location')}`;
	for (const one of locations.filter(({ kind }) => kind === 'exact')) {
		out.block(`handle ${exactMatcher(one.pattern, label, out)}`, () => body(one, { kind: 'exact', path: one.pattern }));
		writeTest(level, one, one.pattern, locations);
	}
	for (const { pattern, directive } of prefixes) {
		// A proxied location whose prefix ends with a slash redirects a request for the prefix without it.
		const bare = pattern.slice(0, -1);
		const isProxied = directive.block!.some(({ name }) => name === 'proxy_pass' || name === 'fastcgi_pass');
		const isTaken = locations.some(other => other.kind !== 'named' && other.pattern === bare);
		if (!isProxied || isTaken || bare === '' || !pattern.endsWith('/') || !isPlain(pattern)) continue;
		out.block(`handle ${bare}`, () => out.line(`redir * ${pattern}{?query} 301`));
	}
	for (const one of prefixes.filter(({ kind }) => kind === 'final')) {
		const longer = prefixes.filter(
			({ kind, pattern }) => kind === 'prefix' && pattern !== one.pattern && pattern.startsWith(one.pattern),
		);
		if (longer.length === 0)
			out.block(`handle ${prefixMatcher(one.pattern, label, out)}`, () =>
				body(one, { kind: 'prefix', path: one.pattern }),
			);
		else {
			const name = label();
			out.block(name, () => {
				out.line(`path ${word(`${one.pattern}*`)}`);
				out.line(`not path ${longer.map(({ pattern }) => word(`${pattern}*`)).join(' ')}`);
			});
			out.block(`handle ${name}`, () => body(one, { kind: 'prefix', path: one.pattern }));
		}
		writeTest(level, one, one.pattern, locations);
	}
	for (const one of locations.filter(({ kind }) => kind === 'regexp' || kind === 'regexp-nocase')) {
		const name = label();
		const captures = name.slice(1);
		const pattern = one.kind === 'regexp' ? one.pattern : `(?i)${one.pattern}`;
		if (/\(\?[=!<]|\\[1-9]/.test(pattern)) {
			out.keep(one.directive, 'the regular expression looks around or refers back, which ours cannot');
			continue;
		}
		out.line(`${name} path_regexp ${captures} ${word(pattern)}`);
		out.block(`handle ${name}`, () => body(one, { kind: 'regexp', captures }));
	}
	const rest = prefixes.filter(({ kind }) => kind === 'prefix');
	for (const one of rest) {
		const head = one.pattern === '/' ? 'handle' : `handle ${prefixMatcher(one.pattern, label, out)}`;
		out.block(head, () => body(one, { kind: 'prefix', path: one.pattern }));
		writeTest(level, one, one.pattern, locations);
	}
	for (const one of locations) {
		if (one.kind === 'named' && !isUsed(one.pattern, directives)) out.keep(one.directive, 'no try_files refers to it');
	}
	if (!prefixes.some(({ pattern }) => pattern === '/')) {
		out.block('handle', () =>
			writeContent(directives, level.scope, out, { pools: level.pools, place: { kind: 'server' } }),
		);
	}
}

function isUsed(name: string, directives: readonly NginxDirective[]): boolean {
	return directives.some(
		one => (one.name === 'try_files' && one.args.at(-1) === name) || isUsed(name, one.block ?? []),
	);
}

function writeLocation(level: Level, { directive }: Location, place: Place, all: readonly Location[]): void {
	const { out } = level;
	const block = directive.block!;
	out.count(directive);
	const scope = new Scope(level.scope, block);
	for (const one of block) {
		if (one.name === 'location') out.keep(one, 'nested locations are not translated');
		else if (!scope.holds(one) && !KNOWN.has(one.name)) level.keepOther(one, out);
	}
	const captures = place.kind === 'regexp' ? place.captures : undefined;
	writeRewrites(block, out, { captures, place: 'location' });
	// A `return` ends the request, so what follows it is never reached.
	if (block.some(({ name }) => name === 'return')) return;
	const named = (name: string): { block: readonly NginxDirective[]; scope: Scope } | undefined => {
		const found = all.find(({ kind, pattern }) => kind === 'named' && pattern === name);
		if (!found) return undefined;
		out.count(found.directive);
		const inner = found.directive.block!;
		const own = new Scope(level.scope, inner);
		for (const one of inner) if (!own.holds(one) && !KNOWN.has(one.name)) level.keepOther(one, out);
		return { block: inner, scope: own };
	};
	writeContent(block, scope, out, { pools: level.pools, place, named });
}

const KNOWN: ReadonlySet<string> = new Set([
	...[
		'return',
		'rewrite',
		'proxy_pass',
		'fastcgi_pass',
		'alias',
		'try_files',
		'location',
		'listen',
		'server_name',
		'if',
	],
]);

function writeOthers({ directives, scope, out, keepOther }: Level): void {
	for (const one of directives) {
		if (!scope.holds(one) && !KNOWN.has(one.name)) keepOther(one, out);
	}
}

function writeErrorPages({ scope, out }: Level): void {
	for (const one of scope.all('error_page')) {
		const statuses = one.args.slice(0, -1);
		const target = one.args.at(-1) ?? '';
		const root = scope.last('root');
		if (!target.startsWith('/') || /[${}]/.test(target) || statuses.some(text => !/^\d{3}$/.test(text)) || !root) {
			out.keep(one, 'only a page in `root` with the same status is translated');
			continue;
		}
		out.count(one);
		out.count(root);
		out.block(`handle_errors ${statuses.join(' ')}`, () => {
			out.line(`root ${word(root.args[0] ?? '')}`);
			out.line(`rewrite ${word(target)}`);
			out.line('file_server');
		});
	}
}

/** Reports whether a text can be part of a path pattern and means itself. */
function isPlain(path: string): boolean {
	return /^\/[\w\-./~@+,:=!&']*$/.test(path) && !path.includes('//');
}

function exactMatcher(path: string, label: () => string, out: ConfigfileWriter): string {
	return isPlain(path) ? path : regexpMatcher(`^${escapedRegexp(path)}$`, label, out);
}

function prefixMatcher(path: string, label: () => string, out: ConfigfileWriter): string {
	return isPlain(path) ? `${path}*` : regexpMatcher(`^${escapedRegexp(path)}`, label, out);
}

function regexpMatcher(pattern: string, label: () => string, out: ConfigfileWriter): string {
	const name = label();
	out.line(`${name} path_regexp ${word(pattern)}`);
	return name;
}

function escapedRegexp(text: string): string {
	return text.replace(/[.*+?^$()[\]{}|\\]/g, '\\$&');
}

/** Reports whether a line is a `rewrite` that a path may match. */
function mayRewrite({ name, args }: NginxDirective, path: string): boolean {
	if (name !== 'rewrite') return false;
	return matchesOrUnknown(args[0] ?? '', path, '');
}

/** Reports whether a regular expression matches, or cannot be read here. */
function matchesOrUnknown(pattern: string, path: string, flags: string): boolean {
	try {
		return new RegExp(pattern, flags).test(path);
	} catch {
		return true;
	}
}

/** Reports whether nginx may choose another location for the path of a location. */
function mayTake({ kind, pattern }: Location, path: string, of: Location['kind']): boolean {
	if (kind === 'exact') return of !== 'exact' && pattern === path;
	if (of !== 'prefix' || (kind !== 'regexp' && kind !== 'regexp-nocase')) return false;
	return matchesOrUnknown(pattern, path, kind === 'regexp' ? '' : 'i');
}

/** Writes a test that pins where a request for the location goes, where that does not depend on files or upstreams. */
function writeTest(
	{ out, address, directives }: Level,
	{ directive, kind }: Location,
	path: string,
	locations: readonly Location[],
): void {
	if (address === undefined || !isPlain(path) || directives.some(one => one.name === 'if' || mayRewrite(one, path)))
		return;
	if (locations.some(other => other.directive !== directive && mayTake(other, path, kind))) return;
	const block = directive.block!;
	const name = `${directive.text} (${address}${path})`;
	const request = `GET ${address}${path}`;
	if (block.some(one => ['rewrite', 'if', 'location', 'allow', 'deny', 'auth_basic', 'try_files'].includes(one.name)))
		return;
	const back = block.find(one => one.name === 'return');
	if (back) {
		const [status = '', target = ''] = back.args;
		if (!/^\d{3}$/.test(status) || status === '444' || /\$/.test(target)) return;
		const lines = [request, `expect status ${status}`];
		if (/^30[12378]$/.test(status)) lines.push(`expect header Location ${word(target)}`);
		out.test(name, lines);
	} else if (block.some(one => one.name === 'proxy_pass' && !one.args[0]?.includes('$'))) {
		out.test(name, [request, 'upstream answers 200 "from the upstream"', 'expect body "from the upstream"']);
	}
}
