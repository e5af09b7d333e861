/** One request and its response on their way through the handler graph, whatever the protocol. */
import type { Duplex } from 'node:stream';
import type { Body } from './body.ts';
import { HeaderList } from './header-list.ts';
import type { AccessLog, ServedFile } from './leases.ts';

const NO_LOGS: readonly AccessLog[] = [];

/** `HTTP/1.0`, `HTTP/1.1`, `HTTP/2.0`, `HTTP/3.0`: the text of `{http.request.proto}`. */
export type ProtocolName = 'HTTP/1.0' | 'HTTP/1.1' | 'HTTP/2.0' | 'HTTP/3.0';

/** What is known of a connection; one object for all its exchanges. Addresses are without brackets; '' for a unix socket. */
export interface ConnectionInfo {
	readonly remoteAddress: string;
	readonly remotePort: number;
	readonly localAddress: string;
	readonly localPort: number;
	readonly tls: TlsInfo | undefined;
}

/** What is known of a TLS session. */
export interface TlsInfo {
	readonly version: string;
	readonly cipherSuite: string;
	readonly protocol: string;
	readonly serverName: string;
	readonly resumed: boolean;
	/** The certificate that the client showed, verified or not as the site wants it. */
	readonly client?: ClientCertificate | undefined;
}

/** A client's certificate, as placeholders and logs tell it. */
export interface ClientCertificate {
	/** SHA-256 of the certificate, hexadecimal in lower case. */
	readonly fingerprint: string;
	/** The key's bytes in hexadecimal: PKCS #1 for RSA, the point of an elliptic curve. */
	readonly publicKey: string;
	readonly publicKeySha256: string;
	readonly pem: string;
	readonly derBase64: string;
	/** `CN=…,O=…` (RFC 2253). */
	readonly issuer: string;
	readonly subject: string;
	readonly commonName: string;
	/** Decimal. */
	readonly serial: string;
	readonly dnsNames: readonly string[];
	readonly emails: readonly string[];
	readonly ips: readonly string[];
	readonly uris: readonly string[];
}

/** The request line and authority as they came, before any rewrite. */
export interface Received {
	readonly method: string;
	/** Path as sent, still percent-encoded; never empty, `*` for OPTIONS. */
	readonly path: string;
	/** Query without its `?`; undefined when there was no `?`. */
	readonly query: string | undefined;
	/** Host field or authority as sent, port included. */
	readonly authority: string;
}

/** The request as handlers see and change it. */
export class Request {
	method: string;
	scheme: 'http' | 'https';
	/** Host without port, lower case, IPv6 without brackets. */
	host: string;
	/** Authority as sent (`example.com:8080`): the `Host` field is this and does not stand in `headers`. */
	authority: string;
	/** Path, percent-encoded as sent or rewritten. */
	path: string;
	/** Query without its `?`; undefined when there is none. */
	query: string | undefined;
	readonly headers: HeaderList;
	body: Body;
	/** Normalized forms of `path`, made when first asked for and valid while `path` is this text (see request-path.ts). */
	normalizedFor: string | undefined = undefined;
	normalized: string = '';
	loweredFor: string | undefined = undefined;
	lowered: string = '';

	constructor(received: Received, scheme: 'http' | 'https', host: string, headers: HeaderList, body: Body) {
		this.method = received.method;
		this.scheme = scheme;
		this.host = host;
		this.authority = received.authority;
		this.path = received.path;
		this.query = received.query;
		this.headers = headers;
		this.body = body;
	}
}

/** The response as handlers build it. */
export class Response {
	/** 0 until something answers; then 200 to 599, or 101 with an upgrade. */
	status: number = 0;
	headers: HeaderList = new HeaderList();
	body: Body = null;
	/** Trailer fields to send after a streamed body; a streamed body's own trailers are sent too. */
	trailers: HeaderList | undefined = undefined;
	/** Bytes of body written to the client; the protocol counts. */
	bytesSent: number = 0;
}

/** What a protocol does for an exchange beyond writing its response. */
export interface ExchangeTransport {
	/** Sends an interim response (103 and other 1xx but 101). No effect for HTTP/1.0 clients. */
	inform(status: number, headers: HeaderList): void;
	/** Called by `Exchange.onGone`'s first use: the transport calls `exchange.gone()` if the client leaves before the end. */
	watch(exchange: Exchange): void;
	/** Sets bounds of this exchange, where the protocol has such. */
	bound?(bounds: TransferBounds): void;
	/** Bytes of a response's body that the client takes now; left out where that does not show. */
	room?(): number;
}

/** How long a client may make one exchange wait, instead of what its listener says. 0 is without bound. */
export interface TransferBounds {
	/** Milliseconds without a byte of the request's body while it is waited for. */
	readonly readTimeout?: number;
	/** Bytes a second that such a body must bring on average, `readTimeout` apart. */
	readonly readRate?: number;
	/** Milliseconds without a byte of the response taken. */
	readonly writeTimeout?: number;
	/** Bytes a second at which the response must be taken on average, `writeTimeout` apart. */
	readonly writeRate?: number;
	/** Bytes of a whole body that are given to the connection at once. */
	readonly writeChunk?: number;
}

/**
 * Called with the client's byte stream after the 101 (or 2xx of a CONNECT) has been written. The stream is paused and half
 * open: listen or pipe, then `resume()`; end it, for the client's end does not. The exchange ends when the stream closes.
 */
export type Upgraded = (client: Duplex) => void;

/** What directives add to an exchange's access entry. */
export interface ExchangeLog {
	/** No entry is written. */
	skip?: boolean;
	fields?: Record<string, unknown>;
	/** Called once the response has been sent, before the entry is written. */
	late?: ((x: Exchange) => void)[];
}

/** One request/response pair. The same class for every protocol, so that call sites stay monomorphic. */
export class Exchange {
	readonly protocol: ProtocolName;
	readonly connection: ConnectionInfo;
	readonly received: Received;
	readonly request: Request;
	readonly response: Response = new Response();
	/** `performance.now()` at the end of the request's head, in milliseconds. */
	readonly startedAt: number;
	/** True when the connection shall be dropped without a response (`abort`). */
	aborted: boolean = false;
	/** Bytes of request body read from the client; the protocol counts. */
	bytesReceived: number = 0;
	/** Takes over the client's byte stream after the head has been written; set together with status 101. */
	upgraded: Upgraded | undefined = undefined;
	/** The error that the error routes are handling, for `{http.error.*}`. */
	error: { status: number; message: string; cause?: unknown } | undefined = undefined;
	/** Names of the site and of the handler that answered, for logs, metrics, tests and `explain`. */
	site: string = '';
	answeredBy: string = '';
	/** Number of the step that answered, or failed: see step-place.ts; −1 when none did. */
	decidedAt: number = -1;
	/** Number of the first step of the pipeline that runs: closures that sites share count from there. */
	stepBase: number = 0;
	/** Index of the site in its generation; −1 when there is none. */
	siteIndex: number = -1;
	/** `hit`, `miss`, `stale` or `bypass`: what a cache did; '' where none was asked. */
	cacheStatus: string = '';
	/** Where the file was that answered: `memory`, `held` open or `disk`; '' where none did. */
	fileFrom: string = '';
	/** Name of the coding that `encode` gave the response; '' where it did not. */
	encodedAs: string = '';
	/** The file whose whole content `servedBody` is, for who keeps forms of it: only while that is the response's body still. */
	servedFile: ServedFile | undefined = undefined;
	servedBody: Body = null;
	/** Bits of the exclusive groups that have run (see codegen/pipeline.ts). */
	exclusive: number = 0;
	/** The request's fields as they came, once a handler has changed them and a log will want to show them. */
	receivedHeaders: HeaderList | undefined = undefined;
	/** Loggers of the site that serves this exchange; the runtime records it there when it has ended. */
	accessLogs: readonly AccessLog[] = NO_LOGS;
	/** Extra access-log state: undefined until a directive sets it. */
	log: ExchangeLog | undefined = undefined;
	/** Whether the handlers that run are told of in debug entries (`servers { trace }`). */
	logsSteps: boolean = false;
	/** Called in order when the exchange has ended, whatever became of it: undefined until a handler asks for it. */
	whenFinished: ((x: Exchange) => void)[] | undefined = undefined;
	/** For the runtime: the generation that serves this exchange, and `performance.now()` when its graph had returned. */
	served: object | undefined = undefined;
	answeredAt: number = 0;
	/** What proxying found out about this exchange: a ProxyFacts. */
	proxied: object | undefined = undefined;
	readonly #transport: ExchangeTransport;
	#variables: Map<string, unknown> | undefined = undefined;
	#abort: AbortController | undefined = undefined;
	#goneListener: (() => void) | undefined = undefined;
	/** Those after the first: most exchanges have one. */
	#goneListeners: (() => void)[] | undefined = undefined;
	#isGone = false;

	constructor(
		protocol: ProtocolName,
		connection: ConnectionInfo,
		received: Received,
		request: Request,
		transport: ExchangeTransport,
		startedAt: number,
	) {
		this.protocol = protocol;
		this.connection = connection;
		this.received = received;
		this.request = request;
		this.#transport = transport;
		this.startedAt = startedAt;
	}

	/** Variables and captures of this request: `root`, regular-expression groups, what `vars` sets. Made when first asked for. */
	get variables(): Map<string, unknown> {
		this.#variables ??= new Map();
		return this.#variables;
	}

	/** A variable without making the map. */
	variable(name: string): unknown {
		return this.#variables?.get(name);
	}

	/** Bytes of the response's body that the client takes now, as far as that shows. */
	get room(): number {
		return this.#transport.room?.() ?? Infinity;
	}

	/** A handler has answered, or is about to fail. `step` is `cx.step`. */
	answered(handler: string, step: number): void {
		this.answeredBy = handler;
		this.decidedAt = this.stepBase + step;
	}

	/** To be called before the fields of the request are changed for good. */
	keepReceivedHeaders(): void {
		if (this.accessLogs.length > 0) this.receivedHeaders ??= this.request.headers.clone();
	}

	/** Milliseconds since 1970: the clock that everything about this request goes by, which a test may set. */
	now(): number {
		return Date.now();
	}

	/** True once the client has left before the response was written whole. */
	get isGone(): boolean {
		return this.#isGone;
	}

	/** Calls back when the client leaves before the response was written whole; at once if it already has. */
	onGone(listener: () => void): void {
		if (this.#isGone) {
			listener();
			return;
		}
		if (this.#goneListener === undefined) {
			this.#goneListener = listener;
			this.#transport.watch(this);
			return;
		}
		this.#goneListeners ??= [];
		this.#goneListeners.push(listener);
	}

	/** An AbortSignal of the same event, for APIs that take one. */
	get signal(): AbortSignal {
		if (!this.#abort) {
			const controller = new AbortController();
			this.#abort = controller;
			this.onGone(() => controller.abort());
		}
		return this.#abort.signal;
	}

	/** For the protocol: the client has left. */
	gone(): void {
		if (this.#isGone) return;
		this.#isGone = true;
		const first = this.#goneListener;
		const listeners = this.#goneListeners;
		this.#goneListener = undefined;
		this.#goneListeners = undefined;
		first?.();
		if (listeners) for (const listener of listeners) listener();
	}

	/** Sends an interim response, such as 103 Early Hints (RFC 8297). */
	inform(status: number, headers: HeaderList): void {
		this.#transport.inform(status, headers);
	}

	/** Sets how long the client may make this exchange wait, instead of what its listener says. */
	bound(bounds: TransferBounds): void {
		this.#transport.bound?.(bounds);
	}

	/** Drops the connection without a response. */
	abort(): void {
		this.aborted = true;
	}

	/** Answers 101 and hands the client's byte stream to `upgraded` once the head is written (RFC 9110 §7.8). */
	upgrade(upgraded: Upgraded): void {
		this.response.status = 101;
		this.upgraded = upgraded;
	}
}
