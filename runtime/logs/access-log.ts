/** Access logs on a data-plane thread: an exchange becomes one line here, lines travel to the main thread in batches. */
import { type ProxyFacts, proxyFactsOf } from '../../compiler/directives/reverse-proxy/proxy-facts.ts';
import { isSecretHeader } from '../../compiler/document/secrets.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import type { AccessLog, AccessLogSettings } from '../../compiler/exchange/leases.ts';
import { levelRank, members, text } from './encoders.ts';
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

	record(x: Exchange, credentials = false): void {
		const level = x.response.status >= 500 ? 'error' : 'info';
		if (levelRank(level) < this.#rank) return;
		// An error without a route has been handled: by the handler that threw it.
		const message = x.answeredBy === '' && x.error === undefined ? 'NOP' : 'handled request';
		const now = Date.now();
		if (this.#sampler && !this.#sampler.takes(level, message, now)) return;
		const fields = accessFields(x, this.#surroundings.clientIp(x), this.#format, credentials);
		this.#sink.write(this.#format.encode(level, this.#logger, message, fields, now));
	}
}

/** The members of an access entry. The request is shown as it came, before rewrites. */
function accessFields(x: Exchange, clientIp: string, format: LineFormat, credentials: boolean): string {
	const { connection, received, request, response } = x;
	const target = received.query === undefined ? received.path : `${received.path}?${received.query}`;
	let entry =
		`"request":{"remote_ip":${text(connection.remoteAddress)},"remote_port":"${connection.remotePort}",` +
		`"client_ip":${text(clientIp)},"proto":"${x.protocol}","method":${text(received.method)},` +
		`"host":${text(received.authority)},"uri":${text(target)},"headers":${headerFields(request.headers, credentials)}`;
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
	entry +=
		`},"bytes_read":${x.bytesReceived},"user_id":${text(userId(x))},"duration":${format.duration(performance.now() - x.startedAt)},` +
		`"size":${response.bytesSent},"status":${response.status},"resp_headers":${headerFields(response.headers, credentials)}`;
	const proxied = proxyFactsOf(x);
	if (proxied?.upstream) entry += `,"upstream":${upstreamFields(proxied, format)}`;
	if (x.cacheStatus !== '') entry += `,"cache":"${x.cacheStatus}"`;
	const more = members(x.log?.fields);
	return more === '' ? entry : `${entry},${more}`;
}

/** Which upstream answered, or failed last; how often others were tried; how long its head took, if it came. */
function upstreamFields({ upstream, retries, attemptAt, answeredAt }: ProxyFacts, format: LineFormat): string {
	const latency = answeredAt === 0 ? '' : `,"latency":${format.duration(answeredAt - attemptAt)}`;
	return `{"address":${text(upstream!.address)},"tries":${retries + 1}${latency}}`;
}

function userId(x: Exchange): string {
	const user = x.variable('http.auth.user.id');
	return typeof user === 'string' ? user : '';
}

/**
 * `{"Accept":["a","b"]}`; repeated fields share one array. A field that is a credential by its name is not shown: it may
 * be one of this configuration's own, which `request_header` added.
 */
function headerFields(headers: HeaderList, credentials: boolean): string {
	const size = headers.size;
	if (size === 0) return '{}';
	const values = new Map<string, { name: string; list: string }>();
	for (let i = 0; i < size; i++) {
		const name = headers.nameAt(i);
		const lower = name.toLowerCase();
		const value = !credentials && isSecretHeader(lower) ? '"REDACTED"' : text(headers.valueAt(i));
		const known = values.get(lower);
		if (known) known.list += `,${value}`;
		else values.set(lower, { name, list: value });
	}
	let all = '';
	for (const { name, list } of values.values()) all += `${all === '' ? '{' : ','}${text(name)}:[${list}]`;
	return `${all}}`;
}
