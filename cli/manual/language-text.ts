/** The general parts of the reference, in Markdown: how a configuration is written, and lint rules. */

/** Explains how a configuration is written. */
export const LANGUAGE_TEXT = `
A configuration is text in UTF-8. A line is a word and its arguments; \`{\` at the end of a line opens a block, which
\`}\` alone on a line closes. \`#\` at the beginning of a word starts a comment. Words with blanks are written in \`"…"\`,
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

\`import FILE\` inserts the lines of other files. \`(name) parameter=default { … }\` defines a snippet, and \`use name\`
inserts it; \`{param.NAME}\` are its parameters. \`let name value…\` defines a constant, \`{let.NAME}\`, and
\`upstream name { … }\` a pool of upstreams for \`reverse_proxy upstream://name\`.

\`test "what it proves" { … }\` holds requests and what is expected of their answers; \`svc validate\` runs it, without a
network. \`upstream answers 201 "created"\`, \`upstream fails\` and \`upstream times out\` say what upstreams do; of several such
lines, each is for one request that reaches an upstream, in order. \`upstream 10.0.0.1:9000 fails\` is for that upstream alone.
\`repeat 10\` sends the request ten times, and \`after 61s\` lets time pass before the next one.

In a Configfile, directives run in the order in which they are written. A Caddyfile, called a Compatfile below, is read as Caddy
reads it: directives are sorted, and the matchers of a block are joined by \`and\`. What is spelled differently there is noted
below.
`;

/** Explains how lint rules are applied and silenced. */
export const LINT_TEXT = `
\`svc validate --lint\` reports what is valid but probably not intended; with \`--strict\`, a configuration with such warnings is
refused. A comment silences a rule: at the end of a line for that line, on a line of its own for the next line and the block that
it opens.

\`\`\`
redir /a /b # lint: off redirect/loop
# lint: off path/prefix-without-slash -- /apiv1 and /apiv2 are meant
handle /api* {
	respond ok
}
# lint: off-file tls/off-on-public-name
\`\`\`

\`area/*\` means all rules of an area; without a name, the comment silences all rules. Errors cannot be silenced.
`;
