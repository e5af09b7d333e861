/** A request and its response as they pass through the handler graph, independent of the protocol. */
import type { Duplex } from 'node:stream';
import type { Body } from './body.ts';
import { HeaderList } from './header-list.ts';
import type { AccessLog, ServedFile } from './leases.ts';

const NO_ACCESS_LOGS: readonly AccessLog[] = [];

/** The name and version of a protocol, which is the value of `{http.request.proto}`. */
export type ProtocolName = 'HTTP/1.0' | 'HTTP/1.1' | 'HTTP/2.0' | 'HTTP/3.0';

/**
 * Properties of a connection, which all its exchanges share. IPv6 addresses have no brackets. For a Unix socket, addresses are ''.
 */
export interface ConnectionInfo {
	readonly remoteAddress: string;
	readonly remotePort: number;
	readonly localAddress: string;
	readonly localPort: number;
	readonly tls: TlsInfo | undefined;
}

/** Properties of a TLS session. */
export interface TlsInfo {
	readonly version: string;
	readonly cipherSuite: string;
	readonly protocol: string;
	readonly serverName: string;
	readonly resumed: boolean;
	/** The certificate that the client presented. Whether it was verified depends on the site. */
	readonly client?: ClientCertificate | undefined;
}

/** A client certificate, for placeholders and logs. */
export interface ClientCertificate {
	/** SHA-256 of the certificate, in lower-case hexadecimal. */
	readonly fingerprint: string;
	/** The bytes of the public key in hexadecimal: PKCS #1 for RSA, the encoded point for an elliptic curve. */
	readonly publicKey: string;
	readonly publicKeySha256: string;
	readonly pem: string;
	readonly derBase64: string;
	/** Issuer in the form `CN=…,O=…` (RFC 2253). */
	readonly issuer: string;
	readonly subject: string;
	readonly commonName: string;
	/** Serial number in decimal. */
	readonly serial: string;
	readonly dnsNames: readonly string[];
	readonly emails: readonly string[];
	readonly ips: readonly string[];
	readonly uris: readonly string[];
}

/** The request line and authority as received, before any rewrite. */
export interface ReceivedRequestLine {
	readonly method: string;
	/** Path as sent, percent-encoded; never empty. It is `*` for a request about the server as a whole (`OPTIONS *`). */
	readonly path: string;
	/** Query without its `?`; undefined if there was no `?`. */
	readonly query: string | undefined;
	/** Host field or authority as sent, including the port. */
	readonly authority: string;
}

/** The request as handlers see and change it. */
export class Request {
	method: string;
	scheme: 'http' | 'https';
	/** Host without port, in lower case; IPv6 addresses have no brackets. */
	host: string;
	/** Authority as sent, such as `example.com:8080`. It stands for the `Host` field, which is not in `headers`. */
	authority: string;
	/** Path, percent-encoded, as sent or rewritten. */
	path: string;
	/** Query without its `?`, or undefined if the URL has no query. */
	query: string | undefined;
	readonly headers: HeaderList;
	body: Body;
	/** Caches of normalized forms of `path`. A form is valid only while `path` equals its source (see request-path.ts). */
	normalizedPathSource: string | undefined = undefined;
	normalizedPath: string = '';
	loweredPathSource: string | undefined = undefined;
	loweredPath: string = '';

	constructor(received: ReceivedRequestLine, scheme: 'http' | 'https', host: string, headers: HeaderList, body: Body) {
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
	/** The status: 0 until a handler answers, and then 200 to 599, or 101 with an upgrade. */
	status: number = 0;
	headers: HeaderList = new HeaderList();
	body: Body = null;
	/** Trailer fields to send after a streamed body, in addition to the body's own. */
	trailers: HeaderList | undefined = undefined;
	/** Number of bytes of the body that have been written to the client. The protocol counts them. */
	bytesSent: number = 0;
	/** Why the body could not be sent completely, although the client was still there. Set by the protocol, for logs. */
	failure: string | undefined = undefined;
	/** True if an attacker could have shortened the body without being noticed, so that it must not be stored. */
	mayBeTruncated: boolean = false;
}

/** What a protocol does for an exchange besides writing its response. */
export interface ExchangeTransport {
	/** Sends an interim response (1xx except 101). Has no effect for HTTP/1.0 clients. */
	sendInterim(status: number, headers: HeaderList): void;
	/**
	 * Called on the first use of `Exchange.onGone`. From then on, the transport must call `exchange.markGone()` if the client
	 * disconnects before the response has been written completely.
	 */
	watch(exchange: Exchange): void;
	/** Sets transfer limits for this exchange. Omitted if the protocol does not support them. */
	setLimits?(limits: TransferLimits): void;
	/** Returns how many bytes of the response body the client can accept now. Omitted if the protocol cannot tell. */
	writableBytes?(): number;
}

/** Limits on the transfer of one exchange, which override the limits of its listener. 0 means no limit. */
export interface TransferLimits {
	/** Maximum milliseconds between bytes of the request body. */
	readonly readTimeout?: number;
	/** Minimum average number of bytes per second of the request body, measured after the first `readTimeout` milliseconds. */
	readonly readRate?: number;
	/** Maximum milliseconds during which the client accepts no byte of the response. */
	readonly writeTimeout?: number;
	/**
	 * Minimum average number of bytes per second that the client accepts of the response, measured after the first `writeTimeout`
	 * milliseconds.
	 */
	readonly writeRate?: number;
	/** Size, in bytes, of the pieces in which a complete body is handed to the connection. */
	readonly writeChunk?: number;
	/** Maximum number of bytes per second of the response body; 0 for no limit. */
	readonly maxWriteRate?: number;
	/** Number of bytes of the response body that are sent before `maxWriteRate` applies. */
	readonly maxWriteRateAfter?: number;
}

/**
 * Receives the client's byte stream after the head of the 101 response (or of a 2xx response to CONNECT) has been written. The
 * stream is paused: add listeners or pipe it, and then call `resume()`. The stream must be ended explicitly, because it does not
 * end when the client ends its side. The exchange ends when the stream closes.
 */
export type UpgradeCallback = (client: Duplex) => void;

/** Data that directives add to an exchange's access log entry. */
export interface ExchangeLog {
	/** True if the entry must not be written. */
	skip?: boolean;
	fields?: Record<string, unknown>;
	/** Functions that are called after the response has been sent and before the entry is written. */
	beforeEntry?: ((x: Exchange) => void)[];
}

/** The error that a site's error routes handle. */
export interface ExchangeError {
	status: number;
	message: string;
	cause?: unknown;
	/** True if no error route answered the error. */
	unanswered?: boolean;
}

/** A request and its response. All protocols use this class, so that call sites stay monomorphic. */
export class Exchange {
	readonly protocol: ProtocolName;
	readonly connection: ConnectionInfo;
	readonly received: ReceivedRequestLine;
	readonly request: Request;
	readonly response: Response = new Response();
	/** The time at which the request head was complete, by `performance.now()`. */
	readonly startedAt: number;
	/** True if the connection must be closed without a response (`abort`). */
	isAborted: boolean = false;
	/** Number of bytes of the request body that have been read from the client. The protocol counts them. */
	bytesReceived: number = 0;
	/** Receives the client's byte stream after the head of the response has been written. Set together with status 101. */
	upgradeCallback: UpgradeCallback | undefined = undefined;
	/** The error that the error routes are handling, for `{http.error.*}`. */
	error: ExchangeError | undefined = undefined;
	/** Answers an error that no error route answers; undefined until `errors_page` runs. */
	errorPage: ((x: Exchange) => void | Promise<void>) | undefined = undefined;
	/** Name of the site that serves the request, for logs, metrics, tests and `explain`. */
	siteName: string = '';
	/** Name of the handler that answered, for logs, metrics, tests and `explain`. */
	answeredBy: string = '';
	/** Number of the step that answered or failed (see step-place.ts); −1 if none did. */
	decidingStep: number = -1;
	/**
	 * Number of the first step of the running pipeline. Handlers number their steps relative to it, because several sites may
	 * share a handler.
	 */
	stepBase: number = 0;
	/** Index of the site in its generation; −1 if there is none. */
	siteIndex: number = -1;
	/** Cache result: `hit`, `miss`, `stale` or `bypass`; '' without a cache. */
	cacheStatus: string = '';
	/** Source of the file that was sent: `memory`, `held` (kept open) or `disk`; '' if none was. */
	fileSource: string = '';
	/** Name of the coding applied by `encode`; '' if none. */
	contentCoding: string = '';
	/**
	 * The file whose complete content is `servedBody`, so that encoded forms of the content can be cached. Valid only while
	 * `servedBody` is the response's body.
	 */
	servedFile: ServedFile | undefined = undefined;
	servedBody: Body = null;
	/** A bit for each group of mutually exclusive steps, set once one of its steps has run (see codegen/compile-pipeline.ts). */
	exclusiveGroups: number = 0;
	/** The request fields as received; set before a handler changes them, if an access log may show them. */
	receivedHeaders: HeaderList | undefined = undefined;
	/** Access logs in which the runtime records the exchange after it has ended. */
	accessLogs: readonly AccessLog[] = NO_ACCESS_LOGS;
	/** What directives have set for the access log entry; undefined until one does. */
	log: ExchangeLog | undefined = undefined;
	/** True if debug log entries record which handlers run (`servers { trace }`). */
	logsSteps: boolean = false;
	/** Functions that are called in order when the exchange has ended, whatever its outcome; undefined until a handler adds one. */
	finishListeners: ((x: Exchange) => void)[] | undefined = undefined;
	/** The generation that serves this exchange. For use by the runtime. */
	generation: object | undefined = undefined;
	/** When the handler graph returned, by `performance.now()`. For use by the runtime. */
	answeredAt: number = 0;
	/** The {@link ProxyFacts} of this exchange; undefined if it has not been proxied. */
	proxyFacts: object | undefined = undefined;
	readonly #transport: ExchangeTransport;
	#variables: Map<string, unknown> | undefined = undefined;
	#abortController: AbortController | undefined = undefined;
	#firstGoneListener: (() => void) | undefined = undefined;
	/** Listeners for the client's disconnection besides the first one, which most exchanges do not have. */
	#moreGoneListeners: (() => void)[] | undefined = undefined;
	#isGone = false;

	constructor(
		protocol: ProtocolName,
		connection: ConnectionInfo,
		received: ReceivedRequestLine,
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

	/**
	 * Variables of this request, such as `root`, captures of regular expressions, and values set by `vars`. The map is created on
	 * first use.
	 */
	get variables(): Map<string, unknown> {
		this.#variables ??= new Map();
		return this.#variables;
	}

	/** Returns the value of a variable; undefined if it is not set. Does not create the map of variables. */
	variable(name: string): unknown {
		return this.#variables?.get(name);
	}

	/** Number of bytes of the response body that the client can accept now; Infinity if unknown. */
	get writableBytes(): number {
		return this.#transport.writableBytes?.() ?? Infinity;
	}

	/**
	 * Records which handler has answered or is about to fail.
	 * @param handler The module's `id`.
	 * @param step The handler's `cx.stepNumber`.
	 */
	markAnswered(handler: string, step: number): void {
		this.answeredBy = handler;
		this.decidingStep = this.stepBase + step;
	}

	/**
	 * Keeps a copy of the received fields if an access log may show them. Must be called before a handler changes the request's
	 * fields.
	 */
	keepReceivedHeaders(): void {
		if (this.accessLogs.length > 0) this.receivedHeaders ??= this.request.headers.clone();
	}

	/** Returns the time in milliseconds since 1970. Everything about this request uses this clock, which tests can replace. */
	now(): number {
		return Date.now();
	}

	/** True if the client disconnected before the response was written completely. */
	get isGone(): boolean {
		return this.#isGone;
	}

	/**
	 * Calls `listener` if the client disconnects before the response is written completely; calls it at once if that has already
	 * happened.
	 */
	onGone(listener: () => void): void {
		if (this.#isGone) {
			listener();
			return;
		}
		if (this.#firstGoneListener === undefined) {
			this.#firstGoneListener = listener;
			this.#transport.watch(this);
			return;
		}
		this.#moreGoneListeners ??= [];
		this.#moreGoneListeners.push(listener);
	}

	/** An AbortSignal for the client's disconnection, for APIs that need one. */
	get signal(): AbortSignal {
		if (!this.#abortController) {
			const controller = new AbortController();
			this.#abortController = controller;
			this.onGone(() => controller.abort());
		}
		return this.#abortController.signal;
	}

	/** Called by the protocol when the client has disconnected. */
	markGone(): void {
		if (this.#isGone) return;
		this.#isGone = true;
		const firstListener = this.#firstGoneListener;
		const moreListeners = this.#moreGoneListeners;
		this.#firstGoneListener = undefined;
		this.#moreGoneListeners = undefined;
		firstListener?.();
		if (moreListeners) for (const listener of moreListeners) listener();
	}

	/** Sends an interim response, such as 103 Early Hints (RFC 8297). */
	sendInterim(status: number, headers: HeaderList): void {
		this.#transport.sendInterim(status, headers);
	}

	/** Sets limits on the transfer of this exchange that override its listener's. */
	setLimits(limits: TransferLimits): void {
		this.#transport.setLimits?.(limits);
	}

	/** Closes the connection without a response. */
	abort(): void {
		this.isAborted = true;
	}

	/** Answers 101. `upgradeCallback` receives the client's byte stream once the head has been written (RFC 9110 §7.8). */
	upgrade(upgradeCallback: UpgradeCallback): void {
		this.response.status = 101;
		this.upgradeCallback = upgradeCallback;
	}
}
