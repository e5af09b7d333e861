/** Filters of log fields: remove, hash and shorten values before an entry is written. */
import { createHash } from 'node:crypto';
import { compilePatternReplacement } from '../../compiler/codegen/context/replacement.ts';
import { constantTemplate } from '../../compiler/codegen/placeholders/template.ts';
import { compileRegexp } from '../../compiler/codegen/regexp/regexp.ts';
import type { LogFilter, ParameterAction } from '../../compiler/document/log-settings.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { maskedAddress } from '../../compiler/exchange/ip-ranges.ts';
import { formatQuery, parseQueryLeniently } from '../../compiler/exchange/uri-escape.ts';

/** Edits the fields of one entry. */
export type FieldEdit = (fields: { [name: string]: unknown }) => void;

type Fields = { [name: string]: unknown };
type TextChange = (value: string) => string;

/**
 * Compiles filters by path (`request>headers>Cookie`). Names are matched ignoring case, so that clients cannot evade the filter
 * of a header by changing the case of its name. Lists are filtered item by item. Throws for an invalid expression.
 */
export function compileLogFilters(filters: { readonly [path: string]: LogFilter }): FieldEdit {
	const edits = Object.entries(filters).map(([path, filter]) => {
		const names = path.split('>').map(name => name.toLowerCase());
		const edit = compileFilter(filter);
		return (fields: Fields) => editAt(fields, names, edit);
	});
	return fields => {
		for (const edit of edits) edit(fields);
	};
}

type MemberEdit = (parent: Fields, name: string) => void;

/** Applies an edit to every member that a path matches. */
function editAt(fields: Fields, names: readonly string[], edit: MemberEdit): void {
	const [firstName, ...remainingNames] = names;
	for (const name of Object.keys(fields)) {
		if (name.toLowerCase() !== firstName) continue;
		const value = fields[name];
		if (remainingNames.length === 0) edit(fields, name);
		else if (typeof value === 'object' && value !== null) editAt(value as Fields, remainingNames, edit);
	}
}

function compileFilter(filter: LogFilter): MemberEdit {
	switch (filter.filter) {
		case 'delete':
			return (parent, name) => {
				delete parent[name];
			};
		case 'rename':
			return (parent, name) => {
				const value = parent[name];
				delete parent[name];
				setMember(parent, filter.name, value);
			};
		case 'replace':
			return (parent, name) => setMember(parent, name, filter.value);
		case 'hash':
			return forEachText(hashText);
		case 'ip_mask':
			return forEachText(value => maskAddresses(value, filter.ipv4 ?? 32, filter.ipv6 ?? 128));
		case 'query':
			return forEachText(value => filterQuery(value, filter.actions));
		case 'cookie':
			return forEachText(value => filterCookies(value, filter.actions));
		case 'set_cookie':
			return forEachText(value => filterSetCookie(value, filter.actions));
		case 'regexp': {
			const rules = filter.rules.map(({ find, replace }) => {
				const regexp = compileRegexp(find, 'g');
				// The replacement is literal text without placeholders, so it needs no exchange.
				const replacement = compilePatternReplacement(replace, { template: constantTemplate }, 'keep');
				return (value: string) => replacement(value, regexp, undefined as unknown as Exchange);
			});
			return forEachText(value => rules.reduce((text, rule) => rule(text), value));
		}
	}
}

/** Sets a member, even if its name is `__proto__`. */
function setMember(parent: Fields, name: string, value: unknown): void {
	Object.defineProperty(parent, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Applies a change to a string or to each string in a list. Numbers and booleans are converted to strings. */
function forEachText(change: TextChange): MemberEdit {
	const editText = (value: unknown): unknown => {
		if (typeof value === 'string') return change(value);
		if (typeof value === 'number' || typeof value === 'boolean') return change(String(value));
		return value;
	};
	return (parent, name) => {
		const value = parent[name];
		setMember(parent, name, Array.isArray(value) ? value.map(editText) : editText(value));
	};
}

/** Returns the first four bytes of SHA-256, in hexadecimal. */
function hashText(value: string): string {
	return createHash('sha256').update(value).digest('hex').slice(0, 8);
}

/** Masks addresses, alone or in a comma-separated list, with or without ports; leaves anything else unchanged. */
function maskAddresses(value: string, ipv4Bits: number, ipv6Bits: number): string {
	return value
		.split(',')
		.map(item => {
			const text = item.trim();
			const host = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
			return maskedAddress(host, ipv4Bits, ipv6Bits)?.replace(/\/\d+$/, '') ?? text;
		})
		.join(', ');
}

function applyActions(actions: readonly ParameterAction[], name: string, value: string): string | undefined {
	let newValue: string | undefined = value;
	for (const action of actions) {
		if (action.name !== name || newValue === undefined) continue;
		if (action.action === 'delete') newValue = undefined;
		else newValue = action.action === 'hash' ? hashText(newValue) : (action.value ?? '');
	}
	return newValue;
}

/** Filters the query of a URI. The remaining parameters are written in the order of their names. */
function filterQuery(uri: string, actions: readonly ParameterAction[]): string {
	const queryStart = uri.indexOf('?');
	if (queryStart === -1) return uri;
	const parameters = parseQueryLeniently(uri.slice(queryStart + 1));
	for (const [name, values] of parameters) {
		const remainingValues = values.flatMap(value => applyActions(actions, name, value) ?? []);
		if (remainingValues.length === 0) parameters.delete(name);
		else parameters.set(name, remainingValues);
	}
	const query = formatQuery(parameters);
	return query === '' ? uri.slice(0, queryStart) : `${uri.slice(0, queryStart)}?${query}`;
}

/** Filters the cookies in a `Cookie` field. */
function filterCookies(field: string, actions: readonly ParameterAction[]): string {
	const remainingCookies = field.split(';').flatMap(piece => filterPair(piece.trim(), actions) ?? []);
	return remainingCookies.filter(piece => piece !== '').join('; ');
}

/** Filters the cookie in a `Set-Cookie` field, keeping its attributes. If the cookie is deleted, so is the field. */
function filterSetCookie(field: string, actions: readonly ParameterAction[]): string {
	const [cookie, ...attributes] = field.split(';');
	const remainingCookie = filterPair(cookie!.trim(), actions);
	return remainingCookie === undefined ? '' : [remainingCookie, ...attributes].join(';');
}

function filterPair(pair: string, actions: readonly ParameterAction[]): string | undefined {
	const equalsIndex = pair.indexOf('=');
	const name = equalsIndex === -1 ? pair : pair.slice(0, equalsIndex);
	const value = equalsIndex === -1 ? '' : pair.slice(equalsIndex + 1);
	const newValue = applyActions(actions, name, value);
	if (newValue === undefined) return undefined;
	return newValue === value ? pair : `${name}=${newValue}`;
}
