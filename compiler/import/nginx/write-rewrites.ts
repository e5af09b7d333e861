/** Translates `return`, `rewrite`, `set`, `break` and `if`, the directives that nginx runs before it looks for content. */
import { type Condition, type ConditionContext, translateCondition } from './conditions.ts';
import { type ConfigfileWriter, quoteText, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { regexpOf, translateText, type Variables } from './nginx-values.ts';
import { Untranslatable } from './untranslatable.ts';

/** The block that contains the rewrite directives, with what their translation needs. */
export interface RewritePlace {
	readonly out: ConfigfileWriter;
	readonly place: 'server' | 'location';
	readonly condition: ConditionContext;
	/** Writes the lines that pass a request with a changed path to the location for that path. */
	readonly chooseAgain: () => void;
	/** Writes the lines that must precede an answer, such as header fields. */
	readonly beforeAnswer: () => void;
	/** Like `beforeAnswer`, for an answer in an `if` that sets header fields of its own. `block` is the block of the `if`. */
	readonly beforeAnswerOf: (block: readonly NginxDirective[]) => void;
	/** Writes the lines that must precede an answer with a text, such as replacements in the text. */
	readonly beforeText: () => void;
	/** The media type of the texts that `return` sends; undefined for text/plain. */
	readonly textType: string | undefined;
}

const REWRITE_DIRECTIVES: ReadonlySet<string> = new Set([
	'return',
	'rewrite',
	'set',
	'break',
	'if',
	'rewrite_log',
	'uninitialized_variable_warn',
]);

/** Reports whether a directive belongs to the rewrite phase. */
export function isRewrite({ name, block }: NginxDirective): boolean {
	return REWRITE_DIRECTIVES.has(name) && (name === 'if') === (block !== undefined);
}

/** Reports whether a directive is an `if` with directives besides rewrites, so that it affects the content. */
export function choosesContent(directive: NginxDirective): boolean {
	return directive.name === 'if' && (directive.block ?? []).some(inner => !isRewrite(inner));
}

/** Reports whether rewrites may move a request to another location before nginx looks for content. */
export function mayLeave(directives: readonly NginxDirective[]): boolean {
	return directives.some(
		({ name, args, block }) =>
			(name === 'rewrite' && !['break', 'redirect', 'permanent'].includes(args[2] ?? '')) ||
			(name === 'if' && mayLeave(block ?? [])),
	);
}

/** Translates rewrite directives in order. Returns true if one of them answers every request. */
export function writeRewrites(
	directives: readonly NginxDirective[],
	place: RewritePlace,
	variables: Variables = place.condition.variables,
): boolean {
	const steps = directives.filter(isRewrite);
	for (const [index, step] of steps.entries()) {
		const laterSteps = steps.slice(index + 1);
		const { out } = place;
		try {
			switch (step.name) {
				case 'return':
					place.beforeAnswer();
					writeReturn(step, place, variables);
					out.countTranslated(step);
					keepSteps(laterSteps, out, 'the `return` before it ends the request');
					return true;
				case 'break':
					out.countTranslated(step);
					keepSteps(laterSteps, out, 'the `break` before it ends the rewrites');
					return false;
				case 'set':
					writeSet(step, place, variables);
					out.countTranslated(step);
					break;
				case 'rewrite': {
					const isFinished = writeRewrite(step, place, variables, laterSteps);
					out.countTranslated(step);
					if (isFinished) return false;
					break;
				}
				case 'if':
					if (writeIf(step, place, variables, laterSteps)) return false;
					break;
				default:
					out.keepAsComment(step, 'it changes only what is logged');
			}
		} catch (error) {
			if (!(error instanceof Untranslatable)) throw error;
			out.keepAsComment(step, error.message);
			// A `return` that cannot be translated becomes an error, because otherwise the lines below it would answer the request.
			if (step.name === 'return') {
				out.writeLine('error 500');
				keepSteps(laterSteps, out, 'the `return` before it ends the request');
				return true;
			}
		}
	}
	return false;
}

function keepSteps(steps: readonly NginxDirective[], out: ConfigfileWriter, reason: string): void {
	for (const step of steps) out.keepAsComment(step, reason);
}

function writeReturn(
	{ args }: NginxDirective,
	{ out, textType, beforeText }: RewritePlace,
	variables: Variables,
): void {
	const [firstArgument = '', secondArgument] = args;
	const status = /^\d{3}$/.test(firstArgument) ? firstArgument : '302';
	const text = /^\d{3}$/.test(firstArgument) ? secondArgument : firstArgument;
	if (status === '444') out.writeLine('abort');
	else if (/^30[12378]$/.test(status) && text !== undefined)
		out.writeLine(`redir ${quoteText(translateText(text, variables))} ${status}`);
	else if (text !== undefined) {
		const value = quoteText(translateText(text, variables));
		beforeText();
		if (textType !== undefined) out.writeLine(`header Content-Type ${quoteText(textType)}`);
		out.writeLine(/^\d{3}$/.test(text) ? `respond * ${value} ${status}` : `respond ${value} ${status}`);
	} else if (Number(status) >= 400) out.writeLine(`error ${status}`);
	else out.writeLine(`respond ${status}`);
}

function writeSet(directive: NginxDirective, { out }: RewritePlace, variables: Variables): void {
	const variableName = directive.args[0]?.replace(/^\$/, '') ?? '';
	const value = translateText(directive.args[1] ?? '', variables);
	if (variableName === 'args') out.writeLine(`rewrite ${word(`?${value}`)}`);
	else if (/^(?:limit_rate|host|uri|request_uri|http_\w+)$/.test(variableName))
		throw new Untranslatable(`\`$${variableName}\` cannot be set here`);
	else out.writeLine(`vars ${variableName} ${quoteText(value)}`);
}

/** Reports whether a pattern matches every path and has no groups. */
function matchesEveryPath(pattern: string): boolean {
	return ['^', '.*', '^.*', '^.*$', '^/', '/'].includes(pattern);
}

/**
 * Translates a `rewrite`. Returns true if `laterSteps`, the directives after it, have been translated as well, because they run
 * only if the pattern does not match.
 */
function writeRewrite(
	directive: NginxDirective,
	place: RewritePlace,
	variables: Variables,
	laterSteps: readonly NginxDirective[],
): boolean {
	const { out } = place;
	const [pattern = '', target = '', flag] = directive.args;
	const captureName = out.unusedName('rewrite');
	const innerVariables = variables.withGroups(captureName, pattern);
	const isRedirect = flag === 'permanent' || flag === 'redirect' || /^(?:https?:\/\/|\$scheme)/.test(target);
	const rewriteLine = isRedirect
		? redirectOf(target, flag, innerVariables)
		: `rewrite ${word(rewriteTarget(target, innerVariables))}`;
	const condition = matchesEveryPath(pattern) ? undefined : `path_regexp ${captureName} ${word(regexpOf(pattern))}`;
	const continuesRewrites = !isRedirect && flag === undefined && (place.place === 'server' || laterSteps.length > 0);
	if (continuesRewrites && place.place === 'location' && laterSteps.some(({ name }) => name !== 'set')) {
		throw new Untranslatable('a `rewrite` without a flag is translated only at the end');
	}
	const leavesLocation = place.place === 'location' && flag !== 'break' && !isRedirect;
	out.writeBranch(condition, true, () => {
		if (isRedirect) {
			place.beforeAnswer();
			// A redirect to a target with a query appends the client's query, but only if the client's query is not empty.
			if (rewriteLine.endsWith('&{query}" 301') || rewriteLine.endsWith('&{query}" 302'))
				out.writeBlock('when vars {query} ""', () => out.writeLine(rewriteLine.replace('&{query}" ', '" ')));
		}
		if (leavesLocation)
			for (const step of laterSteps.filter(() => continuesRewrites))
				if (step.name === 'set') writeSet(step, place, innerVariables);
		out.writeLine(rewriteLine);
		if (leavesLocation) place.chooseAgain();
	});
	const endsRewrites = !isRedirect && !leavesLocation && flag !== undefined;
	if (!endsRewrites || laterSteps.length === 0) return endsRewrites;
	if (condition === undefined) keepSteps(laterSteps, out, 'the `rewrite` before it ends the rewrites');
	else {
		const lines = out.capture(() => writeRewrites(laterSteps, place, variables));
		if (lines.length > 0) out.writeElse(lines);
	}
	return true;
}

function redirectOf(target: string, flag: string | undefined, variables: Variables): string {
	const keepsQuery = !target.endsWith('?');
	const value = translateText(keepsQuery ? target : target.slice(0, -1), variables);
	const query = !keepsQuery ? '' : target.includes('?') ? '&{query}' : '{?query}';
	return `redir ${quoteText(`${value}${query}`)} ${flag === 'permanent' ? 301 : 302}`;
}

function rewriteTarget(target: string, variables: Variables): string {
	const keepsQuery = !target.endsWith('?');
	const value = translateText(keepsQuery ? target : target.slice(0, -1), variables);
	const path = value.startsWith('/') || value.startsWith('{path}') ? value : `/${value}`;
	if (!target.includes('?')) return path;
	return keepsQuery ? `${path}&{query}` : target.indexOf('?') === target.length - 1 ? `${path}?` : path;
}

/**
 * Translates an `if`. Returns true if `laterSteps`, the directives after it, have been translated as well, because they run only
 * if the condition does not hold.
 */
function writeIf(
	directive: NginxDirective,
	place: RewritePlace,
	variables: Variables,
	laterSteps: readonly NginxDirective[],
): boolean {
	const { out } = place;
	const steps = directive.block!.filter(isRewrite);
	if (steps.length === 0 && choosesContent(directive)) return false;
	const condition: Condition = translateCondition(directive.args, { ...place.condition, variables });
	const lastStep = steps.at(-1);
	const endsRewrites =
		lastStep?.name === 'break' ||
		(lastStep?.name === 'rewrite' &&
			(lastStep.args[2] === 'break' || (place.place === 'server' && lastStep.args[2] === 'last')));
	if (steps.slice(0, -1).some(({ name, args }) => name === 'break' || (name === 'rewrite' && args[2] === 'break'))) {
		throw new Untranslatable('a `break` before the end of an `if` is not translated');
	}
	if (
		endsRewrites &&
		laterSteps.length > 0 &&
		lastStep!.name === 'rewrite' &&
		(steps.length > 1 || !matchesEveryPath(lastStep!.args[0] ?? ''))
	) {
		throw new Untranslatable(
			'a `rewrite` in an `if` that ends the rewrites is translated only if it matches every path',
		);
	}
	out.countTranslated(directive);
	const keptCountBefore = out.keptDirectives.length;
	const hasFields = directive.block!.some(({ name }) => name === 'add_header' || name === 'expires');
	const innerPlace = hasFields ? { ...place, beforeAnswer: () => place.beforeAnswerOf(directive.block!) } : place;
	const lines = out.capture(() => writeRewrites(steps, innerPlace, condition.variables));
	if (lines.length === 0) {
		if (out.keptDirectives.length > keptCountBefore || !endsRewrites) return false;
		if (laterSteps.length === 0) return false;
		const laterLines = out.capture(() => writeRewrites(laterSteps, place, variables));
		if (laterLines.length > 0) out.writeBranch(`not ( ${condition.expression} )`, true, () => out.append(laterLines));
		return true;
	}
	out.writeBranch(condition.expression, true, () => out.append(lines));
	if (out.keptDirectives.length > keptCountBefore) out.keepInstead(directive, 'see the comments in its block');
	if (!endsRewrites || laterSteps.length === 0) return false;
	const remainingLines = out.capture(() => writeRewrites(laterSteps, place, variables));
	if (remainingLines.length > 0) out.writeElse(remainingLines);
	return true;
}

/**
 * Runs a translation and counts the directive. If the translation throws Untranslatable, keeps the directive as a comment and
 * returns false.
 */
export function translateOrKeep(directive: NginxDirective, out: ConfigfileWriter, translate: () => void): boolean {
	try {
		translate();
		out.countTranslated(directive);
		return true;
	} catch (error) {
		if (!(error instanceof Untranslatable)) throw error;
		out.keepAsComment(directive, error.message);
		return false;
	}
}
