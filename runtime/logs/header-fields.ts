/** Formats header fields for access entries, from cached parts for each name. */
import { isSecretHeader } from '../../compiler/document/secret-names.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import { jsonString } from './encoders.ts';

/** Maximum number of cached names. Names are limited because clients choose them. */
const MAX_NAMES = 1000;
/** Maximum length of a cached name. */
const MAX_NAME = 64;

/** Differs from every list of fields, because those have an even length. */
const NEVER: readonly string[] = [''];

/** Cached facts about a name in one spelling. */
interface KnownName {
	/** `"Accept":[` */
	readonly begin: string;
	/** Whether a field of this name holds a credential. */
	readonly secret: boolean;
	/** The number of the list in which the name last occurred, in any spelling. */
	readonly met: { list: number };
}

/** Formats header lists of one kind: of requests or of responses. */
export class HeaderFields {
	/** The previous list (name, value, name, value), because clients and sites tend to repeat themselves. */
	#last: readonly string[] = [];
	#lastText = '{}';
	#lastCredentials = false;
	readonly #names = new Map<string, KnownName>();
	/** Number of occurrences by lowercase name. */
	readonly #met = new Map<string, { list: number }>();
	/** Total length of those names. */
	#metLength = 0;
	#list = 0;

	/** Returns `{"Accept":["a","b"]}`, with repeated fields in one array. Values of credential fields are redacted. */
	write(headers: HeaderList, credentials: boolean): string {
		if (this.#isLast(headers, credentials)) return this.#lastText;
		const text = this.#written(headers, credentials);
		const list: string[] = [];
		for (let i = 0; i < headers.size; i++) {
			const name = headers.nameAt(i);
			// Secrets are not kept beyond their request.
			if (this.#known(name).secret) {
				this.#last = NEVER;
				return text;
			}
			list.push(name, headers.valueAt(i));
		}
		this.#last = list;
		this.#lastText = text;
		this.#lastCredentials = credentials;
		return text;
	}

	#isLast(headers: HeaderList, credentials: boolean): boolean {
		const last = this.#last;
		const size = headers.size;
		if (last.length !== size * 2 || this.#lastCredentials !== credentials) return false;
		for (let i = 0; i < size; i++) {
			if (headers.valueAt(i) !== last[i * 2 + 1] || headers.nameAt(i) !== last[i * 2]) return false;
		}
		return true;
	}

	#written(headers: HeaderList, credentials: boolean): string {
		const size = headers.size;
		if (size === 0) return '{}';
		if (this.#met.size + size > MAX_NAMES || this.#metLength > MAX_NAMES * MAX_NAME) {
			// Cleared so that names in use can be cached again, but never while a list is being formatted.
			this.#met.clear();
			this.#metLength = 0;
			this.#names.clear();
		}
		const list = ++this.#list;
		let all = '{';
		for (let i = 0; i < size; i++) {
			const { begin, secret, met } = this.#known(headers.nameAt(i));
			if (met.list === list) return this.#joined(headers, credentials);
			met.list = list;
			const value = secret && !credentials ? '"REDACTED"' : jsonString(headers.valueAt(i));
			all += i === 0 ? `${begin}${value}]` : `,${begin}${value}]`;
		}
		return `${all}}`;
	}

	/** Formats a list with repeated names, joining their values. */
	#joined(headers: HeaderList, credentials: boolean): string {
		const values = new Map<object, string>();
		for (let i = 0; i < headers.size; i++) {
			const { begin, secret, met } = this.#known(headers.nameAt(i));
			const value = secret && !credentials ? '"REDACTED"' : jsonString(headers.valueAt(i));
			const before = values.get(met);
			values.set(met, before === undefined ? begin + value : `${before},${value}`);
		}
		return `{${[...values.values()].join('],')}]}`;
	}

	#known(name: string): KnownName {
		return this.#names.get(name) ?? this.#learn(name);
	}

	#learn(name: string): KnownName {
		const lower = name.toLowerCase();
		let met = this.#met.get(lower);
		if (met === undefined) {
			met = { list: 0 };
			this.#met.set(lower, met);
			this.#metLength += lower.length;
		}
		const known = { begin: `${jsonString(name)}:[`, secret: isSecretHeader(lower), met };
		if (name.length <= MAX_NAME && this.#names.size < 2 * MAX_NAMES) this.#names.set(name, known);
		return known;
	}
}
