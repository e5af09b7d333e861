/** Fake upstreams. Real load balancers choose among them, and their responses are scripted. */

import { isStream } from '../exchange/body.ts';
import { CLIENT_IP_VARIABLE } from '../exchange/client-ip.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { trimBlanks } from '../exchange/field-syntax.ts';
import { HeaderList } from '../exchange/header-list.ts';
import {
	type Upstream,
	UpstreamError,
	type UpstreamOutcome,
	type UpstreamRequest,
	type UpstreamResponse,
} from '../exchange/leases.ts';
import { MirrorExchange } from '../exchange/mirror-exchange.ts';
import { compilePoolBalance } from '../modules/directives/reverse-proxy/pool-choice.ts';
import {
	parseResolvedUpstream,
	parseUpstream,
	type UpstreamAddress,
} from '../modules/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamPool, UpstreamSettings } from '../modules/directives/reverse-proxy/upstream-pool.ts';
import type { BalancerView, UpstreamChoice } from '../modules/providers/balancers/balancer.ts';
import { FakeExchange, type RequestToUpstream, type UpstreamAnswer } from './fake-exchange.ts';

/** Maximum number of attempts and pauses of one dry run, counted together. */
const MAX_ATTEMPTS = 64;

/**
 * A pool whose upstreams are idle, and healthy unless their scripted answers say otherwise. If a balancer chooses at random, it
 * gets the first upstream.
 */
export class FakePool implements UpstreamPool, BalancerView {
	readonly settings: UpstreamSettings;
	readonly #chooseIndex: UpstreamChoice;
	readonly #staticUpstreams: readonly FakeUpstream[];
	/** The pauses between the attempts of each exchange, in milliseconds. The pool does not wait for them. */
	readonly #pauseMsByExchange = new WeakMap<Exchange, number[]>();
	#candidates: readonly FakeUpstream[] = [];
	#avoidedUpstreams: readonly Upstream[] = [];
	/** The exchange for which an upstream is currently being selected. */
	#selectingExchange: FakeExchange | undefined = undefined;
	/** True if the settings let an upstream become unavailable. */
	readonly #tracksAvailability: boolean;
	#turnCount = 0;

	constructor(settings: UpstreamSettings) {
		this.settings = settings;
		const { health, fail_duration = 0, circuit } = settings;
		this.#tracksAvailability = health !== undefined || fail_duration > 0 || circuit !== undefined;
		this.#chooseIndex = compilePoolBalance(settings, {
			clientIp: x => String(x.variable(CLIENT_IP_VARIABLE) ?? x.connection.remoteAddress),
			trustsPeer: () => false,
		});
		this.#staticUpstreams = settings.to.flatMap(text => {
			const parsedUpstream = parseUpstream(text);
			return parsedUpstream.kind === 'static' ? parsedUpstream.addresses.map(fakeUpstream) : [];
		});
	}

	/** Resets the pool to its initial state, so that a round-robin balancer starts again with the first upstream. */
	reset(): void {
		this.#turnCount = 0;
	}

	select(
		x: Exchange,
		avoidedUpstreams?: readonly Upstream[],
		resolvedAddresses?: readonly string[],
	): Upstream | undefined {
		this.#avoidedUpstreams = avoidedUpstreams ?? [];
		this.#selectingExchange = x instanceof FakeExchange ? x : undefined;
		this.#candidates =
			resolvedAddresses === undefined
				? this.#staticUpstreams
				: resolvedAddresses.flatMap(text => {
						const address = parseResolvedUpstream(text);
						return address ? [fakeUpstream(address)] : [];
					});
		return this.#candidates[this.#chooseIndex(this, x)];
	}

	send(x: Exchange, upstream: Upstream, request: UpstreamRequest, callbacks: UpstreamOutcome): void {
		this.#answer(x, upstream, request).then(
			response => callbacks.onResponse(response),
			error => callbacks.onError(error),
		);
	}

	async #answer(x: Exchange, upstream: Upstream, request: UpstreamRequest): Promise<UpstreamResponse> {
		const fakeExchange = x instanceof FakeExchange ? x : undefined;
		request.headers.map((_name, value) => trimBlanks(value));
		const upstreamRequest: RequestToUpstream = { settings: this.settings, upstream, request };
		const recordedRequests =
			x instanceof MirrorExchange && x.original instanceof FakeExchange
				? x.original.mirroredRequests
				: fakeExchange?.upstreamRequests;
		recordedRequests?.push(upstreamRequest);
		try {
			await drainBody(request);
		} catch (error) {
			// If the upstream does not receive the complete request, for example because the body is larger than `request_body` allows,
			// the request is not recorded.
			recordedRequests?.splice(recordedRequests.indexOf(upstreamRequest), 1);
			throw error;
		}
		const answer: UpstreamAnswer = fakeExchange?.takeAnswer(this.settings.name, upstream.address) ?? {
			status: 200,
			body: '',
		};
		const { status, body, headers, unreachable, timesOut, disconnects } = answer;
		if (unreachable && timesOut)
			throw new UpstreamError('timeout', 'no connection came about in time', undefined, true);
		if (timesOut) throw new UpstreamError('timeout', 'no response came in time');
		if (disconnects) throw new UpstreamError('response', 'the connection was closed');
		if (unreachable) throw new UpstreamError('connect', 'the connection was refused');
		const responseHeaders = new HeaderList();
		for (const [name, value] of headers ?? []) responseHeaders.add(name, value);
		const hasNoBody = request.method === 'HEAD' || status === 204 || status === 304;
		return {
			status,
			reason: undefined,
			headers: responseHeaders,
			body: hasNoBody || body === '' ? null : Buffer.from(body, 'utf8'),
			protocol: 'HTTP/1.1',
			upgradedStream: undefined,
		};
	}

	/** Returns false: `shed` refuses no request, because the upstreams of a dry run are idle. */
	countShed(): boolean {
		return false;
	}

	/** Allows every retry, because a dry run has no retry budget. */
	mayRetry(): boolean {
		return true;
	}

	pause(x: Exchange, milliseconds: number): Promise<boolean> {
		const pausesMs = this.#pauseMsByExchange.get(x);
		if (pausesMs) pausesMs.push(milliseconds);
		else this.#pauseMsByExchange.set(x, [milliseconds]);
		return Promise.resolve(true);
	}

	/**
	 * Returns the total length of the pauses, in milliseconds. Returns infinity after {@link MAX_ATTEMPTS} attempts and pauses, so
	 * that the retries end.
	 */
	elapsed(x: Exchange): number {
		const pausesMs = this.#pauseMsByExchange.get(x) ?? [];
		const attemptCount = pausesMs.length + (x instanceof FakeExchange ? x.upstreamRequests.length : 0);
		if (attemptCount >= MAX_ATTEMPTS) return Number.POSITIVE_INFINITY;
		return pausesMs.reduce((sum, pause) => sum + pause, 0);
	}

	/** Returns one address for each name: the name itself with a port. Undefined unless the pool is `dynamic`. */
	lookUp(names: readonly string[]): readonly string[] | undefined {
		return this.settings.dynamic && names.map(name => (name.includes(' ') ? name.replace(' ', ':') : `${name}:80`));
	}

	registerStream(): () => void {
		return () => {};
	}

	// The methods below implement BalancerView. They may be called only while `select` runs.

	get size(): number {
		return this.#candidates.length;
	}

	isAvailable(index: number): boolean {
		const upstream = this.#candidates[index]!;
		if (this.#avoidedUpstreams.includes(upstream)) return false;
		return (
			!this.#tracksAvailability ||
			!this.#selectingExchange?.peekAnswer(this.settings.name, upstream.address).unavailable
		);
	}

	requestsInFlight(): number {
		return 0;
	}

	addressOf(index: number): string {
		return this.#candidates[index]!.dial;
	}

	latencyMs(): undefined {
		return undefined;
	}

	nextTurn(): number {
		return ++this.#turnCount;
	}

	random(): number {
		return 0;
	}
}

interface FakeUpstream extends Upstream {
	readonly dial: string;
}

function fakeUpstream({ address, dial, host, port }: UpstreamAddress): FakeUpstream {
	return { address, dial, host, port, active: 0, fails: 0 };
}

/** Reads the body as an upstream would, so that size limits apply and a body that was already consumed is detected. */
async function drainBody({ body }: UpstreamRequest): Promise<void> {
	if (!isStream(body)) return;
	let readByteCount = 0;
	try {
		for (let piece = await body.pull(); piece !== null; piece = await body.pull()) readByteCount += piece.byteLength;
	} catch (error) {
		throw new UpstreamError('request', 'the request body failed', error);
	}
	if (body.length !== undefined && readByteCount < body.length) {
		throw new UpstreamError('request', 'the request body is shorter than declared');
	}
}
