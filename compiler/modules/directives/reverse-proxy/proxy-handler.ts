/** The closure of `proxy`: chooses an upstream, forwards the request, and answers with its response. */
import { performance } from 'node:perf_hooks';
import { ProxyFacts, proxyFactsOf } from '../../../codegen/context/proxy-facts.ts';
import type { Step } from '../../../document/document.ts';
import type { Body } from '../../../exchange/body.ts';
import { compilePeerTrust } from '../../../exchange/client-ip.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { fieldValueKind, isToken } from '../../../exchange/field-syntax.ts';
import { forwardedFields } from '../../../exchange/forwarded-request.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { Upstream, UpstreamRequest } from '../../../exchange/leases.ts';
import type { CompileContext, Template } from '../../contract/compile-context.ts';
import { compileHeaderEdits, type HeaderEdits } from '../../words/header-edits.ts';
import { compileResponseRules, type ResponseRule } from '../responses/response-rules.ts';
import { answersLastForward, countForward, countsForwards } from './max-forwards.ts';
import { compilePoolBalance } from './pool-choice.ts';
import { type AnswerSettings, answerFromUpstream, failProxiedRequest } from './proxy-answer.ts';
import { type AttemptSettings, attemptUpstreams, noUpstreamError } from './proxy-attempts.ts';
import { compileRetryPredicate } from './retry-predicate.ts';
import { applySchemes } from './schemes.ts';
import { SingleAttempt } from './single-attempt.ts';
import { compileTransportValues } from './transport-values.ts';
import { MaterialError } from './transports/tls-material.ts';
import { requestsGzip, usesTls } from './transports/transport-settings.ts';
import { parseUpstream } from './upstream-address.ts';
import type { DynamicSource, UpstreamPool, UpstreamSettings } from './upstream-pool.ts';

/** A proxy step, with a named pool or its own. */
export interface ProxyStep extends Step {
	readonly handler: 'proxy';
	readonly pool?: string;
	readonly upstreams?: UpstreamSettings;
	readonly header_up?: HeaderEdits;
	readonly header_down?: HeaderEdits;
	readonly method?: string;
	readonly rewrite?: string;
	readonly trusted_proxies?: readonly string[];
	/** True to add `Forwarded` (RFC 7239). */
	readonly forwarded?: boolean;
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
	const settings = settingsOf(step, cx);
	const pool = leasePool(settings, cx);
	const addresses = resolvedAddresses(settings, cx);
	const rewrite = compileRewrite(step, cx);
	const select = compileSelection(settings.balance, pool, rewrite);
	const makeRequest = compileRequest(step, settings, rewrite, cx);
	const maxRequests = settings.unhealthy_request_count ?? 0;
	const answering: AnswerSettings = {
		pool,
		edit: step.header_down && compileHeaderEdits(step.header_down, cx),
		rules: compileResponseRules(step.responses, cx, next, 'responses'),
		buffers: bufferSize(step.response_buffers),
		streamTimeout: step.stream_timeout ?? 0,
		streamCloseDelay: step.stream_close_delay ?? 0,
	};
	const { step: number } = cx;
	const counts = countsHere(step, settings);
	const attempts = compileAttempts(step, settings, { pool, select, addresses, request: makeRequest }, cx);
	if (attempts) {
		return x => {
			x.answered('proxy', number);
			if (x.request.method !== 'GET' && endsHere(x, counts)) return;
			const facts = new ProxyFacts(undefined, maxRequests, performance.now(), proxyFactsOf(x));
			x.proxied = facts;
			return attemptUpstreams(x, facts, attempts).then(
				({ request, response }) => answerFromUpstream(x, facts, response, request.upgrade, answering),
				error => failProxiedRequest(x, facts, error),
			);
		};
	}
	return x => {
		x.answered('proxy', number);
		if (x.request.method !== 'GET' && endsHere(x, counts)) return;
		const resolved = addresses?.(x);
		const upstream = select(x, undefined, resolved);
		if (!upstream) throw noUpstreamError(resolved);
		const facts = new ProxyFacts(upstream, maxRequests, performance.now(), proxyFactsOf(x));
		x.proxied = facts;
		const request = makeRequest(x, upstream, x.request.body);
		return new SingleAttempt(x, facts, answering, request.upgrade).send(upstream, request);
	};
}

/**
 * Reports whether this step counts `Max-Forwards`. It does not if it changes the method, which makes it a different request, or
 * if the upstream is a FastCGI application, which is part of this server.
 */
function countsHere({ method }: ProxyStep, { transport }: UpstreamSettings): boolean {
	return method === undefined && transport?.type !== 'fastcgi';
}

/** Answers a request that must not be forwarded and returns true. @throws HttpError for one that is never forwarded */
function endsHere(x: Exchange, counts: boolean): boolean {
	const { method } = x.request;
	if (method === 'CONNECT') throw new HttpError(405, 'CONNECT is not proxied.');
	return counts && countsForwards(method) && answersLastForward(x);
}

/** Compiles how upstream requests are built from the client's. */
function compileRequest(
	step: ProxyStep,
	settings: UpstreamSettings,
	rewrite: Rewrite | undefined,
	cx: CompileContext,
): (x: Exchange, upstream: Upstream, body: Body) => UpstreamRequest {
	const transportValues = compileTransportValues(settings, cx);
	const overTls = usesTls(settings.transport);
	const compresses = requestsGzip(settings.transport);
	const isTrusted = compileTrust(step, cx);
	const forwarded = step.forwarded === true;
	const edit = step.header_up && compileHeaderEdits(step.header_up, cx);
	const method = step.method === undefined ? undefined : cx.template(step.method, 'empty');
	const target = rewrite ? (x: Exchange) => rewrite(x, () => currentTarget(x)) : currentTarget;
	const counts = countsHere(step, settings);
	return (x, upstream, body) => {
		const namesUpstream = overTls && upstream.port !== 0;
		const { headers, upgrade } = forwardedFields(x, isTrusted(x), upstream.address, namesUpstream, forwarded);
		if (counts && countsForwards(x.request.method)) countForward(headers);
		if (edit) {
			edit(x, headers);
			makeSendable(headers);
		}
		const sentMethod = method === undefined ? x.request.method : renderMethod(method, x);
		const decodes = compresses && upgrade === undefined && sentMethod !== 'HEAD' && namesNoCoding(headers);
		if (decodes) headers.add('Accept-Encoding', 'gzip');
		// Changing the method to one without a body drops the body.
		const dropsBody = method !== undefined && (sentMethod === 'GET' || sentMethod === 'HEAD');
		return {
			method: sentMethod,
			target: target(x),
			headers,
			body: dropsBody ? null : body,
			// A changed method makes the request a different one, which must not switch protocols.
			upgrade: method === undefined ? upgrade : undefined,
			decodes,
			transport: transportValues?.(x, headers),
		};
	};
}

/**
 * Reports whether the client requested neither a coding nor a range, so that gzip may be requested. Ranges refer to the encoded
 * bytes, so parts of a gzip body would be useless (RFC 9110 §14.2).
 */
function namesNoCoding(headers: HeaderList): boolean {
	return headers.get('accept-encoding') === undefined && headers.get('range') === undefined;
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

function settingsOf(step: ProxyStep, cx: CompileContext): UpstreamSettings {
	let settings = step.upstreams;
	if (step.pool !== undefined) {
		if (settings) cx.refuse('`pool` and `upstreams` cannot be combined.', 'proxy/two-pools');
		const named = Object.hasOwn(cx.upstreams, step.pool) ? cx.upstreams[step.pool] : undefined;
		if (named === undefined) cx.refuse(`There is no upstream named \`${step.pool}\`.`, 'upstream/unknown');
		settings = { ...(named as UpstreamSettings), name: step.pool };
	}
	if (!settings) cx.refuse('`proxy` needs `pool` or `upstreams`.', 'proxy/no-pool');
	if (settings.to.length === 0 && !settings.dynamic) {
		cx.refuse('The pool has no upstream: `to` is empty, and there are no lookups.', 'upstream/empty');
	}
	for (const text of settings.to) {
		const parsed = parseUpstream(text);
		if (parsed.kind === 'invalid') cx.refuse(`\`${text}\` cannot be an upstream: ${parsed.message}.`, parsed.code);
	}
	if (settings.health?.body !== undefined) cx.regexp(settings.health.body);
	try {
		compilePoolBalance(settings, { clientIp: () => '', trustsPeer: () => false });
	} catch (error) {
		if (error instanceof RangeError) cx.refuse(error.message, 'balancing/invalid-settings');
		throw error;
	}
	const known = applySchemes(settings);
	return typeof known === 'string' ? cx.refuse(known, 'upstream/schemes') : known;
}

/** Leases the step's pool. @throws BuildError if a file that the transport needs cannot be used */
function leasePool(settings: UpstreamSettings, cx: CompileContext): UpstreamPool {
	// Settings that only this handler uses must not lead to a separate pool.
	const { retry_match: _match, retry_interval: _interval, ...key } = settings;
	try {
		return cx.lease('upstreams', key);
	} catch (error) {
		if (error instanceof MaterialError) return cx.refuse(error.message, error.code);
		throw error;
	}
}

/** Compiles addresses with placeholders. If any address has one, all are resolved per request. */
function resolvedAddresses(
	settings: UpstreamSettings,
	cx: CompileContext,
): ((x: Exchange) => readonly string[]) | undefined {
	const parsed = settings.to.map(parseUpstream);
	if (parsed.every(({ kind }) => kind === 'static')) return undefined;
	const addresses: readonly Template[] = parsed.flatMap(one => {
		if (one.kind === 'static')
			return one.addresses.map(({ address }) => ({ constant: address, render: () => address }));
		return one.kind === 'template' ? one.texts.map(text => cx.template(text, 'empty')) : [];
	});
	return x => addresses.map(address => address.constant ?? address.render(x));
}

function compileTrust(step: ProxyStep, cx: CompileContext): (x: Exchange) => boolean {
	try {
		return compilePeerTrust(cx.settings, step.trusted_proxies);
	} catch (error) {
		return cx.refuse((error as RangeError).message, 'value/not-a-range');
	}
}

/** Runs a function while the request has the target that is sent to the upstream. */
type Rewrite = <T>(x: Exchange, run: () => T) => T;

/** Compiles the rewrite of the target for the upstream, if any. */
function compileRewrite(step: ProxyStep, cx: CompileContext): Rewrite | undefined {
	if (step.rewrite === undefined) return undefined;
	const rewrite = cx.pipeline([{ handler: 'rewrite_target', to: step.rewrite }], () => {}, 'rewrite');
	return (x, run) => {
		const { path, query } = x.request;
		try {
			rewrite(x);
			return run();
		} finally {
			x.request.path = path;
			x.request.query = query;
		}
	};
}

/** Compiles the selection of an upstream. Policies that depend on the target see the one that is sent to the upstream. */
function compileSelection(
	balance: UpstreamSettings['balance'],
	pool: UpstreamPool,
	rewrite: Rewrite | undefined,
): UpstreamPool['select'] {
	if (!rewrite || !goesByTarget(balance)) return (x, avoid, resolved) => pool.select(x, avoid, resolved);
	return (x, avoid, resolved) => rewrite(x, () => pool.select(x, avoid, resolved));
}

function goesByTarget(balance: UpstreamSettings['balance']): boolean {
	if (balance === undefined) return false;
	return (
		balance.policy === 'uri_hash' ||
		balance.policy === 'query' ||
		goesByTarget(balance.fallback as UpstreamSettings['balance'])
	);
}

function currentTarget({ request }: Exchange): string {
	return request.query === undefined ? request.path : `${request.path}?${request.query}`;
}

function renderMethod(template: Template, x: Exchange): string {
	const method = template.constant ?? template.render(x);
	if (!isToken(method) || method === 'CONNECT') throw new HttpError(500, 'The method for the upstream is not valid.');
	return method;
}

/** Makes field values safe to send, because placeholder values must neither end the line nor be truncated to other bytes. */
function makeSendable(headers: HeaderList): void {
	headers.map((_name, value) => {
		const kind = fieldValueKind(value);
		if (kind === 'bytes') return value;
		return kind === 'text' ? Buffer.from(value, 'utf8').toString('latin1') : '';
	});
	headers.filter(name => isToken(name) && !isFraming(name));
}

/** Fields that the protocol layer writes itself: two framings of one message enable request smuggling (RFC 9112 §11.2). */
function isFraming(name: string): boolean {
	switch (name.toLowerCase()) {
		case 'content-length':
		case 'transfer-encoding':
		case 'connection':
		case 'upgrade':
		case 'keep-alive':
		case 'proxy-connection':
			return true;
		default:
			return false;
	}
}
