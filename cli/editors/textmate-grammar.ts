/** The TextMate grammars of both dialects, which Visual Studio Code and code hosts use for coloring. */
import type { Dialect } from '../../compiler/dialects/dialect.ts';
import { type EditorWords, editorWords } from './editor-words.ts';

/** A rule of a grammar, as far as these grammars use the format. */
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

/** A grammar, as JSON. */
export interface TextMateGrammar {
	readonly name: string;
	readonly scopeName: string;
	readonly fileTypes: readonly string[];
	readonly patterns: readonly Rule[];
	readonly repository: { readonly [name: string]: Rule };
}

/** A statement ends with its line, unless a backslash continues it. */
const LINE_END = '(?<!\\\\)$';

/** Returns the grammar of a dialect. */
export function textMateGrammar(dialect: Dialect): TextMateGrammar {
	const words = editorWords(dialect);
	const own = dialect === 'configfile';
	const statements = include(...(own ? ['let', 'upstream', 'when', 'use'] : []), 'import', 'invoke', 'block-directive');
	const lines = [...statements, ...include('directive', 'matcher-definition')];
	const toplevel = [
		'comment',
		'options',
		'snippet',
		'route',
		...(own ? ['let', 'upstream', 'test', 'when', 'use'] : []),
	];
	const scoped = <R extends Rule>(rule: R): R => JSON.parse(JSON.stringify(rule).replaceAll('.LANG"', `.${dialect}"`));
	return {
		name: own ? 'Configfile' : 'Caddyfile',
		scopeName: `source.${dialect}`,
		fileTypes: own ? ['Configfile', 'configfile'] : ['Caddyfile', 'caddyfile', 'Compatfile', 'compatfile'],
		patterns: [
			...include(...toplevel, 'import', 'invoke', 'block-directive', 'directive', 'matcher-definition', 'site'),
		],
		repository: Object.fromEntries(
			Object.entries({
				...wordRules(words, own),
				...blockRules(words, lines, own),
				...lineRules(words),
				...(own ? configfileRules(words) : {}),
			}).map(([name, rule]) => [name, scoped(rule)]),
		),
	};
}

function include(...names: readonly string[]): Rule[] {
	return names.map(name => ({ include: `#${name}` }));
}

/** Matches one of some whole words. */
function oneOf(words: readonly string[]): string {
	return `(?<!\\S)(${words.map(word => word.replace(/[.*+?^$()|[\]{}\\]/g, '\\$&')).join('|')})(?!\\S)`;
}

function named(...names: readonly string[]): Captures {
	return Object.fromEntries(names.map((name, index) => [String(index + 1), { name }]));
}

/** A line that begins with a match, up to its end or that of its block. */
function line(begin: string, captures: Captures, ...inside: readonly string[]): Rule {
	return { begin: `^\\s*${begin}`, beginCaptures: captures, end: LINE_END, patterns: include(...inside, 'arguments') };
}

/** What words are, wherever they are. */
function wordRules({ matchers, operators }: EditorWords, own: boolean): { [name: string]: Rule } {
	const quoted = (quote: string, name: string, patterns: readonly Rule[]): Rule => ({
		name: `string.quoted.${name}.LANG`,
		// A quote begins a string at the start of a word only.
		begin: `(?<![^\\s=])${quote}`,
		end: quote,
		patterns,
	});
	return {
		comment: { name: 'comment.line.number-sign.LANG', match: '(?<!\\S)#.*$' },
		placeholder: {
			match: '(?<!\\\\)\\{(?:param\\.([^{}\\s]+)|[^{}\\s]*[^{}\\s\\\\])\\}',
			name: 'variable.other.placeholder.LANG',
			captures: named('variable.parameter.LANG'),
		},
		heredoc: {
			name: 'string.unquoted.heredoc.LANG',
			begin: '(?<!\\S)<<([A-Za-z0-9_-]+)$',
			end: '\\1',
			patterns: include('placeholder'),
		},
		string: {
			patterns: [
				quoted('"', 'double', [
					{ name: 'constant.character.escape.LANG', match: '\\\\["\\\\]' },
					...include('placeholder'),
				]),
				quoted('`', 'other', include('placeholder')),
			],
		},
		arguments: {
			patterns: [
				...include('comment', 'heredoc', 'string'),
				{ name: 'constant.character.escape.line-continuation.LANG', match: '\\\\$' },
				{
					match: '(?<!\\S)(upstream)://([A-Za-z0-9_-]+)',
					captures: named('keyword.other.LANG', 'entity.name.namespace.LANG'),
				},
				...include('placeholder'),
				{ name: 'variable.other.matcher.LANG', match: '(?<!\\S)@[^\\s{}]+' },
				{
					name: 'constant.numeric.LANG',
					match: '(?<!\\S)(?:[0-9]+(?:\\.[0-9]+)?(?:ns|us|µs|ms|[smhdw]|[KMGTkmgt]i?[Bb]?|[Bb])?|[1-5]xx)(?!\\S)',
				},
				{ name: 'constant.language.LANG', match: oneOf(['on', 'off', 'true', 'false', 'yes', 'no']) },
			],
		},
		matchers: {
			patterns: [
				...include('comment'),
				{ name: 'keyword.operator.LANG', match: oneOf([...operators, ...(own ? ['(', ')'] : [])]) },
				{ name: 'support.function.matcher.LANG', match: oneOf(matchers) },
			],
		},
	};
}

/** Returns the rules of blocks, one for each kind of line that a block can contain. */
function blockRules({ options }: EditorWords, lines: readonly Rule[], own: boolean): { [name: string]: Rule } {
	const block = (patterns: readonly Rule[]): Rule => ({
		begin: '(?<!\\S)\\{(?!\\S)',
		end: '(?<!\\S)\\}(?!\\S)',
		patterns: [...include('comment'), ...patterns],
	});
	const imports = include('import', ...(own ? ['use'] : []));
	return {
		'directives-block': block([...lines, ...include('directives-block', 'arguments')]),
		'properties-block': block([...imports, ...include('response-block', 'property', 'properties-block', 'arguments')]),
		'matchers-block': block([...imports, ...include('matchers-block', 'matchers', 'arguments')]),
		options: {
			...block([
				...imports,
				line(oneOf(options), named('support.type.property-name.option.LANG'), 'properties-block'),
				...include('property', 'arguments'),
			]),
			begin: '^\\s*\\{(?!\\S)',
		},
		'response-block': line('(handle_response)(?!\\S)', named('support.type.property-name.LANG'), 'directives-block'),
		property: line('([A-Za-z_][A-Za-z0-9_.-]*)(?!\\S)', named('support.type.property-name.LANG'), 'properties-block'),
	};
}

/** The lines that both dialects have. */
function lineRules({ directives, blocks }: EditorWords): { [name: string]: Rule } {
	const plain = directives.filter(name => !blocks.includes(name) && name !== 'invoke');
	return {
		'block-directive': line(oneOf(blocks), named('support.function.directive.LANG'), 'directives-block'),
		directive: line(oneOf(plain), named('support.function.directive.LANG'), 'properties-block'),
		invoke: line(
			'(invoke)(?!\\S)(?:[ \\t]+(@[^\\s{}]+))?(?:[ \\t]+([^\\s{}]+))?',
			named('support.function.directive.LANG', 'variable.other.matcher.LANG', 'entity.name.section.route.LANG'),
		),
		import: line(
			'(import)(?!\\S)(?:[ \\t]+([A-Za-z0-9_-]+)(?!\\S))?',
			named('keyword.control.import.LANG', 'entity.name.section.snippet.LANG'),
			'directives-block',
		),
		'matcher-definition': line('(@[^\\s{}]+)', named('variable.other.matcher.LANG'), 'matchers-block', 'matchers'),
		snippet: line(
			'\\(([^\\s()]+)\\)',
			named('entity.name.section.snippet.LANG'),
			'directives-block',
			...['parameters'],
		),
		parameters: { name: 'variable.parameter.LANG', match: '(?<!\\S)[A-Za-z_][A-Za-z0-9_-]*(?=[= \\t])' },
		route: line('&\\(([^\\s()]+)\\)', named('entity.name.section.route.LANG'), 'directives-block'),
		site: {
			begin: '^\\s*(?=[^\\s}#])(?!\\{(?:\\s|$))',
			end: '(?<![,\\\\])$',
			patterns: [
				...include('comment', 'directives-block'),
				{ name: 'entity.name.type.site.LANG', match: '(?![{}](?:\\s|$))\\S+' },
			],
		},
	};
}

/** The lines that only a Configfile has. */
function configfileRules({ expectations }: EditorWords): { [name: string]: Rule } {
	const keyword = 'keyword.control.LANG';
	return {
		let: line('(let)(?!\\S)(?:[ \\t]+([^\\s{}]+))?', named(keyword, 'variable.other.let.LANG')),
		upstream: line(
			'(upstream)(?!\\S)(?:[ \\t]+([^\\s{}]+))?',
			named(keyword, 'entity.name.namespace.LANG'),
			'properties-block',
		),
		use: line(
			'(use)(?!\\S)(?:[ \\t]+([^\\s{}]+))?',
			named('keyword.control.import.LANG', 'entity.name.section.snippet.LANG'),
			'parameter-values',
			'directives-block',
		),
		'parameter-values': { name: 'variable.parameter.LANG', match: '(?<!\\S)[A-Za-z_][A-Za-z0-9_-]*(?==)' },
		when: {
			begin: '^\\s*(when)(?!\\S)',
			beginCaptures: named(keyword),
			end: LINE_END,
			patterns: [
				{ name: keyword, match: oneOf(['else', 'when']) },
				...include('directives-block', 'matchers', 'arguments'),
			],
		},
		test: line('(test)(?!\\S)', named(keyword), 'test-block'),
		'test-block': {
			begin: '(?<!\\S)\\{(?!\\S)',
			end: '(?<!\\S)\\}(?!\\S)',
			patterns: [
				...include('comment', 'import', 'use'),
				line('([A-Z]+)(?!\\S)', named('keyword.other.method.LANG'), 'properties-block'),
				line(
					`(expect)(?!\\S)(?:[ \\t]+${oneOf(expectations)})?`,
					named(keyword, 'support.type.property-name.LANG'),
					'properties-block',
				),
				line('(upstream)(?!\\S)', named(keyword), 'properties-block'),
				...include('property', 'properties-block', 'arguments'),
			],
		},
	};
}
