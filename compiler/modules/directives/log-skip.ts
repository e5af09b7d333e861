/** `log_skip`: suppresses the request's access log entry. */
import type { Step } from '../../document/document.ts';
import { handlerDirective } from '../contract/directive.ts';

interface SkipAccessLogStep extends Step {
	readonly handler: 'skip_access_log';
}

const USAGE = 'log_skip [matcher]';

/** Syntax: `log_skip [matcher]`. */
export const logSkip = handlerDirective<SkipAccessLogStep>({
	kind: 'handler',
	id: 'skip_access_log',
	names: { configfile: ['log_skip'], compatfile: ['log_skip', 'skip_log'] },
	usage: USAGE,
	summary: 'Omits the request from access logs.',
	documentation: ['Handler errors are still logged.', '', '```', 'log_skip /health', '```'].join('\n'),
	matcherToken: 'optional',
	order: { rank: 70 },
	lower: ({ line, args }, cx) => {
		cx.noBlock(line);
		cx.count(line, args, 0, 0, USAGE);
		return cx.origin<SkipAccessLogStep>({ handler: 'skip_access_log' }, line.span);
	},
	schema: { properties: {} },
	compile: (_step, _cx, next) => x => {
		if (x.log) x.log.skip = true;
		else x.log = { skip: true };
		return next(x);
	},
});
