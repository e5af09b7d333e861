/** The handler `proxy`: chooses an upstream, forwards the request, and answers with its response. */
import { performance } from 'node:perf_hooks';
import { ProxyFacts, proxyFactsOf } from '../../../codegen/context/proxy-facts.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { compileHeaderEdits, type HeaderEdits } from '../../words/header-edits.ts';
import { compileResponseRules, type ResponseRule } from '../responses/response-rules.ts';
import { compileForwarding, decrementsMaxForwards, type ForwardingStep } from './forwarding.ts';
import { answerLastForward, usesMaxForwards } from './max-forwards.ts';
import { type AnswerSettings, answerFromUpstream, failProxiedRequest } from './proxy-answer.ts';
import { type AttemptSettings, attemptUpstreams, noUpstreamError } from './proxy-attempts.ts';
import { compileRetryPredicate } from './retry-predicate.ts';
import { shedError } from './shed-settings.ts';
import { SingleAttempt } from './single-attempt.ts';
import type { DynamicSource, UpstreamSettings } from './upstream-pool.ts';

export interface ProxyStep extends ForwardingStep {
	readonly handler: 'proxy';
	readonly header_down?: HeaderEdits;
	/** Maximum number of bytes of the request or response body to read before passing it on; −1 to read the whole body. */
	readonly request_buffers?: number;
	readonly response_buffers?: number;
	/** Maximum lifetime of an upgraded connection in milliseconds. */
	readonly stream_timeout?: number;
	/** Milliseconds for which upgraded connections continue after a configuration reload has removed their pool. */
	readonly stream_close_delay?: number;
	readonly verbose_logs?: boolean;
	/** Overrides the `retry_match` of the pool. */
	readonly retry_match?: UpstreamSettings['retry_match'];
	/** Rules about the upstream's responses. */
	readonly responses?: readonly ResponseRule[];
}

/** Default milliseconds to wait before all upstreams are tried again. */
const DEFAULT_RETRY_INTERVAL_MS = 250;

/** Compiles a `proxy` step. Only routes of `responses` that do not answer continue with `next`. */
export function compileProxy(step: ProxyStep, cx: CompileContext, next: Handler): Handler {
	const {
		settings,
		pool,
		resolveAddresses: addressesOf,
		selectUpstream: select,
		buildUpstreamRequest: buildRequest,
	} = compileForwarding(step, cx);
	const maxUpstreamRequests = settings.unhealthy_request_count ?? 0;
	const answerSettings: AnswerSettings = {
		pool,
		editHeaders: step.header_down && compileHeaderEdits(step.header_down, cx),
		findRule: compileResponseRules(step.responses, cx, next, 'responses'),
		bufferBytes: toBufferBytes(step.response_buffers),
		streamTimeoutMs: step.stream_timeout ?? 0,
		streamCloseDelayMs: step.stream_close_delay ?? 0,
	};
	const { stepNumber } = cx;
	const countsForwards = decrementsMaxForwards(step, settings);
	const attemptSettings = compileAttemptSettings(
		step,
		settings,
		{ pool, select, addresses: addressesOf, request: buildRequest },
		cx,
	);
	if (attemptSettings) {
		return x => {
			x.markAnswered('proxy', stepNumber);
			if (x.request.method !== 'GET' && answerUnforwardable(x, countsForwards)) return;
			const facts = new ProxyFacts(undefined, maxUpstreamRequests, performance.now(), proxyFactsOf(x));
			x.proxyFacts = facts;
			return attemptUpstreams(x, facts, attemptSettings).then(
				({ request, response }) => answerFromUpstream(x, facts, response, request.upgrade, answerSettings),
				error => failProxiedRequest(x, facts, error),
			);
		};
	}
	return x => {
		x.markAnswered('proxy', stepNumber);
		if (x.request.method !== 'GET' && answerUnforwardable(x, countsForwards)) return;
		const resolvedAddresses = addressesOf?.(x);
		const upstream = select(x, undefined, resolvedAddresses);
		if (!upstream) throw pool.countShed() ? shedError(settings.shed!) : noUpstreamError(resolvedAddresses);
		const facts = new ProxyFacts(upstream, maxUpstreamRequests, performance.now(), proxyFactsOf(x));
		x.proxyFacts = facts;
		const request = buildRequest(x, upstream, x.request.body);
		return new SingleAttempt(x, facts, answerSettings, request.upgrade).send(upstream, request);
	};
}

/** Answers a request that must not be forwarded, and returns true; otherwise returns false. @throws HttpError for CONNECT */
function answerUnforwardable(x: Exchange, countsForwards: boolean): boolean {
	const { method } = x.request;
	if (method === 'CONNECT') throw new HttpError(405, 'CONNECT is not proxied.');
	return countsForwards && usesMaxForwards(method) && answerLastForward(x);
}

/** Compiles the settings of {@link attemptUpstreams}; undefined if {@link SingleAttempt} suffices. */
function compileAttemptSettings(
	step: ProxyStep,
	settings: UpstreamSettings,
	commonSettings: Pick<AttemptSettings, 'pool' | 'select' | 'addresses' | 'request'>,
	cx: CompileContext,
): AttemptSettings | undefined {
	const bufferBytes = toBufferBytes(step.request_buffers);
	const durationMs = settings.retry_duration ?? 0;
	// If a step has its own predicate and no other retry settings, there is one retry, as in documents from before 0.2.0.
	const retries = settings.retries ?? (durationMs > 0 ? Number.POSITIVE_INFINITY : step.retry_match ? 1 : 0);
	const lookupNames = settings.dynamic && compileLookupNames(settings.dynamic, cx);
	const isVerbose = step.verbose_logs === true;
	const retryMatch = step.retry_match ?? settings.retry_match;
	const predicatePath = step.retry_match ? 'retry_match' : 'upstreams/retry_match';
	const predicate = retryMatch && compileRetryPredicate(retryMatch, cx, predicatePath);
	if (retries === 0 && bufferBytes === 0 && !lookupNames && !isVerbose) return undefined;
	return {
		...commonSettings,
		lookupNames: lookupNames && (x => lookupNames.map(name => name(x))),
		bufferBytes,
		maxRetries: retries,
		durationMs: durationMs > 0 ? durationMs : Number.POSITIVE_INFINITY,
		intervalMs: settings.retry_interval ?? DEFAULT_RETRY_INTERVAL_MS,
		predicate,
		isVerbose,
	};
}

/**
 * Compiles the names to look up, one for each source, in the order in which the sources are written. A name is `name port` for a
 * source `a`, and the full name of the service for a source `srv`.
 */
function compileLookupNames(source: DynamicSource, cx: CompileContext): ((x: Exchange) => string)[] {
	switch (source.source) {
		case 'multi':
			return source.sources.flatMap(innerSource => compileLookupNames(innerSource, cx));
		case 'a': {
			const name = cx.template(source.name, 'empty');
			const port = cx.template(source.port ?? '80', 'empty');
			return [x => `${name.constant ?? name.render(x)} ${port.constant ?? port.render(x)}`];
		}
		case 'srv': {
			const { service, proto } = source;
			const serviceName =
				service === undefined || proto === undefined ? source.name : `_${service}._${proto}.${source.name}`;
			const name = cx.template(serviceName, 'empty');
			return [x => name.constant ?? name.render(x)];
		}
	}
}

function toBufferBytes(size: number | undefined): number {
	return size === -1 ? Number.POSITIVE_INFINITY : (size ?? 0);
}
