/** Compiles path patterns: exact, prefix, suffix, substring, glob, and patterns that contain percent-encodings. */
import type { Request } from '../../exchange/exchange.ts';
import {
	escapedCleanPath,
	loweredPath,
	normalizedPath,
	normalizedPathWithSlashes,
} from '../../exchange/request-path.ts';
import { compileEscapedPattern } from './escaped-path-pattern.ts';
import { compileGlob } from './glob.ts';

/** Reports whether a request's path matches. Throws HttpError 400 for a malformed path. */
export type PathTest = (request: Request) => boolean;

/** Minimum number of exact patterns for which a set is faster than comparing them one by one. */
const MIN_SET_SIZE = 5;

/** Thrown for an invalid pattern, which has an unclosed character class. */
export class PathPatternError extends Error {}

/**
 * Compiles patterns, any of which may match. Comparison ignores case and uses the decoded and cleaned path. A pattern with `//` is
 * compared with the path before slashes are merged. A pattern with `%` is compared with the escaped path. Throws PathPatternError.
 */
export function compilePathPatterns(patterns: readonly string[]): PathTest {
	if (patterns.includes('*')) return () => true;
	const exactPatterns: string[] = [];
	const tests: PathTest[] = [];
	for (const pattern of patterns.map(p => p.toLowerCase())) {
		if (isExactPattern(pattern)) exactPatterns.push(pattern);
		else tests.push(compilePathPattern(pattern));
	}
	if (exactPatterns.length >= MIN_SET_SIZE) {
		const exactSet = new Set(exactPatterns);
		tests.unshift(request => exactSet.has(loweredPath(request)));
	} else for (const pattern of exactPatterns.reverse()) tests.unshift(compilePathPattern(pattern));
	if (tests.length === 1) return tests[0]!;
	return request => {
		for (let i = 0; i < tests.length; i++) if (tests[i]!(request)) return true;
		return false;
	};
}

function isExactPattern(pattern: string): boolean {
	return !/[*?[\\%]/.test(pattern) && !pattern.includes('//');
}

/**
 * Returns the first segment, in lower case, that every path matching this pattern has: `/api` for `/API/*`. Returns undefined if
 * paths with different first segments match, or if the pattern is not compared with the normalized path.
 */
export function firstSegmentOf(pattern: string): string | undefined {
	const firstSegment = /^\/[^/*?[\\%{]+(?=\/|$)/.exec(pattern)?.[0];
	// Patterns with `//` or `%` are not compared with the normalized path.
	return firstSegment === undefined || pattern.includes('//') || pattern.includes('%')
		? undefined
		: firstSegment.toLowerCase();
}

/** Compiles one pattern, which is in lower case. */
function compilePathPattern(pattern: string): PathTest {
	if (pattern.includes('%')) {
		const test = compileEscapedPattern(pattern);
		const mergesSlashes = !pattern.includes('//');
		return request => {
			// Called because it throws for a malformed path; its result is not needed.
			normalizedPath(request);
			return test(escapedCleanPath(request.path, mergesSlashes).toLowerCase());
		};
	}
	const test = compileDecodedPattern(pattern);
	if (pattern.includes('//')) return request => test(normalizedPathWithSlashes(request).toLowerCase());
	return request => test(loweredPath(request));
}

function compileDecodedPattern(pattern: string): (path: string) => boolean {
	const starCount = pattern.split('*').length - 1;
	if (!/[?[\\]/.test(pattern)) {
		const startsWithStar = pattern.startsWith('*');
		const endsWithStar = pattern.endsWith('*');
		if (starCount === 0) return path => path === pattern;
		if (starCount === 1 && endsWithStar) {
			const prefix = pattern.slice(0, -1);
			return path => path.startsWith(prefix);
		}
		if (starCount === 1 && startsWithStar) {
			const suffix = pattern.slice(1);
			return path => path.endsWith(suffix);
		}
		if (starCount === 2 && startsWithStar && endsWithStar && pattern.length > 2) {
			const innerText = pattern.slice(1, -1);
			return path => path.includes(innerText);
		}
		if (/^\*+$/.test(pattern)) return () => true;
	}
	const glob = compileGlob(pattern);
	if (!glob) throw new PathPatternError(`\`${pattern}\` is not a path pattern: a \`[\` is not closed.`);
	return glob;
}

/**
 * Splits a pattern with placeholders into pieces. Wildcards are in pieces of their own, with `isWildcard`, because wildcard
 * characters in the value of a placeholder are literal.
 */
export function splitPattern(pattern: string): { readonly text: string; readonly isWildcard: boolean }[] {
	const pieces: { text: string; isWildcard: boolean }[] = [];
	let braceDepth = 0;
	for (const c of pattern) {
		if (c === '{') braceDepth++;
		const isWildcard = braceDepth === 0 && /[*?[\]\\]/.test(c);
		if (c === '}' && braceDepth > 0) braceDepth--;
		const lastPiece = pieces.at(-1);
		if (lastPiece && lastPiece.isWildcard === isWildcard) lastPiece.text += c;
		else pieces.push({ text: c, isWildcard });
	}
	return pieces;
}
