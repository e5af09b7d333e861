/** `url_pattern`: the request's URL by a pattern of the WHATWG URL Pattern standard, with named groups. */

import { URL_PATTERN_GROUPS } from '../codegen/captures.ts';
import type { CompileContext } from '../codegen/compile-context.ts';
import type { Matcher } from '../document/document.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Predicate } from '../exchange/handler.ts';
import { normalizedPath, normalizedPathWithSlashes } from '../exchange/request-path.ts';
import { requestMatcher } from './matcher.ts';

interface UrlPatternMatcher extends Matcher {
	readonly type: 'url_pattern';
	readonly pattern: string;
	readonly base_url?: string;
	readonly ignore_case?: boolean;
}

const USAGE = 'url_pattern <pattern> [{ base_url <url>; ignore_case }]';

/** Stands in for a base while a pattern without one is taken apart; only its path, query and fragment are kept. */
const NO_BASE = 'http://pattern.invalid';

/** The `url_pattern` matcher. */
export const urlPattern = requestMatcher<UrlPatternMatcher>({
	id: 'url_pattern',
	usage: USAGE,
	summary: 'Matches the URL of the request by a URL pattern.',
	documentation: [
		'The pattern is that of the URL Pattern standard: `:name` is a segment, `*` any text, `(\\d+)` an expression in the syntax',
		'of RE2, `{…}?` an optional part. It is compared with scheme, host, port, the path decoded and cleaned as for `path`, and',
		'the query. A pattern without `://` and without `base_url` holds for any scheme, host and port. `ignore_case` lets letter',
		'case not count.',
		'',
		'Groups are `{http.url_pattern.pathname.NAME}`, those without a name counted from 0; the other components are',
		'`protocol`, `username`, `password`, `hostname`, `port`, `search` and `hash`.',
		'',
		'```',
		'@book url_pattern /books/:id',
		'```',
	].join('\n'),
	lower: (line, cx) => {
		const args = line.words.slice(1);
		if (!cx.count(line, args, 1, 1, USAGE)) return undefined;
		const fields: { base_url?: string; ignore_case?: boolean } = {};
		cx.subdirectives(
			line.block,
			{
				base_url: (words, at) => {
					if (cx.count(at, words, 1, 1, 'base_url <url>')) fields.base_url = words[0]!.text;
				},
				ignore_case: (words, at) => {
					if (cx.count(at, words, 0, 0, 'ignore_case')) fields.ignore_case = true;
				},
			},
			'url_pattern',
		);
		return { type: 'url_pattern', pattern: args[0]!.text, ...fields };
	},
	conflict: () => 'url_pattern can only be used once per named matcher',
	schema: {
		properties: {
			pattern: { type: 'string', description: 'Pattern of a URL, or of its path and what follows it.' },
			base_url: { type: 'string', description: 'URL against which the pattern is taken.' },
			ignore_case: { type: 'boolean', default: false, description: 'Letter case does not count.' },
		},
		required: ['pattern'],
	},
	compile: compileUrlPattern,
});

function compileUrlPattern(matcher: UrlPatternMatcher, cx: CompileContext): Predicate {
	const pattern = construct(matcher, cx);
	for (const component of [pattern.hostname, pattern.pathname, pattern.search, pattern.hash]) {
		for (const expression of expressionsIn(component)) cx.regexp(expression);
	}
	const pathOf = pattern.pathname.includes('//') ? normalizedPathWithSlashes : normalizedPath;
	return x => {
		const { request } = x;
		const found = pattern.exec({
			protocol: request.scheme,
			hostname: request.host.includes(':') ? `[${request.host}]` : request.host,
			port: portOf(x),
			pathname: asPathname(pathOf(request)),
			search: request.query ?? '',
		});
		if (!found) return false;
		x.variables.set(URL_PATTERN_GROUPS, found);
		return true;
	};
}

function construct(matcher: UrlPatternMatcher, cx: CompileContext): URLPattern {
	const options = matcher.ignore_case === true ? { ignoreCase: true } : {};
	const { pattern: text, base_url: base } = matcher;
	try {
		if (base !== undefined) return new URLPattern(text, base, options);
		if (text.includes('://')) return new URLPattern(text, options);
		const { pathname, search, hash } = new URLPattern(text, NO_BASE, options);
		return new URLPattern({ pathname, search, hash }, options);
	} catch {
		return cx.refuse(
			`\`${text}\` is not a URL pattern${base === undefined ? '' : ` for \`${base}\``}.`,
			'url-pattern/invalid',
		);
	}
}

function portOf(x: Exchange): string {
	const { authority } = x.request;
	const colon = authority.lastIndexOf(':');
	return colon > authority.lastIndexOf(']') ? authority.slice(colon + 1) : '';
}

/** The decoded path as a URL's: what is left of `%` and `\` is data, and must become neither an escape nor a slash. */
function asPathname(path: string): string {
	return path.replaceAll('%', '%25').replaceAll('\\', '%5C');
}

/** The regular expressions in parentheses of a component. */
function expressionsIn(component: string): string[] {
	const found: string[] = [];
	for (let at = 0; at < component.length; at++) {
		if (component[at] === '\\') at++;
		else if (component[at] === '(') {
			const end = closingParenthesis(component, at);
			found.push(component.slice(at + 1, end));
			at = end;
		}
	}
	return found;
}

function closingParenthesis(text: string, open: number): number {
	let depth = 0;
	for (let at = open; at < text.length; at++) {
		if (text[at] === '\\') at++;
		else if (text[at] === '(') depth++;
		else if (text[at] === ')' && --depth === 0) return at;
	}
	return text.length;
}
