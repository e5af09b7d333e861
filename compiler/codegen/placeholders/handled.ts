/** Placeholders whose values individual handlers set, such as the authenticated user and the intercepted response. */
import type { HeaderList } from '../../exchange/header-list.ts';
import { definePlaceholder, definePlaceholderFamily, type Placeholder } from './placeholder.ts';

/** Variable with the {@link InterceptedResponse}. */
export const INTERCEPTED_VARIABLE = 'http.intercept';

/** The head of a response that `intercept` has intercepted. */
export interface InterceptedResponse {
	readonly status: number;
	readonly headers: HeaderList;
}

/** The placeholders `http.auth.*`, `http.cache.status`, `http.intercept.*`, `http.rate_limit.*` and `http.limit_concurrent.*`. */
export const HANDLER_RESULT_PLACEHOLDERS: readonly Placeholder[] = [
	definePlaceholderFamily(
		'http.auth.*',
		'The authenticated user: `user.id`; `candidate.id` is a rejected user.',
		path => {
			const variable = `http.auth.${path}`;
			return x => x.variable(variable);
		},
	),
	definePlaceholderFamily(
		'http.rate_limit.*',
		'`exceeded.name`: the zone of `rate_limit` that has refused or delayed the request.',
		path => {
			const variable = `http.rate_limit.${path}`;
			return x => x.variable(variable);
		},
	),
	definePlaceholder(
		'http.limit_concurrent.exceeded.name',
		'The zone of `limit_concurrent` that has refused or queued the request.',
		x => x.variable('http.limit_concurrent.exceeded.name'),
	),
	definePlaceholder(
		'http.cache.status',
		'Cache result: `hit`, `miss`, `stale` or `bypass`; empty without a cache.',
		x => (x.cacheStatus === '' ? undefined : x.cacheStatus),
	),
	definePlaceholder(
		'http.cache.tier',
		'Where the stored response was found: `memory`, `disk` or `cluster`; empty if there was none.',
		x => {
			if (x.cacheStatus === '') return undefined;
			const isStored = x.cacheStatus === 'hit' || x.cacheStatus === 'stale';
			return isStored ? (x.variable('http.cache.tier') ?? 'memory') : '';
		},
	),
	definePlaceholder(
		'http.intercept.status_code',
		'Status of the intercepted response.',
		x => (x.variable(INTERCEPTED_VARIABLE) as InterceptedResponse | undefined)?.status,
	),
	definePlaceholderFamily(
		'http.intercept.header.*',
		'A field of the intercepted response; several are joined by commas.',
		name => {
			const lowerName = name.toLowerCase();
			return x =>
				(x.variable(INTERCEPTED_VARIABLE) as InterceptedResponse | undefined)?.headers.getAll(lowerName).join(',');
		},
	),
];
