/** Parses the YAML and TOML of front matter to plain data, within limits. */
import { parse as parseTomlText, TomlDate } from 'smol-toml';
import { parse as parseYamlText } from 'yaml';

/** Maximum characters of front matter. */
const MAX_CHARACTERS = 64 * 1024;
/** Maximum repetitions by aliases, as the library counts them, so that a small document cannot expand into a large one. */
const MAX_ALIASES = 100;

/** Parses YAML 1.2 with merge keys and timestamps. Throws Error. */
export function parseYaml(text: string): unknown {
	bounded(text);
	return parseYamlText(text, {
		customTags: ['timestamp', 'merge'],
		intAsBigInt: true,
		maxAliasCount: MAX_ALIASES,
		prettyErrors: false,
		logLevel: 'error',
		mapAsMap: true,
		stringKeys: true,
	});
}

/** Parses TOML 1.0. Throws Error. */
export function parseToml(text: string): unknown {
	bounded(text);
	return plain(parseTomlText(text, { integersAsBigInt: true, maxDepth: 100 }));
}

function bounded(text: string): void {
	if (text.length > MAX_CHARACTERS) throw new Error(`it has more than ${MAX_CHARACTERS} characters`);
}

/** Converts a TOML date: a time of day without a date becomes a string, any other date a time. */
function plain(data: unknown): unknown {
	if (data instanceof TomlDate) return data.isTime() ? data.toISOString() : new Date(data.getTime());
	if (Array.isArray(data)) return data.map(plain);
	if (typeof data !== 'object' || data === null) return data;
	return new Map(Object.entries(data).map(([key, value]) => [key, plain(value)]));
}
