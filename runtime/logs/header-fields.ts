/** Header fields as access entries show them, written from parts that are made once for each name. */
import { isSecretHeader } from '../../compiler/document/secret-names.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import { text } from './encoders.ts';

/** Names that are kept, and their length: clients choose them, so there must be an end. */
const MOST_NAMES = 1000;
const LONGEST_NAME = 64;

/** Like no list: of no even number. */
const NEVER: readonly string[] = [''];

/** What is known of a name in one spelling. */
interface KnownName {
	/** `"Accept":[` */
	readonly begin: string;
	/** A credential by its name. */
	readonly secret: boolean;
	/** Number of the list in which the name, in any spelling, was met last. */
	readonly met: { list: number };
}

/** Writes lists of fields of one kind: of requests, or of responses. */
export class HeaderFields {
	/** The list that was written last, name, value, name, value: clients and sites repeat themselves. */
	#last: readonly string[] = [];
	#lastText = '{}';
	#lastCredentials = false;
	readonly #names = new Map<string, KnownName>();
	/** By name in lower case. */
	readonly #met = new Map<string, { list: number }>();
	/** Characters of those. */
	#metLength = 0;
	#list = 0;

	/**
	 * `{"Accept":["a","b"]}`; repeated fields share one array. A field that is a credential by its name is not shown.
	 */
	write(headers: HeaderList, credentials: boolean): string {
		if (this.#isLast(headers, credentials)) return this.#lastText;
		const text = this.#written(headers, credentials);
		const list: string[] = [];
		for (let i = 0; i < headers.size; i++) {
			const name = headers.nameAt(i);
			// Secrets are forgotten with their request.
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
		if (this.#met.size + size > MOST_NAMES || this.#metLength > MOST_NAMES * LONGEST_NAME) {
			// Begun anew, so that names of use come to be known again; never within a list.
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
			const value = secret && !credentials ? '"REDACTED"' : text(headers.valueAt(i));
			all += i === 0 ? `${begin}${value}]` : `,${begin}${value}]`;
		}
		return `${all}}`;
	}

	/** With the values of repeated names together. */
	#joined(headers: HeaderList, credentials: boolean): string {
		const values = new Map<object, string>();
		for (let i = 0; i < headers.size; i++) {
			const { begin, secret, met } = this.#known(headers.nameAt(i));
			const value = secret && !credentials ? '"REDACTED"' : text(headers.valueAt(i));
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
		const known = { begin: `${text(name)}:[`, secret: isSecretHeader(lower), met };
		if (name.length <= LONGEST_NAME && this.#names.size < 2 * MOST_NAMES) this.#names.set(name, known);
		return known;
	}
}
