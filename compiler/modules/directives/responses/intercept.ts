/** `intercept`: inspects the responses of later directives before they are sent. */

import { INTERCEPTED_VARIABLE, type InterceptedResponse } from '../../../codegen/placeholders/handled.ts';
import type { Step } from '../../../document/document.ts';
import { isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { handlerDirective } from '../../contract/directive.ts';
import {
	compileResponseRules,
	RESPONSE_RULES_SCHEMA,
	type ResponseRule,
	ResponseRulesDraft,
	type RuleFinder,
	replacementStatus,
} from './response-rules.ts';

interface InterceptStep extends Step {
	readonly handler: 'intercept_response';
	readonly rules: readonly ResponseRule[];
}

const USAGE =
	'intercept [matcher] { @<name> status <code>… | header <field> [<value>]; replace_status [@<name>] <code>; handle_response [@<name>] { … } }';

/** Syntax: `intercept [matcher] { … }`. */
export const intercept = handlerDirective<InterceptStep>({
	kind: 'handler',
	id: 'intercept_response',
	names: { configfile: ['intercept'], compatfile: ['intercept'] },
	usage: USAGE,
	summary: 'Changes responses of later directives, or replaces them.',
	documentation: [
		'`@name status CODE…` and `@name header FIELD VALUE` name responses. The first rule that matches applies; those',
		'without a name are tried last.',
		'',
		'`replace_status` changes only the status of the response. `handle_response` discards its body',
		'and runs directives, for which `{resp.status_code}` and `{resp.header.NAME}` describe the original response. The',
		'fields that described the body (`Content-Type`, `Content-Encoding`, `Etag` and others) are removed with it, the others stay.',
		'If none of the directives answers, the status stays too.',
		'',
		'Errors are not responses: they go to `handle_errors`.',
		'',
		'```',
		'intercept {',
		'	@broken status 5xx',
		'	replace_status @broken 503',
		'	@teapot status 418',
		'	handle_response @teapot {',
		'		respond "No tea here ({resp.status_code})." 404',
		'	}',
		'}',
		'reverse_proxy 127.0.0.1:9000',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'sometimes',
	order: { rank: 240 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		const rulesDraft = new ResponseRulesDraft(line.block?.lines ?? [], cx);
		cx.subdirectives(line.block, rulesDraft.subdirectives(), 'intercept');
		return cx.origin<InterceptStep>({ handler: 'intercept_response', rules: rulesDraft.sortedRules() }, line.span);
	},
	schema: { properties: { rules: RESPONSE_RULES_SCHEMA }, required: ['rules'] },
	compile: compileIntercept,
});

function compileIntercept(step: InterceptStep, cx: CompileContext, next: Handler): Handler {
	const findRule = compileResponseRules(step.rules, cx, () => {}, 'rules');
	if (!findRule) return next;
	const { stepNumber } = cx;
	return x => {
		const { stepBase } = x;
		const pending = next(x);
		const onResponse = (): void | Promise<void> => {
			x.stepBase = stepBase;
			return applyRule(x, findRule, stepNumber);
		};
		return pending instanceof Promise ? pending.then(onResponse) : onResponse();
	};
}

function applyRule(x: Exchange, findRule: RuleFinder, stepNumber: number): void | Promise<void> {
	const { response, stepBase } = x;
	// There is no response to change if the connection is closed or has switched protocols.
	if (x.isAborted || x.upgradeCallback !== undefined || response.status === 0) return;
	const rule = findRule(x, response.status, response.headers);
	if (rule === undefined) return;
	if (rule.routesHandler === undefined) {
		response.status = replacementStatus(rule, x);
		return;
	}
	const interceptedResponse: InterceptedResponse = { status: response.status, headers: response.headers.clone() };
	x.variables.set(INTERCEPTED_VARIABLE, interceptedResponse);
	discardBody(x);
	response.status = 0;
	x.answeredBy = '';
	const pending = rule.routesHandler(x);
	const keepInterceptedStatus = (): void => {
		if (response.status !== 0) return;
		response.status = interceptedResponse.status;
		x.stepBase = stepBase;
		x.markAnswered('intercept_response', stepNumber);
	};
	return pending instanceof Promise ? pending.then(keepInterceptedStatus) : keepInterceptedStatus();
}

/** Discards the body of a response, and the header fields that describe the body. */
function discardBody({ response }: Exchange): void {
	if (isStream(response.body)) response.body.cancel();
	response.body = null;
	response.trailers = undefined;
	dropRepresentationFields(response.headers);
}

/** Removes the header fields that describe a representation (RFC 9110 §8), its ranges and its trailers. */
function dropRepresentationFields(headers: HeaderList): void {
	headers.filter(name => !REPRESENTATION_FIELDS.has(name.toLowerCase()));
}

const REPRESENTATION_FIELDS: ReadonlySet<string> = new Set([
	...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-location', 'content-range'],
	...['content-disposition', 'content-digest', 'content-md5', 'repr-digest', 'digest', 'etag', 'last-modified'],
	...['accept-ranges', 'transfer-encoding', 'trailer'],
]);
