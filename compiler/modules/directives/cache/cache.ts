/** `cache`: stores the responses of later directives and answers with them. */

import type { Matcher, Step } from '../../../document/document.ts';
import { MATCHER_SCHEMA } from '../../../document/references.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { handlerDirective } from '../../contract/directive.ts';
import { createCacheHandler } from './cache-handler.ts';
import { type CacheDefaults, cacheDefaults } from './cache-option.ts';
import {
	CACHE_RULES_PROPERTIES,
	CACHE_SIZE_SCHEMA,
	type CacheRuleFields,
	lowerCacheRules,
	lowerCeiling,
} from './cache-words.ts';

export interface CacheStep extends Step, CacheRuleFields {
	readonly handler: 'cache';
	readonly key?: string;
	readonly vary?: readonly string[];
	readonly bypass?: Matcher;
	readonly ceiling?: number;
}

const USAGE = 'cache [matcher] [{ … }]';

/** Syntax: `cache [matcher] { … }`. */
export const cache = handlerDirective<CacheStep>({
	kind: 'handler',
	id: 'cache',
	names: { configfile: ['cache'], compatfile: ['cache'] },
	usage: USAGE,
	summary: 'Stores responses of later directives and answers with them, as a shared cache according to RFC 9111.',
	documentation: [
		'| Line | Default | Meaning |',
		'| --- | --- | --- |',
		'| `ttl [STATUS…] DURATION` | none | how long a response without an explicit lifetime is fresh; `404`, `5xx` for failures |',
		'| `stale while_revalidate DURATION` | 0 | how long a stale response is served while it is revalidated in the background |',
		'| `stale if_error DURATION` | 0 | how long a stale response is served if later directives fail or answer 5xx |',
		'| `heuristic [SHARE]` | off | estimates the lifetime as this share (0.1) of the time since the last modification, at most a day |',
		'| `key TEMPLATE` | the URL | cache key, instead of scheme, host, path and query; each value counts separately |',
		'| `vary FIELD…` | none | request fields that select a response even if its `Vary` does not name them |',
		'| `bypass EXPRESSION` | none | requests that bypass the cache |',
		'| `max_body SIZE` | an eighth of the ceiling | maximum size of a stored body |',
		'| `collapse DURATION`, `off` | 10s | how long a request waits for an identical one in progress |',
		'| `client_control on`, `off` | on | whether `Cache-Control` of requests is obeyed |',
		'| `status_header on`, `off` | on | whether to send `Cache-Status` (RFC 9211) |',
		'| `ceiling SIZE` | the common store | bytes of a separate store, apart from that of the global option `cache` |',
		'',
		'All threads share the store. It may exceed the ceiling by a twentieth, for what threads hold locally and for long, popular bodies.',
		'Popular responses stay longer. If several requests for the same URL arrive together, the first is forwarded and',
		'the others wait for its response; a request with `Cookie` or `Authorization` never waits. A `Range` is answered from complete',
		'responses, HEAD from those to GET, and conditional requests with 304. Unsafe methods invalidate the stored responses of',
		'their URL.',
		'`no-cache` responses are stored if they have an `Etag` or a `Last-Modified`; each request is answered with them after the origin',
		'has revalidated them. `Accept`, `Accept-Charset` and `Accept-Language` in a `Vary` select by preference, in whatever order',
		'it is written. Partial responses (206) are not stored.',
		'`CDN-Cache-Control` takes precedence over `Cache-Control` (RFC 9213); `Cache-Tag` and `Surrogate-Key` define tags to purge',
		'by (`POST /cache/purge` of the Admin API).',
		'',
		'Never stored: responses that are `private` or `no-store`, or have `Set-Cookie` or `Vary: *`; responses to requests with `Authorization` or',
		'`Cookie` unless they say `public` or `s-maxage` (or, with `Authorization`, `must-revalidate`); responses that only `ttl` would allow to store, if their type contradicts',
		'their path (a page at `/account/x.css`); and 400, 408, 411 to 413, 415 to 417, 421, 422, 425, 426, 428, 429, 431 and',
		'511, which concern one request. Requests with a body, or with fields that override method or target, bypass the cache; fields such as',
		"`X-Forwarded-Host` are part of the key. This server's own errors are not responses and are never stored.",
		'',
		'Requests with a `Cookie` are answered from the store like any other. If pages differ for logged-in users and do not',
		'say `private` or `Vary: Cookie`, exclude them: `bypass header Cookie *session=*`.',
		'',
		'`{http.cache.status}` is `hit`, `miss`, `stale` or `bypass`, as is `cache` in access logs. `{http.cache.tier}` is where a stored',
		'response was found: `memory`, `disk` or `cluster`.',
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
			directiveName: 'cache',
			ownSubdirectives: {
				key: (words, innerLine) => {
					cx.noBlock(innerLine);
					if (cx.count(innerLine, words, 1, 1, 'key <template>')) step.key = cx.template(words[0]!);
				},
				vary: (words, innerLine) => {
					cx.noBlock(innerLine);
					if (!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'vary <field>…')) return;
					const fieldNames = words.map(({ text }) => text.toLowerCase());
					for (const { text, span } of words) {
						if (/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text) && text !== '*') continue;
						cx.problem('error', 'cache/not-a-field', span, `\`${text}\` is not the name of a request field.`);
					}
					step.vary = [...new Set([...((step.vary as string[] | undefined) ?? []), ...fieldNames])].sort();
				},
				bypass: (words, innerLine) => {
					const matcher = cx.matcherExpression(words, innerLine.block, undefined);
					if (!matcher) return;
					const earlierMatcher = step.bypass as Matcher | undefined;
					step.bypass = earlierMatcher ? { type: 'any', of: [earlierMatcher, matcher] } : matcher;
				},
				ceiling: lowerCeiling(step, cx),
			},
		});
		return cx.origin(step as CacheStep, line.span);
	},
	schema: {
		properties: {
			...CACHE_RULES_PROPERTIES,
			key: {
				type: 'string',
				minLength: 1,
				description: 'Cache key, instead of the URL. Placeholders are resolved.',
			},
			vary: {
				type: 'array',
				items: { type: 'string', pattern: "^[!#$%&'+.^_`|~0-9a-z-]+$" },
				description: 'Request fields, in lower case, that select a response even if its `Vary` does not name them.',
			},
			bypass: { ...MATCHER_SCHEMA, description: 'Requests that bypass the cache.' },
			ceiling: {
				...CACHE_SIZE_SCHEMA,
				description: 'Bytes of a separate store; default the store of `settings.cache`.',
			},
		},
	},
	compile: compileCache,
});

function compileCache(step: CacheStep, cx: CompileContext, next: Handler): Handler {
	const defaults: CacheDefaults = cacheDefaults(cx.settings);
	const rules: CacheRuleFields = { ...defaults, ...step };
	// The step's pointer within its site. The site's index is left out, because it changes when sites are added or removed.
	const stepPlace = ` ${cx.pointer.replace(/^\/sites\/\d+/, '')} `;
	const store = cx.lease(
		'cache',
		step.ceiling === undefined
			? {
					ceiling: defaults.ceiling,
					...(defaults.disk && { disk: defaults.disk }),
					...(defaults.shared && { shared: defaults.shared }),
				}
			: { ceiling: step.ceiling, own: cx.pointer },
	);
	const maxBodyBytes = Math.min(store.maxBodyBytes, rules.max_body ?? store.maxBodyBytes);
	// Without a length prefix, adjacent values such as `ab` `c` and `a` `bc` would give the same key.
	const addLengthPrefix = (value: string): string => `${value.length}:${value}`;
	const keyTemplate = step.key === undefined ? undefined : cx.template(step.key, 'empty', () => addLengthPrefix);
	return createCacheHandler({
		cache: store,
		clusterTier: store.clusterTier,
		maxBodyBytes,
		stepPlace,
		renderKey: keyTemplate && (x => keyTemplate.constant ?? keyTemplate.render(x)),
		selectingFields: [...(step.vary ?? [])].sort(),
		bypass: step.bypass && cx.matcher(step.bypass, 'bypass'),
		maxWaitMs: rules.collapse ?? 10_000,
		obeysClients: rules.client_control !== false,
		addsStatus: rules.status_header !== false,
		ttlMsByStatus: new Map(
			Object.entries(rules.ttl ?? {}).map(([status, time]) => [status === 'default' ? '' : status, time]),
		),
		heuristicFraction: rules.heuristic ?? 0,
		staleWhileRevalidateMs: rules.stale_while_revalidate ?? 0,
		staleIfErrorMs: rules.stale_if_error ?? 0,
		readAheadTotal: { bytes: 0 },
		next,
		stepNumber: cx.stepNumber,
	});
}
