/** `path`: matches the request path by exact text, prefix, suffix, substring or glob. */

import { nearestName, suggestName } from '../../diagnostics/suggest.ts';
import type { Matcher } from '../../document/document.ts';
import type { Predicate } from '../../exchange/handler.ts';
import { loweredPath } from '../../exchange/request-path.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { requestMatcher } from '../contract/matcher.ts';
import { samplePaths } from '../contract/request-change.ts';
import { compileGlob, escapeGlob } from './glob.ts';
import { compilePathPatterns, PathPatternError, splitPattern } from './path-pattern.ts';
import { matcherArguments, mergeDistinct, stringListSchema } from './words.ts';

interface PathMatcher extends Matcher {
	readonly type: 'path';
	readonly patterns: readonly string[];
}

const USAGE = 'path <pattern>…';

/** Operators of matcher expressions. A pattern without a slash that resembles one is probably a misspelled operator. */
const OPERATORS: readonly string[] = ['and', 'or', 'not'];

export const path = requestMatcher<PathMatcher>({
	id: 'path',
	usage: USAGE,
	summary: 'Matches the request path.',
	documentation: [
		'Any of the patterns may match. Case is ignored; the path is decoded, its dots are resolved and repeated',
		'slashes merged before comparing, so that no alternative spelling of a path evades a matcher.',
		'',
		'| Pattern | Matches |',
		'| --- | --- |',
		'| `/x` | exactly this path |',
		'| `/x*` | paths that begin with it; `/x/*` does not match `/x` |',
		'| `*.x` | paths that end with it |',
		'| `*x*` | paths that contain it |',
		'| `/a/*/b`, `/a/?`, `/[ab]/*` | a glob for the whole path; `*` and `?` do not match slashes |',
		'| `/a%2Fb`, `/a/%*` | with `%`: escapes in the pattern are compared with the escapes of the path |',
		'',
		'Placeholders are resolved per request; a `*` in a value is literal. A pattern with `//` sees unmerged slashes.',
		'A path that cannot be decoded causes an error 400.',
		'',
		'```',
		'@api path /api/* /v2/*',
		'```',
	].join('\n'),
	listedValues: { field: 'patterns', kind: 'path' },
	dependsOn: 'path',
	probeChanges: ({ patterns }) => patterns.flatMap(pattern => samplePaths(pattern).map(text => ({ path: text }))),
	valuesOptional: true,
	lower: (line, cx) => {
		const args = matcherArguments(line, cx, USAGE);
		if (!args) return undefined;
		for (const word of args) {
			const { text, span } = word;
			if (text.startsWith('/') || text.startsWith('*') || text.startsWith('{') || cx.dialect === 'compatfile') continue;
			const operator = nearestName(text, OPERATORS);
			if (operator !== undefined) {
				const message = `\`${text}\` can match no path.`;
				cx.problem('error', 'path/no-slash', span, message, suggestName(word, operator));
				// The words after the operator belong to another matcher.
				break;
			}
			cx.problem('error', 'path/no-slash', span, `\`${text}\` can match no path.`, {
				label: 'a path begins with `/`',
				hint: `Write \`/${text}\`, or \`*${text}\` for paths that end with it.`,
			});
		}
		return { type: 'path', patterns: args.map(word => cx.template(word)) };
	},
	merge: (a, b) => ({ type: 'path', patterns: mergeDistinct(a.patterns, b.patterns) }),
	schema: stringListSchema('patterns', 'Patterns, any of which may match.'),
	compile: compilePath,
});

export function createPathMatcher(patterns: readonly string[]): Matcher {
	return { type: path.id, patterns };
}

function compilePath(matcher: PathMatcher, cx: CompileContext): Predicate {
	const constantPatterns = matcher.patterns
		.filter(pattern => !cx.hasPlaceholders(pattern))
		.map(p => cx.template(p, 'empty').constant!);
	const dynamicTests = matcher.patterns
		.filter(pattern => cx.hasPlaceholders(pattern))
		.map(p => compileTemplatePattern(p, cx));
	try {
		const constantTest = constantPatterns.length > 0 ? compilePathPatterns(constantPatterns) : undefined;
		if (constantTest && dynamicTests.length === 0) return x => constantTest(x.request);
		return x => (constantTest?.(x.request) ?? false) || dynamicTests.some(predicate => predicate(x));
	} catch (error) {
		if (error instanceof PathPatternError) return cx.refuse(error.message, 'path/invalid-pattern');
		throw error;
	}
}

/** Compiles a pattern with placeholders. The kind of the pattern, such as prefix or suffix, depends only on the configured text. */
function compileTemplatePattern(pattern: string, cx: CompileContext): Predicate {
	const pieces = splitPattern(pattern);
	// `{%path}` has already been expanded, so any percent sign belongs to an escape.
	if (pattern.includes('%')) {
		return cx.refuse(
			'A path pattern may contain either placeholders or percent-encodings, not both.',
			'path/invalid-pattern',
		);
	}
	const wildcards = pieces.filter(piece => piece.isWildcard);
	const startsWithStar = pieces[0]!.isWildcard && pieces[0]!.text === '*';
	const endsWithStar = pieces.length > 1 && pieces.at(-1)!.isWildcard && pieces.at(-1)!.text === '*';
	if (wildcards.length === (startsWithStar ? 1 : 0) + (endsWithStar ? 1 : 0)) {
		const template = cx.template(pattern.slice(startsWithStar ? 1 : 0, endsWithStar ? -1 : undefined), 'empty');
		return x => {
			const patternText = template.render(x).toLowerCase();
			const pathText = loweredPath(x.request);
			if (startsWithStar && endsWithStar) return pathText.includes(patternText);
			if (startsWithStar) return pathText.endsWith(patternText);
			return endsWithStar ? pathText.startsWith(patternText) : pathText === patternText;
		};
	}
	const globParts = pieces.map(piece => (piece.isWildcard ? piece.text : cx.template(piece.text, 'empty')));
	return x => {
		const glob = globParts.map(piece => (typeof piece === 'string' ? piece : escapeGlob(piece.render(x)))).join('');
		return compileGlob(glob.toLowerCase())?.(loweredPath(x.request)) ?? false;
	};
}
