/** The value of `.` in a page: the data of the request, and the header fields of the response, which the page may change. */
import { hostAsSent } from '../../../exchange/authority.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { encodeFieldText, isFieldValue, isToken } from '../../../exchange/field-syntax.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { FunctionError } from '../../templates/template-error.ts';
import { objectMethod } from '../../templates/time-value.ts';
import type { TemplateObject, Value } from '../../templates/value.ts';
import { cookieNamed, FieldsObject, RequestObject } from './request-objects.ts';

/** Header fields about the connection or message framing, which pages cannot set. */
const FRAMING_FIELDS = new Set([
	'content-length',
	'transfer-encoding',
	'connection',
	'keep-alive',
	'upgrade',
	'trailer',
]);

/** The value of `.` in a page and in its included files. */
export class PageData implements TemplateObject {
	readonly typeName = 'templates.TemplateContext';
	readonly #x: Exchange;
	readonly #clientIp: (x: Exchange) => string;
	readonly #headers: HeaderList;
	readonly #args: readonly Value[];

	constructor(x: Exchange, clientIp: (x: Exchange) => string, headers: HeaderList, args: readonly Value[]) {
		this.#x = x;
		this.#clientIp = clientIp;
		this.#headers = headers;
		this.#args = args;
	}

	/** Returns the data for an included file, which differs only in `.Args`. */
	withArgs(args: readonly Value[]): PageData {
		return new PageData(this.#x, this.#clientIp, this.#headers, args);
	}

	member(name: string): Value | undefined {
		const { request, received, connection } = this.#x;
		switch (name) {
			case 'Req':
				return new RequestObject(this.#x, {
					method: request.method,
					path: request.path,
					query: request.query,
					authority: request.authority,
					fields: request.headers,
				});
			case 'OriginalReq':
				return new RequestObject(this.#x, { ...received, fields: request.headers });
			case 'Host':
				return hostAsSent(request.authority);
			case 'RemoteIP':
				return connection.remoteAddress;
			case 'ClientIP':
				return this.#clientIp(this.#x);
			case 'Args':
				return this.#args;
			case 'RespHeader':
				return new ResponseFieldsObject(this.#headers);
			case 'Cookie':
				return objectMethod(name, 'string', (cookieName: string) => cookieNamed(request.headers, cookieName) ?? '');
			default:
				return undefined;
		}
	}

	text(): string {
		return '{}';
	}
}

/** The value of `.RespHeader` in a page. */
class ResponseFieldsObject extends FieldsObject {
	readonly #headers: HeaderList;

	constructor(headers: HeaderList) {
		super(headers);
		this.#headers = headers;
	}

	override member(name: string): Value | undefined {
		switch (name) {
			case 'Add':
				return objectMethod(name, 'string string', (field: string, value: string) => {
					this.#headers.add(requireSettableField(field, value), encodeFieldText(value));
					return '';
				});
			case 'Set':
				return objectMethod(name, 'string string', (field: string, value: string) => {
					this.#headers.set(requireSettableField(field, value), encodeFieldText(value));
					return '';
				});
			case 'Del':
				return objectMethod(name, 'string', (field: string) => {
					this.#headers.delete(field.toLowerCase());
					return '';
				});
			default:
				return super.member(name);
		}
	}
}

function requireSettableField(field: string, value: string): string {
	if (!isToken(field) || FRAMING_FIELDS.has(field.toLowerCase())) {
		throw new FunctionError(`"${field}" is not a field that a page can set`);
	}
	if (!isFieldValue(value)) throw new FunctionError(`a value of ${field} contains a control character`);
	return field;
}
