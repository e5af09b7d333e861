/**
 * What all handlers that send requests to an upstream pool have in common: the pool, the selection of an upstream, and the request
 * to the upstream.
 */
import type { Step } from '../../../document/document.ts';
import type { Body } from '../../../exchange/body.ts';
import { compilePeerTrust } from '../../../exchange/client-ip.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { fieldValueKind, isToken } from '../../../exchange/field-syntax.ts';
import { forwardedFields } from '../../../exchange/forwarded-request.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { Upstream, UpstreamRequest } from '../../../exchange/leases.ts';
import type { CompileContext, Template } from '../../contract/compile-context.ts';
import { compileHeaderEdits, type HeaderEdits } from '../../words/header-edits.ts';
import { decrementMaxForwards, usesMaxForwards } from './max-forwards.ts';
import { compilePoolBalance } from './pool-choice.ts';
import { applySchemes } from './schemes.ts';
import { compileTransportValues } from './transport-values.ts';
import { MaterialError } from './transports/tls-material.ts';
import { requestsGzip, usesTls } from './transports/transport-settings.ts';
import { parseUpstream } from './upstream-address.ts';
import type { UpstreamPool, UpstreamSettings } from './upstream-pool.ts';

/**
 * A step's settings for sending requests: the pool (a named one in `pool`, or the step's own in `upstreams`), and changes to the
 * requests.
 */
export interface ForwardingStep extends Step {
	readonly pool?: string;
	readonly upstreams?: UpstreamSettings;
	readonly header_up?: HeaderEdits;
	readonly method?: string;
	readonly rewrite?: string;
	readonly trusted_proxies?: readonly string[];
	/** True to add `Forwarded` (RFC 7239). */
	readonly forwarded?: boolean;
}

/** The compiled settings for sending the requests of a step. */
export interface Forwarding {
	readonly settings: UpstreamSettings;
	readonly pool: UpstreamPool;
	/** Resolves the upstream addresses for a request; undefined if no address has placeholders. */
	readonly resolveAddresses: ((x: Exchange) => readonly string[]) | undefined;
	readonly selectUpstream: UpstreamPool['select'];
	/** Builds the request to an upstream from the client's request. */
	readonly buildUpstreamRequest: (x: Exchange, upstream: Upstream, body: Body) => UpstreamRequest;
}

/** Compiles the settings of a step and leases its pool. */
export function compileForwarding(step: ForwardingStep, cx: CompileContext): Forwarding {
	const settings = resolveSettings(step, cx);
	const pool = leasePool(settings, cx);
	const resolveAddresses = compileAddresses(settings, cx);
	const withRewrittenTarget = compileRewrite(step, cx);
	return {
		settings,
		pool,
		resolveAddresses,
		selectUpstream: compileSelection(settings.balance, pool, withRewrittenTarget),
		buildUpstreamRequest: compileRequest(step, settings, withRewrittenTarget, cx),
	};
}

/**
 * Reports whether a step decrements `Max-Forwards`. It does not if it changes the method, because the result is a different
 * request, or if the upstream is a FastCGI application, because that is a part of this server and not another hop.
 */
export function decrementsMaxForwards(
	{ method: methodTemplate }: ForwardingStep,
	{ transport }: UpstreamSettings,
): boolean {
	return methodTemplate === undefined && transport?.type !== 'fastcgi';
}

/** Compiles the function that builds an upstream request from a client's request. */
function compileRequest(
	step: ForwardingStep,
	settings: UpstreamSettings,
	withRewrittenTarget: Rewrite | undefined,
	cx: CompileContext,
): (x: Exchange, upstream: Upstream, body: Body) => UpstreamRequest {
	const transportValues = compileTransportValues(settings, cx);
	const isOverTls = usesTls(settings.transport);
	const mayRequestGzip = requestsGzip(settings.transport);
	const isTrusted = compileTrust(step, cx);
	const addsForwarded = step.forwarded === true;
	const editHeaders = step.header_up && compileHeaderEdits(step.header_up, cx);
	const method = step.method === undefined ? undefined : cx.template(step.method, 'empty');
	const targetOf = withRewrittenTarget
		? (x: Exchange) => withRewrittenTarget(x, () => currentTarget(x))
		: currentTarget;
	const decrementsForwards = decrementsMaxForwards(step, settings);
	return (x, upstream, body) => {
		const sendsUpstreamName = isOverTls && upstream.port !== 0;
		const { headers, upgrade } = forwardedFields(x, isTrusted(x), upstream.address, sendsUpstreamName, addsForwarded);
		if (decrementsForwards && usesMaxForwards(x.request.method)) decrementMaxForwards(headers);
		if (editHeaders) {
			editHeaders(x, headers);
			sanitizeFields(headers);
		}
		const sentMethod = method === undefined ? x.request.method : renderMethod(method, x);
		const decodesGzip = mayRequestGzip && upgrade === undefined && sentMethod !== 'HEAD' && allowsGzip(headers);
		if (decodesGzip) headers.add('Accept-Encoding', 'gzip');
		// If the method is changed to GET or HEAD, the body is dropped.
		const dropsBody = method !== undefined && (sentMethod === 'GET' || sentMethod === 'HEAD');
		return {
			method: sentMethod,
			target: targetOf(x),
			headers,
			body: dropsBody ? null : body,
			// If the step changes the method, the upstream gets a different request, which must not switch protocols.
			upgrade: method === undefined ? upgrade : undefined,
			decodeGzip: decodesGzip,
			transport: transportValues?.(x, headers),
		};
	};
}

/**
 * Reports whether gzip may be requested: only if the client requested neither a coding nor a range. Ranges refer to encoded bytes,
 * so parts of a gzip body would be useless (RFC 9110 §14.2).
 */
function allowsGzip(headers: HeaderList): boolean {
	return headers.get('accept-encoding') === undefined && headers.get('range') === undefined;
}

function resolveSettings(step: ForwardingStep, cx: CompileContext): UpstreamSettings {
	let settings = step.upstreams;
	if (step.pool !== undefined) {
		if (settings) cx.refuse('`pool` and `upstreams` cannot be combined.', 'proxy/two-pools');
		const namedPool = Object.hasOwn(cx.upstreams, step.pool) ? cx.upstreams[step.pool] : undefined;
		if (namedPool === undefined) cx.refuse(`There is no upstream named \`${step.pool}\`.`, 'upstream/unknown');
		settings = { ...(namedPool as UpstreamSettings), name: step.pool };
	}
	if (!settings) cx.refuse(`\`${step.handler}\` needs \`pool\` or \`upstreams\`.`, 'proxy/no-pool');
	if (settings.to.length === 0 && !settings.dynamic) {
		cx.refuse('The pool has no upstream: `to` is empty, and there are no lookups.', 'upstream/empty');
	}
	for (const text of settings.to) {
		const parsedUpstream = parseUpstream(text);
		if (parsedUpstream.kind === 'invalid')
			cx.refuse(`\`${text}\` cannot be an upstream: ${parsedUpstream.message}.`, parsedUpstream.code);
	}
	if (settings.health?.body !== undefined) cx.regexpFor(settings.health.body);
	try {
		compilePoolBalance(settings, { clientIp: () => '', trustsPeer: () => false });
	} catch (error) {
		if (error instanceof RangeError) cx.refuse(error.message, 'balancing/invalid-settings');
		throw error;
	}
	const settingsWithSchemes = applySchemes(settings);
	return typeof settingsWithSchemes === 'string'
		? cx.refuse(settingsWithSchemes, 'upstream/schemes')
		: settingsWithSchemes;
}

/** Leases the step's pool. @throws BuildError if a file that the transport needs cannot be used */
function leasePool(settings: UpstreamSettings, cx: CompileContext): UpstreamPool {
	// Settings that only the handler uses are left out, so that steps that differ only in them share a pool.
	const { retry_match: _match, retry_interval: _interval, ...poolSettings } = settings;
	try {
		return cx.lease('upstreams', poolSettings);
	} catch (error) {
		if (error instanceof MaterialError) return cx.refuse(error.message, error.code);
		throw error;
	}
}

/**
 * Compiles the addresses of a pool. Returns undefined if they contain no placeholders; otherwise, a function that resolves all of
 * them for a request.
 */
function compileAddresses(
	settings: UpstreamSettings,
	cx: CompileContext,
): ((x: Exchange) => readonly string[]) | undefined {
	const parsedUpstreams = settings.to.map(parseUpstream);
	if (parsedUpstreams.every(({ kind }) => kind === 'static')) return undefined;
	const addressTemplates: readonly Template[] = parsedUpstreams.flatMap(upstream => {
		if (upstream.kind === 'static')
			return upstream.addresses.map(({ address }) => ({ constant: address, render: () => address }));
		return upstream.kind === 'template' ? upstream.texts.map(text => cx.template(text, 'empty')) : [];
	});
	return x => addressTemplates.map(address => address.constant ?? address.render(x));
}

function compileTrust(step: ForwardingStep, cx: CompileContext): (x: Exchange) => boolean {
	try {
		return compilePeerTrust(cx.settings, step.trusted_proxies);
	} catch (error) {
		return cx.refuse((error as RangeError).message, 'value/not-a-range');
	}
}

/** Runs a function while `x.request` temporarily has the target that is sent to the upstream. */
type Rewrite = <T>(x: Exchange, action: () => T) => T;

/** Compiles the step's `rewrite` of the target; undefined if it has none. */
function compileRewrite(step: ForwardingStep, cx: CompileContext): Rewrite | undefined {
	if (step.rewrite === undefined) return undefined;
	const rewrite = cx.pipeline([{ handler: 'rewrite_target', to: step.rewrite }], () => {}, 'rewrite');
	return (x, action) => {
		const { path, query } = x.request;
		try {
			rewrite(x);
			return action();
		} finally {
			x.request.path = path;
			x.request.query = query;
		}
	};
}

/** Compiles the selection of an upstream. Policies that depend on the target see the rewritten target. */
function compileSelection(
	balance: UpstreamSettings['balance'],
	pool: UpstreamPool,
	withRewrittenTarget: Rewrite | undefined,
): UpstreamPool['select'] {
	if (!withRewrittenTarget || !dependsOnTarget(balance))
		return (x, avoid, resolvedAddresses) => pool.select(x, avoid, resolvedAddresses);
	return (x, avoid, resolvedAddresses) => withRewrittenTarget(x, () => pool.select(x, avoid, resolvedAddresses));
}

function dependsOnTarget(balance: UpstreamSettings['balance']): boolean {
	if (balance === undefined) return false;
	return (
		balance.policy === 'uri_hash' ||
		balance.policy === 'query' ||
		dependsOnTarget(balance.fallback as UpstreamSettings['balance'])
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

/**
 * Makes header fields safe to send. A value from a placeholder could end the line or contain characters that do not fit in a byte.
 */
function sanitizeFields(headers: HeaderList): void {
	headers.map((_name, value) => {
		const kind = fieldValueKind(value);
		if (kind === 'bytes') return value;
		return kind === 'text' ? Buffer.from(value, 'utf8').toString('latin1') : '';
	});
	headers.filter(name => isToken(name) && !isFramingField(name));
}

/**
 * Reports whether only the protocol layer may write a field. A second framing field in a message would enable request smuggling
 * (RFC 9112 §11.2).
 */
function isFramingField(name: string): boolean {
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
