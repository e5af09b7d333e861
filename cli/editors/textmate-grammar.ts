/** The TextMate grammars of both dialects, which Visual Studio Code and code hosts use for coloring. */
import type { Dialect } from '../../compiler/dialects/dialect.ts';
import { type EditorWords, editorWords } from './editor-words.ts';

/** A rule of a TextMate grammar, with only the members that are used here. */
interface Rule {
	readonly name?: string;
	readonly match?: string;
	readonly begin?: string;
	readonly end?: string;
	readonly include?: string;
	readonly captures?: Captures;
	readonly beginCaptures?: Captures;
	readonly endCaptures?: Captures;
	readonly patterns?: readonly Rule[];
}

type Captures = { readonly [group: string]: { readonly name: string } };

/** A grammar in the JSON form of TextMate. */
export interface TextMateGrammar {
	readonly name: string;
	readonly scopeName: string;
	readonly fileTypes: readonly string[];
	readonly patterns: readonly Rule[];
	readonly repository: { readonly [name: string]: Rule };
}

/** Matches the end of a statement: the end of a line without a backslash that continues it. */
const LINE_END_PATTERN = '(?<!\\\\)$';

export function textMateGrammar(dialect: Dialect): TextMateGrammar {
	const words = editorWords(dialect);
	const isConfigfile = dialect === 'configfile';
	const statementIncludes = includeRules(
		...(isConfigfile ? ['let', 'upstream', 'when', 'use'] : []),
		'import',
		'invoke',
		'block-directive',
	);
	const lineIncludes = [...statementIncludes, ...includeRules('directive', 'matcher-definition')];
	const topLevelRuleNames = [
		'comment',
		'options',
		'snippet',
		'route',
		...(isConfigfile ? ['let', 'upstream', 'test', 'when', 'use'] : []),
	];
	const withDialect = <R extends Rule>(rule: R): R =>
		JSON.parse(JSON.stringify(rule).replaceAll('.LANG"', `.${dialect}"`));
	return {
		name: isConfigfile ? 'Configfile' : 'Caddyfile',
		scopeName: `source.${dialect}`,
		fileTypes: isConfigfile ? ['Configfile', 'configfile'] : ['Caddyfile', 'caddyfile', 'Compatfile', 'compatfile'],
		patterns: [
			...includeRules(
				...topLevelRuleNames,
				'import',
				'invoke',
				'block-directive',
				'directive',
				'matcher-definition',
				'site',
			),
		],
		repository: Object.fromEntries(
			Object.entries({
				...wordRules(words, isConfigfile),
				...blockRules(words, lineIncludes, isConfigfile),
				...lineRules(words),
				...(isConfigfile ? configfileRules(words) : {}),
			}).map(([name, rule]) => [name, withDialect(rule)]),
		),
	};
}

function includeRules(...names: readonly string[]): Rule[] {
	return names.map(name => ({ include: `#${name}` }));
}

/** Returns a regular expression that matches any of the given words as a whole word. */
function anyWordPattern(words: readonly string[]): string {
	return `(?<!\\S)(${words.map(word => word.replace(/[.*+?^$()|[\]{}\\]/g, '\\$&')).join('|')})(?!\\S)`;
}

function captureNames(...names: readonly string[]): Captures {
	return Object.fromEntries(names.map((name, index) => [String(index + 1), { name }]));
}

/**
 * Returns a rule for the lines that begin with a match of `begin`. The rule covers the rest of such a line and the block that the
 * line opens, if any.
 */
function lineRule(begin: string, captures: Captures, ...innerRuleNames: readonly string[]): Rule {
	return {
		begin: `^\\s*${begin}`,
		beginCaptures: captures,
		end: LINE_END_PATTERN,
		patterns: includeRules(...innerRuleNames, 'arguments'),
	};
}

/** Returns the rules for words that are colored wherever they occur, such as strings and placeholders. */
function wordRules({ matchers, operators }: EditorWords, isConfigfile: boolean): { [name: string]: Rule } {
	const quotedRule = (quote: string, name: string, patterns: readonly Rule[]): Rule => ({
		name: `string.quoted.${name}.LANG`,
		// A quote begins a string only at the start of a word.
		begin: `(?<![^\\s=])${quote}`,
		end: quote,
		patterns,
	});
	return {
		comment: { name: 'comment.line.number-sign.LANG', match: '(?<!\\S)#.*$' },
		placeholder: {
			match: '(?<!\\\\)\\{(?:param\\.([^{}\\s]+)|[^{}\\s]*[^{}\\s\\\\])\\}',
			name: 'variable.other.placeholder.LANG',
			captures: captureNames('variable.parameter.LANG'),
		},
		heredoc: {
			name: 'string.unquoted.heredoc.LANG',
			begin: '(?<!\\S)<<([A-Za-z0-9_-]+)$',
			end: '\\1',
			patterns: includeRules('placeholder'),
		},
		string: {
			patterns: [
				quotedRule('"', 'double', [
					{ name: 'constant.character.escape.LANG', match: '\\\\["\\\\]' },
					...includeRules('placeholder'),
				]),
				quotedRule('`', 'other', includeRules('placeholder')),
			],
		},
		arguments: {
			patterns: [
				...includeRules('comment', 'heredoc', 'string'),
				{ name: 'constant.character.escape.line-continuation.LANG', match: '\\\\$' },
				{
					match: '(?<!\\S)(upstream)://([A-Za-z0-9_-]+)',
					captures: captureNames('keyword.other.LANG', 'entity.name.namespace.LANG'),
				},
				...includeRules('placeholder'),
				{ name: 'variable.other.matcher.LANG', match: '(?<!\\S)@[^\\s{}]+' },
				{
					name: 'constant.numeric.LANG',
					match: '(?<!\\S)(?:[0-9]+(?:\\.[0-9]+)?(?:ns|us|µs|ms|[smhdw]|[KMGTkmgt]i?[Bb]?|[Bb])?|[1-5]xx)(?!\\S)',
				},
				{ name: 'constant.language.LANG', match: anyWordPattern(['on', 'off', 'true', 'false', 'yes', 'no']) },
			],
		},
		matchers: {
			patterns: [
				...includeRules('comment'),
				{ name: 'keyword.operator.LANG', match: anyWordPattern([...operators, ...(isConfigfile ? ['(', ')'] : [])]) },
				{ name: 'support.function.matcher.LANG', match: anyWordPattern(matchers) },
			],
		},
	};
}

/** Returns the rules of blocks, one for each kind of block contents. */
function blockRules(
	{ options }: EditorWords,
	lineIncludes: readonly Rule[],
	isConfigfile: boolean,
): { [name: string]: Rule } {
	const blockRule = (patterns: readonly Rule[]): Rule => ({
		begin: '(?<!\\S)\\{(?!\\S)',
		end: '(?<!\\S)\\}(?!\\S)',
		patterns: [...includeRules('comment'), ...patterns],
	});
	const imports = includeRules('import', ...(isConfigfile ? ['use'] : []));
	return {
		'directives-block': blockRule([...lineIncludes, ...includeRules('directives-block', 'arguments')]),
		'properties-block': blockRule([
			...imports,
			...includeRules('response-block', 'property', 'properties-block', 'arguments'),
		]),
		'matchers-block': blockRule([...imports, ...includeRules('matchers-block', 'matchers', 'arguments')]),
		options: {
			...blockRule([
				...imports,
				lineRule(anyWordPattern(options), captureNames('support.type.property-name.option.LANG'), 'properties-block'),
				...includeRules('property', 'arguments'),
			]),
			begin: '^\\s*\\{(?!\\S)',
		},
		'response-block': lineRule(
			'(handle_response)(?!\\S)',
			captureNames('support.type.property-name.LANG'),
			'directives-block',
		),
		property: lineRule(
			'([A-Za-z_][A-Za-z0-9_.-]*)(?!\\S)',
			captureNames('support.type.property-name.LANG'),
			'properties-block',
		),
	};
}

/** Returns the rules for lines that both dialects have. */
function lineRules({ directives, blocks }: EditorWords): { [name: string]: Rule } {
	const simpleDirectives = directives.filter(name => !blocks.includes(name) && name !== 'invoke');
	return {
		'block-directive': lineRule(
			anyWordPattern(blocks),
			captureNames('support.function.directive.LANG'),
			'directives-block',
		),
		directive: lineRule(
			anyWordPattern(simpleDirectives),
			captureNames('support.function.directive.LANG'),
			'properties-block',
		),
		invoke: lineRule(
			'(invoke)(?!\\S)(?:[ \\t]+(@[^\\s{}]+))?(?:[ \\t]+([^\\s{}]+))?',
			captureNames('support.function.directive.LANG', 'variable.other.matcher.LANG', 'entity.name.section.route.LANG'),
		),
		import: lineRule(
			'(import)(?!\\S)(?:[ \\t]+([A-Za-z0-9_-]+)(?!\\S))?',
			captureNames('keyword.control.import.LANG', 'entity.name.section.snippet.LANG'),
			'directives-block',
		),
		'matcher-definition': lineRule(
			'(@[^\\s{}]+)',
			captureNames('variable.other.matcher.LANG'),
			'matchers-block',
			'matchers',
		),
		snippet: lineRule(
			'\\(([^\\s()]+)\\)',
			captureNames('entity.name.section.snippet.LANG'),
			'directives-block',
			...['parameters'],
		),
		parameters: { name: 'variable.parameter.LANG', match: '(?<!\\S)[A-Za-z_][A-Za-z0-9_-]*(?=[= \\t])' },
		route: lineRule('&\\(([^\\s()]+)\\)', captureNames('entity.name.section.route.LANG'), 'directives-block'),
		site: {
			begin: '^\\s*(?=[^\\s}#])(?!\\{(?:\\s|$))',
			end: '(?<![,\\\\])$',
			patterns: [
				...includeRules('comment', 'directives-block'),
				{ name: 'entity.name.type.site.LANG', match: '(?![{}](?:\\s|$))\\S+' },
			],
		},
	};
}

/** Returns the rules for lines that only a Configfile has. */
function configfileRules({ expectations }: EditorWords): { [name: string]: Rule } {
	const keywordScope = 'keyword.control.LANG';
	return {
		let: lineRule('(let)(?!\\S)(?:[ \\t]+([^\\s{}]+))?', captureNames(keywordScope, 'variable.other.let.LANG')),
		upstream: lineRule(
			'(upstream)(?!\\S)(?:[ \\t]+([^\\s{}]+))?',
			captureNames(keywordScope, 'entity.name.namespace.LANG'),
			'properties-block',
		),
		use: lineRule(
			'(use)(?!\\S)(?:[ \\t]+([^\\s{}]+))?',
			captureNames('keyword.control.import.LANG', 'entity.name.section.snippet.LANG'),
			'parameter-values',
			'directives-block',
		),
		'parameter-values': { name: 'variable.parameter.LANG', match: '(?<!\\S)[A-Za-z_][A-Za-z0-9_-]*(?==)' },
		when: {
			begin: '^\\s*(when)(?!\\S)',
			beginCaptures: captureNames(keywordScope),
			end: LINE_END_PATTERN,
			patterns: [
				{ name: keywordScope, match: anyWordPattern(['else', 'when']) },
				...includeRules('directives-block', 'matchers', 'arguments'),
			],
		},
		test: lineRule('(test)(?!\\S)', captureNames(keywordScope), 'test-block'),
		'test-block': {
			begin: '(?<!\\S)\\{(?!\\S)',
			end: '(?<!\\S)\\}(?!\\S)',
			patterns: [
				...includeRules('comment', 'import', 'use'),
				lineRule('([A-Z]+)(?!\\S)', captureNames('keyword.other.method.LANG'), 'properties-block'),
				lineRule(
					`(expect)(?!\\S)(?:[ \\t]+${anyWordPattern(expectations)})?`,
					captureNames(keywordScope, 'support.type.property-name.LANG'),
					'properties-block',
				),
				lineRule('(upstream)(?!\\S)', captureNames(keywordScope), 'properties-block'),
				...includeRules('property', 'properties-block', 'arguments'),
			],
		},
	};
}
