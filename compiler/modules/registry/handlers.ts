/** The handlers that steps of a document can name, derived from the registry of directives. */
import type { HandlerDirective } from '../contract/directive.ts';
import { directives } from './directives.ts';

/**
 * The directives that have a handler of their own, by the handler's name. Directives that lower to handlers of other directives are
 * not included.
 */
export const HANDLERS: ReadonlyMap<string, HandlerDirective> = new Map(
	directives.flatMap(directive =>
		directive.kind === 'handler' && directive.id !== '' && directive.compile
			? [[directive.id, directive] as const]
			: [],
	),
);
