/** `abort`: drops the connection. */
import type { Step } from '../../document/document.ts';
import { handlerDirective } from '../contract/directive.ts';

/** Syntax: `abort [matcher]`. */
export const abort = handlerDirective<Step>({
	kind: 'handler',
	id: 'abort',
	observedFields: 'all',
	names: { configfile: ['abort'], compatfile: ['abort'] },
	usage: 'abort [matcher]',
	summary: 'Drops the connection without a response.',
	documentation: [
		'Closes the connection immediately, for clients that deserve no response.',
		'',
		'```',
		'abort /wp-admin/*',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'always',
	order: { rank: 290 },
	lower: ({ line, args }, cx) => {
		cx.noBlock(line);
		cx.count(line, args, 0, 0, 'abort [matcher]');
		return { handler: 'abort' };
	},
	schema: { properties: {} },
	compile: (_, { stepNumber: step }) => {
		return x => {
			x.markAnswered('abort', step);
			x.abort();
		};
	},
});
