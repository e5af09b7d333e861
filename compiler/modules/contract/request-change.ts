/** Changes to a request that may change what a matcher or a step decides. `svc diff` derives its requests from such changes. */

/** A change to a request. Parts of the request whose properties are omitted stay as they are. */
export interface RequestChange {
	/** Decoded path with a leading slash. */
	readonly path?: string;
	readonly method?: string;
	readonly host?: string;
	/** Address of the client. */
	readonly from?: string;
	readonly protocol?: 'h1' | 'h2' | 'h3';
	/** A header field and the only value that it gets; undefined removes the field. */
	readonly header?: readonly [name: string, value: string | undefined];
	/** A query parameter and the only value that it gets; undefined removes the parameter. */
	readonly parameter?: readonly [name: string, value: string | undefined];
	/** True to remove the query. */
	readonly noQuery?: true;
	/** The body; an empty string for no body. At most {@link MAX_DERIVED_BODY_CHARS} characters. */
	readonly body?: string;
}

/** Maximum number of characters in a derived body. Each of many requests may carry such a body. */
export const MAX_DERIVED_BODY_CHARS = 1 << 20;

/** A value that no configuration mentions. */
export const UNMENTIONED_VALUE = 'svc-diff';

/**
 * Returns the change that gives the placeholder with the full name `name` the value `value`; undefined if no change to a request
 * does so.
 */
export function changeSettingPlaceholder(name: string, value: string): RequestChange | undefined {
	const familyMatch = /^http\.request\.(header|uri\.query|cookie)\.(.+)$/.exec(name);
	switch (familyMatch?.[1]) {
		case 'header':
			return { header: [familyMatch[2]!, value] };
		case 'uri.query':
			return { parameter: [familyMatch[2]!, value] };
		case 'cookie':
			return { header: ['Cookie', `${familyMatch[2]}=${value}`] };
	}
	switch (name) {
		case 'http.request.method':
			return { method: value };
		case 'http.request.body':
			return { body: value };
		case 'http.request.uri.path':
		case 'http.request.uri':
			return value.startsWith('/') ? { path: value } : undefined;
		case 'http.request.host':
		case 'http.request.hostport':
			return { host: value };
		case 'http.request.remote.host':
		case 'http.vars.client_ip':
			return { from: value };
		default:
			return undefined;
	}
}

/**
 * Returns texts that probe a pattern whose leading and trailing `*` are wildcards: one that matches the pattern and, if the pattern
 * has no wildcards, a longer one that does not match.
 */
export function sampleTexts(pattern: string): readonly string[] {
	const text = pattern.replace(/^\*|\*$/g, 'a');
	return text === pattern ? [pattern, `${pattern}a`] : [text];
}

/** Returns paths near the boundary of a path pattern: some that just match it, and some that just fail to match. */
export function samplePaths(pattern: string): readonly string[] {
	if (pattern.includes('{')) return [];
	const example = pattern
		.replace(/\\(.)/g, '$1')
		.replace(/\[([^\]^])[^\]]*\]/g, '$1')
		.replaceAll('?', 'a');
	const withLeadingSlash = (text: string): string => (text.startsWith('/') ? text : `/${text}`);
	if (!example.includes('*'))
		return [
			withLeadingSlash(example),
			`${withLeadingSlash(example)}/`,
			`${withLeadingSlash(example)}/a`,
			`${withLeadingSlash(example)}a`,
		];
	const stem = example.replace(/\*+$/, '');
	const matchingPath = withLeadingSlash(stem.replaceAll('*', 'a'));
	if (stem === example) return [matchingPath, `${matchingPath}a`];
	const withoutTrailingSlash = matchingPath.replace(/\/$/, '');
	return [
		matchingPath,
		`${matchingPath}a`,
		`${matchingPath}a/b`,
		...(withoutTrailingSlash === '' ? [] : [withoutTrailingSlash, `${withoutTrailingSlash}x`]),
	];
}
