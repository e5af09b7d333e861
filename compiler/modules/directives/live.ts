/** `live`: answers liveness probes. */
import type { Step } from '../../document/document.ts';
import { LIVE_ANSWER } from '../../exchange/health-answers.ts';
import { handlerDirective } from '../contract/directive.ts';
import { answerProbe } from './probe-answer.ts';

interface LiveStep extends Step {
	readonly handler: 'live';
}

const USAGE = 'live [matcher]';

/** Syntax: `live [matcher]`. */
export const live = handlerDirective<LiveStep>({
	kind: 'handler',
	id: 'live',
	names: { configfile: ['live'], compatfile: ['live'] },
	usage: USAGE,
	summary: 'Answers liveness probes.',
	documentation: [
		'Answers 200 and `{"live":true}` once the main thread of the server has responded, like `/live` of the Admin API, so that',
		'a supervisor such as the kubelet can restart a server that hangs, and needs no access to the Admin API. The answer is',
		'the same while the server drains.',
		'',
		'An overloaded listener refuses probes like all other requests. Give probes a port of their own, so that a server under',
		'load is not restarted for it:',
		'',
		'```',
		'http://:9090 {',
		'	live /live',
		'	ready /ready',
		'	metrics /metrics',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'always',
	// In a Compatfile, `live` runs before `respond`, so that a site that answers all requests can still be probed.
	order: { rank: 315 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		cx.noBlock(line);
		return cx.origin<LiveStep>({ handler: 'live' }, line.span);
	},
	schema: { properties: {} },
	compile: (_step, cx) => {
		const health = cx.lease('health', {});
		const { stepNumber } = cx;
		return x => health.notReadyReason().then(() => answerProbe(x, 200, LIVE_ANSWER, 'live', stepNumber));
	},
});
