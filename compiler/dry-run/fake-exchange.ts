/** An exchange without a connection. Its client never disconnects, its clock can be set, and its upstream is scripted. */
import { parseAuthority } from '../exchange/authority.ts';
import { BytesBody } from '../exchange/body.ts';
import { type ConnectionInfo, Exchange, type ReceivedRequestLine, Request } from '../exchange/exchange.ts';
import {
	DOT_CLASS,
	encodeFieldText,
	fieldValueKind,
	TOKEN_CLASSES,
	UNDERSCORE_CLASS,
} from '../exchange/field-syntax.ts';
import { HeaderList } from '../exchange/header-list.ts';
import type { Upstream, UpstreamRequest } from '../exchange/leases.ts';
import type { UpstreamSettings } from '../modules/directives/reverse-proxy/upstream-pool.ts';
import type { DryRunRequest, RequestProtocol } from './dry-run-request.ts';

/** Initial value of the `Server` field, as in the real server. */
const SERVER_FIELD_VALUE = 'svc';
const CLIENT_PORT = 50_000;
const PROTOCOL_NAMES = { h1: 'HTTP/1.1', h2: 'HTTP/2.0', h3: 'HTTP/3.0' } as const;

/** What a fake upstream does with a request: the response that it sends, or a failure. */
export interface UpstreamAnswer {
	readonly status: number;
	readonly body: string;
	readonly headers?: readonly (readonly [name: string, value: string])[];
	/** True if no connection succeeds. */
	readonly unreachable?: boolean;
	/**
	 * True if the upstream accepts the request but does not answer in time. With `unreachable`, the connection attempt times out
	 * instead.
	 */
	readonly timesOut?: boolean;
	/** True if the upstream accepts the request but closes the connection without an answer. */
	readonly disconnects?: boolean;
	/**
	 * True if the pool does not choose the upstream, because it has failed before. Has an effect only in pools that remember
	 * failures.
	 */
	readonly unavailable?: boolean;
}

/** An answer in a script, and the upstreams to which it applies. */
export interface ScriptedAnswer {
	/** Name of the pool, or address of the upstream, that gives this answer; undefined for any upstream. */
	readonly upstreamName: string | undefined;
	readonly answer: UpstreamAnswer;
}

const DEFAULT_ANSWER: UpstreamAnswer = { status: 200, body: '' };

/**
 * The scripted answers of upstreams. An upstream uses the answers for its address in order; if there are none, the answers for its
 * pool; if there are none either, the answers for any upstream. The last answer is repeated.
 */
export class UpstreamScript {
	readonly exhaustedZone: string | undefined;
	readonly #answers: readonly ScriptedAnswer[];
	/** Number of scripted answers used so far, by the name of the upstream or pool in the script. */
	readonly #usedCounts = new Map<string | undefined, number>();
	readonly #busyZones: ReadonlySet<string>;
	readonly #enteredZones = new Set<string>();

	/**
	 * `exhaustedZone` is a zone of rate limits in which the client has no requests left, and `busyZones` are zones of concurrency
	 * limits that are full.
	 */
	constructor(answers: readonly ScriptedAnswer[], exhaustedZone?: string, busyZones: readonly string[] = []) {
		this.#answers = answers;
		this.#busyZones = new Set(busyZones);
		this.exhaustedZone = exhaustedZone;
	}

	/** Returns the answer to the next request that an upstream receives, and uses it up. */
	take(poolName: string | undefined, address: string): UpstreamAnswer {
		const { scriptName, answer } = this.#findNext(poolName, address);
		this.#usedCounts.set(scriptName, (this.#usedCounts.get(scriptName) ?? 0) + 1);
		return answer;
	}

	/** Returns the answer that the next call of `take` will return, without using it up. */
	peek(poolName: string | undefined, address: string): UpstreamAnswer {
		return this.#findNext(poolName, address).answer;
	}

	/** Reports whether a zone is full, and records that a request tried to enter it. */
	isBusy(zone: string): boolean {
		this.#enteredZones.add(zone);
		return this.#busyZones.has(zone);
	}

	/** The busy zones that no request has tried to enter. */
	get unenteredBusyZones(): readonly string[] {
		return [...this.#busyZones].filter(zone => !this.#enteredZones.has(zone));
	}

	/** The answers that were never used, except the first answer of each upstream, which need not be used. */
	get unusedAnswers(): readonly ScriptedAnswer[] {
		const countsByUpstream = new Map<string | undefined, number>();
		return this.#answers.filter(({ upstreamName }) => {
			const earlierCount = countsByUpstream.get(upstreamName) ?? 0;
			countsByUpstream.set(upstreamName, earlierCount + 1);
			return earlierCount > 0 && earlierCount >= (this.#usedCounts.get(upstreamName) ?? 0);
		});
	}

	#findNext(poolName: string | undefined, address: string): { scriptName: string | undefined; answer: UpstreamAnswer } {
		for (const scriptName of new Set([address, poolName, undefined])) {
			const answers = this.#answers.filter(({ upstreamName }) => upstreamName === scriptName);
			const nextAnswer = answers[Math.min(this.#usedCounts.get(scriptName) ?? 0, answers.length - 1)];
			if (nextAnswer) return { scriptName, answer: nextAnswer.answer };
		}
		return { scriptName: undefined, answer: DEFAULT_ANSWER };
	}
}

/** A request that reached the fake upstream. */
export interface RequestToUpstream {
	readonly settings: UpstreamSettings;
	readonly upstream: Upstream;
	readonly request: UpstreamRequest;
}

/** A dry-run request and its response. */
export class FakeExchange extends Exchange {
	/** Interim responses, in the order in which they were sent. */
	readonly interimResponses: { readonly status: number; readonly headers: HeaderList }[] = [];
	/** Requests sent to upstreams, in order. */
	readonly upstreamRequests: RequestToUpstream[] = [];
	/** Copies of the request that mirrors received, in order. */
	readonly mirroredRequests: RequestToUpstream[] = [];
	readonly #upstreamAnswers: UpstreamAnswer | UpstreamScript;
	readonly #fixedTimeMs: number | undefined;

	constructor(
		received: ReceivedRequestLine,
		connection: ConnectionInfo,
		request: Request,
		fixedTimeMs: number | undefined,
		upstreamAnswers: UpstreamAnswer | UpstreamScript,
		protocol: RequestProtocol = 'h1',
	) {
		super(PROTOCOL_NAMES[protocol], connection, received, request, SILENT_TRANSPORT, performance.now());
		this.#fixedTimeMs = fixedTimeMs;
		this.#upstreamAnswers = upstreamAnswers;
		this.response.headers.add('Server', SERVER_FIELD_VALUE);
	}

	/** Returns the scripted answer to the next request that an upstream receives, and uses it up. */
	takeAnswer(poolName: string | undefined, address: string): UpstreamAnswer {
		return this.#upstreamAnswers instanceof UpstreamScript
			? this.#upstreamAnswers.take(poolName, address)
			: this.#upstreamAnswers;
	}

	/** Returns the scripted answer to the next request that an upstream receives, without using it up. */
	peekAnswer(poolName: string | undefined, address: string): UpstreamAnswer {
		return this.#upstreamAnswers instanceof UpstreamScript
			? this.#upstreamAnswers.peek(poolName, address)
			: this.#upstreamAnswers;
	}

	/** Reports whether the script declares that the client has no requests left in a zone of rate limits. */
	isZoneExhausted(zone: string): boolean {
		return this.#upstreamAnswers instanceof UpstreamScript && this.#upstreamAnswers.exhaustedZone === zone;
	}

	/** Reports whether the script declares that a zone of concurrency limits is full. */
	isBusy(zone: string): boolean {
		return this.#upstreamAnswers instanceof UpstreamScript && this.#upstreamAnswers.isBusy(zone);
	}

	override now(): number {
		return this.#fixedTimeMs ?? Date.now();
	}

	override sendInterim(status: number, headers: HeaderList): void {
		this.interimResponses.push({ status, headers });
	}
}

/** The transport of a client that never disconnects early. */
const SILENT_TRANSPORT = { sendInterim: () => {}, watch: () => {} };

/** Returns the exchange for a request to a listener. `boundAddress` is the listener's address. */
export function fakeExchange(
	{ method, url, headers, body, from, at, protocol, sni, certificate }: DryRunRequest,
	boundAddress: { readonly host: string; readonly port: number },
	upstreamAnswers: UpstreamAnswer | UpstreamScript = DEFAULT_ANSWER,
): FakeExchange {
	const requestHeaders = new HeaderList();
	let authority = url.authority;
	for (const [name, value] of headers) {
		if (name.toLowerCase() === 'host') authority = value;
		else if (fieldReachesHandlers(name))
			requestHeaders.add(name, fieldValueKind(value) === 'text' ? encodeFieldText(value) : value);
	}
	// A request body is a stream even if it is complete.
	const bodySource = body === undefined || body === '' ? null : new BytesBody(Buffer.from(body, 'utf8'));
	if (bodySource) requestHeaders.add('Content-Length', String(bodySource.length));
	const received: ReceivedRequestLine = { method, path: url.path, query: url.query, authority };
	const host = parseAuthority(authority)?.host ?? '';
	const request = new Request(received, url.scheme, host, requestHeaders, bodySource);
	const remoteAddress = from ?? '127.0.0.1';
	const connection: ConnectionInfo = {
		remoteAddress,
		remotePort: CLIENT_PORT,
		localAddress: localAddress(boundAddress.host, remoteAddress),
		localPort: boundAddress.port,
		tls:
			url.scheme === 'https'
				? {
						version: 'tls1.3',
						cipherSuite: 'TLS_AES_128_GCM_SHA256',
						protocol: protocol === undefined || protocol === 'h1' ? 'http/1.1' : protocol,
						serverName: sni ?? url.host,
						resumed: false,
						...(certificate && { client: certificate }),
					}
				: undefined,
	};
	return new FakeExchange(received, connection, request, at, upstreamAnswers, protocol);
}

/**
 * Reports whether handlers receive a field. The server drops fields whose names contain a dot or an underscore, because backends
 * could confuse them with other names.
 */
function fieldReachesHandlers(name: string): boolean {
	for (let i = 0; i < name.length; i++) {
		if ((TOKEN_CLASSES[name.charCodeAt(i)]! & (UNDERSCORE_CLASS | DOT_CLASS)) !== 0) return false;
	}
	return true;
}

function localAddress(boundHost: string, remoteAddress: string): string {
	if (boundHost !== '' && boundHost !== '0.0.0.0' && boundHost !== '::') return boundHost;
	return remoteAddress.includes(':') ? '::1' : '127.0.0.1';
}
