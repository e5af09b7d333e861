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
	/** Like `write`, for UTF-8, which is copied. */
	writeBytes?(line: Buffer): void;
}

/** Dependencies shared by a thread's access logs. */
export interface AccessLogDeps {
	/** Whether standard error is a terminal: a log to it without a format is made human-readable. */
	readonly terminal: boolean;
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
	readonly #rank: number;
	readonly #deps: AccessLogDeps;
	readonly #clock = new WallClock();
	readonly #requestFields = new HeaderFields();
	readonly #responseFields = new HeaderFields();
	readonly #peer = new LastText();
	readonly #client = new LastText();
	#lastAsked: Asked = NOTHING_ASKED;
	#lastAnswered: Answered = NOTHING_ANSWERED;
	/** Undefined if lines have another format, or the sink does not accept bytes. */
	readonly #template: LineTemplate | undefined;
	/** The request part of the previous entry. A template is worthwhile only if entries repeat it. */
	#askedBefore = '';
	#answeredBefore = '';
	readonly #host = new LastText();
	readonly #method = new LastText();
	readonly #place = new LastText();

	/** Throws UnknownEncoder. */
	constructor(settings: AccessLogSettings, sink: LineSink, deps: AccessLogDeps, sampler?: LogSampler) {
		const automatic = deps.terminal && settings.output.writer === 'stderr' ? 'console' : 'json';
		this.#format = compileLogFormat(settings.format, automatic, deps.expand);
		this.#sampler = sampler;
		this.#logger = settings.logger;
		this.#rank = levelRank(settings.level);
		this.#sink = sink;
		this.#template = this.#format.isUsual && sink.writeBytes ? new LineTemplate() : undefined;
		this.#deps = deps;
	}

	record(x: Exchange, credentials = false, at?: string): void {
		const level = x.response.status >= 500 ? 'error' : 'info';
		if (LEVEL_RANK[level]! < this.#rank) return;
		// If there is an error but no error route, the handler that threw the error has handled it.
		const message = x.answeredBy === '' && x.error === undefined ? 'NOP' : 'handled request';
		const ended = performance.now();
		const now = this.#clock.at(ended);
		if (this.#sampler && !this.#sampler.takes(level, message, now)) return;
		const { connection, bytesReceived: bytesRead } = x;
		const { remoteAddress: peer, remotePort: port } = connection;
		const asked = this.#asked(x, credentials);
		const answered = this.#answered(x, credentials, at);
		const user = userId(x);
		const milliseconds = ended - x.startedAt;
		const template = this.#template;
		const nanoseconds = Math.round(milliseconds * 1e6);
		if (template?.becomes(level, message, peer, asked, bytesRead, user, answered, port, now, nanoseconds)) {
			this.#sink.writeBytes!(template.bytes);
			return;
		}
		const duration = this.#format.duration(milliseconds);
		const fields = `"request":{"remote_ip":${this.#peer.write(peer)},"remote_port":"${port}","client_ip":${asked},"bytes_read":${bytesRead},"user_id":${jsonString(user)},"duration":${duration},"size":${answered}`;
		const line = this.#format.encode(level, this.#logger, message, fields, now);
		if (template && asked === this.#askedBefore && answered === this.#answeredBefore) {
			template.learn(line, { level, message, peer, asked, bytesRead, user, answered }, port, now, duration);
		}
		this.#askedBefore = asked;
		this.#answeredBefore = answered;
		this.#sink.write(line);
	}

	/** Returns the request part, usually the same as before. The request is shown as received, before rewrites and header edits. */
	#asked(x: Exchange, credentials: boolean): string {
		const { connection, received } = x;
		const fields = this.#requestFields.write(x.receivedHeaders ?? x.request.headers, credentials);
		const client = this.#deps.clientIp(x);
		const last = this.#lastAsked;
		if (
			fields === last.fields &&
			client === last.client &&
			connection.tls === last.tls &&
			received.path === last.path &&
			received.authority === last.authority &&
			received.query === last.query &&
			received.method === last.method &&
			x.protocol === last.protocol
		) {
			return last.text;
		}
		const { path, query, authority, method } = received;
		const target = query === undefined ? path : `${path}?${query}`;
		const { tls } = connection;
		const of = `${this.#client.write(client)},"proto":"${x.protocol}","method":${this.#method.write(method)},"host":${this.#host.write(authority)}`;
		const written = flattenString(
			`${of},"uri":${jsonString(target)},"headers":${fields}${tls ? `,"tls":${tlsFields(tls)}` : ''}}`,
		);
		this.#lastAsked = { fields, client, tls, path, query, authority, method, protocol: x.protocol, text: written };
		return written;
	}

	/** Returns the response part, usually the same as before. */
	#answered(x: Exchange, credentials: boolean, at: string | undefined): string {
		const { response } = x;
		const { bytesSent: size, status } = response;
		const fields = this.#responseFields.write(response.headers, credentials);
		const by = x.answeredBy;
		const place = by !== '' || x.error !== undefined ? at : undefined;
		// Configurations that use the UUID as a request id need it in the log.
		const uuid = x.variable(UUID_VARIABLE);
		const usual = uuid === undefined && x.proxyFacts === undefined && x.log?.fields === undefined;
		const last = this.#lastAnswered;
		if (
			usual &&
			fields === last.fields &&
			size === last.size &&
			status === last.status &&
			by === last.by &&
			place === last.place &&
			x.fileSource === last.file &&
			x.contentCoding === last.encoding &&
			x.cacheStatus === last.cache
		) {
			return last.text;
		}
		let entry = `${size},"status":${status},"resp_headers":${fields}`;
		const proxied = proxyFactsOf(x);
		if (proxied?.upstream) entry += `,"upstream":${upstreamFields(proxied, this.#format)}`;
		if (x.fileSource !== '') entry += `,"file":"${x.fileSource}"`;
		if (x.contentCoding !== '') entry += `,"encoding":"${x.contentCoding}"`;
		if (x.cacheStatus !== '') entry += `,"cache":"${x.cacheStatus}"`;
		if (by !== '') entry += `,"handler":"${by}"`;
		if (place !== undefined) entry += `,"at":${this.#place.write(place)}`;
		if (uuid !== undefined) entry += `,"uuid":"${uuid as string}"`;
		const more = jsonMembers(x.log?.fields);
		if (more !== '') entry += `,${more}`;
		if (usual) {
			const { fileSource: file, contentCoding: encoding, cacheStatus: cache } = x;
			this.#lastAnswered = { fields, size, status, by, place, file, encoding, cache, text: flattenString(entry) };
		}
		return entry;
	}
}

function userId(x: Exchange): string {
	const user = x.variable('http.auth.user.id');
	return typeof user === 'string' ? user : '';
}

/** The previous entry's request, as received and as JSON. */
interface Asked {
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

/** The previous entry's response. */
interface Answered {
	readonly fields: string;
	readonly size: number;
	readonly status: number;
	readonly by: string;
	readonly place: string | undefined;
	readonly file: string;
	readonly encoding: string;
	readonly cache: string;
	readonly text: string;
}

/** Milliseconds between readings of the wall clock. */
const LOOK_INTERVAL = 20;

/** Derives the time of day from the clock that measures durations, so that an entry needs to read only one clock. */
class WallClock {
	#offset = 0;
	#looked = Number.NEGATIVE_INFINITY;

	/** Returns milliseconds since 1970; `now` is from performance.now(). */
	at(now: number): number {
		if (now - this.#looked >= LOOK_INTERVAL) {
			this.#looked = now;
			this.#offset = Date.now() - now;
		}
		return Math.floor(now + this.#offset);
	}
}

/** Caches the JSON of the last string, in case it is repeated. */
class LastText {
	#value = '';
	#text = '""';

	write(value: string): string {
		if (value === this.#value) return this.#text;
		this.#value = value;
		this.#text = jsonString(value);
		return this.#text;
	}
}

/** Returns the upstream that responded or failed last, the retries, the time to its response head, and the failure. */
function upstreamFields(
	{ upstream, retries, attemptStartedAt: attemptAt, answeredAt, failure }: ProxyFacts,
	format: LineFormat,
): string {
	const latency = answeredAt === 0 ? '' : `,"latency":${format.duration(answeredAt - attemptAt)}`;
	const error = failure === undefined ? '' : `,"error":${jsonString(failure)}`;
	return `{"address":${jsonString(upstream!.address)},"tries":${retries + 1}${latency}${error}}`;
}

function tlsFields(tls: TlsInfo): string {
	const { client } = tls;
	const known = client
		? `,"client_common_name":${jsonString(client.commonName)},"client_serial":${jsonString(client.serial)}`
		: '';
	return (
		`{"resumed":${tls.resumed},"version":${jsonString(tls.version)},"cipher_suite":${jsonString(tls.cipherSuite)},` +
		`"proto":${jsonString(tls.protocol)},"server_name":${jsonString(tls.serverName)},"ech":false${known}}`
	);
}

// Differs from every exchange, because none has such a method or size.
const NOTHING_ASKED: Asked = {
	...{ fields: '', client: '', tls: undefined, path: '', query: undefined },
	...{ authority: '', method: '', protocol: '', text: '' },
};
const NOTHING_ANSWERED: Answered = {
	...{ fields: '', size: -1, status: 0, by: '', place: undefined },
	...{ file: '', encoding: '', cache: '', text: '' },
};
