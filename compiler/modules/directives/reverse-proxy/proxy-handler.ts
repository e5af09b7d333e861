/** The closure of `proxy`: chooses an upstream, forwards the request, and answers with its response. */
import { performance } from 'node:perf_hooks';
import { ProxyFacts, proxyFactsOf } from '../../../codegen/context/proxy-facts.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { compileHeaderEdits, type HeaderEdits } from '../../words/header-edits.ts';
import { compileResponseRules, type ResponseRule } from '../responses/response-rules.ts';
import { compileForwarding, countsHere, type ForwardingStep } from './forwarding.ts';
import { answersLastForward, countsForwards } from './max-forwards.ts';
import { type AnswerSettings, answerFromUpstream, failProxiedRequest } from './proxy-answer.ts';
import { type AttemptSettings, attemptUpstreams, noUpstreamError } from './proxy-attempts.ts';
import { compileRetryPredicate } from './retry-predicate.ts';
import { SingleAttempt } from './single-attempt.ts';
import type { DynamicSource, UpstreamSettings } from './upstream-pool.ts';

/** A proxy step, with a named pool or its own. */
export interface ProxyStep extends ForwardingStep {
	readonly handler: 'proxy';
	readonly header_down?: HeaderEdits;
	/** Number of bytes to read before passing the body on; −1 for all. */
	readonly request_buffers?: number;
	readonly response_buffers?: number;
	/** Milliseconds. */
	readonly stream_timeout?: number;
	readonly stream_close_delay?: number;
	readonly verbose_logs?: boolean;
	/** Overrides the pool's. */
	readonly retry_match?: UpstreamSettings['retry_match'];
	/** Rules about the upstream's responses. */
	readonly responses?: readonly ResponseRule[];
}

/** Default milliseconds between attempts. */
const RETRY_INTERVAL = 250;

/** Compiles the step. Only routes of `responses` that do not answer continue with `next`. */
export function compileProxy(step: ProxyStep, cx: CompileContext, next: Handler): Handler {
	const { settings, pool, addresses, select, request: makeRequest } = compileForwarding(step, cx);
	const maxRequests = settings.unhealthy_request_count ?? 0;
	const answering: AnswerSettings = {
		pool,
		edit: step.header_down && compileHeaderEdits(step.header_down, cx),
		rules: compileResponseRules(step.responses, cx, next, 'responses'),
		buffers: bufferSize(step.response_buffers),
		streamTimeout: step.stream_timeout ?? 0,
		streamCloseDelay: step.stream_close_delay ?? 0,
	};
	const { step: stepNumber } = cx;
	const counts = countsHere(step, settings);
	const attempts = compileAttempts(step, settings, { pool, select, addresses, request: makeRequest }, cx);
	if (attempts) {
		return x => {
			x.markAnswered('proxy', stepNumber);
			if (x.request.method !== 'GET' && endsHere(x, counts)) return;
			const facts = new ProxyFacts(undefined, maxRequests, performance.now(), proxyFactsOf(x));
			x.proxyFacts = facts;
			return attemptUpstreams(x, facts, attempts).then(
				({ request, response }) => answerFromUpstream(x, facts, response, request.upgrade, answering),
				error => failProxiedRequest(x, facts, error),
			);
		};
	}
	return x => {
		x.markAnswered('proxy', stepNumber);
		if (x.request.method !== 'GET' && endsHere(x, counts)) return;
		const resolved = addresses?.(x);
		const upstream = select(x, undefined, resolved);
		if (!upstream) throw noUpstreamError(resolved);
		const facts = new ProxyFacts(upstream, maxRequests, performance.now(), proxyFactsOf(x));
		x.proxyFacts = facts;
		const request = makeRequest(x, upstream, x.request.body);
		return new SingleAttempt(x, facts, answering, request.upgrade).send(upstream, request);
	};
}

/** Answers a request that must not be forwarded and returns true. @throws HttpError for one that is never forwarded */
function endsHere(x: Exchange, counts: boolean): boolean {
	const { method } = x.request;
	if (method === 'CONNECT') throw new HttpError(405, 'CONNECT is not proxied.');
	return counts && countsForwards(method) && answersLastForward(x);
}

/** Compiles how several attempts are made; undefined if a single attempt is enough. */
function compileAttempts(
	step: ProxyStep,
	settings: UpstreamSettings,
	parts: Pick<AttemptSettings, 'pool' | 'select' | 'addresses' | 'request'>,
	cx: CompileContext,
): AttemptSettings | undefined {
	const buffers = bufferSize(step.request_buffers);
	const duration = settings.retry_duration ?? 0;
	// A step with its own predicate implies one retry if nothing else is configured, as in documents from before 0.2.0.
	const retries = settings.retries ?? (duration > 0 ? Number.POSITIVE_INFINITY : step.retry_match ? 1 : 0);
	const names = settings.dynamic && dynamicNames(settings.dynamic, cx);
	const verbose = step.verbose_logs === true;
	const match = step.retry_match ?? settings.retry_match;
	const field = step.retry_match ? 'retry_match' : 'upstreams/retry_match';
	const predicate = match && compileRetryPredicate(match, cx, field);
	if (retries === 0 && buffers === 0 && !names && !verbose) return undefined;
	return {
		...parts,
		names: names && (x => names.map(name => name(x))),
		buffers,
		retries,
		duration: duration > 0 ? duration : Number.POSITIVE_INFINITY,
		interval: settings.retry_interval ?? RETRY_INTERVAL,
		predicate,
		verbose,
	};
}

/** Returns the names to look up, one per source in the order written: `name port`, or the full name of a service. */
function dynamicNames(source: DynamicSource, cx: CompileContext): ((x: Exchange) => string)[] {
	switch (source.source) {
		case 'multi':
			return source.sources.flatMap(part => dynamicNames(part, cx));
		case 'a': {
			const name = cx.template(source.name, 'empty');
			const port = cx.template(source.port ?? '80', 'empty');
			return [x => `${name.constant ?? name.render(x)} ${port.constant ?? port.render(x)}`];
		}
		case 'srv': {
			const { service, proto } = source;
			const text = service === undefined || proto === undefined ? source.name : `_${service}._${proto}.${source.name}`;
			const name = cx.template(text, 'empty');
			return [x => name.constant ?? name.render(x)];
		}
	}
}

function bufferSize(size: number | undefined): number {
	return size === -1 ? Number.POSITIVE_INFINITY : (size ?? 0);
}
