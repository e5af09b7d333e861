/** The aspects in which two outcomes of a request differ, with the values that `svc diff` shows. */
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
	/** Which of the two values are unknown, so that `before` or `after` only describes them; omitted if both are known. */
	readonly unknown?: readonly ('before' | 'after')[];
}

/** An outcome, and a function that describes the aspects of it that are unknown. */
export interface ComparedOutcome {
	readonly outcome: Outcome;
	/**
	 * Returns the text to show if the value of an aspect is unknown, such as `unknown (files are not read)`; otherwise undefined.
	 */
	readonly unknown: (aspect: string) => string | undefined;
}

/**
 * Returns the aspects with these names, each with its values in both outcomes. An unknown value is replaced by a description. If
 * some of the resulting pairs of texts differ, only these are returned.
 */
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
	// If a body is unknown on both sides, the two descriptions are equal, although the assumed bodies differ.
	const tellingAspects = aspects.filter(({ before: beforeText, after: afterText }) => beforeText !== afterText);
	return tellingAspects.length > 0 ? tellingAspects : aspects;
}

/**
 * Implements {@link ComparedOutcome.unknown}: returns the text to show if the aspect `name` is unknown. `upstream` is the
 * assumption under which the request ran.
 */
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
