/** `method`: changes the request's method. */
import type { Step } from '../../document/document.ts';
import { isToken } from '../../exchange/field-syntax.ts';
import { HttpError } from '../../exchange/http-error.ts';
import { handlerDirective } from '../contract/directive.ts';

interface SetMethodStep extends Step {
	readonly handler: 'set_method';
	readonly method: string;
}

const USAGE = 'method [matcher] <method>';

/** Syntax: `method [matcher] <method>`. */
export const methodDirective = handlerDirective<SetMethodStep>({
	kind: 'handler',
	id: 'set_method',
	observedFields: 'all',
	names: { configfile: ['method'], compatfile: ['method'] },
	usage: USAGE,
	summary: 'Changes the method of the request.',
	documentation: [
		'Later matchers, handlers and upstreams see the new method, in upper case. It may contain placeholders; an invalid',
		'method causes an error 500. Error routes see the original method.',
		'',
		'```',
		'method /legacy/* POST',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	changesTarget: true,
	order: { rank: 140 },
	lower: ({ line, args }, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, USAGE)) return undefined;
		const [word] = args as [(typeof args)[0]];
		const method = word.text.includes('{') ? cx.template(word) : word.text.toUpperCase();
		if (!method.includes('{') && !isToken(method)) {
			cx.problem('error', 'method/invalid', word.span, `\`${word.text}\` is not a method.`);
			return undefined;
		}
		return { handler: 'set_method', method };
	},
	schema: {
		properties: { method: { type: 'string', minLength: 1, description: 'New method, with placeholders.' } },
		required: ['method'],
	},
	compile: (step, cx, next) => {
		const template = cx.template(step.method, 'empty');
		const constant = template.constant?.toUpperCase();
		if (constant !== undefined && isToken(constant)) {
			return x => {
				x.request.method = constant;
				return next(x);
			};
		}
		if (constant !== undefined && !step.method.includes('{')) {
			return cx.refuse(`\`${step.method}\` is not a method.`, 'method/invalid');
		}
		return x => {
			const method = template.render(x).toUpperCase();
			if (!isToken(method)) throw new HttpError(500, `method: \`${method}\` is not a method`);
			x.request.method = method;
			return next(x);
		};
	},
});
