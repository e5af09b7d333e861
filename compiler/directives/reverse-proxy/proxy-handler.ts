/** The closure of `proxy`: chooses an upstream, passes the request on, and answers with what comes back. */
import type { CompileContext, Template } from '../../codegen/compile-context.ts';
import type { Step } from '../../document/document.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import { fieldValueKind, isToken } from '../../exchange/field-syntax.ts';
import type { Handler } from '../../exchange/handler.ts';
import type { HeaderList } from '../../exchange/header-list.ts';
import { HttpError } from '../../exchange/http-error.ts';
import { IpRanges } from '../../exchange/ip-ranges.ts';
import {
	UpstreamError,
	type UpstreamPool,
	type UpstreamResponse,
	type UpstreamSettings,
} from '../../exchange/leases.ts';
import { compileHeaderEdits, type HeaderEdits } from '../header-edits.ts';
import { compileResponseRules, type ResponseRule, type RuleFinder, statusOf } from '../responses/response-rules.ts';
import { forwardedFields, VIA_NAME } from './forwarded-request.ts';
import { HANDLED_RESPONSE_VARIABLE, HandledResponse } from './handled-response.ts';
import { PROXY_FACTS_VARIABLE, ProxyFacts } from './proxy-facts.ts';
import { splice } from './splice.ts';
import { MaterialError } from './transports/tls-material.ts';
import { usesTls } from './transports/transport-settings.ts';
import { compileTransportValues } from './transports/transport-values.ts';
import { parseUpstream } from './upstream-address.ts';

/** A step that proxies: to a named pool, or to one of its own. */
export interface ProxyStep extends Step {
	readonly handler: 'proxy';
	readonly pool?: string;
	readonly upstreams?: UpstreamSettings;
	readonly header_up?: HeaderEdits;
	readonly header_down?: HeaderEdits;
	readonly method?: string;
	readonly rewrite?: string;
	readonly trusted_proxies?: readonly string[];
	/** Rules about the upstream's responses. */
	readonly responses?: readonly ResponseRule[];
}

/** The status of an exchange whose client left before the upstream answered. It is recorded; nobody is there to be told. */
const CLIENT_CLOSED_REQUEST = 499;

/** Fills in the fields of a request or a response. */
type Edit = (x: Exchange, headers: HeaderList) => void;

/** Compiles the step. Only routes of `responses` that do not answer go on to `next`. */
export function compileProxy(step: ProxyStep, cx: CompileContext, next: Handler): Handler {
	const settings = settingsOf(step, cx);
	const pool = leasePool(settings, cx);
	const transportValues = compileTransportValues(settings, cx);
	const overTls = usesTls(settings.transport);
	const addresses = resolvedAddresses(settings, cx);
	const isTrusted = compileTrust(step, cx);
	const editRequest = step.header_up && compileHeaderEdits(step.header_up, cx);
	const editResponse = step.header_down && compileHeaderEdits(step.header_down, cx);
	const method = step.method === undefined ? undefined : cx.template(step.method, 'empty');
	const target = compileTarget(step, cx);
	const rules = compileResponseRules(step.responses, cx, next, 'responses');
	return x => {
		if (x.request.method === 'CONNECT') throw new HttpError(405, 'CONNECT is not proxied.');
		const upstream = pool.select(
			x,
			undefined,
			addresses?.map(address => address.render(x)),
		);
		if (!upstream)
			throw new HttpError(503, addresses ? 'No upstream has a valid address.' : 'No upstream is available.');
		const facts = new ProxyFacts(upstream, performance.now());
		x.variables.set(PROXY_FACTS_VARIABLE, facts);
		const { headers, upgrade } = forwardedFields(x, isTrusted(x), upstream.address, overTls && upstream.port !== 0);
		if (editRequest) {
			editRequest(x, headers);
			makeSendable(headers);
		}
		const sentMethod = method === undefined ? x.request.method : renderMethod(method, x);
		// A changed method that has no use for a body leaves it behind.
		const dropsBody = method !== undefined && (sentMethod === 'GET' || sentMethod === 'HEAD');
		const request = {
			method: sentMethod,
			target: target(x),
			headers,
			body: dropsBody ? null : x.request.body,
			upgrade,
			transport: transportValues?.(x, headers),
		};
		x.answeredBy = 'proxy';
		return pool
			.send(x, upstream, request, (status, fields) => x.inform(status, fields))
			.then(
				response => answer(x, facts, response, upgrade, editResponse, rules),
				error => refuse(x, facts, error),
			);
	};
}

function settingsOf(step: ProxyStep, cx: CompileContext): UpstreamSettings {
	let settings = step.upstreams;
	if (step.pool !== undefined) {
		if (settings) cx.refuse('`pool` and `upstreams` exclude each other.', 'proxy/two-pools');
		const named = Object.hasOwn(cx.upstreams, step.pool) ? cx.upstreams[step.pool] : undefined;
		if (named === undefined) cx.refuse(`There is no upstream named \`${step.pool}\`.`, 'upstream/unknown');
		settings = { ...(named as UpstreamSettings), name: step.pool };
	}
	if (!settings) cx.refuse('`proxy` needs `pool` or `upstreams`.', 'proxy/no-pool');
	for (const text of settings.to) {
		const parsed = parseUpstream(text);
		if (parsed.kind === 'invalid') cx.refuse(`\`${text}\` cannot be an upstream: ${parsed.message}.`, parsed.code);
	}
	return settings;
}

/** @throws BuildError when a file that the transport needs cannot be used */
function leasePool(settings: UpstreamSettings, cx: CompileContext): UpstreamPool {
	try {
		return cx.lease('upstreams', settings);
	} catch (error) {
		if (error instanceof MaterialError) return cx.refuse(error.message, error.code);
		throw error;
	}
}

/** With placeholders in any address, all of them as templates. */
function resolvedAddresses(settings: UpstreamSettings, cx: CompileContext): readonly Template[] | undefined {
	const parsed = settings.to.map(parseUpstream);
	if (parsed.every(({ kind }) => kind === 'static')) return undefined;
	return parsed.flatMap(one => {
		if (one.kind === 'static')
			return one.addresses.map(({ address }) => ({ constant: address, render: () => address }));
		return one.kind === 'template' ? one.texts.map(text => cx.template(text, 'empty')) : [];
	});
}

function compileTrust(step: ProxyStep, cx: CompileContext): (x: Exchange) => boolean {
	const global = (cx.settings.trusted_proxies as readonly string[] | undefined) ?? [];
	const texts = [...global, ...(step.trusted_proxies ?? [])];
	const unix = cx.settings.trusted_proxies_unix === true;
	if (texts.length === 0 && !unix) return () => false;
	let ranges: IpRanges;
	try {
		ranges = new IpRanges(texts);
	} catch (error) {
		return cx.refuse((error as RangeError).message, 'value/not-a-range');
	}
	return ({ connection }) => (connection.remoteAddress === '' ? unix : ranges.contains(connection.remoteAddress));
}

/** The request target, rewritten for the upstream only. */
function compileTarget(step: ProxyStep, cx: CompileContext): (x: Exchange) => string {
	if (step.rewrite === undefined) return currentTarget;
	const rewrite = cx.pipeline([{ handler: 'rewrite_target', to: step.rewrite }], () => {}, 'rewrite');
	return x => {
		const { path, query } = x.request;
		try {
			rewrite(x);
			return currentTarget(x);
		} finally {
			x.request.path = path;
			x.request.query = query;
		}
	};
}

function currentTarget({ request }: Exchange): string {
	return request.query === undefined ? request.path : `${request.path}?${request.query}`;
}

function renderMethod(template: Template, x: Exchange): string {
	const method = template.constant ?? template.render(x);
	if (!isToken(method) || method === 'CONNECT') throw new HttpError(500, 'The method for the upstream is not valid.');
	return method;
}

/** What placeholders put into fields must not end its line, nor be cut to other bytes. */
function makeSendable(headers: HeaderList): void {
	headers.map((_name, value) => {
		const kind = fieldValueKind(value);
		if (kind === 'bytes') return value;
		return kind === 'text' ? Buffer.from(value, 'utf8').toString('latin1') : '';
	});
	headers.filter(name => isToken(name) && !isFraming(name));
}

/** Fields that the protocol writes itself: two framings of one message are how requests are smuggled (RFC 9112 §11.2). */
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

function answer(
	x: Exchange,
	facts: ProxyFacts,
	upstream: UpstreamResponse,
	upgrade: string | undefined,
	edit: Edit | undefined,
	rules: RuleFinder | undefined,
): void | Promise<void> {
	facts.answeredAt = performance.now();
	facts.response = upstream;
	const { headers } = upstream;
	if (upstream.upgraded) {
		const stream = upstream.upgraded;
		if (headers.get('upgrade')?.toLowerCase() !== upgrade?.toLowerCase()) {
			stream.on('error', () => {});
			stream.destroy();
			throw new HttpError(502, 'The upstream switched to a protocol that was not asked for.');
		}
		x.upgrade(client => splice(client, stream));
		passFields(x, upstream, edit);
		return;
	}
	const rule = rules?.(x, upstream.status, headers);
	if (rule?.routes) return handleResponse(x, facts, rule.routes, edit);
	x.response.status = rule === undefined ? upstream.status : statusOf(rule, x);
	x.response.body = upstream.body;
	passFields(x, upstream, edit);
}

/** The fields of the upstream's response, after those that directives have set. */
function passFields(x: Exchange, upstream: UpstreamResponse, edit: Edit | undefined): void {
	const { response } = x;
	const { headers } = upstream;
	addVia(upstream);
	edit?.(x, headers);
	const own = response.headers;
	// The upstream made this response: it says what made it, or does not.
	own.delete('server');
	if (own.size === 0) response.headers = headers;
	else for (let i = 0, size = headers.size; i < size; i++) own.add(headers.nameAt(i), headers.valueAt(i));
}

function addVia(upstream: UpstreamResponse): void {
	upstream.headers.add('Via', upstream.protocol === 'HTTP/1.0' ? `1.0 ${VIA_NAME}` : `1.1 ${VIA_NAME}`);
}

/** Runs routes in place of the upstream's response, which they may copy; what they leave of its body is given up. */
function handleResponse(x: Exchange, facts: ProxyFacts, routes: Handler, edit: Edit | undefined): void | Promise<void> {
	const upstream = facts.response!;
	addVia(upstream);
	edit?.(x, upstream.headers);
	const handled = new HandledResponse(upstream);
	x.variables.set(HANDLED_RESPONSE_VARIABLE, handled);
	x.answeredBy = '';
	let pending: void | Promise<void>;
	try {
		pending = routes(x);
	} catch (error) {
		handled.close();
		throw error;
	}
	if (pending instanceof Promise) return pending.finally(() => handled.close());
	handled.close();
}

function refuse(x: Exchange, facts: ProxyFacts, error: unknown): void {
	if (x.isGone) {
		x.response.status = CLIENT_CLOSED_REQUEST;
		x.response.body = null;
		return;
	}
	x.answeredBy = '';
	if (!(error instanceof UpstreamError)) throw error;
	// The client's own body was at fault: malformed, cut short, too large or too slow.
	if (error.cause instanceof HttpError) throw error.cause;
	const message = `Upstream ${facts.upstream.address}: ${error.message}.`;
	throw new HttpError(error.phase === 'timeout' ? 504 : 502, message, { cause: error });
}
