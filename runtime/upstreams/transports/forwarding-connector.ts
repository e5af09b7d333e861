/** Plain HTTP through a forward proxy, which gets the whole URL (RFC 9112 §3.2.2). */
import { isStream } from '../../../compiler/exchange/body.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { UpstreamError, type UpstreamRequest, type UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import type { CallCarrier, ClientCall } from '../../protocols/http1/client-call.ts';
import { NO_CARRIER, type UpstreamConnector } from './connector.ts';

/** A connector to the proxy, for one upstream behind it. */
export class ForwardingConnector implements UpstreamConnector {
	readonly #connector: UpstreamConnector;
	readonly #origin: string;
	readonly #credentials: string | undefined;

	/**
	 * @param origin `http://host:port` of the upstream.
	 * @param credentials Value of `Proxy-Authorization`, if the proxy requires one.
	 */
	constructor(connector: UpstreamConnector, origin: string, credentials: string | undefined) {
		this.#connector = connector;
		this.#origin = origin;
		this.#credentials = credentials;
	}

	get idleCount(): number {
		return this.#connector.idleCount;
	}

	get isUnused(): boolean {
		return this.#connector.isUnused;
	}

	send(call: ClientCall, wantsNewConnection: boolean): void {
		const { request } = call;
		const headers = new HeaderList([...request.headers].flat());
		if (this.#credentials !== undefined) headers.add('Proxy-Authorization', this.#credentials);
		// `OPTIONS *` has no path (RFC 9112 §3.2.4).
		const target = `${this.#origin}${request.target === '*' ? '' : request.target}`;
		this.#connector.send(new ForwardedCall(call, { ...request, target, headers }), wantsNewConnection);
	}

	sweep(now: number): void {
		this.#connector.sweep(now);
	}

	close(): void {
		this.#connector.close();
	}
}

/** The request as it is sent to the proxy. */
class ForwardedCall implements ClientCall, CallCarrier {
	readonly request: UpstreamRequest;
	carrier: CallCarrier = NO_CARRIER;
	readonly #call: ClientCall;
	#isRefused = false;

	constructor(call: ClientCall, request: UpstreamRequest) {
		this.#call = call;
		this.request = request;
		call.carrier = this;
	}

	get connectTime(): number {
		return this.#call.connectTime;
	}

	set connectTime(value: number) {
		this.#call.connectTime = value;
	}

	cancel(): void {
		this.carrier.cancel(this);
	}

	onRequestSent(): void {
		this.#call.onRequestSent?.();
	}

	onInterimResponse(status: number, headers: HeaderList): void {
		this.#call.onInterimResponse(status, headers);
	}

	onResponse(response: UpstreamResponse): void {
		if (response.status !== 407) {
			this.#call.onResponse(response);
			return;
		}
		// The proxy has rejected this server's credentials. The client cannot do anything about that, so the proxy's response must
		// not reach it.
		this.#isRefused = true;
		if (isStream(response.body)) response.body.cancel();
		this.#call.onFailure(new UpstreamError('connect', 'the proxy rejected the credentials'), false);
	}

	onFailure(error: UpstreamError, canRetry: boolean): void {
		this.#call.onFailure(error, canRetry);
	}

	onReleased(failure?: UpstreamError): void {
		if (!this.#isRefused) this.#call.onReleased(failure);
	}
}
