/** `url_pattern`: matches the request URL with a WHATWG URL Pattern, with named groups. */

import { URL_PATTERN_VARIABLE, UrlPatternGroups } from '../../codegen/context/captures.ts';
import { parseRegexp } from '../../codegen/regexp/parse-regexp.ts';
import type { Matcher } from '../../document/document.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Predicate } from '../../exchange/handler.ts';
import { normalizedPath, normalizedPathWithSlashes } from '../../exchange/request-path.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { requestMatcher } from '../contract/matcher.ts';
import { translateComponent } from './url-pattern-parts.ts';

interface UrlPatternMatcher extends Matcher {
	readonly type: 'url_pattern';
	readonly pattern: string;
	readonly base_url?: string;
	readonly ignore_case?: boolean;
}

const USAGE = 'url_pattern <pattern> [{ base_url <url>; ignore_case }]';

/** Base URL for parsing a pattern that has no base URL. Only the path, query and fragment of the parsed pattern are kept. */
const DUMMY_BASE_URL = 'http://pattern.invalid';

export const urlPattern = requestMatcher<UrlPatternMatcher>({
	id: 'url_pattern',
	usage: USAGE,
	summary: 'Matches the request URL with a URL pattern.',
	documentation: [
		'The pattern follows the URL Pattern standard: `:name` is a segment, `*` any text, `(\\d+)` an RE2',
		'expression, `{…}?` an optional part. It is compared with scheme, host, port, the path decoded and cleaned as for `path`, and',
		'the query. A pattern without `://` and without `base_url` matches any scheme, host and port. `ignore_case` ignores',
		'case.',
		'',
		'Groups are `{http.url_pattern.pathname.NAME}`, numbered from 0 if they have no name; the other components are',
		'`protocol`, `username`, `password`, `hostname`, `port`, `search` and `hash`.',
		'',
		'```',
		'@book url_pattern /books/:id',
		'```',
	].join('\n'),
	dependsOn: 'path',
	lower: (line, cx) => {
		const args = line.words.slice(1);
		if (!cx.count(line, args, 1, 1, USAGE)) return undefined;
		const fields: { base_url?: string; ignore_case?: boolean } = {};
		cx.subdirectives(
			line.block,
			{
				base_url: (words, innerLine) => {
					if (cx.count(innerLine, words, 1, 1, 'base_url <url>')) fields.base_url = words[0]!.text;
				},
				ignore_case: (words, innerLine) => {
					if (cx.count(innerLine, words, 0, 0, 'ignore_case')) fields.ignore_case = true;
				},
			},
			'url_pattern',
		);
		return { type: 'url_pattern', pattern: args[0]!.text, ...fields };
	},
	conflict: () => 'url_pattern can only be used once per named matcher',
	schema: {
		properties: {
			pattern: { type: 'string', description: 'Pattern of a URL, or of its path, query and fragment.' },
			base_url: { type: 'string', description: 'URL against which the pattern is resolved.' },
			ignore_case: { type: 'boolean', default: false, description: 'Ignores case.' },
		},
		required: ['pattern'],
	},
	compile: compileUrlPattern,
});

/** The components of a URL in the order in which they are compared: the ones that patterns restrict most often come first. */
const COMPONENTS = ['pathname', 'search', 'hostname', 'port', 'protocol', 'hash', 'username', 'password'] as const;
type Component = (typeof COMPONENTS)[number];
/** Matches every URL; used to split a URL into its canonical components. */
const ANY_URL = new URLPattern({});
/** `PLAIN_PATHNAME`, `PLAIN_SEARCH` and `PLAIN_HOSTNAME` match components that are already canonical, as most are. */
const PLAIN_PATHNAME = /^\/[\w!$&'()*+,;=:@/.~%-]*$/;
const PLAIN_SEARCH = /^(?:[\w!$&()*+,;=:@/.~%-][\w!$&()*+,;=:@/?.~%-]*)?$/;
const PLAIN_HOSTNAME = /^(?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*$/;
const PUNYCODE_PREFIX = 'xn--';

interface CompiledComponent {
	readonly component: Component;
	readonly groupNames: readonly string[];
	/** Expression for the component; undefined if the component matches everything. */
	readonly regexp: RegExp | undefined;
}

function compileUrlPattern(matcher: UrlPatternMatcher, cx: CompileContext): Predicate {
	const pattern = createPattern(matcher, cx);
	const compiledComponents = COMPONENTS.map(component => compileComponent(component, pattern[component], matcher, cx));
	const pathOf = pattern.pathname.includes('//') ? normalizedPathWithSlashes : normalizedPath;
	return x => {
		const url = canonicalComponents(x, toPathname(pathOf(x.request)));
		if (!url) return false;
		const groups = new UrlPatternGroups();
		for (const { component, regexp, groupNames } of compiledComponents) {
			const match = regexp ? regexp.exec(url[component]) : [url[component], url[component]];
			if (!match) return false;
			groups.add(component, groupNames, match);
		}
		x.variables.set(URL_PATTERN_VARIABLE, groups);
		return true;
	};
}

function compileComponent(
	component: Component,
	pattern: string,
	matcher: UrlPatternMatcher,
	cx: CompileContext,
): CompiledComponent {
	const { source, groupNames, expressions } = translateComponent(component, pattern);
	if (pattern === '*') return { component, groupNames, regexp: undefined };
	for (const expression of expressions) {
		cx.regexpFor(expression);
		if (parseRegexp(expression, false).groupCount === 0) continue;
		const message = `\`${matcher.pattern}\` has a group inside a group. Use \`(?:…)\` for the inner one.`;
		return cx.refuse(message, 'url-pattern/invalid');
	}
	// The standard ignores case only in path, query and fragment. The other components are already in lower case.
	const ignoresCase = matcher.ignore_case === true && ['pathname', 'search', 'hash'].includes(component);
	return { component, groupNames, regexp: cx.regexpFor(source, ignoresCase ? 'i' : '') };
}

/** Returns the canonical components of the request's URL; undefined if the URL is invalid. */
function canonicalComponents(x: Exchange, pathname: string): { readonly [component in Component]: string } | undefined {
	const { request } = x;
	const port = portOf(x);
	const { scheme: protocol, host: hostname, query: search = '' } = request;
	const isPlainHost = port === '' && PLAIN_HOSTNAME.test(hostname) && !hostname.includes(PUNYCODE_PREFIX);
	if (isPlainHost && PLAIN_PATHNAME.test(pathname) && PLAIN_SEARCH.test(search)) {
		return { protocol, hostname, port, pathname, search, username: '', password: '', hash: '' };
	}
	const components = ANY_URL.exec({
		protocol,
		hostname: hostname.includes(':') ? `[${hostname}]` : hostname,
		port,
		pathname,
		search,
	});
	if (!components) return undefined;
	const inputOf = (component: Component): string => components[component].input;
	return Object.fromEntries(COMPONENTS.map(component => [component, inputOf(component)])) as {
		[component in Component]: string;
	};
}

function createPattern(matcher: UrlPatternMatcher, cx: CompileContext): URLPattern {
	const options = matcher.ignore_case === true ? { ignoreCase: true } : {};
	const { pattern: patternText, base_url: baseUrl } = matcher;
	try {
		if (baseUrl !== undefined) return new URLPattern(patternText, baseUrl, options);
		if (patternText.includes('://')) return new URLPattern(patternText, options);
		const { pathname, search, hash } = new URLPattern(patternText, DUMMY_BASE_URL, options);
		return new URLPattern({ pathname, search, hash }, options);
	} catch {
		return cx.refuse(
			`\`${patternText}\` is not a URL pattern${baseUrl === undefined ? '' : ` for \`${baseUrl}\``}.`,
			'url-pattern/invalid',
		);
	}
}

function portOf(x: Exchange): string {
	const { authority } = x.request;
	const colonIndex = authority.lastIndexOf(':');
	return colonIndex > authority.lastIndexOf(']') ? authority.slice(colonIndex + 1) : '';
}

/** Returns a decoded path in the form of a URL's path. `%` and `\` in it are data, so they are escaped. */
function toPathname(path: string): string {
	return path.replaceAll('%', '%25').replaceAll('\\', '%5C');
}
