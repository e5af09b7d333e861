/** The elements of the handler graph. */
import type { Exchange } from './exchange.ts';

/**
 * A compiled step with its `next` already bound. It answers by filling `x.response` without calling next; after `next` returns,
 * it may edit the response; it throws HttpError to reach the error routes. It returns a promise only if something waits, so
 * that synchronous paths stay synchronous.
 */
export type Handler = (x: Exchange) => void | Promise<void>;

/** A compiled matcher. Throws HttpError if the request itself is invalid. */
export type Predicate = (x: Exchange) => boolean;
