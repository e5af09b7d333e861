/** Parses the YAML and TOML of front matter to plain data, within limits. */
import { parse as parseTomlText, TomlDate } from 'smol-toml';
import { parse as parseYamlText } from 'yaml';

/** Maximum number of characters of front matter. */
const MAX_SOURCE_CHARACTERS = 64 * 1024;
/** Maximum number of expanded aliases, as the YAML library counts them. It keeps short texts from expanding to large data. */
const MAX_YAML_ALIASES = 100;

/** Parses YAML 1.2 with merge keys and timestamps. Throws Error. */
export function parseYaml(text: string): unknown {
	checkLength(text);
	return parseYamlText(text, {
		customTags: ['timestamp', 'merge'],
		intAsBigInt: true,
		maxAliasCount: MAX_YAML_ALIASES,
		prettyErrors: false,
		logLevel: 'error',
		mapAsMap: true,
		stringKeys: true,
	});
}

/** Parses TOML 1.0. Throws Error. */
export function parseToml(text: string): unknown {
	checkLength(text);
	return toPlainData(parseTomlText(text, { integersAsBigInt: true, maxDepth: 100 }));
}

function checkLength(text: string): void {
	if (text.length > MAX_SOURCE_CHARACTERS) throw new Error(`it has more than ${MAX_SOURCE_CHARACTERS} characters`);
}

/** Converts parsed TOML to maps, arrays and values. A time of day without a date becomes a string, any other date a Date. */
function toPlainData(data: unknown): unknown {
	if (data instanceof TomlDate) return data.isTime() ? data.toISOString() : new Date(data.getTime());
	if (Array.isArray(data)) return data.map(toPlainData);
	if (typeof data !== 'object' || data === null) return data;
	return new Map(Object.entries(data).map(([key, value]) => [key, toPlainData(value)]));
}
