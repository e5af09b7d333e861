/** What the graph is made of. */
import type { Exchange } from './exchange.ts';

/**
 * A compiled step with its `next` already bound. It answers by filling `x.response` and not calling next; after `next`
 * returns it may edit the response; it throws HttpError to reach the error routes. It returns a promise only when
 * something waits: synchronous paths stay synchronous.
 */
export type Handler = (x: Exchange) => void | Promise<void>;

/** A compiled matcher. Throws HttpError when the request itself is at fault. */
export type Predicate = (x: Exchange) => boolean;
