/** `ready`: answers readiness probes. */
import type { Step } from '../../document/document.ts';
import { notReadyAnswer, READY_ANSWER } from '../../exchange/health-answers.ts';
import { handlerDirective } from '../contract/directive.ts';
import { answerProbe } from './probe-answer.ts';

interface ReadyStep extends Step {
	readonly handler: 'ready';
}

const USAGE = 'ready [matcher]';

/** Syntax: `ready [matcher]`. */
export const ready = handlerDirective<ReadyStep>({
	kind: 'handler',
	id: 'ready',
	names: { configfile: ['ready'], compatfile: ['ready'] },
	usage: USAGE,
	summary: 'Answers readiness probes.',
	documentation: [
		'Answers 200 and `{"ready":true}` while every listener is bound and every thread responds, like `/ready` of the Admin API.',
		'Otherwise, and as soon as a stop is requested, it answers 503 with a message that says why. With the option',
		'`shutdown_delay`, a load balancer or Kubernetes then has the time to send requests elsewhere before the server stops.',
		'',
		'```',
		'ready /ready',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'always',
	order: { rank: 316 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		cx.noBlock(line);
		return cx.origin<ReadyStep>({ handler: 'ready' }, line.span);
	},
	schema: { properties: {} },
	compile: (_step, cx) => {
		const health = cx.lease('health', {});
		const { stepNumber } = cx;
		return x =>
			health.notReadyReason().then(reason => {
				if (reason === undefined) answerProbe(x, 200, READY_ANSWER, 'ready', stepNumber);
				else answerProbe(x, 503, notReadyAnswer(reason), 'ready', stepNumber);
			});
	},
});
