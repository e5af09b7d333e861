/** `cookie`: changes the attributes of cookies that responses set, renames such cookies, or removes them. */
import type { Step } from '../../document/document.ts';
import { isToken } from '../../exchange/field-syntax.ts';
import type { HeaderList } from '../../exchange/header-list.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext, SubdirectiveHandler } from '../contract/lower-context.ts';
import { compileGlob } from '../matchers/glob.ts';

/** Values of the attribute `SameSite`, as written and as sent. */
const SAME_SITE_VALUES = { strict: 'Strict', lax: 'Lax', none: 'None' } as const;

const SAME_SITE_WORDS = ['strict', 'lax', 'none', 'off'] as const;

/** Changes to a cookie. The value false removes an attribute; undefined leaves the attribute as it is. */
interface CookieEdits {
	readonly secure?: boolean;
	readonly http_only?: boolean;
	readonly partitioned?: boolean;
	readonly same_site?: (typeof SAME_SITE_WORDS)[number];
	readonly domain?: string | false;
	readonly path?: string | false;
	/** The new name of the cookie. */
	readonly rename?: string;
	/** True to remove the cookie from the response. */
	readonly remove?: true;
}

export interface EditCookiesStep extends Step, CookieEdits {
	readonly handler: 'edit_cookies';
	/** Names of cookies, with `*` for any text; all cookies if omitted. */
	readonly names?: readonly string[];
}

const USAGE =
	'cookie [matcher] [<name>…] { secure [on | off]; http_only [on | off]; partitioned [on | off]; same_site strict | lax | none | off; domain <domain> | off; path <path> | off; rename <name>; remove }';

/** Maximum number of characters of a cookie's name. Without a maximum, a single response could make matching expensive. */
const MAX_NAME_LENGTH = 256;

/** Matches the characters that RFC 6265 §4.1.1 allows in an attribute's value. */
const ATTRIBUTE_VALUE_PATTERN = '^[ -:<-~]+$';

/** Syntax: `cookie [matcher] [<name>…] { … }`. */
export const cookie = handlerDirective<EditCookiesStep>({
	kind: 'handler',
	id: 'edit_cookies',
	names: { configfile: ['cookie'], compatfile: [] },
	usage: USAGE,
	summary: 'Changes the attributes of cookies that responses set, renames such cookies, or removes them.',
	documentation: [
		'Changes each `Set-Cookie` of the response whose cookie has one of the names; all of them if no name is given. In a name, `*`',
		'stands for any text and `?` for any character. Case matters.',
		'',
		'| Line | Meaning |',
		'| --- | --- |',
		'| `secure`, `http_only`, `partitioned` | adds the attribute; with `off`, removes it |',
		'| `same_site strict \\| lax \\| none \\| off` | sets `SameSite`, or removes it |',
		'| `domain DOMAIN \\| off` | sets `Domain`, or removes it, so that the cookie is sent to this host only |',
		'| `path PATH \\| off` | sets `Path`, or removes it |',
		'| `rename NAME` | gives the cookie another name |',
		'| `remove` | removes the cookie from the response |',
		'',
		'Changes are made after later directives, such as `reverse_proxy`, have answered or failed. Cookies that `handle_errors` sets need',
		'a `cookie` there. Of several `cookie` lines, the last is applied first: write exceptions above the general line.',
		'An attribute that is changed moves to the end; others stay as they are. A renamed cookie comes back under its new name:',
		'`request_header Cookie` can replace that for an application. A `Set-Cookie` without a name and `=` is left alone, and names of',
		'more than 256 characters match no pattern.',
		'',
		'```',
		'cookie {',
		'	secure',
		'	http_only',
		'	same_site lax',
		'}',
		'cookie /shop/* track_* {',
		'	remove',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	lower: ({ line, args }, cx) => {
		for (const name of args) checkNamePattern(name, cx);
		const edits = lowerEdits(line, cx);
		if (Object.keys(edits).length === 0) {
			if (!line.block?.lines.length) {
				const message = '`cookie` contains no change.';
				cx.problem('error', 'cookie/no-change', line.words[0]!.span, message, { hint: `Usage: ${USAGE}` });
			}
			return undefined;
		}
		checkEdits(edits, line, cx);
		const names = args.length > 0 ? { names: args.map(({ text }) => text) } : {};
		return { handler: 'edit_cookies', ...names, ...edits };
	},
	schema: {
		properties: {
			names: {
				type: 'array',
				minItems: 1,
				items: { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH },
				description: 'Names of cookies; `*` matches any text, `?` any character. All cookies if omitted.',
			},
			secure: { type: 'boolean', description: 'Adds `Secure`, or removes it.' },
			http_only: { type: 'boolean', description: 'Adds `HttpOnly`, or removes it.' },
			partitioned: { type: 'boolean', description: 'Adds `Partitioned`, or removes it.' },
			same_site: { enum: SAME_SITE_WORDS, description: 'Sets `SameSite`; `off` removes it.' },
			domain: { ...attributeSchema('Domain'), description: 'Sets `Domain`; false removes it.' },
			path: { ...attributeSchema('Path'), description: 'Sets `Path`; false removes it.' },
			rename: {
				type: 'string',
				pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
				maxLength: MAX_NAME_LENGTH,
				description: 'The new name.',
			},
			remove: { const: true, description: 'Removes the cookie from the response.' },
		},
	},
	compile: (step, cx, next) => {
		const editCookies = compileCookieEdits(step, cx);
		return x => {
			let pending: void | Promise<void>;
			try {
				pending = next(x);
			} catch (error) {
				// Cookies that were set before the error may be part of the error response.
				editCookies(x.response.headers);
				throw error;
			}
			if (pending instanceof Promise) return pending.finally(() => editCookies(x.response.headers));
			editCookies(x.response.headers);
		};
	},
});

function attributeSchema(name: string): object {
	return {
		anyOf: [
			{ type: 'string', pattern: ATTRIBUTE_VALUE_PATTERN, description: `Value of \`${name}\`.` },
			{ const: false },
		],
	};
}

function checkNamePattern(word: Word, cx: LowerContext): void {
	if (word.text.length <= MAX_NAME_LENGTH && /^[!-:<>-~]+$/.test(word.text) && compileGlob(word.text)) return;
	const message = `\`${word.text}\` is not the name of a cookie, nor a pattern of names.`;
	cx.problem('error', 'cookie/invalid-name', word.span, message);
}

function lowerEdits(line: Line, cx: LowerContext): CookieEdits {
	const edits: { -readonly [K in keyof CookieEdits]: CookieEdits[K] } = {};
	const flagHandler =
		(name: 'secure' | 'http_only' | 'partitioned'): SubdirectiveHandler =>
		(args, innerLine) => {
			if (!cx.count(innerLine, args, 0, 1, `${name} [on | off]`)) return;
			const isOn = args[0] ? cx.boolean(args[0]) : true;
			if (isOn !== undefined) edits[name] = isOn;
		};
	const valueHandler =
		(name: 'domain' | 'path'): SubdirectiveHandler =>
		([word, ...extraWords], innerLine) => {
			if (!cx.count(innerLine, word ? [word, ...extraWords] : [], 1, 1, `${name} <${name}> | off`)) return;
			if (word!.text === 'off') edits[name] = false;
			else if (
				!new RegExp(ATTRIBUTE_VALUE_PATTERN).test(word!.text) ||
				(name === 'path' && !word!.text.startsWith('/'))
			) {
				const hint =
					name === 'path' ? 'A path begins with a slash.' : 'Write a domain, such as `example.com`, or `off`.';
				const message = `\`${word!.text}\` is not a ${name} of a cookie.`;
				cx.problem('error', `cookie/invalid-${name}`, word!.span, message, { hint });
			} else edits[name] = word!.text;
		};
	cx.subdirectives(
		line.block,
		{
			secure: flagHandler('secure'),
			http_only: flagHandler('http_only'),
			partitioned: flagHandler('partitioned'),
			same_site: (args, innerLine) => {
				if (!cx.count(innerLine, args, 1, 1, 'same_site strict | lax | none | off')) return;
				const value = cx.oneOf(args[0]!, SAME_SITE_WORDS, 'value of `SameSite`');
				if (value) edits.same_site = value;
			},
			domain: valueHandler('domain'),
			path: valueHandler('path'),
			rename: (args, innerLine) => {
				if (!cx.count(innerLine, args, 1, 1, 'rename <name>')) return;
				const { text: name, span } = args[0]!;
				if (isToken(name) && name.length <= MAX_NAME_LENGTH) edits.rename = name;
				else cx.problem('error', 'cookie/invalid-name', span, `\`${name}\` is not the name of a cookie.`);
			},
			remove: (args, innerLine) => {
				if (cx.count(innerLine, args, 0, 0, 'remove')) edits.remove = true;
			},
		},
		'cookie',
	);
	return edits;
}

/** Reports edits that contradict each other, and edits after which browsers ignore the cookie (RFC 6265bis §5.7). */
function checkEdits(edits: CookieEdits, line: Line, cx: LowerContext): void {
	const { span } = line.words[0]!;
	const { remove, secure, same_site, partitioned, rename = '', domain, path } = edits;
	if (remove && Object.keys(edits).length > 1) {
		cx.problem('error', 'cookie/contradiction', span, '`remove` leaves nothing for the other lines to change.');
	}
	const featureThatNeedsSecure =
		same_site === 'none' ? '`SameSite=None`' : partitioned ? '`Partitioned`' : /^__(?:Secure|Host)-/.exec(rename)?.[0];
	if (featureThatNeedsSecure && secure === false) {
		const message = `Browsers ignore cookies with ${featureThatNeedsSecure.replace(/^_.*$/, '`$&`')} that are not \`Secure\`.`;
		cx.problem('error', 'cookie/needs-secure', span, message, { hint: 'Write `secure`.' });
	}
	if (rename.startsWith('__Host-') && (typeof domain === 'string' || path === false || (path && path !== '/'))) {
		const message = 'Browsers ignore cookies with `__Host-` that have a `Domain`, or another `Path` than `/`.';
		cx.problem('error', 'cookie/host-prefix', span, message, { hint: 'Write `domain off` and `path /`.' });
	}
}

/** Edits a `Set-Cookie`. Returns the value unchanged if its cookie has none of the step's names; undefined if it is removed. */
export type CookieEdit = (cookieField: string) => string | undefined;

/** Compiles what a step does to a single `Set-Cookie`. */
export function compileCookieEdit(step: EditCookiesStep, cx: Pick<CompileContext, 'refuse'>): CookieEdit {
	const patterns = step.names?.map(name => {
		return compileGlob(name) ?? cx.refuse(`\`${name}\` is not a pattern of names.`, 'cookie/invalid-name');
	});
	// Every attribute in `replacedNames` (lowercase) is removed from the cookie; then `newAttributes` is appended.
	const replacedNames = new Set<string>();
	let newAttributes = '';
	const changeAttribute = (name: string, value: string | boolean | undefined): void => {
		if (value === undefined) return;
		replacedNames.add(name.toLowerCase());
		if (value !== false) newAttributes += value === true ? `; ${name}` : `; ${name}=${value}`;
	};
	changeAttribute('Domain', step.domain);
	changeAttribute('Path', step.path);
	changeAttribute('Secure', step.secure);
	changeAttribute('HttpOnly', step.http_only);
	changeAttribute('SameSite', step.same_site === 'off' ? false : step.same_site && SAME_SITE_VALUES[step.same_site]);
	changeAttribute('Partitioned', step.partitioned);
	const isSelected = (cookieField: string): boolean => {
		const name = cookieName(cookieField);
		if (name === undefined) return false;
		return !patterns || (name.length <= MAX_NAME_LENGTH && patterns.some(matches => matches(name)));
	};
	const editCookie = (cookieField: string): string => {
		const [pair, ...attributes] = cookieField.split(';') as [string, ...string[]];
		const newPair = step.rename === undefined ? pair : `${step.rename}${pair.slice(pair.indexOf('='))}`;
		return [newPair, ...attributes.filter(text => !replacedNames.has(attributeName(text)))].join(';') + newAttributes;
	};
	return cookieField => {
		if (!isSelected(cookieField)) return cookieField;
		return step.remove ? undefined : editCookie(cookieField);
	};
}

/** Returns a function that edits the cookies of a response. */
export function compileCookieEdits(step: EditCookiesStep, cx: CompileContext): (headers: HeaderList) => void {
	const editCookie = compileCookieEdit(step, cx);
	const isCookieField = (name: string): boolean => name.toLowerCase() === 'set-cookie';
	return headers => {
		if (!headers.has('set-cookie')) return;
		if (step.remove) headers.filter((name, value) => !isCookieField(name) || editCookie(value) !== undefined);
		else headers.map((name, value) => (isCookieField(name) ? editCookie(value)! : value));
	};
}

/** Returns the name of a cookie as browsers read it (RFC 6265 §5.2); undefined for a cookie without a name. */
function cookieName(cookieField: string): string | undefined {
	const end = cookieField.indexOf(';');
	const equals = cookieField.indexOf('=');
	if (equals === -1 || (end !== -1 && equals > end)) return undefined;
	return cookieField.slice(0, equals).trim() || undefined;
}

function attributeName(text: string): string {
	const equals = text.indexOf('=');
	return (equals === -1 ? text : text.slice(0, equals)).trim().toLowerCase();
}
