/** The handlers available to a document's steps, from the registry of directives. */
import type { HandlerDirective } from '../modules/directives/directive.ts';
import { directives } from '../modules/directives/index.ts';

/** Modules with a closure of their own, by handler name. Sugar, which lowers to other handlers, is not included. */
export const HANDLERS: ReadonlyMap<string, HandlerDirective> = new Map(
	directives.flatMap(directive =>
		directive.kind === 'handler' && directive.id !== '' && directive.compile
			? [[directive.id, directive] as const]
			: [],
	),
);
