/** What differs between two outcomes of a request, aspect by aspect, as it is shown. */
import type { DryRunResult } from '../dry-run/dry-run.ts';
import type { Outcome } from './outcome.ts';
import type { SecretMask } from './secret-mask.ts';
import { unknownBodyText, unreadFileText } from './unknown-parts.ts';
import type { UpstreamAssumption } from './upstream-assumption.ts';

/**
 * An aspect of the outcomes of a request, such as the status, with its value before and after; undefined where an outcome lacks the
 * aspect.
 */
export interface ChangedAspect {
	readonly name: string;
	readonly before: string | undefined;
	readonly after: string | undefined;
	/** The values that are not known, but only described; omitted if both are known. */
	readonly unknown?: readonly ('before' | 'after')[];
}

/** An outcome, and what of it is not known. */
export interface ComparedOutcome {
	readonly outcome: Outcome;
	/** Returns what to show in place of an aspect that is not known; undefined for other aspects. */
	readonly unknown: (aspect: string) => string | undefined;
}

/** Returns aspects that differ, with the values of both outcomes, or what takes the place of unknown ones. */
export function changedAspects(
	names: readonly string[],
	before: ComparedOutcome,
	after: ComparedOutcome,
): readonly ChangedAspect[] {
	const aspects = names.map((name): ChangedAspect => {
		const [beforeText, afterText] = [before.unknown(name), after.unknown(name)];
		const unknown = [
			...(beforeText === undefined ? [] : (['before'] as const)),
			...(afterText === undefined ? [] : (['after'] as const)),
		];
		return {
			name,
			before: beforeText ?? before.outcome.get(name),
			after: afterText ?? after.outcome.get(name),
			...(unknown.length > 0 && { unknown }),
		};
	});
	// Two bodies that are both unknown may differ only under the assumption.
	const tellingAspects = aspects.filter(({ before: beforeText, after: afterText }) => beforeText !== afterText);
	return tellingAspects.length > 0 ? tellingAspects : aspects;
}

/** Returns what to show in place of an aspect of an outcome that is not known; undefined for other aspects. */
export function unknownValue(
	name: string,
	result: DryRunResult | undefined,
	outcome: Outcome,
	upstream: UpstreamAssumption,
): string | undefined {
	if (!result) return undefined;
	if (name === 'status' || name === 'body' || name.startsWith('header ')) {
		const unreadFile = unreadFileText(result);
		if (unreadFile !== undefined) return unreadFile;
	}
	const body = outcome.get('body');
	return name === 'body' && body !== undefined
		? unknownBodyText(result, body, JSON.stringify(upstream.body))
		: undefined;
}

/** Returns the change with the secrets in its values redacted. */
export function maskAspect({ name, before, after, ...rest }: ChangedAspect, mask: SecretMask): ChangedAspect {
	const maskText = (text: string | undefined): string | undefined => text && mask.hide(text);
	return { name, before: maskText(before), after: maskText(after), ...rest };
}
