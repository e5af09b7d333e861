/** `cache`: keeps the responses of later directives, and answers with them. */
import type { CompileContext } from '../../../codegen/compile-context.ts';
import type { Matcher, Step } from '../../../document/document.ts';
import { MATCHER } from '../../../document/references.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { type CacheDefaults, cacheDefaults } from '../../options/cache.ts';
import { handlerDirective } from '../directive.ts';
import { cacheHandler } from './cache-handler.ts';
import { CEILING, lowerCacheRules, lowerCeiling, RULES_PROPERTIES, type RuleFields } from './cache-words.ts';

/** A step that caches. */
export interface CacheStep extends Step, RuleFields {
	readonly handler: 'cache';
	readonly key?: string;
	readonly vary?: readonly string[];
	readonly bypass?: Matcher;
	readonly ceiling?: number;
}

const USAGE = 'cache [matcher] [{ … }]';

/** `cache [matcher] { … }`. */
export const cache = handlerDirective<CacheStep>({
	kind: 'handler',
	id: 'cache',
	names: { configfile: ['cache'], compatfile: ['cache'] },
	usage: USAGE,
	summary: 'Keeps responses of later directives and answers with them, as RFC 9111 has it for shared caches.',
	documentation: [
		'| Line | If left out | Meaning |',
		'| --- | --- | --- |',
		'| `ttl [STATUS…] DURATION` | none | how long a response is fresh that does not say so itself; `404`, `5xx` for failures |',
		'| `stale while_revalidate DURATION` | 0 | how long a stale response is served while it is validated behind |',
		'| `stale if_error DURATION` | 0 | how long it is served when later directives fail, or answer 5xx |',
		'| `heuristic [SHARE]` | off | guesses: this share (0.1) of the time since the last modification, a day at most |',
		'| `key TEMPLATE` | the URL | what responses are kept by, instead of scheme, host, path and query; each value counts by itself |',
		'| `vary FIELD…` | none | request fields that select a response even where its `Vary` does not name them |',
		'| `bypass EXPRESSION` | none | requests that the cache has nothing to do with |',
		'| `max_body SIZE` | an eighth of the ceiling | the longest body that is kept |',
		'| `collapse DURATION`, `off` | 10s | how long requests wait for the same one that is under way |',
		'| `client_control on`, `off` | on | whether `Cache-Control` of requests is obeyed |',
		'| `status_header on`, `off` | on | whether `Cache-Status` (RFC 9211) says what was done |',
		'| `ceiling SIZE` | the common store | bytes of a store of its own, apart from that of the global option `cache` |',
		'',
		'All threads share what is kept: it never takes more than the ceiling, beside a fortieth for what threads have at hand,',
		'and what is asked for more often stays. When several requests for the same URL are under way, the first one goes on and',
		'the others wait for its answer; one with `Cookie` or `Authorization` waits for nobody. A `Range` is answered from whole',
		'responses, HEAD from those to GET, conditions of clients with 304. Methods that change something remove what is kept of',
		'their URL.',
		'What is `no-cache` is kept where it has an `Etag` or a `Last-Modified`: each request is answered with it once its origin',
		'has confirmed it. `Accept`, `Accept-Charset` and `Accept-Language` in a `Vary` select by what they prefer, in whatever order',
		'it is written. Parts (206) are not kept.',
		'`CDN-Cache-Control` counts in place of `Cache-Control` (RFC 9213), `Cache-Tag` and `Surrogate-Key` give tags to purge',
		'by (`POST /cache/purge` of the Admin API).',
		'',
		'Never kept: what is `private`, `no-store`, has `Set-Cookie` or `Vary: *`; answers to requests with `Authorization` or',
		'`Cookie` unless they say `public` or `s-maxage`; and, where only `ttl` would let it be kept, what has another type than',
		'its path says (`/account/x.css` that is a page); and 400, 408, 411 to 413, 415 to 417, 421, 422, 425, 426, 428, 429, 431 and',
		'511, which tell of one request. Requests with a body, or with fields that change method or target, go by; fields such as',
		'`X-Forwarded-Host` are part of the key. Errors of this server are not responses: they are never kept.',
		'',
		'Requests with a `Cookie` are answered from the store as all are. Where pages differ for those who are logged in and do not',
		'say `private` or `Vary: Cookie`, let those by: `bypass header Cookie *session=*`.',
		'',
		'`{http.cache.status}` is `hit`, `miss`, `stale` or `bypass`, as is `cache` in access logs.',
		'',
		'```',
		'cache /assets/* {',
		'	ttl 10m',
		'	ttl 404 5s',
		'	stale while_revalidate 1m',
		'}',
		'reverse_proxy 127.0.0.1:9000',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 210 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		const step: { handler: 'cache'; [field: string]: unknown } = { handler: 'cache' };
		lowerCacheRules(line.block, step, cx, {
			of: 'cache',
			more: {
				key: (words, at) => {
					cx.noBlock(at);
					if (cx.count(at, words, 1, 1, 'key <template>')) step.key = cx.template(words[0]!);
				},
				vary: (words, at) => {
					cx.noBlock(at);
					if (!cx.count(at, words, 1, Number.POSITIVE_INFINITY, 'vary <field>…')) return;
					const names = words.map(({ text }) => text.toLowerCase());
					for (const { text, span } of words) {
						if (/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text) && text !== '*') continue;
						cx.problem('error', 'cache/not-a-field', span, `\`${text}\` is not the name of a request field.`);
					}
					step.vary = [...new Set([...((step.vary as string[] | undefined) ?? []), ...names])].sort();
				},
				bypass: (words, at) => {
					const matcher = cx.matcherExpression(words, at.block, undefined);
					if (!matcher) return;
					const before = step.bypass as Matcher | undefined;
					step.bypass = before ? { type: 'any', of: [before, matcher] } : matcher;
				},
				ceiling: lowerCeiling(step, cx),
			},
		});
		return cx.origin(step as CacheStep, line.span);
	},
	schema: {
		properties: {
			...RULES_PROPERTIES,
			key: {
				type: 'string',
				minLength: 1,
				description: 'What responses are kept by, in place of the URL. Placeholders are resolved.',
			},
			vary: {
				type: 'array',
				items: { type: 'string', pattern: "^[!#$%&'+.^_`|~0-9a-z-]+$" },
				description: 'Request fields, in lower case, that select a response even where its `Vary` does not name them.',
			},
			bypass: { ...MATCHER, description: 'Requests that the cache has nothing to do with.' },
			ceiling: { ...CEILING, description: 'Bytes of a store of its own; that of `settings.cache` if left out.' },
		},
	},
	compile: compileCache,
});

function compileCache(step: CacheStep, cx: CompileContext, next: Handler): Handler {
	const defaults: CacheDefaults = cacheDefaults(cx.settings);
	const rules: RuleFields = { ...defaults, ...step };
	// Where the step stands in its site: sites move in the document when others come and go.
	const place = ` ${cx.pointer.replace(/^\/sites\/\d+/, '')} `;
	const store = cx.lease(
		'cache',
		step.ceiling === undefined
			? { ceiling: defaults.ceiling, ...(defaults.disk && { disk: defaults.disk }) }
			: { ceiling: step.ceiling, own: cx.pointer },
	);
	const largest = Math.min(store.largest, rules.max_body ?? store.largest);
	// With its length before it no value can seem to be another and what stands between the two.
	const withLength = (value: string): string => `${value.length}:${value}`;
	const template = step.key === undefined ? undefined : cx.template(step.key, 'empty', () => withLength);
	return cacheHandler({
		cache: store,
		largest,
		place,
		key: template && (x => template.constant ?? template.render(x)),
		selecting: [...(step.vary ?? [])].sort(),
		bypass: step.bypass && cx.matcher(step.bypass, 'bypass'),
		patience: rules.collapse ?? 10_000,
		obeysClients: rules.client_control !== false,
		tells: rules.status_header !== false,
		ttl: new Map(Object.entries(rules.ttl ?? {}).map(([status, time]) => [status === 'default' ? '' : status, time])),
		heuristic: rules.heuristic ?? 0,
		staleWhileRevalidate: rules.stale_while_revalidate ?? 0,
		staleIfError: rules.stale_if_error ?? 0,
		ahead: { bytes: 0 },
		next,
		step: cx.step,
	});
}
