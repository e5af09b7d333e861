/** Access logs on a data-plane thread: an exchange becomes one line here, lines travel to the main thread in batches. */

import { UUID_VARIABLE } from '../../compiler/codegen/placeholders/request.ts';
import { type ProxyFacts, proxyFactsOf } from '../../compiler/directives/reverse-proxy/proxy-facts.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { AccessLog, AccessLogSettings } from '../../compiler/exchange/leases.ts';
import { LEVEL_RANK, levelRank, members, text } from './encoders.ts';
import { HeaderFields } from './header-fields.ts';
import { compileLogFormat, type LineFormat } from './log-format.ts';
import type { LogSampler } from './log-sampler.ts';
import type { ExpandText } from './machine-text.ts';

/** Takes formatted lines; false when they had to be dropped. */
export interface LineSink {
	write(line: string): void;
}

/** What access logs of a thread have in common. */
export interface AccessLogSurroundings {
	/** Standard error is a terminal: a log to it that names no format is for eyes. */
	readonly terminal: boolean;
	/** Address of the client behind trusted proxies. */
	readonly clientIp: (x: Exchange) => string;
	/** Fills in what a format takes from the machine. */
	readonly expand: ExpandText;
}

/** Formats the exchanges of one access logger. */
export class AccessLogger implements AccessLog {
	readonly #format: LineFormat;
	readonly #sampler: LogSampler | undefined;
	readonly #logger: string;
	readonly #sink: LineSink;
	readonly #rank: number;
	readonly #surroundings: AccessLogSurroundings;
	readonly #requestFields = new HeaderFields();
	readonly #responseFields = new HeaderFields();
	readonly #peer = new LastText();
	readonly #host = new LastText();
	readonly #target = new LastText();
	readonly #method = new LastText();
	readonly #place = new LastText();

	/** Throws UnknownEncoder. */
	constructor(settings: AccessLogSettings, sink: LineSink, surroundings: AccessLogSurroundings, sampler?: LogSampler) {
		const automatic = surroundings.terminal && settings.output.writer === 'stderr' ? 'console' : 'json';
		this.#format = compileLogFormat(settings.format, automatic, surroundings.expand);
		this.#sampler = sampler;
		this.#logger = settings.logger;
		this.#rank = levelRank(settings.level);
		this.#sink = sink;
		this.#surroundings = surroundings;
	}

	record(x: Exchange, credentials = false, at?: string): void {
		const level = x.response.status >= 500 ? 'error' : 'info';
		if (LEVEL_RANK[level]! < this.#rank) return;
		// An error without a route has been handled: by the handler that threw it.
		const message = x.answeredBy === '' && x.error === undefined ? 'NOP' : 'handled request';
		const now = Date.now();
		if (this.#sampler && !this.#sampler.takes(level, message, now)) return;
		this.#sink.write(this.#format.encode(level, this.#logger, message, this.#fields(x, credentials, at), now));
	}

	/** The members of an access entry. The request is shown as it came, before rewrites. */
	#fields(x: Exchange, credentials: boolean, at: string | undefined): string {
		const format = this.#format;
		const { connection, received, request, response } = x;
		const { remoteAddress } = connection;
		const peer = this.#peer.write(remoteAddress);
		const clientIp = this.#surroundings.clientIp(x);
		const client = clientIp === remoteAddress ? peer : text(clientIp);
		const target = received.query === undefined ? received.path : `${received.path}?${received.query}`;
		let entry = `"request":{"remote_ip":${peer},"remote_port":"${connection.remotePort}","client_ip":${client},"proto":"${x.protocol}","method":${this.#method.write(received.method)},"host":${this.#host.write(received.authority)},"uri":${this.#target.write(target)},"headers":${this.#requestFields.write(request.headers, credentials)}`;
		const { tls } = connection;
		if (tls) {
			entry +=
				`,"tls":{"resumed":${tls.resumed},"version":${text(tls.version)},"cipher_suite":${text(tls.cipherSuite)},` +
				`"proto":${text(tls.protocol)},"server_name":${text(tls.serverName)},"ech":false`;
			if (tls.client) {
				entry += `,"client_common_name":${text(tls.client.commonName)},"client_serial":${text(tls.client.serial)}`;
			}
			entry += '}';
		}
		const duration = format.duration(performance.now() - x.startedAt);
		entry += `},"bytes_read":${x.bytesReceived},"user_id":${text(userId(x))},"duration":${duration},"size":${response.bytesSent},"status":${response.status},"resp_headers":${this.#responseFields.write(response.headers, credentials)}`;
		const proxied = proxyFactsOf(x);
		if (proxied?.upstream) entry += `,"upstream":${upstreamFields(proxied, format)}`;
		if (x.fileFrom !== '') entry += `,"file":"${x.fileFrom}"`;
		if (x.encodedAs !== '') entry += `,"encoding":"${x.encodedAs}"`;
		if (x.cacheStatus !== '') entry += `,"cache":"${x.cacheStatus}"`;
		if (x.answeredBy !== '') entry += `,"handler":"${x.answeredBy}"`;
		if (at !== undefined && (x.answeredBy !== '' || x.error !== undefined)) entry += `,"at":${this.#place.write(at)}`;
		// Whoever gives requests an id by it finds them again by it.
		const uuid = x.variable(UUID_VARIABLE);
		if (uuid !== undefined) entry += `,"uuid":"${uuid as string}"`;
		const more = members(x.log?.fields);
		return more === '' ? entry : `${entry},${more}`;
	}
}

/** JSON of a text that is mostly the one before. */
class LastText {
	#value = '';
	#text = '""';

	write(value: string): string {
		if (value === this.#value) return this.#text;
		this.#value = value;
		this.#text = text(value);
		return this.#text;
	}
}

/** Which upstream answered, or failed last; how often others were tried; how long its head took, if it came; what failed. */
function upstreamFields({ upstream, retries, attemptAt, answeredAt, failure }: ProxyFacts, format: LineFormat): string {
	const latency = answeredAt === 0 ? '' : `,"latency":${format.duration(answeredAt - attemptAt)}`;
	const error = failure === undefined ? '' : `,"error":${text(failure)}`;
	return `{"address":${text(upstream!.address)},"tries":${retries + 1}${latency}${error}}`;
}

function userId(x: Exchange): string {
	const user = x.variable('http.auth.user.id');
	return typeof user === 'string' ? user : '';
}
