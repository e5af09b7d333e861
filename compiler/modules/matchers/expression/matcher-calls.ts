/** Calls of matchers in expressions: `path('/a*')` in CEL is the matcher `path` of the document. */
import type { Matcher } from '../../../document/document.ts';
import { COMPATIBLE_FALLBACK_POLICY, TRY_POLICIES } from '../file.ts';
import type { CelSyntaxNode } from './cel-type-check.ts';
import { PLACEHOLDER_FUNCTION } from './placeholder-calls.ts';

/** A mistake in a matcher call; its message is one sentence. */
export class MatcherCallError extends Error {}

/** The placeholders and defaults that apply to the matcher calls in one expression. */
export interface MatcherCallScope {
	/** Full names of the expression's placeholders, by the number with which {@link PLACEHOLDER_FUNCTION} is called. */
	readonly placeholders: readonly string[];
	/** Name under which matchers in the expression store their captures, unless they have a name of their own. */
	readonly name: string | undefined;
	/** Files for `file` calls without arguments. */
	readonly files: readonly string[] | undefined;
}

/** The value of an argument: a string (which is a template), a list of strings, or a map of strings and lists of strings. */
type ArgumentValue = string | readonly string[] | ReadonlyMap<string, string | readonly string[]>;

type MatcherCreator = (args: readonly ArgumentValue[], scope: MatcherCallScope, callName: string) => Matcher;

/** The functions that create a matcher from the arguments of a call, by the name of the call. */
export const MATCHER_CALLS: ReadonlyMap<string, MatcherCreator> = new Map<string, MatcherCreator>([
	['host', (args, _, call) => ({ type: 'host', hosts: requireTextArguments(args, call) })],
	['path', (args, _, call) => ({ type: 'path', patterns: requireTextArguments(args, call) })],
	['method', (args, _, call) => ({ type: 'method', methods: requireTextArguments(args, call) })],
	['remote_ip', (args, _, call) => ({ type: 'remote_ip', ranges: requireTextArguments(args, call) })],
	['client_ip', (args, _, call) => ({ type: 'client_ip', ranges: requireTextArguments(args, call) })],
	[
		'protocol',
		(args, _, call) => ({ type: 'protocol', protocol: requireTextArguments(args, call, 1, 1)[0]!.toLowerCase() }),
	],
	[
		'path_regexp',
		(args, scope, call) => ({ type: 'path_regexp', ...readRegexpArguments(args, scope, call, 0).fields }),
	],
	[
		'header_regexp',
		(args, scope, call) => {
			const { subject, fields } = readRegexpArguments(args, scope, call, 1);
			return { type: 'header_regexp', field: subject, ...fields };
		},
	],
	[
		'vars_regexp',
		(args, scope, call) => {
			const { subject, fields } = readRegexpArguments(args, scope, call, 1);
			return { type: 'vars_regexp', variable: subject, ...fields };
		},
	],
	['header', (args, _, call) => ({ type: 'all', of: requireMapEntries(args, call).map(createHeaderMatcher) })],
	['query', (args, _, call) => ({ type: 'query', parameters: Object.fromEntries(requireMapEntries(args, call)) })],
	['vars', (args, _, call) => ({ type: 'vars', variables: Object.fromEntries(requireMapEntries(args, call)) })],
	['file', createFileMatcher],
	[
		'url_pattern',
		(args, _, call) => {
			const [pattern, baseUrl] = requireTextArguments(args, call, 1, 2);
			return { type: 'url_pattern', pattern: pattern!, ...(baseUrl === undefined ? {} : { base_url: baseUrl }) };
		},
	],
]);

/** Returns the matcher for a call of one of {@link MATCHER_CALLS}. Throws {@link MatcherCallError}. */
export function matcherOfCall(callName: string, args: readonly CelSyntaxNode[], scope: MatcherCallScope): Matcher {
	const argumentValues = args.map(arg => {
		const value = readArgument(arg, scope);
		if (value === undefined) {
			throw new MatcherCallError(`the arguments of ${callName}() must be literals, placeholders, or \`+\` of them`);
		}
		return value;
	});
	return MATCHER_CALLS.get(callName)!(argumentValues, scope, callName);
}

function readArgument(expr: CelSyntaxNode, scope: MatcherCallScope): ArgumentValue | undefined {
	const kind = expr.exprKind;
	if (kind.case === 'listExpr') return readTextList(kind.value.elements, scope);
	if (kind.case !== 'structExpr') return readText(expr, scope);
	const map = new Map<string, string | readonly string[]>();
	for (const entry of kind.value.entries) {
		const key = entry.keyKind.case === 'mapKey' ? readText(entry.keyKind.value, scope) : undefined;
		const value = entry.value && readArgument(entry.value, scope);
		if (key === undefined || value === undefined || value instanceof Map) return undefined;
		map.set(key, value as string | readonly string[]);
	}
	return map;
}

function readTextList(elements: readonly CelSyntaxNode[], scope: MatcherCallScope): readonly string[] | undefined {
	const texts = elements.map(element => readText(element, scope));
	return texts.includes(undefined) ? undefined : (texts as string[]);
}

function readText(expr: CelSyntaxNode, scope: MatcherCallScope): string | undefined {
	const kind = expr.exprKind;
	if (kind.case === 'constExpr') {
		const { constantKind } = kind.value;
		return constantKind.case === 'stringValue' ? constantKind.value : undefined;
	}
	if (kind.case !== 'callExpr') return undefined;
	const { function: name, args } = kind.value;
	if (name === PLACEHOLDER_FUNCTION) return `{${placeholderName(args, scope)}}`;
	if (name !== '_+_') return undefined;
	const parts = args.map(arg => readText(arg, scope));
	return parts.includes(undefined) ? undefined : parts.join('');
}

/** Returns the full name of the placeholder that a call of {@link PLACEHOLDER_FUNCTION} stands for. */
export function placeholderName(args: readonly CelSyntaxNode[], scope: MatcherCallScope): string {
	const kind = args[0]?.exprKind;
	const constant = kind?.case === 'constExpr' ? kind.value.constantKind : undefined;
	const name = constant?.case === 'int64Value' ? scope.placeholders[Number(constant.value)] : undefined;
	if (name === undefined) throw new MatcherCallError(`undeclared reference to '${PLACEHOLDER_FUNCTION}'`);
	return name;
}

function requireTextArguments(
	args: readonly ArgumentValue[],
	callName: string,
	min = 1,
	max = Number.POSITIVE_INFINITY,
): string[] {
	if (args.length < min || args.length > max || !args.every(arg => typeof arg === 'string')) {
		const expectedArguments =
			min === max ? 'one string' : max === Number.POSITIVE_INFINITY ? 'texts' : `${min} to ${max} texts`;
		throw new MatcherCallError(`${callName}() takes ${expectedArguments}`);
	}
	return args as string[];
}

function readRegexpArguments(
	args: readonly ArgumentValue[],
	scope: MatcherCallScope,
	callName: string,
	subjectCount: 0 | 1,
) {
	const texts = requireTextArguments(args, callName, subjectCount + 1, subjectCount + 2);
	const explicitName = texts.length === subjectCount + 2 ? texts[0]! : undefined;
	if (explicitName !== undefined && !/^\w+$/.test(explicitName)) {
		throw new MatcherCallError(`invalid regexp name (must contain only word characters): ${explicitName}`);
	}
	const name = explicitName ?? scope.name;
	const fields = { pattern: texts.at(-1)!, ...(name === undefined ? {} : { name }) };
	return { subject: texts.at(-2) ?? '', fields };
}

function requireMapEntries(args: readonly ArgumentValue[], callName: string): (readonly [string, readonly string[]])[] {
	const [map] = args;
	if (args.length !== 1 || !(map instanceof Map)) throw new MatcherCallError(`${callName}() takes one map`);
	return [...(map as ReadonlyMap<string, string | readonly string[]>)].map(([key, value]) => [
		key,
		typeof value === 'string' ? [value] : value,
	]);
}

function createHeaderMatcher([name, values]: readonly [string, readonly string[]]): Matcher {
	if (name.startsWith('!')) return { type: 'header', name: name.slice(1), absent: true };
	if (values.length === 0 || values.includes('*')) return { type: 'header', name, present: true };
	return { type: 'header', name, values };
}

const FILE_CALL_KEYS: ReadonlySet<string> = new Set(['root', 'try_files', 'try_policy', 'split_path']);

function createFileMatcher(args: readonly ArgumentValue[], scope: MatcherCallScope, callName: string): Matcher {
	const [map] = args;
	const defaultFiles = scope.files === undefined ? {} : { files: scope.files };
	// A trailing slash restricts a path to folders even if it comes from a placeholder.
	const fieldsForFiles = (files: readonly string[]) => ({ files, slashes: 'rendered' });
	if (!(map instanceof Map))
		return { type: 'file', ...(args.length > 0 ? fieldsForFiles(requireTextArguments(args, callName)) : defaultFiles) };
	const fields = new Map(requireMapEntries(args, callName));
	for (const key of fields.keys()) {
		if (!FILE_CALL_KEYS.has(key)) throw new MatcherCallError(`${callName}() knows no \`${key}\``);
	}
	const [files, splitExtensions, root, policy] = ['try_files', 'split_path', 'root', 'try_policy'].map(key =>
		fields.get(key),
	);
	if (
		policy &&
		policy[0] !== COMPATIBLE_FALLBACK_POLICY &&
		!TRY_POLICIES.some(knownPolicy => knownPolicy === policy[0])
	) {
		throw new MatcherCallError(`unknown try policy ${policy[0]}`);
	}
	return {
		type: 'file',
		...(files && files.length > 0 ? fieldsForFiles(files) : defaultFiles),
		...(root ? { root: root[0] } : {}),
		...(policy ? { policy: policy[0] } : {}),
		...(splitExtensions ? { split_path: splitExtensions } : {}),
	};
}
