/** Writes `return`, `rewrite`, `set`, `break` and `if`: what nginx runs before it looks for content. */
import { type Condition, type ConditionContext, conditionOf } from './conditions.ts';
import { type ConfigfileWriter, quoted, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { regexpOf, translated, type Variables } from './nginx-values.ts';
import { Untranslatable } from './untranslatable.ts';

/** The block that has the directives, and everything that their translation needs. */
export interface RewritePlace {
	readonly out: ConfigfileWriter;
	readonly place: 'server' | 'location';
	readonly condition: ConditionContext;
	/** Sends a request, whose path has been changed, to the location that it now belongs to. */
	readonly chooseAgain: () => void;
	/** Writes the lines that come before an answer, such as header fields. */
	readonly beforeAnswer: () => void;
	/** Like `beforeAnswer`, for an answer in an `if` that sets header fields of its own. */
	readonly beforeAnswerOf: (block: readonly NginxDirective[]) => void;
	/** Writes the lines that come before an answer with a text, such as those that replace parts of the text. */
	readonly beforeText: () => void;
	/** The type of the texts that `return` sends; undefined for text/plain. */
	readonly textType: string | undefined;
}

const NAMES: ReadonlySet<string> = new Set([
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
	return NAMES.has(name) && (name === 'if') === (block !== undefined);
}

/** Reports whether an `if` contains something other than rewrites, so that it affects the content. */
export function choosesContent(one: NginxDirective): boolean {
	return one.name === 'if' && (one.block ?? []).some(inner => !isRewrite(inner));
}

/** Reports whether a request may leave its location before nginx looks for content. */
export function mayLeave(directives: readonly NginxDirective[]): boolean {
	return directives.some(
		({ name, args, block }) =>
			(name === 'rewrite' && !['break', 'redirect', 'permanent'].includes(args[2] ?? '')) ||
			(name === 'if' && mayLeave(block ?? [])),
	);
}

/** Writes the directives in their order. Returns true if one of them answers every request. */
export function writeRewrites(
	directives: readonly NginxDirective[],
	at: RewritePlace,
	variables: Variables = at.condition.variables,
): boolean {
	const steps = directives.filter(isRewrite);
	for (const [index, one] of steps.entries()) {
		const rest = steps.slice(index + 1);
		const { out } = at;
		try {
			switch (one.name) {
				case 'return':
					at.beforeAnswer();
					writeReturn(one, at, variables);
					out.count(one);
					keepRest(rest, out, 'the `return` before it ends the request');
					return true;
				case 'break':
					out.count(one);
					keepRest(rest, out, 'the `break` before it ends the rewrites');
					return false;
				case 'set':
					writeSet(one, at, variables);
					out.count(one);
					break;
				case 'rewrite': {
					const stops = writeRewrite(one, at, variables, rest);
					out.count(one);
					if (stops) return false;
					break;
				}
				case 'if':
					if (writeIf(one, at, variables, rest)) return false;
					break;
				default:
					out.keep(one, 'it changes only what is logged');
			}
		} catch (error) {
			if (!(error instanceof Untranslatable)) throw error;
			out.keep(one, error.message);
			// A `return` that cannot be translated becomes an error. Without it, the lines below would answer instead.
			if (one.name === 'return') {
				out.line('error 500');
				keepRest(rest, out, 'the `return` before it ends the request');
				return true;
			}
		}
	}
	return false;
}

function keepRest(rest: readonly NginxDirective[], out: ConfigfileWriter, reason: string): void {
	for (const one of rest) out.keep(one, reason);
}

function writeReturn(
	{ args }: NginxDirective,
	{ out, textType, beforeText }: RewritePlace,
	variables: Variables,
): void {
	const [first = '', second] = args;
	const status = /^\d{3}$/.test(first) ? first : '302';
	const text = /^\d{3}$/.test(first) ? second : first;
	if (status === '444') out.line('abort');
	else if (/^30[12378]$/.test(status) && text !== undefined)
		out.line(`redir ${quoted(translated(text, variables))} ${status}`);
	else if (text !== undefined) {
		const value = quoted(translated(text, variables));
		beforeText();
		if (textType !== undefined) out.line(`header Content-Type ${quoted(textType)}`);
		out.line(/^\d{3}$/.test(text) ? `respond * ${value} ${status}` : `respond ${value} ${status}`);
	} else if (Number(status) >= 400) out.line(`error ${status}`);
	else out.line(`respond ${status}`);
}

function writeSet(one: NginxDirective, { out }: RewritePlace, variables: Variables): void {
	const name = one.args[0]?.replace(/^\$/, '') ?? '';
	const value = translated(one.args[1] ?? '', variables);
	if (name === 'args') out.line(`rewrite ${word(`?${value}`)}`);
	else if (/^(?:limit_rate|host|uri|request_uri|http_\w+)$/.test(name))
		throw new Untranslatable(`\`$${name}\` cannot be set here`);
	else out.line(`vars ${name} ${quoted(value)}`);
}

/** Reports whether an expression matches every path, without groups. */
function isAlways(pattern: string): boolean {
	return ['^', '.*', '^.*', '^.*$', '^/', '/'].includes(pattern);
}

/** Writes a `rewrite`. Returns true if the directives after it have been written, because they run only if it does not match. */
function writeRewrite(
	one: NginxDirective,
	at: RewritePlace,
	variables: Variables,
	rest: readonly NginxDirective[],
): boolean {
	const { out } = at;
	const [pattern = '', target = '', flag] = one.args;
	const name = out.unusedName('rewrite');
	const inner = variables.after(name, pattern);
	const isRedirect = flag === 'permanent' || flag === 'redirect' || /^(?:https?:\/\/|\$scheme)/.test(target);
	const line = isRedirect ? redirectOf(target, flag, inner) : `rewrite ${word(rewriteTarget(target, inner))}`;
	const head = isAlways(pattern) ? undefined : `path_regexp ${name} ${word(regexpOf(pattern))}`;
	const continues = !isRedirect && flag === undefined && (at.place === 'server' || rest.length > 0);
	if (continues && at.place === 'location' && rest.some(({ name }) => name !== 'set')) {
		throw new Untranslatable('a `rewrite` without a flag is translated only at the end');
	}
	const leaves = at.place === 'location' && flag !== 'break' && !isRedirect;
	out.branch(head, true, () => {
		if (isRedirect) {
			at.beforeAnswer();
			// If the target has a query, the client's query is appended after `&`, but only if it is not empty.
			if (line.endsWith('&{query}" 301') || line.endsWith('&{query}" 302'))
				out.block('when vars {query} ""', () => out.line(line.replace('&{query}" ', '" ')));
		}
		if (leaves) for (const step of rest.filter(() => continues)) if (step.name === 'set') writeSet(step, at, inner);
		out.line(line);
		if (leaves) at.chooseAgain();
	});
	const stops = !isRedirect && !leaves && flag !== undefined;
	if (!stops || rest.length === 0) return stops;
	if (head === undefined) keepRest(rest, out, 'the `rewrite` before it ends the rewrites');
	else {
		const lines = out.capture(() => writeRewrites(rest, at, variables));
		if (lines.length > 0) out.elseLines(lines);
	}
	return true;
}

function redirectOf(target: string, flag: string | undefined, variables: Variables): string {
	const keepsQuery = !target.endsWith('?');
	const value = translated(keepsQuery ? target : target.slice(0, -1), variables);
	const query = !keepsQuery ? '' : target.includes('?') ? '&{query}' : '{?query}';
	return `redir ${quoted(`${value}${query}`)} ${flag === 'permanent' ? 301 : 302}`;
}

function rewriteTarget(target: string, variables: Variables): string {
	const keepsQuery = !target.endsWith('?');
	const value = translated(keepsQuery ? target : target.slice(0, -1), variables);
	const path = value.startsWith('/') || value.startsWith('{path}') ? value : `/${value}`;
	if (!target.includes('?')) return path;
	return keepsQuery ? `${path}&{query}` : target.indexOf('?') === target.length - 1 ? `${path}?` : path;
}

/**
 * Writes an `if`. Returns true if the directives after it have been written, because they run only if the condition does not hold.
 */
function writeIf(
	one: NginxDirective,
	at: RewritePlace,
	variables: Variables,
	rest: readonly NginxDirective[],
): boolean {
	const { out } = at;
	const steps = one.block!.filter(isRewrite);
	if (steps.length === 0 && choosesContent(one)) return false;
	const condition: Condition = conditionOf(one.args, { ...at.condition, variables });
	const last = steps.at(-1);
	const stopsHere =
		last?.name === 'break' ||
		(last?.name === 'rewrite' && (last.args[2] === 'break' || (at.place === 'server' && last.args[2] === 'last')));
	if (steps.slice(0, -1).some(({ name, args }) => name === 'break' || (name === 'rewrite' && args[2] === 'break'))) {
		throw new Untranslatable('a `break` before the end of an `if` is not translated');
	}
	if (
		stopsHere &&
		rest.length > 0 &&
		last!.name === 'rewrite' &&
		(steps.length > 1 || !isAlways(last!.args[0] ?? ''))
	) {
		throw new Untranslatable(
			'a `rewrite` in an `if` that ends the rewrites is translated only if it matches every path',
		);
	}
	out.count(one);
	const before = out.kept.length;
	const hasFields = one.block!.some(({ name }) => name === 'add_header' || name === 'expires');
	const inside = hasFields ? { ...at, beforeAnswer: () => at.beforeAnswerOf(one.block!) } : at;
	const lines = out.capture(() => writeRewrites(steps, inside, condition.variables));
	if (lines.length === 0) {
		if (out.kept.length > before || !stopsHere) return false;
		if (rest.length === 0) return false;
		const others = out.capture(() => writeRewrites(rest, at, variables));
		if (others.length > 0) out.branch(`not ( ${condition.expression} )`, true, () => out.append(others));
		return true;
	}
	out.branch(condition.expression, true, () => out.append(lines));
	if (out.kept.length > before) out.keepInstead(one, 'see what its block has');
	if (!stopsHere || rest.length === 0) return false;
	const others = out.capture(() => writeRewrites(rest, at, variables));
	if (others.length > 0) out.elseLines(others);
	return true;
}

/** Runs a translation. If the directive has a value without a counterpart, keeps the directive as a comment and returns false. */
export function orKeep(one: NginxDirective, out: ConfigfileWriter, translate: () => void): boolean {
	try {
		translate();
		out.count(one);
		return true;
	} catch (error) {
		if (!(error instanceof Untranslatable)) throw error;
		out.keep(one, error.message);
		return false;
	}
}
