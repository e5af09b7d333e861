/** Rules about responses, shared by `intercept` and `reverse_proxy`: lowering, schema and compilation. */

import type { Step } from '../../../document/document.ts';
import { PIPELINE_SCHEMA } from '../../../document/references.ts';
import type { Schema } from '../../../document/schema-type.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import {
	compileResponseMatcher,
	lowerResponseMatcher,
	RESPONSE_MATCHER_SCHEMA,
	type ResponseMatcher,
	type ResponseTest,
} from '../../matchers/response-matcher.ts';
import { compileStepStatus, lowerStepStatus, STEP_STATUS_SCHEMA } from '../../words/step-status.ts';

/** A rule: gives matching responses another status, or runs steps that answer instead. */
export interface ResponseRule {
	/** Selects the responses to which the rule applies. Default: all responses. */
	readonly match?: ResponseMatcher;
	readonly status?: number | string;
	readonly pipeline?: readonly Step[];
}

/** Schema of a list of rules. */
export const RESPONSE_RULES_SCHEMA: Schema = {
	type: 'array',
	description: 'Rules about responses; the first that matches applies.',
	items: {
		type: 'object',
		properties: {
			match: { ...RESPONSE_MATCHER_SCHEMA, description: 'Responses to which it applies; default all.' },
			status: { ...STEP_STATUS_SCHEMA, description: 'Replacement status; the rest of the response is passed on.' },
			pipeline: { ...PIPELINE_SCHEMA, description: 'Steps that answer instead.' },
			'@id': { type: 'string' },
		},
		additionalProperties: false,
	},
};

/** The response rules of a block that is being lowered. */
export class ResponseRulesDraft {
	readonly #cx: LowerContext;
	readonly #matcherDefinitions = new Map<
		string,
		{ readonly matcher: ResponseMatcher | undefined; readonly line: Line }
	>();
	readonly #rules: ResponseRule[] = [];

	/** Collects the definitions of the block's response matchers, because routes may use matchers that are defined further down. */
	constructor(lines: readonly Line[], cx: LowerContext) {
		this.#cx = cx;
		for (const line of lines) {
			const nameWord = line.words[0]!;
			if (!nameWord.text.startsWith('@') || nameWord.quote !== 'none') continue;
			const earlierDefinition = this.#matcherDefinitions.get(nameWord.text);
			if (earlierDefinition) {
				cx.problem(
					'error',
					'matcher/defined-twice',
					nameWord.span,
					`matcher is defined more than once: ${nameWord.text}`,
					{
						related: [{ span: earlierDefinition.line.words[0]!.span, message: 'first defined here' }],
					},
				);
				continue;
			}
			this.#matcherDefinitions.set(nameWord.text, {
				matcher: lowerResponseMatcher(line.words.slice(1), line.block, line, cx),
				line,
			});
		}
	}

	/** Returns the sub-directives of the block, including its response matchers. */
	subdirectives(): { readonly [name: string]: SubdirectiveHandler } {
		const handlers: { [name: string]: SubdirectiveHandler } = {
			replace_status: (args, line) => this.#replaceStatus(args, line),
			handle_response: (args, line) => this.#handleResponse(args, line),
		};
		// The names of matchers are not enumerable, so that "did you mean" hints do not list them.
		for (const name of this.#matcherDefinitions.keys())
			Object.defineProperty(handlers, name, { value: () => {}, enumerable: false });
		return handlers;
	}

	/** Returns the rules in the order in which they are tried: rules without a matcher come last. */
	sortedRules(): readonly ResponseRule[] {
		return [...this.#rules.filter(rule => rule.match), ...this.#rules.filter(rule => !rule.match)];
	}

	#replaceStatus(args: readonly Word[], line: Line): void {
		const cx = this.#cx;
		if (args.length < 1 || args.length > 2) {
			const message = 'must have one or two arguments: an optional response matcher, and a status code';
			cx.problem('error', 'responses/replace-status', line.words[0]!.span, message);
			return;
		}
		if (line.block) {
			const message = "cannot define routes for 'replace_status', use 'handle_response' instead.";
			cx.problem('error', 'responses/replace-status', line.block.open, message);
		}
		const match = args.length === 2 ? this.#resolveMatcher(args[0]!, line) : undefined;
		const status = lowerStepStatus(args[args.length - 1]!, cx);
		if (match !== null) this.#rules.push(cx.origin({ ...(match ? { match } : {}), status }, line.span));
	}

	#handleResponse(args: readonly Word[], line: Line): void {
		const cx = this.#cx;
		const pipeline = cx.pipeline(line.block?.lines ?? []);
		if (args.length > 1) {
			const argumentTexts = args.map(({ text }) => text).join(' ');
			const message = `too many arguments for 'handle_response': only a single response matcher name is allowed, but got: [${argumentTexts}]`;
			cx.problem('error', 'responses/too-many', args[1]!.span, message);
			return;
		}
		const match = args[0] ? this.#resolveMatcher(args[0], undefined) : undefined;
		if (match !== null) this.#rules.push(cx.origin({ ...(match ? { match } : {}), pipeline }, line.span));
	}

	/**
	 * Returns the response matcher with a name; null after reporting a mistake. If `useLine` is given, the matcher must be defined
	 * above that line.
	 */
	#resolveMatcher(nameWord: Word, useLine: Line | undefined): ResponseMatcher | null {
		const cx = this.#cx;
		if (!nameWord.text.startsWith('@')) {
			const message = "must use a named response matcher, starting with '@'";
			cx.problem('error', 'responses/no-matcher-name', nameWord.span, message);
			return null;
		}
		const definition = this.#matcherDefinitions.get(nameWord.text);
		if (
			!definition ||
			(useLine &&
				definition.line.span.start > useLine.span.start &&
				definition.line.span.source === useLine.span.source)
		) {
			const message = `no named response matcher defined with name '${nameWord.text.slice(1)}'`;
			cx.problem('error', 'responses/unknown-matcher', nameWord.span, message, {
				...(definition
					? { related: [{ span: definition.line.words[0]!.span, message: 'defined below its use' }] }
					: {}),
			});
			return null;
		}
		return definition.matcher ?? null;
	}
}

/** A compiled rule. Exactly one of `status` and `routesHandler` is defined. */
export interface CompiledRule {
	readonly matches: ResponseTest | undefined;
	readonly status: number | ((x: Exchange) => number) | undefined;
	readonly routesHandler: Handler | undefined;
}

/** Returns the first rule that applies to a response; undefined if none does. */
export type RuleFinder = (x: Exchange, status: number, headers: HeaderList) => CompiledRule | undefined;

/**
 * Compiles rules whose routes continue with `next`. Returns undefined if there are no rules. `field` is the path from the step to
 * the rules.
 */
export function compileResponseRules(
	rules: readonly ResponseRule[] | undefined,
	cx: CompileContext,
	next: Handler,
	field: string,
): RuleFinder | undefined {
	if (!rules || rules.length === 0) return undefined;
	const compiledRules = rules.map(({ match, status, pipeline }, index): CompiledRule => {
		if ((status === undefined) === (pipeline === undefined))
			cx.refuse('A rule about responses has either `status` or `pipeline`.', 'responses/one-of-two');
		return {
			matches: match && compileResponseMatcher(match, cx),
			status: status === undefined ? undefined : compileStepStatus(status, cx, () => 500),
			routesHandler: pipeline && cx.pipeline(pipeline, next, `${field}/${index}/pipeline`),
		};
	});
	return (x, status, headers) => {
		for (let i = 0; i < compiledRules.length; i++) {
			const rule = compiledRules[i]!;
			if (rule.matches === undefined || rule.matches(x, status, headers)) return rule;
		}
		return undefined;
	};
}

/** Returns the status that a rule gives a response. */
export function replacementStatus(rule: CompiledRule, x: Exchange): number {
	return typeof rule.status === 'function' ? rule.status(x) : rule.status!;
}
