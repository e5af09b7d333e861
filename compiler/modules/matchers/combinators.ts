/** `all`, `any` and `not`: combine matchers. */
import type { Matcher } from '../../document/document.ts';
import { MATCHER_SCHEMA } from '../../document/references.ts';
import type { Predicate } from '../../exchange/handler.ts';
import { requestMatcher } from '../contract/matcher.ts';

interface ListMatcher extends Matcher {
	readonly of: readonly Matcher[];
}

interface NotMatcher extends Matcher {
	readonly type: 'not';
	readonly of: Matcher;
}

/**
 * Holds if all of its matchers hold. Without matchers, it holds. Written `and` in a Configfile, or as a block of matchers in both
 * dialects.
 */
export const all = requestMatcher<ListMatcher>({
	id: 'all',
	usage: '<matcher> and <matcher>',
	summary: 'Holds if all of its matchers hold.',
	documentation: [
		"In a Configfile, matchers are joined by `and`; in both languages, the lines of a named matcher's block are. Matchers",
		'after the first that does not hold are not evaluated.',
		'',
		'```',
		'@api {',
		'	path /api/*',
		'	method GET',
		'}',
		'```',
	].join('\n'),
	lower: () => undefined,
	schema: {
		properties: { of: { type: 'array', items: MATCHER_SCHEMA, description: 'All of them must hold.' } },
		required: ['of'],
	},
	compile: (matcher, cx) => {
		const [a, b, ...otherPredicates] = matcher.of.map((part, i) => cx.matcher(part, `of/${i}`));
		if (!a) return () => true;
		if (!b) return a;
		if (otherPredicates.length === 0) return x => a(x) && b(x);
		return x => a(x) && b(x) && allHold(otherPredicates, x);
	},
});

/** Holds if at least one of its matchers holds. Without matchers, it does not hold. Written `or` in a Configfile. */
export const any = requestMatcher<ListMatcher>({
	id: 'any',
	usage: '<matcher> or <matcher>',
	summary: 'Holds if any of its matchers holds.',
	documentation: [
		'In a Configfile, matchers are joined by `or`. Matchers after the first that holds are not evaluated.',
		'',
		'```',
		'@staff remote_ip private_ranges or header X-Staff yes',
		'```',
	].join('\n'),
	lower: () => undefined,
	schema: {
		properties: { of: { type: 'array', items: MATCHER_SCHEMA, description: 'One of them must hold.' } },
		required: ['of'],
	},
	compile: (matcher, cx) => {
		const predicates = matcher.of.map((part, i) => cx.matcher(part, `of/${i}`));
		if (predicates.length === 2) {
			const [a, b] = predicates as [Predicate, Predicate];
			return x => a(x) || b(x);
		}
		return x => {
			for (let i = 0; i < predicates.length; i++) if (predicates[i]!(x)) return true;
			return false;
		};
	},
});

/** Holds if its matcher does not hold. */
export const not = requestMatcher<NotMatcher>({
	id: 'not',
	usage: 'not <matcher> | not { <matcher>… }',
	summary: 'Holds if its matcher does not hold.',
	documentation: [
		'With a block, `not` holds unless all matchers of the block hold.',
		'',
		'```',
		'@write not method GET HEAD OPTIONS',
		'```',
	].join('\n'),
	lower: (line, cx, name) => {
		const innerMatcher = cx.matcherExpression(line.words.slice(1), line.block, name);
		return innerMatcher && { type: 'not', of: innerMatcher };
	},
	schema: { properties: { of: MATCHER_SCHEMA }, required: ['of'] },
	compile: (matcher, cx) => {
		const innerPredicate = cx.matcher(matcher.of, 'of');
		return x => !innerPredicate(x);
	},
});

function allHold(predicates: readonly Predicate[], x: Parameters<Predicate>[0]): boolean {
	for (let i = 0; i < predicates.length; i++) if (!predicates[i]!(x)) return false;
	return true;
}
