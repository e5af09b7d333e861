/** The objects by which templates read a request: `.Req`, `.OriginalReq`, their URL and their header fields. */
import type { Exchange } from '../../../exchange/exchange.ts';
import { decodeFieldText } from '../../../exchange/field-syntax.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { decodePercent } from '../../../exchange/request-path.ts';
import { escapePathWhereNeeded, formatQuery, parseQueryLeniently } from '../../../exchange/uri-escape.ts';
import { formatValue } from '../../templates/format-value.ts';
import { ExecutionBudget, TemplateRun } from '../../templates/run.ts';
import { objectMethod } from '../../templates/time-value.ts';
import type { Dictionary, TemplateObject, Value } from '../../templates/value.ts';

/** Names with one or more values each: the header fields of a message, or the parameters of a query. */
abstract class MultiValueObject implements TemplateObject {
	abstract readonly typeName: string;
	#entries: Dictionary | undefined;

	protected abstract readEntries(): Dictionary;
	protected abstract toKey(name: string): string;

	entries(): Dictionary {
		this.#entries ??= this.readEntries();
		return this.#entries;
	}

	protected valuesOf(name: string): readonly Value[] {
		return (this.entries().get(this.toKey(name)) as readonly Value[] | undefined) ?? [];
	}

	member(name: string): Value | undefined {
		switch (name) {
			case 'Get':
				return objectMethod(name, 'string', (valueName: string) => this.valuesOf(valueName)[0] ?? '');
			case 'Values':
				return objectMethod(name, 'string', (valueName: string) => this.valuesOf(valueName));
			case 'Has':
				return objectMethod(name, 'string', (valueName: string) => this.entries().has(this.toKey(valueName)));
			default:
				return undefined;
		}
	}

	text(): string {
		const run = new TemplateRun('', new ExecutionBudget(), { now: () => 0, regexp: () => /$^/, hostState: undefined });
		return formatValue(run, new Map(this.entries()));
	}
}

/** Header fields of a message, by canonical name. */
export class FieldsObject extends MultiValueObject {
	readonly typeName = 'http.Header';
	readonly #fields: HeaderList;

	constructor(fields: HeaderList) {
		super();
		this.#fields = fields;
	}

	protected toKey(name: string): string {
		return canonicalName(name);
	}

	protected readEntries(): Dictionary {
		const entries = new Map<string, Value[]>();
		for (const [name, value] of this.#fields) {
			const key = canonicalName(name);
			const values = entries.get(key);
			const text = decodeFieldText(value);
			if (values) values.push(text);
			else entries.set(key, [text]);
		}
		return entries;
	}
}

/** Converts `content-type` to `Content-Type`. */
function canonicalName(name: string): string {
	return name.toLowerCase().replace(/(?:^|-)[a-z]/g, letter => letter.toUpperCase());
}

class QueryObject extends MultiValueObject {
	readonly typeName = 'url.Values';
	readonly #query: string | undefined;

	constructor(query: string | undefined) {
		super();
		this.#query = query;
	}

	override member(name: string): Value | undefined {
		if (name !== 'Encode') return super.member(name);
		return objectMethod(name, '', () => formatQuery(parseQueryLeniently(this.#query)));
	}

	protected toKey(name: string): string {
		return name;
	}

	protected readEntries(): Dictionary {
		return parseQueryLeniently(this.#query);
	}
}

/** The properties of a request that templates can read. */
export interface RequestView {
	readonly method: string;
	/** Path, percent-encoded. */
	readonly path: string;
	readonly query: string | undefined;
	readonly authority: string;
	readonly fields: HeaderList;
}

class UrlObject implements TemplateObject {
	readonly typeName = '*url.URL';
	readonly #request: RequestView;

	constructor(request: RequestView) {
		this.#request = request;
	}

	member(name: string): Value | undefined {
		const { path, query } = this.#request;
		switch (name) {
			case 'Path':
				return decodePercent(path) ?? path;
			case 'RawPath':
				return escapePathWhereNeeded(decodePercent(path) ?? path) === path ? '' : path;
			case 'RawQuery':
				return query ?? '';
			case 'Scheme':
			case 'Opaque':
			case 'Host':
			case 'Fragment':
				return '';
			case 'Query':
				return objectMethod(name, '', () => new QueryObject(query));
			case 'EscapedPath':
				return objectMethod(name, '', () => path);
			case 'RequestURI':
			case 'String':
				return objectMethod(name, '', () => this.text());
			default:
				return undefined;
		}
	}

	text(): string {
		const { path, query } = this.#request;
		return query === undefined ? path : `${path}?${query}`;
	}
}

class CookieObject implements TemplateObject {
	readonly typeName = '*http.Cookie';
	readonly #name: string;
	readonly #value: string;

	constructor(name: string, value: string) {
		this.#name = name;
		this.#value = value;
	}

	member(name: string): Value | undefined {
		if (name === 'Name') return this.#name;
		if (name === 'Value') return this.#value;
		return name === 'String' ? objectMethod(name, '', () => this.text()) : undefined;
	}

	text(): string {
		return `${this.#name}=${this.#value}`;
	}
}

export class RequestObject implements TemplateObject {
	readonly typeName = '*http.Request';
	readonly #x: Exchange;
	readonly #request: RequestView;

	constructor(x: Exchange, request: RequestView) {
		this.#x = x;
		this.#request = request;
	}

	member(name: string): Value | undefined {
		const { method: requestMethod, query, authority, fields } = this.#request;
		const { protocol, connection } = this.#x;
		switch (name) {
			case 'Method':
				return requestMethod;
			case 'URL':
				return new UrlObject(this.#request);
			case 'RequestURI':
				return new UrlObject(this.#request).text();
			case 'Header':
				return new FieldsObject(fields);
			case 'Host':
				return authority;
			case 'RemoteAddr':
				return joinHostPort(connection.remoteAddress, connection.remotePort);
			case 'Proto':
				return protocol;
			case 'ProtoMajor':
				return BigInt(protocol.charCodeAt(5) - 48);
			case 'ProtoMinor':
				return BigInt(protocol.charCodeAt(7) - 48);
			case 'ContentLength':
				return BigInt(/^\d{1,15}$/.exec(fields.get('content-length') ?? '0')?.[0] ?? '0');
			case 'TLS':
				return connection.tls ? tlsDictionary(connection.tls) : null;
			case 'UserAgent':
				return objectMethod(name, '', () => fields.get('user-agent') ?? '');
			case 'Referer':
				return objectMethod(name, '', () => fields.get('referer') ?? '');
			case 'FormValue':
				return objectMethod(
					name,
					'string',
					(fieldName: string) => parseQueryLeniently(query).get(fieldName)?.[0] ?? '',
				);
			case 'Cookies':
				return objectMethod(name, '', () =>
					parseCookies(fields).map(([cookieName, value]) => new CookieObject(cookieName, value)),
				);
			case 'Cookie':
				return objectMethod(name, 'string', (cookieName: string) => {
					const value = cookieNamed(fields, cookieName);
					return value === undefined ? null : new CookieObject(cookieName, value);
				});
			default:
				return undefined;
		}
	}

	text(): string {
		return `${this.#request.method} ${new UrlObject(this.#request).text()}`;
	}
}

function tlsDictionary(tls: {
	version: string;
	cipherSuite: string;
	protocol: string;
	serverName: string;
}): Dictionary {
	return new Map<string, Value>([
		['Version', tls.version],
		['CipherSuite', tls.cipherSuite],
		['NegotiatedProtocol', tls.protocol],
		['ServerName', tls.serverName],
	]);
}

function joinHostPort(host: string, port: number): string {
	return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Returns the cookies of a request in their order, with quotation marks around values removed. */
function parseCookies(fields: HeaderList): [name: string, value: string][] {
	return fields.getAll('cookie').flatMap(line =>
		decodeFieldText(line)
			.split(';')
			.flatMap((pair): [string, string][] => {
				const equals = pair.indexOf('=');
				const name = (equals === -1 ? pair : pair.slice(0, equals)).trim();
				const value = equals === -1 ? '' : pair.slice(equals + 1).trim();
				return name === '' ? [] : [[name, /^".*"$/.test(value) ? value.slice(1, -1) : value]];
			}),
	);
}

/** Returns the value of the first cookie with this name. */
export function cookieNamed(fields: HeaderList, name: string): string | undefined {
	return parseCookies(fields).find(([cookieName]) => cookieName === name)?.[1];
}
