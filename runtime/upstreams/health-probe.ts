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
import type { CallCarrier, ClientCall } from '../protocols/http1/client-call.ts';
import { PieceMemory } from '../protocols/http1/piece-memory.ts';
import type { PoolRegistryDeps } from './pool-registry.ts';
import { type ConnectorDeps, NO_CARRIER, type UpstreamConnector } from './transports/connector.ts';
import { createConnector } from './transports/create-connector.ts';
import type { TlsProvider } from './transports/tls-provision.ts';

/** Timeout of the whole response, in milliseconds. */
const TIMEOUT = 5000;
/** Maximum characters of a body that are examined. */
const MAX_BODY = 524_288;
/** Maximum redirects followed. */
const MAX_REDIRECTS = 10;

const READ_SIZE = 16_384;

/** Matches the placeholder for the checked upstream in header values and in the body. */
const TARGET = /\{(?:http\.reverse_proxy\.active|rp\.active)\.target_upstream\}/;

/** Checks the upstreams of one pool. */
export class HealthProbe implements ConnectorDeps {
	readonly pieces: PieceMemory = new PieceMemory();
	readonly threads = 1;
	readonly #settings: HealthCheckSettings;
	readonly #isWell: (status: number) => boolean;
	readonly #body: RegExp | undefined;
	readonly #deps: PoolRegistryDeps;
	/** The pool's settings without keep-alive, because a check includes connecting. */
	readonly #linkSettings: UpstreamSettings;
	#buffer: Buffer | undefined = undefined;
	#closed = false;
	readonly #calls = new Set<ProbeCall>();

	constructor(
		pool: UpstreamSettings,
		isWell: (status: number) => boolean,
		body: RegExp | undefined,
		deps: PoolRegistryDeps,
	) {
		this.#settings = pool.health!;
		this.#isWell = isWell;
		this.#body = body;
		this.#deps = deps;
		this.#linkSettings = { ...pool, keepalive: 0 };
	}

	/**
	 * Checks the upstream at an address. Resolves to undefined if the upstream is healthy, or else to the reason why it is not.
	 * Never rejects.
	 */
	async run(upstream: string): Promise<string | undefined> {
		const text = this.#settings.upstream ?? upstream;
		const parsed = parseUpstream(text);
		if (parsed.kind !== 'static') return `${text} is not an address`;
		let address = withPort(
			parsed.addresses[0]!,
			this.#settings.upstream === undefined ? this.#settings.port : undefined,
		);
		let target = targetOf(this.#settings.uri);
		const deadline = performance.now() + (this.#settings.timeout ?? TIMEOUT);
		try {
			for (let redirects = 0; ; redirects++) {
				const response = await this.#send(address, upstream, target, deadline);
				if (this.#settings.follow_redirects !== true || !isRedirect(response)) return this.#judge(response);
				if (redirects === MAX_REDIRECTS) return 'too many redirects';
				const url = new URL(response.location!, `http://${address.address}${target}`);
				const next = parseUpstream(url.host);
				if (url.host !== '' && url.host !== new URL(`http://${hostOf(address)}`).host) {
					if (next.kind !== 'static') return `it redirects to ${url.host}, which is not an address`;
					address = next.addresses[0]!;
				}
				target = `${url.pathname}${url.search}`;
			}
		} catch (error) {
			return error instanceof Error ? error.message : String(error);
		}
	}

	close(): void {
		this.#closed = true;
		for (const call of this.#calls) call.carrier.cancel(call);
	}

	// Implements ConnectorDeps.

	readonly readBuffer = (): Buffer => {
		this.#buffer ??= Buffer.allocUnsafeSlow(READ_SIZE);
		return this.#buffer;
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

	async #send(address: UpstreamAddress, upstream: string, target: string, deadline: number): Promise<ProbeAnswer> {
		if (this.#closed) throw new Error('health checks have been stopped');
		const link = createConnector(address, this.#linkSettings, this);
		const call = new ProbeCall(this.#request(address, upstream, target), link);
		this.#calls.add(call);
		const timer = setTimeout(() => call.giveUp(), Math.max(0, deadline - performance.now()));
		try {
			return await call.run();
		} finally {
			clearTimeout(timer);
			this.#calls.delete(call);
			link.close();
		}
	}

	#request(address: UpstreamAddress, upstream: string, target: string): UpstreamRequest {
		const headers = new HeaderList(['Host', hostOf(address), 'User-Agent', 'svc-health-check']);
		for (const { name, value } of this.#settings.headers ?? []) {
			const lower = name.toLowerCase();
			if (lower === 'host' || lower === 'user-agent') headers.delete(lower);
			headers.add(name, printable(this.#fill(value, upstream)));
		}
		const body = this.#settings.request_body;
		return {
			method: this.#settings.method ?? 'GET',
			target,
			headers,
			body: body === undefined ? null : this.#fill(body, upstream),
			upgrade: undefined,
		};
	}

	/** Replaces the placeholder {@link TARGET}. Placeholders in the replacement are not expanded. */
	#fill(text: string, upstream: string): string {
		return text
			.split(TARGET)
			.map(part => this.#deps.expand(part))
			.join(upstream);
	}

	#judge({ status, body }: ProbeAnswer): string | undefined {
		if (!this.#isWell(status)) return `it answered with status ${status}`;
		if (this.#body && !this.#body.test(body)) return 'its response body does not match';
		return undefined;
	}
}

interface ProbeAnswer {
	readonly status: number;
	readonly location: string | undefined;
	readonly body: string;
}

class ProbeCall implements ClientCall {
	readonly request: UpstreamRequest;
	carrier: CallCarrier = NO_CARRIER;
	connectTime = -1;
	readonly #link: UpstreamConnector;
	#resolve: (answer: ProbeAnswer) => void = () => {};
	#reject: (error: Error) => void = () => {};
	#late = false;

	constructor(request: UpstreamRequest, link: UpstreamConnector) {
		this.request = request;
		this.#link = link;
	}

	run(): Promise<ProbeAnswer> {
		return new Promise((resolve, reject) => {
			this.#resolve = resolve;
			this.#reject = reject;
			this.#link.send(this, true);
		});
	}

	giveUp(): void {
		this.#late = true;
		this.carrier.cancel(this);
		this.#reject(new Error('it took too long'));
	}

	interimReceived(): void {}

	answered(response: UpstreamResponse): void {
		const { status, headers } = response;
		if (response.upgradedStream) {
			response.upgradedStream.destroy();
			this.#reject(new Error('it switched protocols'));
			return;
		}
		void readText(response.body).then(
			body => this.#resolve({ status, location: headers.get('location'), body }),
			error => this.#reject(this.#late ? new Error('it took too long') : asError(error)),
		);
	}

	failed(error: UpstreamError): void {
		this.#reject(this.#late ? new Error('it took too long') : error);
	}

	released(): void {}
}

async function readText(body: UpstreamResponse['body']): Promise<string> {
	if (body === null) return '';
	if (typeof body === 'string') return body;
	if (!isStream(body)) return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
	const pieces: Buffer[] = [];
	let size = 0;
	for (let piece = await body.pull(); piece !== null; piece = await body.pull()) {
		pieces.push(Buffer.from(piece));
		size += piece.length;
		if (size < MAX_BODY) continue;
		body.cancel();
		break;
	}
	return Buffer.concat(pieces).toString('utf8');
}

function isRedirect({ status, location }: ProbeAnswer): boolean {
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

function targetOf(uri: string | undefined): string {
	if (uri === undefined || uri === '') return '/';
	return uri.startsWith('/') ? uri : `/${uri}`;
}

function printable(value: string): string {
	return value.replace(/[^\t\x20-\x7e\x80-\xff]/g, '');
}

function asError(thrown: unknown): Error {
	return thrown instanceof Error ? thrown : new Error(String(thrown));
}
