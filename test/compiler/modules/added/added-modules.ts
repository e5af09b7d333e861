/** Modules that exist only in tests. Each module shows one property that directives and matchers can declare. */
import type { Matcher, Step } from '../../../../compiler/document/document.ts';
import { PIPELINE_SCHEMA } from '../../../../compiler/document/references.ts';
import {
	type Directive,
	type HandlerDirective,
	handlerDirective,
} from '../../../../compiler/modules/contract/directive.ts';
import { type MatcherModule, requestMatcher } from '../../../../compiler/modules/contract/matcher.ts';
import { compileHeaderEdits, HEADER_EDITS_SCHEMA } from '../../../../compiler/modules/words/header-edits.ts';

/** Returns a directive whose name and handler are `name` and whose only argument is the field `to`. */
function testDirective(name: string, traits: Partial<HandlerDirective>): Directive {
	return handlerDirective<Step>({
		kind: 'handler',
		id: name,
		names: { configfile: [name], compatfile: [name] },
		usage: `${name} [matcher] [<to>]`,
		summary: `Does what the tests expect of ${name}.`,
		documentation: `The page of ${name}.`,
		matcherToken: 'optional',
		lower: ({ line, args }, cx) => {
			const pipeline = line.block && { pipeline: cx.pipeline(line.block.lines) };
			return cx.origin({ handler: name, ...(args[0] && { to: cx.template(args[0]) }), ...pipeline }, line.span);
		},
		schema: {
			properties: {
				to: { type: 'string' },
				pipeline: PIPELINE_SCHEMA,
				fields: HEADER_EDITS_SCHEMA,
			},
		},
		compile: (_step, _cx, next) => next,
		...traits,
	});
}

/** Returns the argument of a step, which is its field `to`. */
const argumentOf = (step: Step): string => step.to as string;

export const addedDirectives: readonly Directive[] = [
	testDirective('brew', {
		answers: 'always',
		order: { rank: 325 },
		compile:
			(_step, { stepNumber: step }) =>
			x => {
				x.response.status = 418;
				x.markAnswered('brew', step);
			},
	}),
	testDirective('gate', { answers: 'sometimes', asksForPasswords: true }),
	testDirective('label', {}),
	testDirective('either', {
		isBlock: true,
		branches: ({ pipeline }) => [{ pipeline: pipeline as readonly Step[], pointer: '' }],
		compile: (step, cx, next) => cx.pipeline(step.pipeline as readonly Step[], next),
	}),
	testDirective('send', {
		matcherToken: 'with-more-arguments',
		answers: 'always',
		redirectsTo: step => ({ to: argumentOf(step), isByPage: false }),
		compile: (step, cx) => {
			const location = cx.template(argumentOf(step), 'empty');
			const { stepNumber: number } = cx;
			return x => {
				x.response.status = 302;
				x.response.headers.set('Location', location.render(x));
				x.markAnswered('send', number);
			};
		},
	}),
	testDirective('relay', {
		answers: 'always',
		upstreamAddressesOf: step => [{ text: argumentOf(step), pointer: '/to' }],
	}),
	testDirective('shelf', {
		matcherToken: 'with-more-arguments',
		answers: 'always',
		servesFiles: () => ({ hiddenPatterns: [] }),
		rootOf: step => (typeof step.to === 'string' ? { text: step.to, pointer: '/to' } : undefined),
		readsRoot: () => true,
	}),
	testDirective('aim', { matcherToken: 'with-more-arguments', changesTarget: true, rewritesTo: argumentOf }),
	testDirective('mark', {
		fieldEdits: { fields: 'response' },
		lower: ({ line, args }, cx) => {
			const [name, value] = args.map(word => word.text);
			return cx.origin({ handler: 'mark', fields: { set: [{ name: name!, value: value! }] } }, line.span);
		},
		compile: (step, cx, next) => {
			const edit = compileHeaderEdits(step.fields as never, cx);
			return x => {
				edit(x, x.response.headers);
				return next(x);
			};
		},
	}),
	testDirective('jump', { routeOf: argumentOf, answers: 'sometimes' }),
	testDirective('coin', {
		definesPlaceholders: ({ words }) => words.slice(1),
		placeholdersOf: step => [argumentOf(step).slice(1, -1)],
		lower: ({ line, args }, cx) => cx.origin({ handler: 'coin', to: args[0]!.text }, line.span),
	}),
	testDirective('weigh', { order: { rank: 325, lastRunsFirst: true } }),
];

interface AreaMatcher extends Matcher {
	readonly type: 'area';
	readonly areas: readonly string[];
}

export const addedMatchers: readonly MatcherModule[] = [
	requestMatcher<AreaMatcher>({
		id: 'area',
		usage: 'area <pattern>…',
		summary: 'Matches what the tests expect of it.',
		documentation: 'The page of area.',
		listedValues: { field: 'areas', kind: 'path' },
		dependsOn: 'path',
		wordsOf: ({ areas }) => areas.map(text => `<${text}>`),
		lower: line => ({ type: 'area', areas: line.words.slice(1).map(({ text }) => text) }),
		schema: { properties: { areas: { type: 'array', items: { type: 'string' } } }, required: ['areas'] },
		compile: (matcher, cx) => cx.matcher({ type: 'path', patterns: matcher.areas }, 'areas'),
	}),
];
