/** Collects the pipelines, steps and matchers of a document, including nested ones. */
import type { Document, Matcher, Site, Step } from '../../document/document.ts';
import { escapePointer } from '../../document/json-pointer.ts';
import { MATCHERS_BY_TYPE, pathsOf } from '../../modules/registry/matchers.ts';

/** A list of steps that run in order. */
export interface WalkedPipeline {
	readonly pointer: string;
	readonly steps: readonly WalkedStep[];
	/** Index of the site; undefined in a named route. */
	readonly site: number | undefined;
	/** The step that contains the pipeline; undefined at the top level of a site or named route. */
	readonly owner: WalkedStep | undefined;
	/** True if the pipeline handles errors. */
	readonly handlesErrors: boolean;
}

/** A step and its pointer in the document. */
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
	readonly owner: WalkedStep;
}

/** All pipelines, steps and conditions of a document, in document order. */
export interface WalkedDocument {
	readonly pipelines: readonly WalkedPipeline[];
	readonly steps: readonly WalkedStep[];
	/** The outermost matcher of each condition. Matchers nested in it are not listed. */
	readonly matchers: readonly WalkedMatcher[];
}

type Fields = { readonly [key: string]: unknown };

type PipelinePlace = Pick<WalkedPipeline, 'site' | 'owner' | 'handlesErrors'>;

interface CollectedParts {
	readonly pipelines: WalkedPipeline[];
	readonly steps: WalkedStep[];
	readonly matchers: WalkedMatcher[];
}

/**
 * Collects the pipelines, steps and conditions of one site, given its index in the document. Every list that contains only steps
 * is a pipeline, so modules need not declare where they have pipelines.
 */
export function walkSite({ errors, ...siteWithoutErrors }: Site, index: number): WalkedDocument {
	const collectedParts: CollectedParts = { pipelines: [], steps: [], matchers: [] };
	const place = { site: index, owner: undefined };
	visitFields(collectedParts, siteWithoutErrors as unknown as Fields, `/sites/${index}`, {
		...place,
		handlesErrors: false,
	});
	if (errors) visitFields(collectedParts, { errors } as Fields, `/sites/${index}`, { ...place, handlesErrors: true });
	return collectedParts;
}

/** Collects the pipelines, steps and conditions of a document. */
export function walkDocument(document: Document): WalkedDocument {
	return joinWalked([...(document.sites ?? []).map(walkSite), walkRoutes(document)]);
}

/** Collects the pipelines, steps and conditions of the named routes. */
export function walkRoutes(document: Document): WalkedDocument {
	const collectedParts: CollectedParts = { pipelines: [], steps: [], matchers: [] };
	for (const [name, steps] of Object.entries(document.routes ?? {})) {
		const place = { site: undefined, owner: undefined, handlesErrors: false };
		addPipeline(collectedParts, steps, `/routes/${escapePointer(name)}`, place);
	}
	return collectedParts;
}

/** Joins the pipelines, steps and conditions of several parts of a document. */
export function joinWalked(parts: readonly WalkedDocument[]): WalkedDocument {
	return {
		pipelines: parts.flatMap(({ pipelines }) => pipelines),
		steps: parts.flatMap(({ steps }) => steps),
		matchers: parts.flatMap(({ matchers }) => matchers),
	};
}

function addPipeline(
	collectedParts: CollectedParts,
	steps: readonly Step[],
	pointer: string,
	place: PipelinePlace,
): void {
	const walkedPipeline: WalkedPipeline & { steps: WalkedStep[] } = { pointer, steps: [], ...place };
	collectedParts.pipelines.push(walkedPipeline);
	steps.forEach((step, index) => {
		const walkedStep: WalkedStep = { step, pointer: `${pointer}/${index}`, pipeline: walkedPipeline };
		walkedPipeline.steps.push(walkedStep);
		collectedParts.steps.push(walkedStep);
		visitFields(collectedParts, step, walkedStep.pointer, { ...place, owner: walkedStep });
	});
}

function visitFields(collectedParts: CollectedParts, value: Fields, pointer: string, place: PipelinePlace): void {
	for (const [key, fieldValue] of Object.entries(value)) {
		if (typeof fieldValue !== 'object' || fieldValue === null) continue;
		const fieldPointer = `${pointer}/${escapePointer(key)}`;
		if (key === 'when' && place.owner && isMatcher(fieldValue)) {
			collectedParts.matchers.push({ matcher: fieldValue, pointer: fieldPointer, owner: place.owner });
			continue;
		}
		if (Array.isArray(fieldValue)) {
			if (isPipeline(key, fieldValue)) addPipeline(collectedParts, fieldValue, fieldPointer, place);
			else
				fieldValue.forEach((item, index) => {
					if (isFields(item)) visitFields(collectedParts, item, `${fieldPointer}/${index}`, place);
				});
		} else visitFields(collectedParts, fieldValue as Fields, fieldPointer, place);
	}
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

/**
 * Returns a condition and the matchers that it combines, outermost first, each with its pointer. Matchers under `not` are left out.
 */
export function assertedMatchers(
	matcher: Matcher,
	pointer: string,
): { readonly matcher: Matcher; readonly pointer: string }[] {
	const matchers = [{ matcher, pointer }];
	if (matcher.type !== 'all' && matcher.type !== 'any') return matchers;
	const operands = (matcher.of ?? []) as readonly Matcher[];
	operands.forEach((operand, index) => {
		matchers.push(...assertedMatchers(operand, `${pointer}/of/${index}`));
	});
	return matchers;
}

/** Like {@link assertedMatchers}, but includes matchers under `not`. */
export function allNestedMatchers(
	matcher: Matcher,
	pointer: string,
): { readonly matcher: Matcher; readonly pointer: string }[] {
	if (matcher.type === 'not') {
		return [{ matcher, pointer }, ...allNestedMatchers(matcher.of as Matcher, `${pointer}/of`)];
	}
	const matchers = [{ matcher, pointer }];
	if (matcher.type !== 'all' && matcher.type !== 'any') return matchers;
	((matcher.of ?? []) as readonly Matcher[]).forEach((operand, index) => {
		matchers.push(...allNestedMatchers(operand, `${pointer}/of/${index}`));
	});
	return matchers;
}

/** Yields every matcher of a document, including those under `not`, and its pointer. */
export function* matchersIn({
	matchers,
}: WalkedDocument): Generator<{ readonly matcher: Matcher; readonly pointer: string }> {
	for (const { matcher, pointer } of matchers) yield* allNestedMatchers(matcher, pointer);
}

/** Yields the path patterns of every matcher of paths in a document, and the pointer of the list that contains them. */
export function* pathPatternsIn(
	document: WalkedDocument,
): Generator<{ readonly patterns: readonly string[]; readonly pointer: string }> {
	for (const { matcher, pointer } of matchersIn(document)) {
		const paths = pathsOf(matcher);
		if (paths) yield { patterns: paths.values, pointer: `${pointer}/${paths.field}` };
	}
}

/** Reports whether a condition holds only if a file exists. */
export function requiresFile(condition: Matcher): boolean {
	return assertedMatchers(condition, '').some(
		({ matcher: { type } }) => MATCHERS_BY_TYPE.get(type)?.dependsOn === 'files',
	);
}
