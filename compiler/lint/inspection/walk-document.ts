/** Collects the pipelines, steps and matchers of a document, in whichever modules they are nested. */
import type { Document, Matcher, Step } from '../../document/document.ts';
import { MATCHERS_BY_TYPE } from '../../modules/registry/matchers.ts';
import { escapePointer } from '../../schema/validate.ts';

/** A list of steps that run in order. */
export interface WalkedPipeline {
	readonly pointer: string;
	readonly steps: readonly WalkedStep[];
	/** Index of the site; undefined in a named route. */
	readonly site: number | undefined;
	/** The step that contains the pipeline; undefined at the top level of a site or named route. */
	readonly owner: WalkedStep | undefined;
	/** True if the pipeline handles errors. */
	readonly ofErrors: boolean;
}

/** A step and its place in the document. */
export interface WalkedStep {
	readonly step: Step;
	readonly pointer: string;
	readonly pipeline: WalkedPipeline;
}

/** A matcher that is the condition of a step or branch, and its place in the document. */
export interface WalkedMatcher {
	readonly matcher: Matcher;
	readonly pointer: string;
	/** The step to which the condition belongs, directly or through a branch. */
	readonly of: WalkedStep;
}

/** All pipelines, steps and conditions of a document, in document order. */
export interface WalkedDocument {
	readonly pipelines: readonly WalkedPipeline[];
	readonly steps: readonly WalkedStep[];
	/** The outermost matcher of each condition. Those nested in it are not listed. */
	readonly matchers: readonly WalkedMatcher[];
}

type Fields = { readonly [key: string]: unknown };

/**
 * Collects all pipelines, steps and conditions. Every list that contains only steps is a pipeline, so modules need not declare
 * where they have pipelines.
 */
export function walkDocument(document: Document): WalkedDocument {
	const walked = { pipelines: [] as WalkedPipeline[], steps: [] as WalkedStep[], matchers: [] as WalkedMatcher[] };
	interface Place {
		readonly site: number | undefined;
		readonly owner: WalkedStep | undefined;
		readonly ofErrors: boolean;
	}
	const pipeline = (steps: readonly Step[], pointer: string, place: Place): void => {
		const made: WalkedPipeline & { steps: WalkedStep[] } = { pointer, steps: [], ...place };
		walked.pipelines.push(made);
		steps.forEach((step, index) => {
			const one: WalkedStep = { step, pointer: `${pointer}/${index}`, pipeline: made };
			made.steps.push(one);
			walked.steps.push(one);
			fields(step, one.pointer, { ...place, owner: one });
		});
	};
	const fields = (value: Fields, pointer: string, place: Place): void => {
		for (const [key, inner] of Object.entries(value)) {
			if (typeof inner !== 'object' || inner === null) continue;
			const at = `${pointer}/${escapePointer(key)}`;
			if (key === 'when' && place.owner && isMatcher(inner)) {
				walked.matchers.push({ matcher: inner, pointer: at, of: place.owner });
				continue;
			}
			if (Array.isArray(inner)) {
				if (isPipeline(key, inner)) pipeline(inner, at, place);
				else
					inner.forEach((item, index) => {
						if (isFields(item)) fields(item, `${at}/${index}`, place);
					});
			} else fields(inner as Fields, at, place);
		}
	};
	(document.sites ?? []).forEach((site, index) => {
		const { errors, ...rest } = site;
		const place = { site: index, owner: undefined };
		fields(rest as unknown as Fields, `/sites/${index}`, { ...place, ofErrors: false });
		if (errors) fields({ errors } as Fields, `/sites/${index}`, { ...place, ofErrors: true });
	});
	for (const [name, steps] of Object.entries(document.routes ?? {})) {
		pipeline(steps, `/routes/${escapePointer(name)}`, { site: undefined, owner: undefined, ofErrors: false });
	}
	return walked;
}

function isFields(value: unknown): value is Fields {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isMatcher(value: object): value is Matcher {
	return typeof (value as Fields).type === 'string';
}

function isPipeline(key: string, list: readonly unknown[]): list is Step[] {
	if (list.length === 0) return key === 'pipeline';
	return list.every(item => isFields(item) && typeof item.handler === 'string');
}

/** Returns a condition and the matchers combined in it, outermost first, with their pointers. Omits what is under `not`. */
export function assertedMatchers(
	matcher: Matcher,
	pointer: string,
): { readonly matcher: Matcher; readonly pointer: string }[] {
	const found = [{ matcher, pointer }];
	if (matcher.type !== 'all' && matcher.type !== 'any') return found;
	const of = (matcher.of ?? []) as readonly Matcher[];
	of.forEach((inner, index) => {
		found.push(...assertedMatchers(inner, `${pointer}/of/${index}`));
	});
	return found;
}

/** Like {@link assertedMatchers}, but includes what is under `not`. */
export function allNestedMatchers(
	matcher: Matcher,
	pointer: string,
): { readonly matcher: Matcher; readonly pointer: string }[] {
	if (matcher.type === 'not') {
		return [{ matcher, pointer }, ...allNestedMatchers(matcher.of as Matcher, `${pointer}/of`)];
	}
	const found = [{ matcher, pointer }];
	if (matcher.type !== 'all' && matcher.type !== 'any') return found;
	((matcher.of ?? []) as readonly Matcher[]).forEach((inner, index) => {
		found.push(...allNestedMatchers(inner, `${pointer}/of/${index}`));
	});
	return found;
}

/** Reports whether a condition can hold only if it has found a file. */
export function requiresFile(condition: Matcher): boolean {
	return assertedMatchers(condition, '').some(
		({ matcher: { type } }) => MATCHERS_BY_TYPE.get(type)?.dependsOn === 'files',
	);
}
