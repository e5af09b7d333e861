/** `placeholder/of-nginx`. */
import { linesOf } from '../lint-context.ts';
import type { LintRule } from '../lint-rule.ts';

/** Variables of nginx by name, with our placeholders. */
const VARIABLES: ReadonlyMap<string, string> = new Map([
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

/** Variables whose names end in that of a field or a parameter. */
const FAMILIES: ReadonlyMap<string, string> = new Map([
	['http', 'header'],
	['arg', 'query'],
	['cookie', 'cookie'],
]);

/** A variable of nginx, which is a text like any other here. */
export const placeholderOfNginx: LintRule = {
	name: 'placeholder/of-nginx',
	severity: 'warning',
	summary: 'A variable of nginx, which is a text like any other here.',
	documentation: [
		'`try_files $uri /index.html` looks for a file that is called `$uri`. Placeholders have braces: `{path}`. A group of a',
		'regular expression on the same line, and what stands in a heredoc, is left alone.',
	].join('\n'),
	ofConfigfile: true,
	check: cx => {
		if (!cx.tree) return;
		for (const { line } of linesOf(cx.tree)) {
			for (const { text, quote, span } of line.words) {
				if (quote === 'heredoc' || !text.includes('$')) continue;
				for (const { 0: whole, 1: name } of text.matchAll(/(?<![\\$])\$(is_args\$\w+|[a-z]\w*)(?![\w(])/g)) {
					const instead = placeholderFor(name!);
					if (instead === undefined || line.words.some(word => isGroup(word.text, name!))) continue;
					const at = span.source.text.indexOf(whole, span.start);
					const exact = at !== -1 && at + whole.length <= span.end;
					const place = exact ? { source: span.source, start: at, end: at + whole.length } : span;
					cx.report(place, `\`${whole}\` is a variable of nginx, and a text here.`, {
						label: `did you mean \`${instead}\`?`,
						...(exact ? { fix: [{ span: place, text: instead }] } : {}),
					});
				}
			}
		}
	},
};

function placeholderFor(name: string): string | undefined {
	const known = VARIABLES.get(name);
	if (known !== undefined) return known;
	const underscore = name.indexOf('_');
	const family = FAMILIES.get(name.slice(0, underscore));
	if (underscore === -1 || family === undefined || underscore === name.length - 1) return undefined;
	const own = name.slice(underscore + 1);
	return `{${family}.${family === 'header' ? fieldName(own) : own}}`;
}

/** `x_real_ip` as fields are written: `X-Real-Ip`. */
function fieldName(name: string): string {
	return name
		.split('_')
		.map(part => part.charAt(0).toUpperCase() + part.slice(1))
		.join('-');
}

function isGroup(text: string, name: string): boolean {
	return text.includes(`(?<${name}>`) || text.includes(`(?P<${name}>`);
}
