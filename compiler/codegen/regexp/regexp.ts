/**
 * Regular expressions in RE2 syntax. Search time is linear in the length of the subject: expressions for which `RegExp` could take
 * longer are run by {@link LinearRegExp}.
 */
import { type MatchStarts, matchStartsOf, maxFastSubjectLength } from './backtracking.ts';
import { LinearRegExp } from './linear-regexp.ts';
import { MatchPaths, maxPathLength } from './match-paths.ts';
import { parseRegexp } from './parse-regexp.ts';
import { compileProgram } from './program.ts';
import { CONFIGURED_REGEXP_BOUNDS, type RegexpBounds } from './regexp-bounds.ts';
import { RegexpTooLarge } from './regexp-error.ts';
import type { ParsedRegexp } from './regexp-node.ts';
import { regexpSource } from './regexp-source.ts';
import { ReverseAutomaton } from './reverse-automaton.ts';

export { REQUEST_REGEXP_BOUNDS } from './regexp-bounds.ts';
export { RegexpError, RegexpTooLarge } from './regexp-error.ts';

/** Maximum number of nodes of a program that may all have to be examined for each character. */
const MAX_ACTIVE_NODES = 350;
/** Maximum number of instructions on a path from one character to the next, in any program. */
const MAX_PATH_LENGTH = 300;

/** Prefixes for the source of an expression, so that `RegExp` tries it only at positions where a match can start. */
const START_PREFIXES: { readonly [starts in MatchStarts]: string } = { anywhere: '', lines: '(?<![^\\n])', text: '^' };

/**
 * Compiles an expression. `flags` may contain `g`, `i` and `y`, as in `RegExp`; `u` is always set. `^` and `$` match only at the
 * ends of the text unless `(?m)` is set, `.` matches any character except a line feed unless `(?s)` is set, and `\d \s \w \b` are
 * ASCII. Throws RegexpError.
 */
export function compileRegexp(source: string, flags = '', bounds: RegexpBounds = CONFIGURED_REGEXP_BOUNDS): RegExp {
	return compileParsedRegexp(parseRegexp(source, flags.includes('i'), bounds), flags, bounds);
}

/** Compiles a parsed expression. The parser has already applied the flag `i`. Throws RegexpTooLarge. */
export function compileParsedRegexp(parsed: ParsedRegexp, flags: string, bounds: RegexpBounds): RegExp {
	// With `g` or `y`, a search may continue in the middle of a line, and must find matches that begin there.
	const matchStarts = flags.includes('g') || flags.includes('y') ? 'anywhere' : matchStartsOf(parsed.root);
	const maxFastLength = maxFastSubjectLength(parsed.root, matchStarts);
	const jsSource = maxFastLength < 0 ? '' : START_PREFIXES[matchStarts] + regexpSource(parsed);
	const effectiveFlags = `${flags.replace('i', '')}u`;
	if (maxFastLength === Infinity) return new RegExp(jsSource, effectiveFlags);
	const program = compileProgram(parsed, bounds);
	const automaton = new ReverseAutomaton(program);
	const isSmall = automaton.nodeCount <= MAX_ACTIVE_NODES || automaton.complete(bounds.maxSteps);
	if (!isSmall || maxPathLength(program) > MAX_PATH_LENGTH) throw new RegexpTooLarge();
	const matchPaths = new MatchPaths(program, automaton);
	return new LinearRegExp({ ...parsed, jsSource, maxFastLength, program, automaton, matchPaths }, effectiveFlags);
}
