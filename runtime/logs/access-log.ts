/** Access logs on a worker thread: each exchange becomes a line, and lines are sent to the main thread in batches. */

import { type ProxyFacts, proxyFactsOf } from '../../compiler/codegen/context/proxy-facts.ts';
import { UUID_VARIABLE } from '../../compiler/codegen/placeholders/request.ts';
import type { AccessLogSettings } from '../../compiler/document/log-namespaces.ts';
import type { Exchange, TlsInfo } from '../../compiler/exchange/exchange.ts';
import type { AccessLog } from '../../compiler/exchange/leases.ts';
import { flattenString, jsonMembers, jsonString, LEVEL_RANK, levelRank } from './encoders.ts';
import { HeaderFields } from './header-fields.ts';
import { LineTemplate } from './line-template.ts';
import { compileLogFormat, type LineFormat } from './log-format.ts';
import type { LogSampler } from './log-sampler.ts';
import type { ExpandText } from './machine-text.ts';

/** Receives formatted lines. */
export interface LineSink {
	write(line: string): void;
	/** Receives a formatted line in UTF-8. The bytes are copied. */
	writeBytes?(line: Buffer): void;
}

/** Dependencies shared by a thread's access logs. */
export interface AccessLogDeps {
	/** Whether standard error is a terminal. If it is, a log to standard error that has no format is human-readable. */
	readonly isTerminal: boolean;
	/** Returns the client address, taking trusted proxies into account. */
	readonly clientIp: (x: Exchange) => string;
	/** Expands placeholders in a format. */
	readonly expand: ExpandText;
}

/** Formats the exchanges of one access log. */
export class AccessLogger implements AccessLog {
	readonly #format: LineFormat;
	readonly #sampler: LogSampler | undefined;
	readonly #logger: string;
	readonly #sink: LineSink;
	readonly #minRank: number;
	readonly #deps: AccessLogDeps;
	readonly #clock = new WallClock();
	readonly #requestFields = new HeaderFields();
	readonly #responseFields = new HeaderFields();
	readonly #peerText = new LastText();
	readonly #clientText = new LastText();
	#lastRequest: RequestPart = NO_REQUEST_PART;
	#lastResponse: ResponsePart = NO_RESPONSE_PART;
	/**
	 * The line from which the next one is made if the two differ only in digits. Undefined if lines do not have the default JSON
	 * format, or the sink does not accept bytes.
	 */
	readonly #template: LineTemplate | undefined;
	/**
	 * The request part of the previous entry. A line becomes the template only if its parts are those of the previous entry,
	 * because a template saves time only while parts repeat.
	 */
	#previousRequestPart = '';
	#previousResponsePart = '';
	readonly #hostText = new LastText();
	readonly #methodText = new LastText();
	readonly #placeText = new LastText();

	/** Throws UnknownEncoder if the log's format is not supported. */
	constructor(settings: AccessLogSettings, sink: LineSink, deps: AccessLogDeps, sampler?: LogSampler) {
		const defaultEncoder = deps.isTerminal && settings.output.writer === 'stderr' ? 'console' : 'json';
		this.#format = compileLogFormat(settings.format, defaultEncoder, deps.expand);
		this.#sampler = sampler;
		this.#logger = settings.logger;
		this.#minRank = levelRank(settings.level);
		this.#sink = sink;
		this.#template = this.#format.isDefaultJson && sink.writeBytes ? new LineTemplate() : undefined;
		this.#deps = deps;
	}

	record(x: Exchange, showCredentials = false, configPlace?: string): void {
		const level = x.response.status >= 500 ? 'error' : 'info';
		if (LEVEL_RANK[level]! < this.#minRank) return;
		// `NOP` means that no handler responded. An error that no error route has handled is not `NOP`: the handler that threw it
		// responded.
		const message = x.answeredBy === '' && x.error === undefined ? 'NOP' : 'handled request';
		const endedAt = performance.now();
		const now = this.#clock.timeAt(endedAt);
		if (this.#sampler && !this.#sampler.shouldWrite(level, message, now)) return;
		const { connection, bytesReceived: bytesRead } = x;
		const { remoteAddress: peer, remotePort: port } = connection;
		const requestPart = this.#formatRequest(x, showCredentials);
		const responsePart = this.#formatResponse(x, showCredentials, configPlace);
		const user = userId(x);
		const milliseconds = endedAt - x.startedAt;
		const template = this.#template;
		const nanoseconds = Math.round(milliseconds * 1e6);
		if (template?.tryUpdate(level, message, peer, requestPart, bytesRead, user, responsePart, port, now, nanoseconds)) {
			this.#sink.writeBytes!(template.bytes);
			return;
		}
		const duration = this.#format.formatDuration(milliseconds);
		const fields = `"request":{"remote_ip":${this.#peerText.toJson(peer)},"remote_port":"${port}","client_ip":${requestPart},"bytes_read":${bytesRead},"user_id":${jsonString(user)},"duration":${duration},"size":${responsePart}`;
		const line = this.#format.encode(level, this.#logger, message, fields, now);
		if (template && requestPart === this.#previousRequestPart && responsePart === this.#previousResponsePart) {
			template.storeLine(
				line,
				{ level, message, peer, requestPart, bytesRead, user, responsePart },
				port,
				now,
				duration,
			);
		}
		this.#previousRequestPart = requestPart;
		this.#previousResponsePart = responsePart;
		this.#sink.write(line);
	}

	/**
	 * Returns the request part of the line, reusing the request part of the previous entry if possible. The request is shown as
	 * received, before rewrites and header edits.
	 */
	#formatRequest(x: Exchange, showCredentials: boolean): string {
		const { connection, received } = x;
		const headerFields = this.#requestFields.formatHeaders(x.receivedHeaders ?? x.request.headers, showCredentials);
		const client = this.#deps.clientIp(x);
		const previousRequest = this.#lastRequest;
		if (
			headerFields === previousRequest.fields &&
			client === previousRequest.client &&
			connection.tls === previousRequest.tls &&
			received.path === previousRequest.path &&
			received.authority === previousRequest.authority &&
			received.query === previousRequest.query &&
			received.method === previousRequest.method &&
			x.protocol === previousRequest.protocol
		) {
			return previousRequest.text;
		}
		const { path, query, authority, method } = received;
		const target = query === undefined ? path : `${path}?${query}`;
		const { tls } = connection;
		const clientAndTarget = `${this.#clientText.toJson(client)},"proto":"${x.protocol}","method":${this.#methodText.toJson(method)},"host":${this.#hostText.toJson(authority)}`;
		const requestText = flattenString(
			`${clientAndTarget},"uri":${jsonString(target)},"headers":${headerFields}${tls ? `,"tls":${tlsFields(tls)}` : ''}}`,
		);
		this.#lastRequest = {
			fields: headerFields,
			client,
			tls,
			path,
			query,
			authority,
			method,
			protocol: x.protocol,
			text: requestText,
		};
		return requestText;
	}

	/** Returns the response part of the line, reusing the response part of the previous entry if possible. */
	#formatResponse(x: Exchange, showCredentials: boolean, configPlace: string | undefined): string {
		const { response } = x;
		const { bytesSent: size, status } = response;
		const headerFields = this.#responseFields.formatHeaders(response.headers, showCredentials);
		const handler = x.answeredBy;
		const place = handler !== '' || x.error !== undefined ? configPlace : undefined;
		// Configurations that use the UUID as a request id need it in the log.
		const uuid = x.variable(UUID_VARIABLE);
		const { failure } = response;
		const isRepeatable =
			uuid === undefined && x.proxyFacts === undefined && x.log?.fields === undefined && failure === undefined;
		const previousResponse = this.#lastResponse;
		if (
			isRepeatable &&
			headerFields === previousResponse.fields &&
			size === previousResponse.size &&
			status === previousResponse.status &&
			handler === previousResponse.handler &&
			place === previousResponse.place &&
			x.fileSource === previousResponse.file &&
			x.contentCoding === previousResponse.encoding &&
			x.cacheStatus === previousResponse.cache
		) {
			return previousResponse.text;
		}
		let responseText = `${size},"status":${status},"resp_headers":${headerFields}`;
		const proxyFacts = proxyFactsOf(x);
		if (proxyFacts?.upstream) responseText += `,"upstream":${upstreamFields(proxyFacts, this.#format)}`;
		if (x.fileSource !== '') responseText += `,"file":"${x.fileSource}"`;
		if (x.contentCoding !== '') responseText += `,"encoding":"${x.contentCoding}"`;
		if (x.cacheStatus !== '') responseText += `,"cache":"${x.cacheStatus}"`;
		if (failure !== undefined && proxyFacts?.failure === undefined) responseText += `,"error":${jsonString(failure)}`;
		if (handler !== '') responseText += `,"handler":"${handler}"`;
		if (place !== undefined) responseText += `,"at":${this.#placeText.toJson(place)}`;
		if (uuid !== undefined) responseText += `,"uuid":"${uuid as string}"`;
		const extraFields = jsonMembers(x.log?.fields);
		if (extraFields !== '') responseText += `,${extraFields}`;
		if (isRepeatable) {
			const { fileSource: file, contentCoding: encoding, cacheStatus: cache } = x;
			this.#lastResponse = {
				fields: headerFields,
				size,
				status,
				handler,
				place,
				file,
				encoding,
				cache,
				text: flattenString(responseText),
			};
		}
		return responseText;
	}
}

function userId(x: Exchange): string {
	const user = x.variable('http.auth.user.id');
	return typeof user === 'string' ? user : '';
}

/** The request of the previous entry: its properties as received, and their text in JSON. */
interface RequestPart {
	readonly fields: string;
	readonly client: string;
	readonly tls: TlsInfo | undefined;
	readonly path: string;
	readonly query: string | undefined;
	readonly authority: string;
	readonly method: string;
	readonly protocol: string;
	readonly text: string;
}

/** The response of the previous entry: its properties, and their text in JSON. */
interface ResponsePart {
	readonly fields: string;
	readonly size: number;
	readonly status: number;
	readonly handler: string;
	readonly place: string | undefined;
	readonly file: string;
	readonly encoding: string;
	readonly cache: string;
	readonly text: string;
}

/** Milliseconds between readings of the wall clock. */
const CLOCK_INTERVAL_MS = 20;

/** Derives the time of day from the clock that measures durations, so that an entry needs to read only one clock. */
class WallClock {
	#offsetMs = 0;
	#readAt = Number.NEGATIVE_INFINITY;

	/** Returns milliseconds since 1970; `now` is from performance.now(). */
	timeAt(now: number): number {
		if (now - this.#readAt >= CLOCK_INTERVAL_MS) {
			this.#readAt = now;
			this.#offsetMs = Date.now() - now;
		}
		return Math.floor(now + this.#offsetMs);
	}
}

/** Caches the JSON of the last string, in case it is repeated. */
class LastText {
	#value = '';
	#text = '""';

	toJson(value: string): string {
		if (value === this.#value) return this.#text;
		this.#value = value;
		this.#text = jsonString(value);
		return this.#text;
	}
}

/**
 * Returns JSON about the last upstream that responded or failed: its address, the number of attempts, the time until its response
 * head, and its failure.
 */
function upstreamFields(
	{ upstream, retryCount: retries, attemptStartedAt: attemptAt, answeredAt, failure }: ProxyFacts,
	format: LineFormat,
): string {
	const latency = answeredAt === 0 ? '' : `,"latency":${format.formatDuration(answeredAt - attemptAt)}`;
	const error = failure === undefined ? '' : `,"error":${jsonString(failure)}`;
	return `{"address":${jsonString(upstream!.address)},"tries":${retries + 1}${latency}${error}}`;
}

function tlsFields(tls: TlsInfo): string {
	const { client } = tls;
	const clientFields = client
		? `,"client_common_name":${jsonString(client.commonName)},"client_serial":${jsonString(client.serial)}`
		: '';
	return (
		`{"resumed":${tls.resumed},"version":${jsonString(tls.version)},"cipher_suite":${jsonString(tls.cipherSuite)},` +
		`"proto":${jsonString(tls.protocol)},"server_name":${jsonString(tls.serverName)},"ech":false${clientFields}}`
	);
}

// Initial values that equal no exchange's parts, because no exchange has an empty method or a size of −1.
const NO_REQUEST_PART: RequestPart = {
	...{ fields: '', client: '', tls: undefined, path: '', query: undefined },
	...{ authority: '', method: '', protocol: '', text: '' },
};
const NO_RESPONSE_PART: ResponsePart = {
	...{ fields: '', size: -1, status: 0, handler: '', place: undefined },
	...{ file: '', encoding: '', cache: '', text: '' },
};
