/** A single health check request, sent over the pool's own transport. */

import { isStream } from '../../compiler/exchange/body.ts';
import { HeaderList } from '../../compiler/exchange/header-list.ts';
import type { UpstreamError, UpstreamRequest, UpstreamResponse } from '../../compiler/exchange/leases.ts';
import {
	parseUpstream,
	type UpstreamAddress,
} from '../../compiler/modules/directives/reverse-proxy/upstream-address.ts';
import type {
	HealthCheckSettings,
	UpstreamSettings,
} from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { RequestBodyMemory } from '../protocols/fastcgi/buffered-request-body.ts';
import type { CallCarrier, ClientCall } from '../protocols/http1/client-call.ts';
import { PieceMemory } from '../protocols/http1/piece-memory.ts';
import type { PoolRegistryDeps } from './pool-registry.ts';
import { type ConnectorDeps, NO_CARRIER, type UpstreamConnector } from './transports/connector.ts';
import { createConnector } from './transports/create-connector.ts';
import type { TlsProvider } from './transports/tls-provision.ts';

/** Timeout of the whole response, in milliseconds. */
const DEFAULT_TIMEOUT_MS = 5000;
/** Number of bytes of a body after which reading stops. */
const MAX_BODY_BYTES = 524_288;
const MAX_REDIRECTS = 10;

const READ_BUFFER_BYTES = 16_384;

/** Matches the placeholder for the checked upstream in header values and in the body. */
const UPSTREAM_PLACEHOLDER = /\{(?:http\.reverse_proxy\.active|rp\.active)\.target_upstream\}/;

/** Checks the upstreams of one pool. */
export class HealthProbe implements ConnectorDeps {
	readonly pieceMemory: PieceMemory = new PieceMemory();
	/** The bodies of checks have a known length. */
	readonly requestBodyMemory: RequestBodyMemory = new RequestBodyMemory(0);
	readonly threadCount = 1;
	readonly #settings: HealthCheckSettings;
	readonly #isHealthyStatus: (status: number) => boolean;
	readonly #bodyPattern: RegExp | undefined;
	readonly #deps: PoolRegistryDeps;
	/** The pool's settings without keep-alive, because a check includes connecting. */
	readonly #connectorSettings: UpstreamSettings;
	#readBuffer: Buffer | undefined = undefined;
	#isClosed = false;
	readonly #pendingCalls = new Set<ProbeCall>();

	constructor(
		pool: UpstreamSettings,
		isHealthyStatus: (status: number) => boolean,
		bodyPattern: RegExp | undefined,
		deps: PoolRegistryDeps,
	) {
		this.#settings = pool.health!;
		this.#isHealthyStatus = isHealthyStatus;
		this.#bodyPattern = bodyPattern;
		this.#deps = deps;
		this.#connectorSettings = { ...pool, keepalive: 0 };
	}

	/**
	 * Checks the upstream at an address. Resolves to undefined if the upstream is healthy, or else to the reason why it is not.
	 * Never rejects.
	 */
	async run(upstream: string): Promise<string | undefined> {
		const upstreamText = this.#settings.upstream ?? upstream;
		const parsedUpstream = parseUpstream(upstreamText);
		if (parsedUpstream.kind !== 'static') return `${upstreamText} is not an address`;
		let address = withPort(
			parsedUpstream.addresses[0]!,
			this.#settings.upstream === undefined ? this.#settings.port : undefined,
		);
		let target = requestTargetOf(this.#settings.uri);
		const deadline = performance.now() + (this.#settings.timeout ?? DEFAULT_TIMEOUT_MS);
		try {
			for (let redirectCount = 0; ; redirectCount++) {
				const response = await this.#send(address, upstream, target, deadline);
				if (this.#settings.follow_redirects !== true || !isRedirect(response)) return this.#findProblem(response);
				if (redirectCount === MAX_REDIRECTS) return 'too many redirects';
				const url = new URL(response.location!, `http://${address.address}${target}`);
				const redirectTarget = parseUpstream(url.host);
				if (url.host !== '' && url.host !== new URL(`http://${hostOf(address)}`).host) {
					if (redirectTarget.kind !== 'static') return `it redirects to ${url.host}, which is not an address`;
					address = redirectTarget.addresses[0]!;
				}
				target = `${url.pathname}${url.search}`;
			}
		} catch (error) {
			return error instanceof Error ? error.message : String(error);
		}
	}

	close(): void {
		this.#isClosed = true;
		for (const call of this.#pendingCalls) call.carrier.cancel(call);
	}

	// Implements ConnectorDeps.

	readonly readBuffer = (): Buffer => {
		this.#readBuffer ??= Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
		return this.#readBuffer;
	};

	onIdle(): void {}

	get environment(): { readonly [name: string]: string | undefined } {
		return this.#deps.environment;
	}

	get provideTls(): TlsProvider | undefined {
		return this.#deps.provideTls;
	}

	get idleConnections(): number {
		return 0;
	}

	async #send(address: UpstreamAddress, upstream: string, target: string, deadline: number): Promise<ProbeResponse> {
		if (this.#isClosed) throw new Error('health checks have been stopped');
		const connector = createConnector(address, this.#connectorSettings, this);
		const call = new ProbeCall(this.#createRequest(address, upstream, target), connector);
		this.#pendingCalls.add(call);
		const timer = setTimeout(() => call.giveUp(), Math.max(0, deadline - performance.now()));
		try {
			return await call.run();
		} finally {
			clearTimeout(timer);
			this.#pendingCalls.delete(call);
			connector.close();
		}
	}

	#createRequest(address: UpstreamAddress, upstream: string, target: string): UpstreamRequest {
		const headers = new HeaderList(['Host', hostOf(address), 'User-Agent', 'svc-health-check']);
		for (const { name, value } of this.#settings.headers ?? []) {
			const lowerName = name.toLowerCase();
			if (lowerName === 'host' || lowerName === 'user-agent') headers.delete(lowerName);
			headers.add(name, removeUnprintable(this.#expand(value, upstream)));
		}
		const body = this.#settings.request_body;
		return {
			method: this.#settings.method ?? 'GET',
			target,
			headers,
			body: body === undefined ? null : this.#expand(body, upstream),
			upgrade: undefined,
		};
	}

	/** Replaces the placeholder {@link UPSTREAM_PLACEHOLDER}. Placeholders in the replacement are not expanded. */
	#expand(text: string, upstream: string): string {
		return text
			.split(UPSTREAM_PLACEHOLDER)
			.map(part => this.#deps.expand(part))
			.join(upstream);
	}

	#findProblem({ status, body }: ProbeResponse): string | undefined {
		if (!this.#isHealthyStatus(status)) return `it answered with status ${status}`;
		if (this.#bodyPattern && !this.#bodyPattern.test(body)) return 'its response body does not match';
		return undefined;
	}
}

interface ProbeResponse {
	readonly status: number;
	readonly location: string | undefined;
	readonly body: string;
}

class ProbeCall implements ClientCall {
	readonly request: UpstreamRequest;
	carrier: CallCarrier = NO_CARRIER;
	connectTime = -1;
	readonly #connector: UpstreamConnector;
	#resolve: (answer: ProbeResponse) => void = () => {};
	#reject: (error: Error) => void = () => {};
	#hasTimedOut = false;

	constructor(request: UpstreamRequest, connector: UpstreamConnector) {
		this.request = request;
		this.#connector = connector;
	}

	run(): Promise<ProbeResponse> {
		return new Promise((resolve, reject) => {
			this.#resolve = resolve;
			this.#reject = reject;
			this.#connector.send(this, true);
		});
	}

	giveUp(): void {
		this.#hasTimedOut = true;
		this.carrier.cancel(this);
		this.#reject(new Error('it took too long'));
	}

	onInterimResponse(): void {}

	onResponse(response: UpstreamResponse): void {
		const { status, headers } = response;
		if (response.upgradedStream) {
			response.upgradedStream.destroy();
			this.#reject(new Error('it switched protocols'));
			return;
		}
		void readText(response.body).then(
			body => this.#resolve({ status, location: headers.get('location'), body }),
			error => this.#reject(this.#hasTimedOut ? new Error('it took too long') : asError(error)),
		);
	}

	onFailure(error: UpstreamError): void {
		this.#reject(this.#hasTimedOut ? new Error('it took too long') : error);
	}

	onReleased(): void {}
}

async function readText(body: UpstreamResponse['body']): Promise<string> {
	if (body === null) return '';
	if (typeof body === 'string') return body;
	if (!isStream(body)) return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
	const pieces: Buffer[] = [];
	let receivedBytes = 0;
	for (let piece = await body.pull(); piece !== null; piece = await body.pull()) {
		pieces.push(Buffer.from(piece));
		receivedBytes += piece.length;
		if (receivedBytes < MAX_BODY_BYTES) continue;
		body.cancel();
		break;
	}
	return Buffer.concat(pieces).toString('utf8');
}

function isRedirect({ status, location }: ProbeResponse): boolean {
	return location !== undefined && [301, 302, 303, 307, 308].includes(status);
}

/** Returns an address with the same host and another port. For a Unix socket, the host is the loopback address. */
function withPort(address: UpstreamAddress, port: number | undefined): UpstreamAddress {
	if (port === undefined) return address;
	const host = address.path === undefined ? address.host : 'localhost';
	return {
		...address,
		address: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
		host,
		port,
		path: undefined,
	};
}

function hostOf(address: UpstreamAddress): string {
	return address.path === undefined ? address.address.replace(/^[a-z0-9+]+:\/\//, '') : 'localhost';
}

function requestTargetOf(uri: string | undefined): string {
	if (uri === undefined || uri === '') return '/';
	return uri.startsWith('/') ? uri : `/${uri}`;
}

function removeUnprintable(value: string): string {
	return value.replace(/[^\t\x20-\x7e\x80-\xff]/g, '');
}

function asError(thrown: unknown): Error {
	return thrown instanceof Error ? thrown : new Error(String(thrown));
}
