/** Translates the conditions of `if` blocks, and `allow` and `deny` lines, to expressions of matchers. */
import { quoteText, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { hasVariable, regexpOf, translateText, type Variables } from './nginx-values.ts';
import { Untranslatable } from './untranslatable.ts';

/** An expression of matchers, with the nginx variables that are defined for requests that it matches. */
export interface Condition {
	readonly expression: string;
	readonly variables: Variables;
}

/** What the translation of a condition depends on, besides its words. */
export interface ConditionContext {
	readonly variables: Variables;
	/**
	 * The folder that `$document_root` stands for; undefined if it is not known, or if `$request_filename` is not the request path
	 * below it.
	 */
	readonly root: string | undefined;
	/** The arguments of `valid_referers`, which decide `$invalid_referer`; undefined if there is no such line. */
	readonly referers: readonly string[] | undefined;
	readonly unusedName: (kind: string) => string;
}

/** Translates the arguments of an `if`. Throws Untranslatable. */
export function translateCondition(args: readonly string[], cx: ConditionContext): Condition {
	const conditionText = args
		.join(' ')
		.replace(/^\s*\(\s*/, '')
		.replace(/\s*\)\s*$/, '');
	const fileTest = /^(!?)-([fdex])\s+(.+)$/.exec(conditionText);
	if (fileTest)
		return { expression: fileCondition(fileTest[1] === '!', fileTest[2]!, fileTest[3]!, cx), variables: cx.variables };
	const comparison = /^\$\{?(\w+)\}?\s*(?:(!?~\*?|!?=)\s*(.*))?$/s.exec(conditionText);
	if (!comparison) throw new Untranslatable('the import does not recognize the condition');
	const [, name = '', operator, operand = ''] = comparison;
	if (operator === undefined) return { expression: truthCondition(name, cx), variables: cx.variables };
	const isNegated = operator.startsWith('!');
	if (operator.includes('~')) {
		const captureName = cx.unusedName('if');
		const pattern = regexpOf(operand, operator.endsWith('*'));
		const testsPath = name === 'uri' || name === 'document_uri';
		const matcherName = testsPath ? 'path_regexp' : `vars_regexp`;
		const operandText = testsPath ? '' : `${cx.variables.placeholderOf(name)} `;
		const expression = `${matcherName} ${isNegated ? '' : `${captureName} `}${operandText}${word(pattern)}`;
		return isNegated
			? { expression: `not ${expression}`, variables: cx.variables }
			: { expression, variables: cx.variables.withGroups(captureName, operand) };
	}
	const expression = equalityCondition(name, operand, cx);
	return { expression: isNegated ? `not ${expression}` : expression, variables: cx.variables };
}

function equalityCondition(name: string, value: string, cx: ConditionContext): string {
	if (name === 'request_method' && /^[A-Z]+$/.test(value)) return `method ${value}`;
	if (name === 'scheme' && /^https?$/.test(value)) return `protocol ${value}`;
	if (name === 'https' && value === 'on') return 'protocol https';
	if (name === 'https' && value === '') return 'not protocol https';
	if (name === 'host' && /^[a-z\d.-]+$/.test(value)) return `host ${value}`;
	if (name === 'ssl_client_verify' && (value === 'SUCCESS' || value === 'NONE'))
		return `${value === 'NONE' ? '' : 'not '}vars {tls_client_fingerprint} ""`;
	return `vars ${cx.variables.placeholderOf(name)} ${quoteText(translateText(value, cx.variables))}`;
}

function truthCondition(name: string, cx: ConditionContext): string {
	if (name === 'invalid_referer') {
		if (!cx.referers) throw new Untranslatable('there is no `valid_referers` beside it');
		return invalidRefererExpression(cx.referers);
	}
	if (name === 'https') return 'protocol https';
	return `not vars ${cx.variables.placeholderOf(name)} "" "0"`;
}

function invalidRefererExpression(names: readonly string[]): string {
	const validExpressions = names.map(name => {
		if (name === 'none') return 'vars {header.Referer} ""';
		if (name === 'blocked')
			return '( not vars {header.Referer} "" and not vars_regexp {header.Referer} (?i)^https?:// )';
		if (name === 'server_names') throw new Untranslatable('`server_names` has no counterpart: write the names');
		if (name.startsWith('~'))
			return `vars_regexp {header.Referer} ${word(regexpOf(`^https?://.*${name.slice(1)}`, true))}`;
		const host = name
			.split('*')
			.map(part => part.replace(/[.+?^$()[\]{}|\\]/g, '\\$&'))
			.join('[^/]*');
		return `vars_regexp {header.Referer} ${word(`(?i)^https?://${host}${name.includes('/') ? '' : '(?::\\d+)?(?:/|$)'}`)}`;
	});
	return `not ( ${validExpressions.join(' or ')} )`;
}

function fileCondition(isNegated: boolean, testKind: string, fileText: string, cx: ConditionContext): string {
	if (testKind === 'x') throw new Untranslatable('there is no test for executable files');
	const { root } = cx;
	if (root === undefined) throw new Untranslatable('the folder of the file is not known here');
	const expandedText = fileText.replace(/^\$request_filename/, '$document_root$uri');
	const isBelowRoot =
		expandedText.startsWith('$document_root/') ||
		expandedText.startsWith('$document_root$') ||
		expandedText.startsWith(`${root}/`);
	if (!isBelowRoot) throw new Untranslatable('only files below the root are looked up');
	const textWithoutVariable = expandedText.replace(/^\$document_root/, '');
	const path = translateText(
		textWithoutVariable.startsWith(`${root}/`) ? textWithoutVariable.slice(root.length) : textWithoutVariable,
		cx.variables,
	);
	if (!path.startsWith('/') && !path.startsWith('{path}'))
		throw new Untranslatable('the file is not a path below the root');
	const files = [
		...(testKind === 'd' ? [] : [word(path)]),
		...(testKind === 'f' ? [] : [word(`${path.replace(/\/$/, '')}/`)]),
	];
	return `${isNegated ? 'not ' : ''}file ${files.join(' ')}`;
}

/**
 * Translates `allow` and `deny` lines to an expression that matches the admitted addresses. As in nginx, the first line that
 * matches an address decides. Returns true if all addresses are admitted, and false if none are.
 */
export function translateAddressRules(rules: readonly NginxDirective[], matcher: string): string | boolean {
	let allowedCondition: string | boolean = true;
	for (const { name, args } of rules.toReversed()) {
		const [range = ''] = args;
		if (range === 'all') allowedCondition = name === 'allow';
		else if (range === 'unix:') continue;
		else if (hasVariable(range) || !/^[\da-fA-F.:/]+$/.test(range))
			throw new Untranslatable(`\`${range}\` is no address`);
		else if (name === 'allow') allowedCondition = joinWithOr(`${matcher} ${range}`, allowedCondition, matcher);
		else allowedCondition = joinWithAnd(`not ${matcher} ${range}`, allowedCondition);
	}
	return allowedCondition;
}

function joinWithOr(expression: string, alternative: string | boolean, matcher: string): string | boolean {
	if (typeof alternative === 'boolean') return alternative || expression;
	// Ranges of successive `allow` lines become one matcher.
	if (new RegExp(`^${matcher} [^()]*$`).test(alternative) && !/ (?:and|or) /.test(alternative))
		return `${expression} ${alternative.slice(matcher.length + 1)}`;
	return `${expression} or ( ${alternative} )`;
}

function joinWithAnd(expression: string, condition: string | boolean): string | boolean {
	if (typeof condition === 'boolean') return condition && expression;
	return / or /.test(condition) ? `${expression} and ( ${condition} )` : `${expression} and ${condition}`;
}
