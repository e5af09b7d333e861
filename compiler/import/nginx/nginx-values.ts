/** Converts values of nginx to values of a Configfile: variables become placeholders, and sizes and times get other units. */
import { parseRegexp } from '../../codegen/regexp/parse-regexp.ts';
import { RegexpError } from '../../codegen/regexp/regexp-error.ts';
import { Untranslatable } from './untranslatable.ts';

/** By nginx variable, the placeholder that replaces it everywhere in a configuration. */
const PLACEHOLDERS_BY_VARIABLE: { readonly [name: string]: string } = {
	...{ host: '{host}', http_host: '{hostport}', uri: '{path}', document_uri: '{path}', request_uri: '{orig_uri}' },
	...{ args: '{query}', query_string: '{query}', is_args_args: '{?query}', scheme: '{scheme}' },
	...{ request_method: '{method}', remote_port: '{remote_port}', server_port: '{http.request.local.port}' },
	...{ server_addr: '{http.request.local.host}', server_protocol: '{http.request.proto}', request_id: '{uuid}' },
	...{ remote_user: '{http.auth.user.id}', content_type: '{header.Content-Type}', hostname: '{system.hostname}' },
	...{ content_length: '{header.Content-Length}', ssl_protocol: '{tls_version}', ssl_cipher: '{tls_cipher}' },
	...{ ssl_client_fingerprint: '{tls_client_fingerprint}', ssl_client_serial: '{tls_client_serial}' },
	...{ ssl_client_s_dn: '{tls_client_subject}', ssl_client_i_dn: '{tls_client_issuer}' },
	...{ realip_remote_addr: '{remote_host}', proxy_add_x_forwarded_for: '{remote_host}' },
};

/**
 * Returns the placeholder for a variable that has a special meaning at one place in the configuration; undefined for other
 * variables.
 */
export type VariableLookup = (name: string) => string | undefined;

/** The variables that a value may use. */
export class Variables {
	readonly #lookups: readonly VariableLookup[];
	readonly #captureName: string | undefined;

	/** `captureName` is the name of the regular expression whose groups are `$1`, `$2` and so on; undefined if there is none. */
	constructor(lookups: readonly VariableLookup[], captureName?: string) {
		this.#lookups = lookups;
		this.#captureName = captureName;
	}

	/**
	 * Returns these variables and the numbered and named groups of a regular expression that has matched. `name` is the name that
	 * the expression has in the Configfile.
	 */
	withGroups(name: string, pattern: string): Variables {
		const groupNames = new Set([...pattern.matchAll(/\(\?P?<(\w+)>/g)].map(([, group]) => group));
		const groupLookup: VariableLookup = group => (groupNames.has(group) ? `{re.${name}.${group}}` : undefined);
		return new Variables([groupLookup, ...this.#lookups], name);
	}

	/** Returns these variables without `$remote_user`, for a part of the configuration where the user's password is not checked. */
	withoutUser(): Variables {
		const refuseUser: VariableLookup = name => {
			if (name === 'remote_user') throw new Untranslatable('no password is checked here, so the name may be forged');
			return undefined;
		};
		return new Variables([refuseUser, ...this.#lookups], this.#captureName);
	}

	/** Returns the placeholder of a variable. Throws Untranslatable if it has none. */
	placeholderOf(name: string): string {
		if (/^\d$/.test(name)) {
			if (this.#captureName === undefined)
				throw new Untranslatable(`\`$${name}\` refers to a group of another directive`);
			return `{re.${this.#captureName}.${name}}`;
		}
		for (const lookup of this.#lookups) {
			const placeholder = lookup(name);
			if (placeholder !== undefined) return placeholder;
		}
		const commonPlaceholder = Object.hasOwn(PLACEHOLDERS_BY_VARIABLE, name)
			? PLACEHOLDERS_BY_VARIABLE[name]
			: undefined;
		if (commonPlaceholder !== undefined) return commonPlaceholder;
		const [, kind, suffix] = /^(http|arg|cookie)_(\w+)$/.exec(name) ?? [];
		if (kind === 'http') return `{header.${toFieldName(suffix!)}}`;
		if (kind === 'arg') return `{query.${suffix}}`;
		if (kind === 'cookie') return `{cookie.${suffix}}`;
		throw new Untranslatable(`the variable \`$${name}\` has no counterpart`);
	}
}

function toFieldName(text: string): string {
	return text
		.replaceAll('_', '-')
		.replace(/(^|-)([a-z])/g, (_, dash: string, letter: string) => dash + letter.toUpperCase());
}

/** Returns a text with variables replaced by placeholders. Literal braces are escaped. Throws Untranslatable. */
export function translateText(text: string, variables: Variables): string {
	return text
		.replace(/\$is_args\$(?:args|query_string)\b/g, '$is_args_args')
		.replace(/\$\{(\w+)\}|\$(\w+)|[{}]/g, (matched, braced: string | undefined, plain: string | undefined) => {
			const name = braced ?? plain;
			return name === undefined ? `\\${matched}` : variables.placeholderOf(name);
		});
}

export function hasVariable(text: string): boolean {
	return /\$\{?\w/.test(text);
}

/** Returns a regular expression of nginx (PCRE) in the syntax of a Configfile. Throws Untranslatable. */
export function regexpOf(pattern: string, ignoreCase = false): string {
	const supportedPattern = replaceLookahead(pattern);
	try {
		parseRegexp(supportedPattern, ignoreCase);
	} catch (error) {
		if (!(error instanceof RegexpError)) throw error;
		throw new Untranslatable(`the regular expression cannot be read here: ${error.message}`);
	}
	return ignoreCase ? `(?i)${supportedPattern}` : supportedPattern;
}

/**
 * Replaces a negative lookahead for literal texts at the end of a pattern, as in `/\.(?!well-known)`, by an equivalent expression
 * without lookahead. Only `.*` may follow the lookahead, because the replacement consumes characters that a different ending would
 * have to match.
 */
function replaceLookahead(pattern: string): string {
	const [, patternBefore, excludedTexts] =
		/^((?:[^(\\]|\\.)*)\(\?!((?:[\w\-/|]|\\[.\-/])+)\)(?:\.\*\$?)?$/.exec(pattern) ?? [];
	if (patternBefore === undefined || excludedTexts === undefined) return pattern;
	const literals = excludedTexts.split('|').map(text => text.replaceAll('\\', ''));
	return `${patternBefore}${notBeginningPattern(literals)}`;
}

function notBeginningPattern(literals: readonly string[]): string {
	const suffixesByFirstChar = new Map<string, string[]>();
	for (const text of literals) {
		const suffixes = suffixesByFirstChar.get(text[0]!);
		if (suffixes) suffixes.push(text.slice(1));
		else suffixesByFirstChar.set(text[0]!, [text.slice(1)]);
	}
	const firstCharacters = [...suffixesByFirstChar.keys()].map(char => (/[\w/]/.test(char) ? char : `\\${char}`));
	const continuedEntries = [...suffixesByFirstChar].filter(([, rests]) => !rests.includes(''));
	const deeperPatterns = continuedEntries.map(
		([char, rests]) => `${/[\w/]/.test(char) ? char : `\\${char}`}${notBeginningPattern(rests)}`,
	);
	return `(?:${['$', `[^${firstCharacters.join('')}]`, ...deeperPatterns].join('|')})`;
}

/** Returns a regular expression that matches exactly the text. */
export function escapeRegexp(text: string): string {
	return text.replace(/[.*+?^$()[\]{}|\\]/g, '\\$&');
}

/** Converts a size such as `20m` to the units of a Configfile. Throws Untranslatable. */
export function sizeOf(text: string): string {
	const [, count, unit] = /^(\d+)([kmg]?)$/i.exec(text) ?? [];
	if (count === undefined) throw new Untranslatable(`\`${text}\` is not a size`);
	return `${count}${{ '': 'B', k: 'KiB', m: 'MiB', g: 'GiB' }[unit!.toLowerCase()]}`;
}

const SECONDS_BY_UNIT: { readonly [unit: string]: number } = {
	...{ ms: 0.001, s: 1, m: 60, h: 3600, d: 86400, w: 604800, M: 2592000, y: 31536000 },
};

/** Returns a time such as `1m30s` or `30` in seconds. Throws Untranslatable. */
export function secondsOf(text: string): number {
	if (!/^(?:\d+(?:ms|[smhdwMy])?)+$/.test(text)) throw new Untranslatable(`\`${text}\` is not a time`);
	return [...text.matchAll(/(\d+)(ms|[smhdwMy])?/g)].reduce(
		(sum, [, n, unit = 's']) => sum + Number(n) * SECONDS_BY_UNIT[unit]!,
		0,
	);
}

/** Converts a time to the units of a Configfile. Throws Untranslatable. */
export function durationOf(text: string): string {
	const seconds = secondsOf(text);
	return Number.isInteger(seconds) ? `${seconds}s` : `${Math.round(seconds * 1000)}ms`;
}
