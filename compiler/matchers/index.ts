/** Every request matcher, one line each. */
import type { MatcherModule } from './matcher.ts';

/** In the order in which `list-modules` and the manual name them. */
export const matchers: readonly MatcherModule[] = [];

/** By the `type` of the document. */
export const MATCHERS: ReadonlyMap<string, MatcherModule> = new Map(matchers.map(matcher => [matcher.id, matcher]));
