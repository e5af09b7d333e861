/** Every request matcher, one line each. */
import type { MatcherModule } from './matcher.ts';

/** In the order in which `list-modules` and the manual name them. */
export const matchers: readonly MatcherModule[] = [];
