/** Formats header fields for access log entries. What depends only on the name of a field is cached. */
import { isSecretHeader } from '../../compiler/document/secret-names.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import { jsonString } from './encoders.ts';

/** Maximum number of cached names. Names are limited because clients choose them. */
const MAX_CACHED_NAMES = 1000;
/** Maximum length of a cached name. */
const MAX_NAME_LENGTH = 64;

/** A list that differs from every list of fields, because lists of fields have an even length. */
const UNMATCHED_LIST: readonly string[] = [''];

/** Cached properties of a header name in one spelling: `Accept` and `ACCEPT` have an entry each. */
interface CachedName {
	/** The beginning of the field as JSON: `"Accept":[`. */
	readonly prefix: string;
	/** Whether fields of this name hold a credential. */
	readonly isSecret: boolean;
	/** The number of the last list in which the name occurred, in any spelling. */
	readonly occurrence: { listNumber: number };
}

/** Formats header lists of one kind: of requests or of responses. */
export class HeaderFields {
	/** The previous list (name, value, name, value). It is kept because clients and sites tend to repeat their fields. */
	#lastList: readonly string[] = [];
	#lastText = '{}';
	#lastShowCredentials = false;
	readonly #cachedNames = new Map<string, CachedName>();
	/** The last occurrence of each name, by its lowercase form. */
	readonly #occurrencesByName = new Map<string, { listNumber: number }>();
	/** Total length of the names in {@link #occurrencesByName}. */
	#occurrencesLength = 0;
	#listNumber = 0;

	/** Returns `{"Accept":["a","b"]}`, with repeated fields in one array. Values of credential fields are redacted. */
	formatHeaders(headers: HeaderList, showCredentials: boolean): string {
		if (this.#isLastList(headers, showCredentials)) return this.#lastText;
		const fieldsJson = this.#format(headers, showCredentials);
		const fieldList: string[] = [];
		for (let i = 0; i < headers.size; i++) {
			const name = headers.nameAt(i);
			// A list with a secret is not kept as the last one, because secrets must not stay in memory after their request.
			if (this.#cachedName(name).isSecret) {
				this.#lastList = UNMATCHED_LIST;
				return fieldsJson;
			}
			fieldList.push(name, headers.valueAt(i));
		}
		this.#lastList = fieldList;
		this.#lastText = fieldsJson;
		this.#lastShowCredentials = showCredentials;
		return fieldsJson;
	}

	#isLastList(headers: HeaderList, showCredentials: boolean): boolean {
		const previousList = this.#lastList;
		const size = headers.size;
		if (previousList.length !== size * 2 || this.#lastShowCredentials !== showCredentials) return false;
		for (let i = 0; i < size; i++) {
			if (headers.valueAt(i) !== previousList[i * 2 + 1] || headers.nameAt(i) !== previousList[i * 2]) return false;
		}
		return true;
	}

	#format(headers: HeaderList, showCredentials: boolean): string {
		const size = headers.size;
		if (size === 0) return '{}';
		if (
			this.#occurrencesByName.size + size > MAX_CACHED_NAMES ||
			this.#occurrencesLength > MAX_CACHED_NAMES * MAX_NAME_LENGTH
		) {
			// Cleared so that names in use can be cached again, but never while a list is being formatted.
			this.#occurrencesByName.clear();
			this.#occurrencesLength = 0;
			this.#cachedNames.clear();
		}
		const listNumber = ++this.#listNumber;
		let fieldsJson = '{';
		for (let i = 0; i < size; i++) {
			const { prefix, isSecret, occurrence } = this.#cachedName(headers.nameAt(i));
			if (occurrence.listNumber === listNumber) return this.#formatJoined(headers, showCredentials);
			occurrence.listNumber = listNumber;
			const value = isSecret && !showCredentials ? '"REDACTED"' : jsonString(headers.valueAt(i));
			fieldsJson += i === 0 ? `${prefix}${value}]` : `,${prefix}${value}]`;
		}
		return `${fieldsJson}}`;
	}

	/** Formats a list with repeated names, joining their values. */
	#formatJoined(headers: HeaderList, showCredentials: boolean): string {
		const valuesByOccurrence = new Map<object, string>();
		for (let i = 0; i < headers.size; i++) {
			const { prefix, isSecret, occurrence } = this.#cachedName(headers.nameAt(i));
			const value = isSecret && !showCredentials ? '"REDACTED"' : jsonString(headers.valueAt(i));
			const joinedValues = valuesByOccurrence.get(occurrence);
			valuesByOccurrence.set(occurrence, joinedValues === undefined ? prefix + value : `${joinedValues},${value}`);
		}
		return `{${[...valuesByOccurrence.values()].join('],')}]}`;
	}

	#cachedName(name: string): CachedName {
		return this.#cachedNames.get(name) ?? this.#addName(name);
	}

	#addName(name: string): CachedName {
		const lowerName = name.toLowerCase();
		let occurrence = this.#occurrencesByName.get(lowerName);
		if (occurrence === undefined) {
			occurrence = { listNumber: 0 };
			this.#occurrencesByName.set(lowerName, occurrence);
			this.#occurrencesLength += lowerName.length;
		}
		const cachedName = { prefix: `${jsonString(name)}:[`, isSecret: isSecretHeader(lowerName), occurrence };
		if (name.length <= MAX_NAME_LENGTH && this.#cachedNames.size < 2 * MAX_CACHED_NAMES)
			this.#cachedNames.set(name, cachedName);
		return cachedName;
	}
}
