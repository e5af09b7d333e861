/** Path patterns: exact, prefix, suffix, substring, glob, and forms that consider percent-encodings. */
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

/** Number of exact patterns from which on a set is faster than comparing them one by one. */
const SET_FROM = 5;

/** An invalid pattern: an unclosed character class. */
export class PathPatternError extends Error {}

/**
 * Compiles patterns, any of which may match. Comparison ignores case and uses the decoded and cleaned path. A pattern with `//`
 * is compared with the path before slashes are merged, one with `%` with the escaped path. Throws PathPatternError.
 */
export function compilePathPatterns(patterns: readonly string[]): PathTest {
	if (patterns.includes('*')) return () => true;
	const exact: string[] = [];
	const tests: PathTest[] = [];
	for (const pattern of patterns.map(p => p.toLowerCase())) {
		if (isExact(pattern)) exact.push(pattern);
		else tests.push(compilePathPattern(pattern));
	}
	if (exact.length >= SET_FROM) {
		const set = new Set(exact);
		tests.unshift(request => set.has(loweredPath(request)));
	} else for (const pattern of exact.reverse()) tests.unshift(compilePathPattern(pattern));
	if (tests.length === 1) return tests[0]!;
	return request => {
		for (let i = 0; i < tests.length; i++) if (tests[i]!(request)) return true;
		return false;
	};
}

function isExact(pattern: string): boolean {
	return !/[*?[\\%]/.test(pattern) && !pattern.includes('//');
}

/**
 * Returns the lower-case first segment that a path needs in order to match this pattern: `/api` for `/API/*`. Undefined if
 * several first segments can match, or if the pattern does not use the normalized path.
 */
export function firstSegmentOf(pattern: string): string | undefined {
	const text = /^\/[^/*?[\\%{]+(?=\/|$)/.exec(pattern)?.[0];
	// Patterns with `//` or `%` are compared with another form of the path.
	return text === undefined || pattern.includes('//') || pattern.includes('%') ? undefined : text.toLowerCase();
}

/** Compiles one pattern, which is in lower case. */
function compilePathPattern(pattern: string): PathTest {
	if (pattern.includes('%')) {
		const test = compileEscapedPattern(pattern);
		const merge = !pattern.includes('//');
		return request => {
			// Throws for a malformed path, even though the pattern uses another form of the path.
			normalizedPath(request);
			return test(escapedCleanPath(request.path, merge).toLowerCase());
		};
	}
	const test = compileText(pattern);
	if (pattern.includes('//')) return request => test(normalizedPathWithSlashes(request).toLowerCase());
	return request => test(loweredPath(request));
}

function compileText(pattern: string): (path: string) => boolean {
	const stars = pattern.split('*').length - 1;
	if (!/[?[\\]/.test(pattern)) {
		const first = pattern.startsWith('*');
		const last = pattern.endsWith('*');
		if (stars === 0) return path => path === pattern;
		if (stars === 1 && last) {
			const prefix = pattern.slice(0, -1);
			return path => path.startsWith(prefix);
		}
		if (stars === 1 && first) {
			const suffix = pattern.slice(1);
			return path => path.endsWith(suffix);
		}
		if (stars === 2 && first && last && pattern.length > 2) {
			const middle = pattern.slice(1, -1);
			return path => path.includes(middle);
		}
		if (/^\*+$/.test(pattern)) return () => true;
	}
	const glob = compileGlob(pattern);
	if (!glob) throw new PathPatternError(`\`${pattern}\` is not a path pattern: a \`[\` is not closed.`);
	return glob;
}

/** Splits a pattern with placeholders into pieces. Only `wild` pieces are wildcards: those in a placeholder's value are literal. */
export function splitPattern(pattern: string): { readonly text: string; readonly wild: boolean }[] {
	const pieces: { text: string; wild: boolean }[] = [];
	let depth = 0;
	for (const c of pattern) {
		if (c === '{') depth++;
		const wild = depth === 0 && /[*?[\]\\]/.test(c);
		if (c === '}' && depth > 0) depth--;
		const last = pieces.at(-1);
		if (last && last.wild === wild) last.text += c;
		else pieces.push({ text: c, wild });
	}
	return pieces;
}
