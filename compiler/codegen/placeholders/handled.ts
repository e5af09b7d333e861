/** Placeholders of what single handlers found: who was authenticated, and the response that was intercepted. */
import type { HeaderList } from '../../exchange/header-list.ts';
import { family, type Placeholder, plain } from './placeholder.ts';

/** Variable that holds the {@link InterceptedResponse}. */
export const INTERCEPTED_VARIABLE = 'http.intercept';

/** The head of a response that `intercept` has put aside. */
export interface InterceptedResponse {
	readonly status: number;
	readonly headers: HeaderList;
}

/** `http.auth.*`, `http.cache.status` and `http.intercept.*`. */
export const HANDLED_PLACEHOLDERS: readonly Placeholder[] = [
	family('http.auth.*', 'Who was authenticated: `user.id`; `candidate.id` is who was refused.', path => {
		const variable = `http.auth.${path}`;
		return x => x.variable(variable);
	}),
	plain('http.cache.status', 'What a cache did: `hit`, `miss`, `stale`, `bypass`; nothing where none was asked.', x =>
		x.cacheStatus === '' ? undefined : x.cacheStatus,
	),
	plain(
		'http.intercept.status_code',
		'Status of the response that was intercepted.',
		x => (x.variable(INTERCEPTED_VARIABLE) as InterceptedResponse | undefined)?.status,
	),
	family('http.intercept.header.*', 'A field of the response that was intercepted, several joined by commas.', name => {
		const lower = name.toLowerCase();
		return x => (x.variable(INTERCEPTED_VARIABLE) as InterceptedResponse | undefined)?.headers.getAll(lower).join(',');
	}),
];
