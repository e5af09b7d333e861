/** The registry of request matchers, one line each. */
import type { Matcher } from '../../document/document.ts';
import type { ListedValue, MatcherModule } from '../contract/matcher.ts';
import { all, any, not } from '../matchers/combinators.ts';
import { expression } from '../matchers/expression/expression.ts';
import { file } from '../matchers/file.ts';
import { header } from '../matchers/header.ts';
import { headerRegexp } from '../matchers/header-regexp.ts';
import { host } from '../matchers/host.ts';
import { clientIp, remoteIp } from '../matchers/ip.ts';
import { method } from '../matchers/method.ts';
import { path } from '../matchers/path.ts';
import { pathRegexp } from '../matchers/path-regexp.ts';
import { protocol } from '../matchers/protocol.ts';
import { query } from '../matchers/query.ts';
import { share } from '../matchers/share.ts';
import { tls } from '../matchers/tls.ts';
import { urlPattern } from '../matchers/url-pattern.ts';
import { varsMatcher, varsRegexp } from '../matchers/vars.ts';

/** All request matchers. Their order only determines the order in the documentation and in the output of `svc schema`. */
export const matchers: readonly MatcherModule[] = [
	all,
	any,
	clientIp,
	expression,
	file,
	header,
	headerRegexp,
	host,
	method,
	not,
	path,
	pathRegexp,
	protocol,
	query,
	remoteIp,
	share,
	tls,
	urlPattern,
	varsMatcher,
	varsRegexp,
];

/** All request matchers, by `type` in the document. */
export const MATCHERS_BY_TYPE: ReadonlyMap<string, MatcherModule> = new Map(
	matchers.map(matcher => [matcher.id, matcher]),
);

/**
 * Returns the values of a matcher that consists of a list of alternatives (see `listedValues` in matcher.ts); undefined for any
 * other matcher.
 */
export function listedValuesOf(
	matcher: Matcher,
): { readonly kind: ListedValue; readonly field: string; readonly values: readonly string[] } | undefined {
	const listTrait = MATCHERS_BY_TYPE.get(matcher.type)?.listedValues;
	return listTrait && { ...listTrait, values: matcher[listTrait.field] as readonly string[] };
}

/** Returns the patterns of a matcher that consists of a list of paths; undefined for any other matcher. */
export function pathsOf(matcher: Matcher): { readonly field: string; readonly values: readonly string[] } | undefined {
	const listedValues = listedValuesOf(matcher);
	return listedValues?.kind === 'path' ? listedValues : undefined;
}
