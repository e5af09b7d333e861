/** The handlers available to a document's steps, from the registry of directives. */
import type { HandlerDirective } from '../contract/directive.ts';
import { directives } from './directives.ts';

/**
 * The directives that compile to a handler of their own, by handler name. Directives that lower to other handlers are not included.
 */
export const HANDLERS: ReadonlyMap<string, HandlerDirective> = new Map(
	directives.flatMap(directive =>
		directive.kind === 'handler' && directive.id !== '' && directive.compile
			? [[directive.id, directive] as const]
			: [],
	),
);
