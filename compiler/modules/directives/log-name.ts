/** `log_name`: selects the access logs for a request's entry. */
import type { Step } from '../../document/document.ts';
import { handlerDirective } from '../contract/directive.ts';

interface ChooseAccessLogsStep extends Step {
	readonly handler: 'choose_access_logs';
	readonly names: readonly string[];
}

const USAGE = 'log_name [matcher] <name>…';

/** Syntax: `log_name [matcher] <name>…`. */
export const logName = handlerDirective<ChooseAccessLogsStep>({
	kind: 'handler',
	id: 'choose_access_logs',
	names: { configfile: ['log_name'], compatfile: ['log_name'] },
	usage: USAGE,
	summary: "Writes the request's access log entry to loggers other than its site's.",
	documentation: [
		'A name refers to a `log` of the site; one with `no_hostname` is used only this way. Any other name is a logger',
		'`http.log.access.NAME`, whose entries go to the process logs that include it. The last `log_name` that runs',
		'counts.',
		'',
		'```',
		'log_name /api/* api',
		'log api {',
		'	no_hostname',
		'	output file /var/log/api.log',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 80 },
	lower: ({ line, args }, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, USAGE)) return undefined;
		const names = args.map(({ text }) => text);
		return cx.origin<ChooseAccessLogsStep>({ handler: 'choose_access_logs', names }, line.span);
	},
	schema: {
		properties: {
			names: {
				type: 'array',
				items: { type: 'string', minLength: 1 },
				minItems: 1,
				description: 'Names of logs of the site, or of loggers below `http.log.access`.',
			},
		},
		required: ['names'],
	},
	compile: (step, cx, next) => {
		const logs = [...new Set(step.names)].flatMap(name => cx.accessLogs(name));
		return x => {
			x.accessLogs = logs;
			return next(x);
		};
	},
});
