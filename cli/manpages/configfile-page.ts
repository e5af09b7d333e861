/** `svc-configfile.5`: the language, with the documentation of every directive, matcher and global option from its definition. */

import { lintRules } from '../../compiler/lint/index.ts';
import { balancers } from '../../compiler/modules/providers/balancers/index.ts';
import { dnsProviders } from '../../compiler/modules/providers/dns/index.ts';
import { issuers } from '../../compiler/modules/providers/issuers/index.ts';
import { stores } from '../../compiler/modules/providers/stores/index.ts';
import { directives } from '../../compiler/modules/registry/directives.ts';
import { matchers } from '../../compiler/modules/registry/matchers.ts';
import { options } from '../../compiler/modules/registry/options.ts';
import { boldCode, codeParagraph, type ManualPage, paragraph, renderMarkdown, section, subsection } from './roff.ts';

/** The documentation in a definition. */
interface Documented {
	readonly names: { readonly configfile: readonly string[]; readonly compatfile: readonly string[] };
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
}

const STRUCTURE = `
A configuration is text in UTF-8. A line is a word and its arguments; \`{\` at the end of a line opens a block, which
\`}\` alone on a line closes. \`#\` at the beginning of a word starts a comment. Words with blanks stand in \`"…"\`,
where \`\\"\` is a quote, or in backquotes, where nothing is special; \`<<END\` begins a text of several lines that
ends with the line \`END\`.

A block without a name, first in the file, holds global options. Every other block is a site: one address or several,
and the directives that answer its requests.

\`\`\`
{
	admin 127.0.0.1:2019
}

http://example.com:8080 {
	root /srv/www
	when path /api/* {
		reverse_proxy 127.0.0.1:9000
	} else {
		file_server
	}
}
\`\`\`

A matcher decides whether a directive runs: a path (\`/api/*\`), a named matcher (\`@api\`) or \`*\` as the first
argument. \`@api path /api/*\` defines a named one: by one matcher, by a block whose lines must all hold, or, in a
Configfile, by an expression of matchers with \`and\`, \`or\`, \`not\` and parentheses that are words of their own.

Words in braces are placeholders, filled in for each request: \`{path}\`, \`{host}\`, \`{header.User-Agent}\`.
\`{env.NAME}\` is a variable of the environment; \`{$NAME}\` and \`{$NAME:default}\` are replaced before the text is
read.

\`import FILE\` puts in the lines of other files. \`(name) parameter=default { … }\` is a snippet and \`use name\` puts
it in; \`{param.NAME}\` are its parameters. \`let name value…\` is a constant, \`{let.NAME}\`. \`upstream name { … }\` is
a pool of upstreams for \`reverse_proxy upstream://name\`.

\`test "what it proves" { … }\` holds requests and what is expected of their answers; \`svc validate\` runs it, without a
network. \`upstream answers 201 "created"\`, \`upstream fails\` and \`upstream times out\` say what an upstream does, several lines
what it does in turn, and \`upstream 10.0.0.1:9000 fails\` what one of them does. \`repeat 10\` sends the request ten times,
and \`after 61s\` lets time pass before the next one.

In a Configfile directives run as they are written. A Caddyfile, called a Compatfile below, is read as the server that it
was written for reads it: directives are sorted, and the matchers of a block are joined by \`and\`. What is spelled
differently there is noted below.
`;

const LINT = `
\`svc validate --lint\` looks for what is accepted and most likely not meant; \`--strict\` makes its warnings refuse a
configuration. A comment silences a rule: at the end of a line for that line, on a line of its own for the next line and
the block that it opens.

\`\`\`
redir /a /b # lint: off redirect/loop
# lint: off path/prefix-without-slash -- /apiv1 and /apiv2 are meant
handle /api* {
	respond ok
}
# lint: off-file tls/off-on-public-name
\`\`\`

\`area/*\` names all rules of an area, no name means every rule. Errors cannot be silenced.
`;

/** Generates the page from the registries. */
export function configfilePage(): ManualPage {
	return {
		name: 'svc-configfile',
		section: 5,
		summary: 'configuration of svc',
		body: [
			...section('Description'),
			...renderMarkdown(STRUCTURE),
			...section('Global options'),
			...options
				.map(option =>
					isWritten(option) ? option : { ...option, names: { configfile: [option.id], compatfile: [option.id] } },
				)
				.sort(byName)
				.flatMap(documented),
			...section('Directives'),
			...directives.filter(isWritten).sort(byName).flatMap(documented),
			...section('Matchers'),
			...matchers.flatMap(({ id, ...matcher }) =>
				documented({ names: { configfile: [id], compatfile: [id] }, ...matcher }),
			),
			...section('Balancing policies'),
			...balancers.flatMap(({ id, ...balancer }) =>
				documented({ names: { configfile: [id], compatfile: [id] }, ...balancer }),
			),
			...section('Certificate issuers'),
			...issuers.flatMap(module => documented(named(module))),
			...section('DNS providers'),
			...dnsProviders.flatMap(module => documented(named(module))),
			...section('Stores'),
			...stores.flatMap(module => documented(named(module))),
			...section('Handlers without a directive'),
			...paragraph('These handlers occur only in the JSON document that `svc adapt` prints.'),
			...directives
				.filter(directive => !isWritten(directive))
				.flatMap(directive =>
					documented({ ...directive, names: { configfile: [directive.id], compatfile: [directive.id] } }),
				),
			...section('Lint rules'),
			...renderMarkdown(LINT),
			...lintRules.flatMap(rule => [
				...subsection(rule.name),
				...paragraph(rule.severity === 'note' ? `${rule.summary} A note.` : rule.summary),
				...renderMarkdown(rule.documentation),
			]),
			...section('Files'),
			...paragraph(
				'A file is JSON if its name ends in `.json`, a Compatfile if its name begins with `caddyfile` or `compatfile` or ends in `.caddyfile` or `.compatfile`, ignoring case, and otherwise a Configfile.',
			),
			...section('See also'),
			['svc', 'svc-validate', 'svc-explain', 'svc-fmt'].map(page => `${boldCode(page)}(1)`).join(',\n'),
		],
	};
}

/** Adds the names of a module whose ID is its word in both languages. */
function named<T extends { readonly id: string }>(module: T): T & Pick<Documented, 'names'> {
	return { ...module, names: { configfile: [module.id], compatfile: [module.id] } };
}

function isWritten({ names }: Pick<Documented, 'names'>): boolean {
	return names.configfile.length + names.compatfile.length > 0;
}

/** Returns the word that users write. */
function nameOf({ names }: Pick<Documented, 'names'>): string {
	return names.configfile[0] ?? names.compatfile[0]!;
}

function byName(a: Pick<Documented, 'names'>, b: Pick<Documented, 'names'>): number {
	return nameOf(a) < nameOf(b) ? -1 : 1;
}

/** Renders a definition: its usage, summary and documentation. */
function documented(of: Documented): string[] {
	const note = spellings(of);
	return [
		...subsection(nameOf(of)),
		...codeParagraph(of.usage),
		...paragraph(of.summary),
		...renderMarkdown(of.documentation),
		...(note === '' ? [] : paragraph(note)),
	];
}

/** Describes what the name alone does not show: aliases, and words that exist in only one language. */
function spellings({ names }: Documented): string {
	const list = (words: readonly string[]): string => words.map(word => `\`${word}\``).join(', ');
	if (names.compatfile.length === 0) return 'Not available in a Compatfile.';
	if (names.configfile.length === 0) return 'Only in a Compatfile.';
	const name = names.configfile[0]!;
	const other = names.configfile.slice(1);
	const elsewhere = names.compatfile.filter(word => word !== name && !other.includes(word));
	const sentences: string[] = [];
	if (other.length > 0) sentences.push(`Also spelled ${list(other)}.`);
	if (elsewhere.length > 0) {
		sentences.push(`In a Compatfile ${names.compatfile.includes(name) ? 'also ' : ''}${list(elsewhere)}.`);
	}
	return sentences.join(' ');
}
