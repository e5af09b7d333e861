/** The lint rule `placeholder/of-nginx`, which reports nginx variables. They have no meaning here. */
import { suggestName } from '../../diagnostics/suggest.ts';
import { linesOf } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Placeholders that correspond to nginx variables. */
const PLACEHOLDERS_BY_VARIABLE: ReadonlyMap<string, string> = new Map([
	['uri', '{path}'],
	['document_uri', '{path}'],
	['request_uri', '{uri}'],
	['host', '{host}'],
	['http_host', '{hostport}'],
	['server_name', '{host}'],
	['server_port', '{port}'],
	['scheme', '{scheme}'],
	['request_method', '{method}'],
	['args', '{query}'],
	['query_string', '{query}'],
	['is_args$args', '{?query}'],
	['is_args$query_string', '{?query}'],
	['remote_addr', '{remote_host}'],
	['remote_port', '{remote_port}'],
	['proxy_add_x_forwarded_for', '{header.X-Forwarded-For}'],
	['document_root', '{vars.root}'],
	['request_id', '{uuid}'],
	['ssl_client_s_dn', '{tls_client_subject}'],
]);

/** Prefixes of placeholders that correspond to the prefixes of nginx variables such as `$http_NAME`. */
const PLACEHOLDER_PREFIXES: ReadonlyMap<string, string> = new Map([
	['http', 'header'],
	['arg', 'query'],
	['cookie', 'cookie'],
]);

export const nginxVariable: LintRule = {
	name: 'placeholder/of-nginx',
	severity: 'warning',
	summary: 'An nginx variable is used, which is plain text here.',
	documentation: [
		'`try_files $uri /index.html` looks for a file named `$uri`. Placeholders have braces: `{path}`. Groups of a',
		'regular expression on the same line and the contents of heredocs are not reported.',
	].join('\n'),
	checkedForConfigfile: true,
	dependsOn: 'site',
	check: cx => {
		if (!cx.tree) return;
		for (const { line } of linesOf(cx.tree)) {
			for (const { text, quote, span } of line.words) {
				if (quote === 'heredoc' || !text.includes('$')) continue;
				for (const { 0: variable, 1: name } of text.matchAll(/(?<![\\$])\$(is_args\$\w+|[a-z]\w*)(?![\w(])/g)) {
					const placeholder = placeholderFor(name!);
					if (placeholder === undefined || line.words.some(word => definesGroup(word.text, name!))) continue;
					const offset = span.source.text.indexOf(variable, span.start);
					const isLiteral = offset !== -1 && offset + variable.length <= span.end;
					const reportedSpan = isLiteral ? { source: span.source, start: offset, end: offset + variable.length } : span;
					cx.report(reportedSpan, `\`${variable}\` is an nginx variable and plain text here.`, {
						...suggestName({ text: variable, span: reportedSpan }, placeholder),
					});
				}
			}
		}
	},
};

function placeholderFor(name: string): string | undefined {
	const placeholder = PLACEHOLDERS_BY_VARIABLE.get(name);
	if (placeholder !== undefined) return placeholder;
	const underscoreIndex = name.indexOf('_');
	const placeholderPrefix = PLACEHOLDER_PREFIXES.get(name.slice(0, underscoreIndex));
	if (underscoreIndex === -1 || placeholderPrefix === undefined || underscoreIndex === name.length - 1)
		return undefined;
	const suffix = name.slice(underscoreIndex + 1);
	return `{${placeholderPrefix}.${placeholderPrefix === 'header' ? fieldName(suffix) : suffix}}`;
}

/** Converts a name such as `x_real_ip` to the usual spelling of a field: `X-Real-Ip`. */
function fieldName(name: string): string {
	return name
		.split('_')
		.map(part => part.charAt(0).toUpperCase() + part.slice(1))
		.join('-');
}

function definesGroup(text: string, name: string): boolean {
	return text.includes(`(?<${name}>`) || text.includes(`(?P<${name}>`);
}
