/** Translates the condition of an `if`, and rules of access, to an expression of matchers. */
import { quoted, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { hasVariable, regexpOf, translated, type Variables } from './nginx-values.ts';
import { Untranslatable } from './untranslatable.ts';

/** An expression, and the variables that hold where it does. */
export interface Condition {
	readonly expression: string;
	readonly variables: Variables;
}

/** What a condition needs to know. */
export interface ConditionContext {
	readonly variables: Variables;
	/** The folder of `$document_root` here, if it is known and `$request_filename` is the path below it. */
	readonly root: string | undefined;
	/** `$invalid_referer`: the names that `valid_referers` accepts. */
	readonly referers: readonly string[] | undefined;
	readonly unusedName: (kind: string) => string;
}

/** Translates the words of an `if`. Throws Untranslatable. */
export function conditionOf(args: readonly string[], cx: ConditionContext): Condition {
	const text = args
		.join(' ')
		.replace(/^\s*\(\s*/, '')
		.replace(/\s*\)\s*$/, '');
	const file = /^(!?)-([fdex])\s+(.+)$/.exec(text);
	if (file) return { expression: fileCondition(file[1] === '!', file[2]!, file[3]!, cx), variables: cx.variables };
	const compared = /^\$\{?(\w+)\}?\s*(?:(!?~\*?|!?=)\s*(.*))?$/s.exec(text);
	if (!compared) throw new Untranslatable('the condition is not one that the import knows');
	const [, name = '', operator, operand = ''] = compared;
	if (operator === undefined) return { expression: truth(name, cx), variables: cx.variables };
	const isNegated = operator.startsWith('!');
	if (operator.includes('~')) {
		const label = cx.unusedName('if');
		const pattern = regexpOf(operand, operator.endsWith('*'));
		const isPath = name === 'uri' || name === 'document_uri';
		const subject = isPath ? 'path_regexp' : `vars_regexp`;
		const of = isPath ? '' : `${cx.variables.placeholder(name)} `;
		const expression = `${subject} ${isNegated ? '' : `${label} `}${of}${word(pattern)}`;
		return isNegated
			? { expression: `not ${expression}`, variables: cx.variables }
			: { expression, variables: cx.variables.after(label, operand) };
	}
	const expression = equality(name, operand, cx);
	return { expression: isNegated ? `not ${expression}` : expression, variables: cx.variables };
}

function equality(name: string, value: string, cx: ConditionContext): string {
	if (name === 'request_method' && /^[A-Z]+$/.test(value)) return `method ${value}`;
	if (name === 'scheme' && /^https?$/.test(value)) return `protocol ${value}`;
	if (name === 'https' && value === 'on') return 'protocol https';
	if (name === 'https' && value === '') return 'not protocol https';
	if (name === 'host' && /^[a-z\d.-]+$/.test(value)) return `host ${value}`;
	if (name === 'ssl_client_verify' && (value === 'SUCCESS' || value === 'NONE'))
		return `${value === 'NONE' ? '' : 'not '}vars {tls_client_fingerprint} ""`;
	return `vars ${cx.variables.placeholder(name)} ${quoted(translated(value, cx.variables))}`;
}

function truth(name: string, cx: ConditionContext): string {
	if (name === 'invalid_referer') {
		if (!cx.referers) throw new Untranslatable('there is no `valid_referers` beside it');
		return invalidReferer(cx.referers);
	}
	if (name === 'https') return 'protocol https';
	return `not vars ${cx.variables.placeholder(name)} "" "0"`;
}

function invalidReferer(names: readonly string[]): string {
	const valid = names.map(name => {
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
	return `not ( ${valid.join(' or ')} )`;
}

function fileCondition(isNegated: boolean, test: string, written: string, cx: ConditionContext): string {
	if (test === 'x') throw new Untranslatable('there is no test for executable files');
	const { root } = cx;
	if (root === undefined) throw new Untranslatable('the folder of the file is not known here');
	const text = written.replace(/^\$request_filename/, '$document_root$uri');
	const isBelow =
		text.startsWith('$document_root/') || text.startsWith('$document_root$') || text.startsWith(`${root}/`);
	if (!isBelow) throw new Untranslatable('only files below the root are looked up');
	const below = text.replace(/^\$document_root/, '');
	const path = translated(below.startsWith(`${root}/`) ? below.slice(root.length) : below, cx.variables);
	if (!path.startsWith('/') && !path.startsWith('{path}'))
		throw new Untranslatable('the file is no path below the root');
	const files = [...(test === 'd' ? [] : [word(path)]), ...(test === 'f' ? [] : [word(`${path.replace(/\/$/, '')}/`)])];
	return `${isNegated ? 'not ' : ''}file ${files.join(' ')}`;
}

/**
 * Translates `allow` and `deny`, of which the first that matches decides, to an expression for the addresses that are let in.
 * Returns true or false if all or none are.
 */
export function allowedAddresses(rules: readonly NginxDirective[], matcher: string): string | boolean {
	let allowed: string | boolean = true;
	for (const { name, args } of rules.toReversed()) {
		const [range = ''] = args;
		if (range === 'all') allowed = name === 'allow';
		else if (range === 'unix:') continue;
		else if (hasVariable(range) || !/^[\da-fA-F.:/]+$/.test(range))
			throw new Untranslatable(`\`${range}\` is no address`);
		else if (name === 'allow') allowed = either(`${matcher} ${range}`, allowed, matcher);
		else allowed = both(`not ${matcher} ${range}`, allowed);
	}
	return allowed;
}

function either(one: string, rest: string | boolean, matcher: string): string | boolean {
	if (typeof rest === 'boolean') return rest || one;
	// Ranges of successive `allow` lines become one matcher.
	if (new RegExp(`^${matcher} [^()]*$`).test(rest) && !/ (?:and|or) /.test(rest))
		return `${one} ${rest.slice(matcher.length + 1)}`;
	return `${one} or ( ${rest} )`;
}

function both(one: string, rest: string | boolean): string | boolean {
	if (typeof rest === 'boolean') return rest && one;
	return / or /.test(rest) ? `${one} and ( ${rest} )` : `${one} and ${rest}`;
}
