" Vim syntax file of Configfile. Derived from the modules of svc.
if exists('b:current_syntax')
	finish
endif

syntax case match
syntax sync minlines=200

" A line at the top that is nothing else is a list of addresses.
syntax match svcSite /\v^[^ \t#{}@(&][^#]*\ze\{\s*$/ contains=svcPlaceholder
syntax match svcProperty /\v^\s+\zs[a-z_][a-z0-9_]*\ze%(\s|$)/
syntax match svcProperty /\v^\s*\zs%(acme_ca|acme_ca_root|acme_dns|acme_eab|admin|auto_https|cache|cert_issuer|cert_lifetime|cluster|debug|default_bind|default_sni|dns|email|fallback_sni|grace_period|http_port|https_port|io|key_type|local_certs|log|metrics|ocsp_interval|ocsp_stapling|on_demand_tls|persist_config|pki|preferred_chains|renew_interval|renewal_window_ratio|servers|shutdown_delay|skip_install_trust|storage|storage_check|storage_clean_interval|threads|tls_resolvers)\ze%(\s|$)/
syntax match svcDirective /\v^\s*\zs%(abort|acme_server|basic_auth|bind|cache|cookie|copy_response|copy_response_headers|encode|error|errors_page|file_server|forward_auth|fs|handle|handle_errors|handle_path|header|intercept|invoke|limit_concurrent|limit_rate|live|log|log_append|log_name|log_skip|map|method|metrics|mirror|php_fastcgi|push|rate_limit|ready|redir|replace|request_body|request_header|respond|reverse_proxy|rewrite|root|route|split|templates|timeouts|tls|tracing|try_files|uri|vars)\ze%(\s|$)/
syntax match svcKeyword /\v^\s*\zs%(else|import|let|test|upstream|use|when|expect)\ze%(\s|$)/
syntax match svcKeyword /\v%(\}\s+)@<=else>/
syntax match svcMethod /\v^\s*\zs%([A-Z]+)\ze%(\s|$)/
syntax match svcExpectation /\v%(^\s*expect\s+)@<=%(body|body_contains|body_matches|handler|header|log|mirror|no_header|no_log|no_mirror|site|status|upstream|upstream_header|upstream_path)>/
syntax match svcSnippet /\v^\&?\(\zs[^() \t]+\ze\)/
syntax match svcSnippet /\v%(^\s*%(use|import|invoke)\s+)@<=[A-Za-z0-9_-]+\ze%(\s|$)/
syntax match svcName /\v%(\s|^)@<=\@[^ \t{}]+/
syntax match svcName /\v%(^\s*let\s+)@<=\S+/
syntax match svcUpstream /\v%(^\s*upstream\s+)@<=[A-Za-z0-9_-]+\ze\s*\{/
syntax match svcUpstream /\v%(upstream:\/\/)@<=[A-Za-z0-9_-]+/
syntax region svcMatcherLine start=/\v%(^\s*)@<=\@\S+\s/ end=/$/ oneline keepend contains=svcName,svcMatcher,svcOperator,svcString,svcPlaceholder,svcComment,svcNumber
syntax region svcMatcherLine start=/\v%(^\s*|\}\s+else\s+)@<=when\s/ end=/$/ oneline keepend contains=svcWhen,svcName,svcMatcher,svcOperator,svcString,svcPlaceholder,svcComment,svcNumber
syntax match svcWhen contained /\v%(\s|^)@<=%(when)\ze%(\s|$)/
syntax match svcMatcher contained /\v%(\s|^)@<=%(all|any|client_ip|expression|file|header|header_regexp|host|method|path|path_regexp|protocol|query|remote_ip|share|tls|url_pattern|vars|vars_regexp)\ze%(\s|$)/
syntax match svcOperator contained /\v%(\s|^)@<=%(and|not|or|\(|\))\ze%(\s|$)/
syntax match svcNumber /\v%(\s)@<=%(\d+%(\.\d+)?%(ns|us|ms|[smhdw]|[KMGT]i?B?|B)?|[1-5]xx)\ze%(\s|$)/
syntax match svcBoolean /\v%(\s)@<=%(on|off|true|false|yes|no)\ze%(\s|$)/
syntax match svcPlaceholder /\v\\@<!\{[^{} \t]+\}/
syntax match svcEscape contained /\\["\\]/
syntax region svcString start=/\v%(^|\s|\=)@<="/ skip=/\\"/ end=/"/ contains=svcEscape,svcPlaceholder
syntax region svcString start=/\v%(^|\s|\=)@<=`/ end=/`/ contains=svcPlaceholder
syntax region svcString matchgroup=svcHeredoc start=/\v%(^|\s)@<=\<\<\z([A-Za-z0-9_-]+)$/ end=/\z1/ contains=svcPlaceholder
syntax match svcComment /\v%(^|\s)@<=#.*$/ contains=@Spell

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

let b:current_syntax = 'configfile'
