/** The two kinds of functions that make up the handler graph: handlers and predicates. */
import type { Exchange } from './exchange.ts';

/**
 * A compiled step with its `next` already bound. To answer, it fills `x.response` and does not call `next`. After `next` returns,
 * it may edit the response. To reach the error routes, it throws HttpError. It returns a promise only if it has to wait, so that
 * synchronous paths stay synchronous.
 */
export type Handler = (x: Exchange) => void | Promise<void>;

/** A compiled matcher. Throws HttpError if the request itself is invalid. */
export type Predicate = (x: Exchange) => boolean;
