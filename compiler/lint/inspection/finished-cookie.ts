/**
 * Follows a `Set-Cookie` from the edit that sets it through the edits that other steps make of it, until the response is sent.
 *
 * A step edits the response before the steps that follow it, or after they have answered. Therefore a cookie that is set early passes
 * the early edits of later steps, then their late edits in reverse order, and then the late edits of earlier steps. A cookie that is
 * set late passes only the late edits of earlier steps.
 */
import { compilePatternReplacement } from '../../codegen/context/replacement.ts';
import { compileRegexp } from '../../codegen/regexp/regexp.ts';
import type { Document, Matcher, Step } from '../../document/document.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import { compileCookieEdit, cookie, type EditCookiesStep } from '../../modules/directives/cookie.ts';
import type { ResponseEdits } from '../../modules/directives/edit-headers.ts';
import type { FieldReplacement } from '../../modules/words/header-edits.ts';
import { branchesOf, canAnswer, changesTarget, traitsOf } from './answering.ts';
import { coversMatcher } from './coverage.ts';
import type { FieldEdit } from './header-fields.ts';
import { isDisjoint } from './later-step.ts';
import type { WalkedStep } from './walk-document.ts';

type NamedRoutes = NonNullable<Document['routes']>;

/** Changes a `Set-Cookie`; returns undefined if it is removed. */
type Change = (value: string) => string | undefined;

/** When a step makes an edit: before the steps that follow it, or after they have answered. */
type Moment = 'early' | 'late';

/** A step, and the conditions of the groups that contain it. */
interface FlatStep {
	readonly step: Step;
	readonly conditions: readonly Matcher[];
}

/**
 * Returns the value with which the `Set-Cookie` of an edit is sent, after all other edits that certainly apply to it; undefined
 * if one of them removes it. Placeholders are treated as plain text.
 */
export function finishedCookie(edit: FieldEdit, routes: NamedRoutes): string | undefined {
	const { walkedStep, place, editedMessage } = edit;
	const ownEdits = walkedStep.step[place.field] as ResponseEdits;
	const isEarly = editedMessage === 'response' && place.list !== 'default' && momentOf(ownEdits) === 'early';
	const laterSteps = isEarly ? certainLaterSteps(walkedStep, routes) : [];
	const changes = [
		...(place.list === 'default' ? [] : changesAfter(ownEdits, place.list, place.index)),
		...laterSteps.flatMap(step => changesOf(step, 'early')),
		...laterSteps.toReversed().flatMap(step => changesOf(step, 'late')),
		...certainEarlierSteps(walkedStep, routes).flatMap(step => changesOf(step, 'late')),
	];
	let value: string | undefined = edit.value;
	for (const change of changes) {
		if (value === undefined) return undefined;
		value = change(value);
	}
	return value;
}

/** Returns the steps that certainly run after a step for all of its requests, up to the first that may answer. */
function certainLaterSteps(startStep: WalkedStep, routes: NamedRoutes): Step[] {
	const certainSteps: Step[] = [];
	const met = conditionsMetAt(startStep, routes);
	let targetChanged = false;
	for (let walked: WalkedStep | undefined = startStep; walked; walked = walked.pipeline.owner) {
		const { steps } = walked.pipeline;
		for (const { step, conditions } of flatten(
			steps.slice(steps.indexOf(walked) + 1).map(({ step }) => step),
			routes,
		)) {
			if (!targetChanged && conditions.some(condition => met.some(one => isDisjoint(condition, one)))) continue;
			if (isCertain(step, conditions, targetChanged ? [] : met)) certainSteps.push(step);
			if (canAnswer(step)) return certainSteps;
			targetChanged ||= changesTarget(step);
		}
		// A pipeline that is not a branch, such as the pipeline of `handle_response`, ends with an answer.
		if (walked.pipeline.owner && !branchOf(walked)) return certainSteps;
	}
	return certainSteps;
}

/** Returns the steps that have certainly run before a step for all of its requests, the last first. */
function certainEarlierSteps(startStep: WalkedStep, routes: NamedRoutes): Step[] {
	const certainSteps: Step[] = [];
	const met = conditionsMetAt(startStep, routes);
	let targetChanged = false;
	for (let walked: WalkedStep | undefined = startStep; walked; walked = walked.pipeline.owner) {
		for (const { step, conditions } of earlierStepsInPipeline(walked, routes).toReversed()) {
			targetChanged ||= changesTarget(step);
			if (isCertain(step, conditions, targetChanged ? [] : met)) certainSteps.push(step);
		}
	}
	return certainSteps;
}

/** Reports whether a step certainly runs for requests that meet the conditions in `met`. */
function isCertain({ exclusive }: Step, conditions: readonly Matcher[], met: readonly Matcher[]): boolean {
	if (exclusive !== undefined) return false;
	return conditions.every(
		condition => coversMatcher(condition, undefined) || met.some(one => coversMatcher(condition, one)),
	);
}

/**
 * Returns the conditions that every request meets when it runs a step: those of the step, and of the steps and branches that
 * contain it, unless the request is changed in between.
 */
function conditionsMetAt(startStep: WalkedStep, routes: NamedRoutes): Matcher[] {
	const met: Matcher[] = [];
	for (let walked: WalkedStep | undefined = startStep; walked; walked = walked.pipeline.owner) {
		if (walked.step.when) met.push(walked.step.when as Matcher);
		if (earlierStepsInPipeline(walked, routes).some(({ step }) => changesTarget(step))) break;
		const branch = branchOf(walked);
		if (branch?.when) met.push(branch.when);
	}
	return met;
}

function earlierStepsInPipeline(walked: WalkedStep, routes: NamedRoutes): FlatStep[] {
	const { steps } = walked.pipeline;
	const earlierSteps = steps.slice(0, steps.indexOf(walked)).map(({ step }) => step);
	return flatten(earlierSteps, routes);
}

/** Returns the branch of the enclosing step that contains a step. */
function branchOf({ pipeline: { owner, pointer } }: WalkedStep): ReturnType<typeof branchesOf>[number] | undefined {
	return owner && branchesOf(owner.step).find(branch => `${owner.pointer}${branch.pointer}/pipeline` === pointer);
}

/** Replaces groups and named routes by the steps in them. */
function flatten(
	steps: readonly Step[],
	routes: NamedRoutes,
	outerConditions: readonly Matcher[] = [],
	outerRoutes: readonly string[] = [],
): FlatStep[] {
	return steps.flatMap(step => {
		const conditions = step.when === undefined ? outerConditions : [...outerConditions, step.when as Matcher];
		const branches = branchesOf(step);
		const routeName = traitsOf(step).routeOf?.(step);
		if (step.exclusive === undefined) {
			if (branches.length === 1 && branches[0]!.when === undefined)
				return flatten(branches[0]!.pipeline, routes, conditions, outerRoutes);
			if (routeName !== undefined && !outerRoutes.includes(routeName))
				return flatten(routes[routeName] ?? [], routes, conditions, [...outerRoutes, routeName]);
		}
		return [{ step, conditions }];
	});
}

function momentOf({ deferred, match }: ResponseEdits): Moment {
	return deferred || match ? 'late' : 'early';
}

/** Returns the changes that a step makes to any `Set-Cookie` at a moment. */
function changesOf(step: Step, moment: Moment): Change[] {
	if (step.handler === cookie.id) {
		return moment === 'late' ? [compileCookieEdit(step as EditCookiesStep, { refuse: throwRefusal })] : [];
	}
	return Object.entries(traitsOf(step).fieldEdits ?? {}).flatMap(([field, editedMessage]) => {
		const edits = step[field] as ResponseEdits | undefined;
		// Edits with `match` apply to some responses only.
		if (editedMessage !== 'response' || !edits || edits.match || momentOf(edits) !== moment) return [];
		return changesAfter(edits);
	});
}

/** Never called: rules run only after code generation has accepted the document. */
function throwRefusal(message: string): never {
	throw new Error(message);
}

/** Returns the changes that edits make to a `Set-Cookie`, in order; with a list and an index, only those after that edit. */
function changesAfter(edits: ResponseEdits, list?: FieldEdit['place']['list'], index = -1): Change[] {
	const remove: Change = () => undefined;
	const isCookie = (name: string): boolean => name.toLowerCase() === 'set-cookie';
	const changes: Change[] = edits.clear && list === undefined ? [remove] : [];
	const laterSets = (edits.set ?? []).slice(list === 'set' ? index + 1 : 0);
	if (laterSets.some(({ name }) => isCookie(name))) changes.push(remove);
	if (edits.delete?.some(coversSetCookie)) changes.push(remove);
	for (const replacement of edits.replace ?? []) {
		if (replacement.name === '*' || isCookie(replacement.name)) changes.push(replacementChange(replacement));
	}
	return changes;
}

/** Reports whether a name of fields to remove, with `*` at either end for any text, is certain to include `Set-Cookie`. */
function coversSetCookie(pattern: string): boolean {
	const text = pattern.toLowerCase().replace(/^\*|\*$/g, '');
	const [isSuffix, isPrefix] = [pattern.startsWith('*'), pattern.length > 1 && pattern.endsWith('*')];
	if (isSuffix && isPrefix) return 'set-cookie'.includes(text);
	if (isSuffix) return 'set-cookie'.endsWith(text);
	return isPrefix ? 'set-cookie'.startsWith(text) : text === 'set-cookie';
}

/**
 * Returns the change that a replacement makes. If its expression has placeholders, whose values depend on the request, the value
 * is left unchanged.
 */
function replacementChange({ find, replace }: FieldReplacement): Change {
	const unchanged: Change = value => value;
	if (/\{[a-z_]+\.[^{}]+\}/.test(find)) return unchanged;
	let regexp: RegExp;
	try {
		regexp = compileRegexp(find, 'g');
	} catch {
		return unchanged;
	}
	const replacement = compilePatternReplacement(
		replace,
		{ template: text => ({ constant: text, render: () => text }) },
		'keep',
	);
	return value => replacement(value, regexp, undefined as unknown as Exchange);
}
