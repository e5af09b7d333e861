/** The syntax files of Vim for both dialects. */
import type { Dialect } from '../../compiler/dialects/dialect.ts';
import { editorWords } from './editor-words.ts';

/** Returns the contents of Vim's syntax file for a dialect. */
export function vimSyntax(dialect: Dialect): string {
	const { directives, matchers, options, keywords, operators, expectations } = editorWords(dialect);
	const isConfigfile = dialect === 'configfile';
	/** Returns a statement that matches words at the start of a line. */
	const matchAtStart = (group: string, words: readonly string[]): string =>
		`syntax match ${group} /\\v^\\s*\\zs%(${words.join('|')})\\ze%(\\s|$)/`;
	/** Returns a statement that matches whole words that follow a blank or begin a line. */
	const matchAfter = (group: string, words: readonly string[]): string =>
		`syntax match ${group} contained /\\v%(\\s|^)@<=%(${words.map(word => word.replace(/[()]/g, '\\$&')).join('|')})\\ze%(\\s|$)/`;
	return `" Vim syntax file of ${isConfigfile ? 'Configfile' : 'Caddyfile'}. Derived from the modules of svc.
if exists('b:current_syntax')
	finish
endif

syntax case match
syntax sync minlines=200

" A line at the top that is nothing else is a list of addresses.
syntax match svcSite /\\v^[^ \\t#{}@(&][^#]*\\ze\\{\\s*$/ contains=svcPlaceholder
syntax match svcProperty /\\v^\\s+\\zs[a-z_][a-z0-9_]*\\ze%(\\s|$)/
${matchAtStart('svcProperty', options)}
${matchAtStart('svcDirective', directives)}
${matchAtStart('svcKeyword', isConfigfile ? [...keywords, 'expect'] : keywords)}
syntax match svcKeyword /\\v%(\\}\\s+)@<=else>/
${isConfigfile ? `${matchAtStart('svcMethod', ['[A-Z]+'])}\nsyntax match svcExpectation /\\v%(^\\s*expect\\s+)@<=%(${expectations.join('|')})>/\n` : ''}syntax match svcSnippet /\\v^\\&?\\(\\zs[^() \\t]+\\ze\\)/
syntax match svcSnippet /\\v%(^\\s*%(use|import|invoke)\\s+)@<=[A-Za-z0-9_-]+\\ze%(\\s|$)/
syntax match svcName /\\v%(\\s|^)@<=\\@[^ \\t{}]+/
syntax match svcName /\\v%(^\\s*let\\s+)@<=\\S+/
syntax match svcUpstream /\\v%(^\\s*upstream\\s+)@<=[A-Za-z0-9_-]+\\ze\\s*\\{/
syntax match svcUpstream /\\v%(upstream:\\/\\/)@<=[A-Za-z0-9_-]+/
syntax region svcMatcherLine start=/\\v%(^\\s*)@<=\\@\\S+\\s/ end=/$/ oneline keepend contains=svcName,svcMatcher,svcOperator,svcString,svcPlaceholder,svcComment,svcNumber
${isConfigfile ? `syntax region svcMatcherLine start=/\\v%(^\\s*|\\}\\s+else\\s+)@<=when\\s/ end=/$/ oneline keepend contains=svcWhen,svcName,svcMatcher,svcOperator,svcString,svcPlaceholder,svcComment,svcNumber\n${matchAfter('svcWhen', ['when'])}\n` : ''}${matchAfter('svcMatcher', matchers)}
${matchAfter('svcOperator', isConfigfile ? [...operators, '(', ')'] : operators)}
syntax match svcNumber /\\v%(\\s)@<=%(\\d+%(\\.\\d+)?%(ns|us|ms|[smhdw]|[KMGT]i?B?|B)?|[1-5]xx)\\ze%(\\s|$)/
syntax match svcBoolean /\\v%(\\s)@<=%(on|off|true|false|yes|no)\\ze%(\\s|$)/
syntax match svcPlaceholder /\\v\\\\@<!\\{[^{} \\t]+\\}/
syntax match svcEscape contained /\\\\["\\\\]/
syntax region svcString start=/\\v%(^|\\s|\\=)@<="/ skip=/\\\\"/ end=/"/ contains=svcEscape,svcPlaceholder
syntax region svcString start=/\\v%(^|\\s|\\=)@<=\`/ end=/\`/ contains=svcPlaceholder
syntax region svcString matchgroup=svcHeredoc start=/\\v%(^|\\s)@<=\\<\\<\\z([A-Za-z0-9_-]+)$/ end=/\\z1/ contains=svcPlaceholder
syntax match svcComment /\\v%(^|\\s)@<=#.*$/ contains=@Spell

highlight default link svcBoolean Boolean
highlight default link svcComment Comment
highlight default link svcDirective Function
highlight default link svcEscape SpecialChar
highlight default link svcExpectation Identifier
highlight default link svcHeredoc Delimiter
highlight default link svcKeyword Keyword
highlight default link svcMatcher Function
highlight default link svcMethod Keyword
highlight default link svcName Identifier
highlight default link svcNumber Number
highlight default link svcOperator Operator
highlight default link svcPlaceholder PreProc
highlight default link svcProperty Type
highlight default link svcSite Title
highlight default link svcSnippet Macro
highlight default link svcString String
highlight default link svcUpstream Structure
highlight default link svcWhen Keyword

let b:current_syntax = '${isConfigfile ? 'configfile' : 'caddyfile'}'
`;
}
